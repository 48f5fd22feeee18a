/**
 * The operations over HTTP. Each call is one attempt and results in one answer or {@link NoResponse}. This layer never retries, because
 * only its caller knows whether that is safe.
 */
import type { Held, LeaseState, LeaseView, Notifying, Waiting } from "../../core/commands.js";
import type { Refusal } from "../../core/errors.js";
import { refuseLocally } from "../../core/errors.js";
import type { CallOptions, Inspected, Kind, LeaseRef } from "../../core/api/locks.js";
import { NoResponse } from "../../core/api/locks.js";
import type { Replayed, RunFound, ServiceApi, Started } from "../../core/api/runs.js";
import type { Renewed, SetHeld } from "../../core/api/sets.js";
import type { Inspection, RunView } from "../../core/lock/views.js";
import { fromProblem, PROBLEM_TYPE, STRUCK, withoutIds } from "../../wire/problem.js";
import type { Answer } from "./send.js";
import { senderBy } from "./send.js";

/** Signs a request: takes the plain request and returns the headers to send. */
export type Sign = (request: {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}) => Promise<Readonly<Record<string, string>>>;

/** The service's URL and the credentials and headers for its requests. */
export interface HttpOptions {
  /** The API's URL, with its stage if it has one. */
  readonly url: string;
  /** Signs each request; see `holdfast/sigv4`. */
  readonly sign?: Sign | undefined;
  /** A bearer token, or a function that returns a current one. */
  readonly token?: string | (() => string | Promise<string>) | undefined;
  /** Headers for every request. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /**
   * Sends the requests, for example through a proxy that is set for `fetch` alone.
   * @default `node:http` and `node:https` with their global agents; the global `fetch` outside Node, and where it was replaced
   */
  readonly fetch?: typeof fetch | undefined;
}

interface Reply extends Omit<Answer, "text"> {
  /** A question about the options, for an answer of a gateway that they may have caused. */
  readonly askAbout?: string;
  readonly body: unknown;
}

/** The errors of a host that doesn't exist or has no listener. */
const NOBODY_THERE: readonly string[] = ["ECONNREFUSED", "ENOTFOUND"];
/** The number of attempts, about two seconds of them, after which a URL that never answered is considered wrong. */
const ATTEMPTS_AT_NOBODY = 8;

/** A shorter value is no credential, and may be a part of any word. */
const CREDENTIAL_MIN_CHARS = 8;

/** Sends one request to a path of the API. */
type Call = (
  method: string,
  path: string,
  body: object | undefined,
  options?: CallOptions,
  extraHeaders?: Record<string, string>,
) => Promise<Reply>;

/** Returns the operations of the service at `options.url`. */
export function httpApi(options: HttpOptions): ServiceApi {
  const call = callerOf(options);
  return { ...leaseCalls(call), ...operatorCalls(call), ...runCalls(call), ...setCalls(call) };
}

function callerOf(options: HttpOptions): Call {
  const { sign, token } = options;
  const send = senderBy(options.fetch);
  const base = options.url.replace(/\/+$/, "");
  const isSigned = sign !== undefined || token !== undefined;
  const askAbout = `is ${base.replace(/[?#].*/, "")} the API's URL, with its stage${isSigned ? "" : ", and does it need the option `sign`"}?`;
  /** The number of attempts without a listener, as long as there was never an answer. */
  let atNobody = 0;

  /** Returns the refusal for a request that was not sent. A caller with a wrong URL learns that soon, and not after all waits are over. */
  function nobody(why: string): Reply {
    const isGivenUp = ++atNobody >= ATTEMPTS_AT_NOBODY;
    const detail = `no answer (${why}) from ${base}${isGivenUp ? ": is the URL right, and does it run?" : ""}`;
    return unsent("unavailable", detail, isGivenUp && { retry: "later" });
  }

  return async (method, path, body, callOptions = {}, extra = {}) => {
    const url = base + path;
    const text = body && JSON.stringify(body);
    const plain = { ...options.headers, ...extra, ...(text !== undefined && { "content-type": "application/json" }) };
    const headers: Record<string, string> = { ...plain };
    try {
      Object.assign(headers, await sign?.({ method, url, headers: plain, ...(text !== undefined && { body: text }) }));
      if (token !== undefined) headers["authorization"] = `Bearer ${typeof token === "string" ? token : await token()}`;
    } catch (cause) {
      // Nothing was sent. Fetching credentials is worth another attempt, unless there are none.
      const code = (cause as { readonly code?: unknown } | undefined)?.code === "not-configured" ? "not-configured" : "unavailable";
      const why = withoutIds((cause instanceof Error ? cause.message : String(cause)).replaceAll(url, base));
      return unsent(code, `The request was not signed: ${why}`);
    }
    try {
      const { status, headers: received, text: said } = await send(url, { method, headers, body: text }, callOptions);
      atNobody = Number.NEGATIVE_INFINITY;
      const isService = (status >= 200 && status < 300) || received.get("content-type")?.startsWith(PROBLEM_TYPE);
      return { status, headers: received, askAbout, body: parse(isService ? said : withoutCredentials(said, headers)) };
    } catch (cause) {
      if (NOBODY_THERE.includes(describe(cause))) return nobody(describe(cause));
      throw new NoResponse(`${method} ${base}: no answer (${describe(cause)})`, { cause });
    }
  };
}

/** Returns the refusal for a request that was certainly not sent. */
function unsent(code: "unavailable" | "not-configured", detail: string, advice: false | { readonly retry: "later" } = false): Reply {
  return { status: 503, headers: new Headers(), body: refuseLocally(code, { definite: true, detail, ...advice }) };
}

/** Returns a gateway's error without the values of the request's headers: it may quote a token that it doesn't accept. */
function withoutCredentials(text: string, { "content-type": _type, prefer: _prefer, ...headers }: Record<string, string>): string {
  const values = Object.values(headers).flatMap((value) => [value, value.replace(/^Bearer /i, "")]);
  return values.filter(({ length }) => length >= CREDENTIAL_MIN_CHARS).reduce((struck, value) => struck.replaceAll(value, STRUCK), text);
}

/** The calls of a lease, of a lock or of a run. */
function leaseCalls(
  call: Call,
): Pick<ServiceApi, "acquire" | "renew" | "check" | "changeMode" | "waitForCondition" | "notify" | "transfer" | "release"> {
  return {
    async acquire({ kind, key, leaseId, waitMs, ...body }, options) {
      const prefer: Record<string, string> = waitMs === undefined ? {} : { prefer: `wait=${Math.floor(waitMs / 1000)}` };
      const reply = await call("PUT", leasePath({ kind, key, leaseId }), body, options, prefer);
      return waiting(reply) ?? held(reply, ({ status }) => (status === 201 ? "granted" : "replayed"));
    },
    async renew({ kind, key, leaseId, ...body }, options) {
      return held(await call("POST", `${leasePath({ kind, key, leaseId })}/renew`, body, options), () => "renewed");
    },
    async check(ref, options) {
      const reply = await call("GET", leasePath(ref), undefined, options);
      return waiting(reply) ?? held(reply, () => "checked");
    },
    async changeMode({ kind, key, leaseId, ...body }, options) {
      const reply = await call("POST", `${leasePath({ kind, key, leaseId })}/mode`, body, options);
      return held(reply, ({ headers }) => (headers.get("idempotent-replayed") === null ? "changed" : "replayed"));
    },
    async waitForCondition({ to, condition, ...ref }, options) {
      const reply = await call("POST", `${leasePath(ref)}/wait`, { condition, ...to }, options);
      return waiting(reply) ?? refusal(reply);
    },
    async notify({ kind, key, leaseId, ...body }, options) {
      const reply = await call("POST", `${leasePath({ kind, key, leaseId })}/notify`, body, options);
      return isSuccess(reply) ? { ok: true, how: "notified", ...(reply.body as Pick<Notifying, "notified">) } : refusal(reply);
    },
    async transfer({ to, ...ref }, options) {
      return held(await call("POST", `${leasePath(ref)}/transfer`, to, options), () => "transferred");
    },
    async release(ref, options) {
      const reply = await call("DELETE", leasePath(ref), undefined, options);
      return reply.status === 204 ? { ok: true, state: (reply.headers.get("lease-state") ?? "unknown") as LeaseState } : refusal(reply);
    },
  };
}

/** The calls that look at locks and end holds of others. */
function operatorCalls(call: Call): Pick<ServiceApi, "breakHold" | "inspect" | "list" | "health"> {
  return {
    async breakHold({ key, ...body }, options) {
      return told(await call("POST", `${keyPath("locks", key)}/break`, body, options));
    },
    async inspect({ key, ...conditions }, options): Promise<Inspected | Refusal> {
      const reply = await call("GET", keyPath("locks", key), undefined, options, preconditions(conditions));
      const tag = reply.headers.get("etag") ?? "";
      if (reply.status === 304 && conditions.ifNoneMatch !== undefined) return { ok: true, tag, unchanged: true };
      return isSuccess(reply) ? { ok: true, tag, inspection: reply.body as Inspection } : refusal(reply);
    },
    async list(query, options) {
      return told(await call("GET", `/v1/locks${queryText(query)}`, undefined, options));
    },
    async health(query, options) {
      return told(await call("GET", `/v1/health${queryText(query)}`, undefined, options));
    },
  };
}

/** The calls of runs. */
function runCalls(call: Call): Pick<ServiceApi, "start" | "complete" | "run" | "runs" | "resetRun"> {
  return {
    async start({ kind: _runs, key, leaseId, waitMs, ...body }, options): Promise<Started | Replayed | Refusal> {
      const reply = await call("PUT", leasePath({ kind: "runs", key, leaseId }), body, options, preconditions({ waitMs }));
      return isFinished(reply) ? { ok: true, ...reply.body } : started(reply);
    },
    async complete({ key, leaseId, outcome }, options) {
      const reply = await call("PUT", `${leasePath({ kind: "runs", key, leaseId })}/outcome`, outcome, options);
      return isSuccess(reply)
        ? { ok: true, how: reply.headers.get("idempotent-replayed") !== null ? "replayed" : "recorded" }
        : refusal(reply);
    },
    async run({ key, ifNoneMatch, waitMs }, options): Promise<RunFound | Refusal> {
      const reply = await call("GET", keyPath("runs", key), undefined, options, preconditions({ ifNoneMatch, waitMs }));
      const tag = reply.headers.get("etag") ?? "";
      if (reply.status === 304) return { ok: true, tag, unchanged: true };
      return isSuccess(reply) ? { ok: true, tag, run: reply.body as RunView } : refusal(reply);
    },
    async runs(query, options) {
      return told(await call("GET", `/v1/runs${queryText(query)}`, undefined, options));
    },
    async resetRun({ key, reason }, options) {
      return told(await call("POST", `${keyPath("runs", key)}/reset`, { reason }, options));
    },
  };
}

/** The calls that name many leases. */
function setCalls(call: Call): Pick<ServiceApi, "acquireSet" | "renewSet" | "releaseSet" | "renewMany"> {
  return {
    async acquireSet({ leaseId, ...body }, options) {
      const reply = await call("PUT", `/v1/lock-sets/${leaseId}`, body, options);
      return heldSet(reply, reply.status === 201 ? "granted" : "replayed");
    },
    async renewSet({ leaseId, ...body }, options) {
      return heldSet(await call("POST", `/v1/lock-sets/${leaseId}/renew`, body, options), "renewed");
    },
    async releaseSet({ leaseId, ...body }, options) {
      return told(await call("POST", `/v1/lock-sets/${leaseId}/release`, body, options));
    },
    async renewMany({ leases }, options): Promise<Renewed | Refusal> {
      const body = { leases: leases.map(({ key, leaseId, leaseMs }) => ({ key, leaseId, leaseMs })) };
      const reply = await call("POST", "/v1/renewals", body, options);
      if (!isSuccess(reply)) return refusal(reply);
      const { results } = reply.body as { readonly results?: readonly { readonly status: number }[] };
      if (results?.length !== leases.length) throw new NoResponse("the answer is not one per lease");
      return { ok: true, results: results.map(({ status, ...rest }) => held({ ...reply, status, body: rest }, () => "renewed")) };
    },
  };
}

/** Returns the path of a key. Keys need no escaping: their alphabet was chosen for that. */
function keyPath(kind: Kind, key: string): string {
  return `/v1/${kind}/${key}`;
}

function leasePath({ kind = "locks", key, leaseId }: LeaseRef): string {
  return `${keyPath(kind, key)}/leases/${leaseId}`;
}

/** Returns the query string. URLSearchParams would encode a space as `+`, which breaks signatures. */
function queryText(query: object): string {
  const given = Object.entries(query as Readonly<Record<string, string | number | undefined>>);
  const text = given.flatMap(([name, value]) => (value === undefined ? [] : [`${name}=${encodeURIComponent(value)}`])).join("&");
  return text && `?${text}`;
}

/** Returns the headers for a known state and a wait. */
function preconditions({ ifNoneMatch, waitMs = 0 }: { readonly ifNoneMatch?: string | undefined; readonly waitMs?: number | undefined }) {
  const seconds = Math.floor(waitMs / 1000);
  return { ...(ifNoneMatch !== undefined && { "if-none-match": ifNoneMatch }), ...(seconds > 0 && { prefer: `wait=${seconds}` }) };
}

/** Returns the members of a successful answer. */
// eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- the operation's type names its answer
function told<Told extends { readonly ok: true }>(reply: Reply): Told | Refusal {
  return isSuccess(reply) ? ({ ...(reply.body as object), ok: true } as Told) : refusal(reply);
}

function isSuccess({ status, body }: Reply): boolean {
  return status >= 200 && status < 300 && typeof body === "object" && body !== null;
}

/** True if the reply is the outcome of a run. */
function isFinished(reply: Reply): reply is Reply & { readonly body: Omit<Replayed, "ok"> } {
  if (!isSuccess(reply)) return false;
  const { state, attempt } = reply.body as { readonly state?: unknown; readonly attempt?: unknown };
  return (state === "succeeded" || state === "failed") && Number.isSafeInteger(attempt);
}

/** Returns the started run. @throws NoResponse if the reply is not one. */
function started(reply: Reply): Started | Refusal {
  const answer = held(reply, () => (reply.status === 201 ? "granted" : "replayed"));
  if (!answer.ok) return answer;
  const { state, attempt, takeover, checkpoint, ...lease } = reply.body as Partial<Omit<Started, "lease">> & LeaseView;
  if (state !== "running" || attempt === undefined || takeover === undefined)
    throw new NoResponse(`the answer ${reply.status} is not a run`);
  return { ok: true, state, how: answer.how as Started["how"], lease, attempt, takeover, ...(checkpoint !== undefined && { checkpoint }) };
}

/** Returns the set. @throws NoResponse if the reply is not one. */
function heldSet(reply: Reply, how: SetHeld["how"]): SetHeld | Refusal {
  if (!isSuccess(reply)) return refusal(reply);
  const set = reply.body as Omit<SetHeld, "ok" | "how">;
  if (![set.remainingMs, set.leaseMs, set.serverTimeMs].every(Number.isSafeInteger))
    throw new NoResponse(`the answer ${reply.status} is not a set`);
  return { ok: true, how, ...set };
}

/** Returns the lease. @throws NoResponse if the reply lacks the fields that a holder must know. */
function held(reply: Reply, how: (reply: Reply) => Held["how"]): Held | Refusal {
  if (!isSuccess(reply)) return refusal(reply);
  const lease = reply.body as LeaseView;
  if (![lease.fencingToken, lease.remainingMs, lease.leaseMs, lease.version].every(Number.isSafeInteger)) {
    throw new NoResponse(`the answer ${reply.status} is not a lease`);
  }
  return { ok: true, how: how(reply), lease };
}

/** Returns the place in the queue; undefined if the reply is not one. */
function waiting({ status, body }: Reply): Waiting | undefined {
  if (status !== 202) return undefined;
  const { position, retryAfterMs, pollWithinMs, condition } = (body ?? {}) as Waiting;
  if (![position, retryAfterMs, pollWithinMs].every(Number.isSafeInteger)) throw new NoResponse("the answer 202 is not a place");
  return { ok: true, state: "waiting", position, retryAfterMs, pollWithinMs, ...(condition !== undefined && { condition }) };
}

function refusal({ status, body, askAbout }: Reply): Refusal {
  const refused = status >= 400 ? fromProblem(status, body, askAbout) : undefined;
  if (!refused) throw new NoResponse(`the answer was ${status}, not from the service`);
  return refused;
}

function parse(text: string): unknown {
  try {
    return text === "" ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Returns the code or name of a failure. The message is left out because it can quote the URL, which contains the leaseId. */
function describe(cause: unknown): string {
  if (!(cause instanceof Error)) return typeof cause;
  const inner = cause.cause instanceof Error ? cause.cause : cause;
  return (inner as NodeJS.ErrnoException).code ?? inner.name;
}
