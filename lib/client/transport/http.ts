/**
 * The operations over HTTP. Each call is one attempt and results in one answer or {@link NoResponse}. This layer never retries, because
 * only its caller knows whether that is safe.
 */
import type { Held, LeaseView, Waiting } from "../../core/commands.js";
import type { Refusal } from "../../core/errors.js";
import { refuseLocally } from "../../core/errors.js";
import type { CallOptions, LeaseRef } from "../../core/api/locks.js";
import { NoResponse } from "../../core/api/locks.js";
import type { ServiceApi, Started } from "../../core/api/runs.js";
import type { SetHeld, SetRef } from "../../core/api/sets.js";
import type { Check } from "../../contract/checks.js";
import * as answers from "../../contract/checks.js";
import type { Aside } from "../../contract/encode.js";
import { encode } from "../../contract/encode.js";
import type { OperationName, PathOf } from "../../contract/routes.js";
import type { Callers } from "../lease/renewal-batcher.js";
import { fromProblem, PROBLEM_TYPE, STRUCK, withoutIds } from "../../contract/problem.js";
import type { Sockets } from "./held-requests.js";
import { withinShare } from "./held-requests.js";
import type { HttpOptions } from "./http-options.js";
import type { Answer } from "./send.js";
import { senderBy, socketsTo, StaleConnection } from "./send.js";

interface Reply extends Omit<Answer, "text"> {
  /** A question about the options, for an answer of a gateway that they may have caused. */
  readonly askAbout?: string;
  readonly body: unknown;
}

/** The errors of a host that doesn't exist or has no listener. */
const CONNECT_ERRORS: readonly string[] = ["ECONNREFUSED", "ENOTFOUND"];
/** The errors of a certificate that this client doesn't trust. No request was sent to its host. */
const UNTRUSTED = /CERT|^UNABLE_TO_|^INVALID_CA|^HOSTNAME_MISMATCH/;
/** The names that runtimes without codes have for these errors in their messages. */
const SAID: readonly (readonly [said: RegExp, code: string])[] = [
  [/connection refused/i, "ECONNREFUSED"],
  [/dns error/i, "ENOTFOUND"],
  [/certificate/i, "CERTIFICATE"],
];

/** The characters of the name and of the value of a header. */
const HEADER_NAME = /^[\w!#$%&'*+.^`|~-]+$/;
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
/** The number of attempts, about two seconds of them, after which a URL that never answered is considered wrong. */
const ATTEMPTS_AT_NOBODY = 8;

/** A shorter value is no credential, and may be a part of any word. */
const CREDENTIAL_MIN_CHARS = 8;

/** Stands for the result of a heartbeat that the answer lacks. */
const NO_RESULT: { readonly key?: string; readonly status: number } = { status: 0 };

/** Sends one request by the route of the operation. `body` stands in place of the request's own members, if it is given. */
type Call = <Name extends OperationName>(
  name: Name,
  request: PathOf<Name> & Aside,
  options: CallOptions | undefined,
  body?: object,
) => Promise<Reply>;

/** Returns the operations of the service at `options.url`. */
export function httpApi(options: HttpOptions): ServiceApi {
  const call = callerOf(options);
  return { ...leaseCalls(call), ...operatorCalls(call), ...runCalls(call, () => socketsTo(options.url, options.fetch)), ...setCalls(call) };
}

/** Returns what tells the callers of a client with these options apart; undefined if all its requests are of one caller. */
export function callersOf({ sign, token }: Pick<HttpOptions, "sign" | "token">): Callers | undefined {
  if (sign && sign.oneCaller !== true) return () => Symbol("unknown");
  return typeof token === "function" ? token : undefined;
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

  return async (name, request, callOptions = {}, given) => {
    const { method, path, body, headers: asks } = encode(name, request, given);
    const url = base + path;
    const text = body && JSON.stringify(body);
    const plain = { ...options.headers, ...asks, ...(text !== undefined && { "content-type": "application/json" }) };
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
    const wrong = Object.keys(headers).find((name) => !HEADER_NAME.test(name) || !HEADER_VALUE.test(headers[name] ?? ""));
    if (wrong !== undefined)
      return unsent("not-configured", `The header ${JSON.stringify(wrong)} has a character that none may have, such as a line break`);
    let answer: Answer;
    try {
      answer = await send(url, { method, headers, body: text }, callOptions);
    } catch (cause) {
      const why = describe(cause);
      if (CONNECT_ERRORS.includes(why)) return nobody(why);
      if (UNTRUSTED.test(why)) return unsent("not-configured", `The certificate of ${base} is not trusted (${why})`);
      throw new NoResponse(`${method} ${base}: no answer (${why})`, { cause, isStale: cause instanceof StaleConnection });
    }
    atNobody = Number.NEGATIVE_INFINITY;
    const { status, headers: received, text: said } = answer;
    const isService = isSuccess(answer) || received.get("content-type")?.startsWith(PROBLEM_TYPE);
    const answered = parse(isService ? said : withoutCredentials(said, headers));
    if (status >= 400 && !isAbout(path, answered)) throw new NoResponse(`the answer ${status} is one to another request`);
    return { status, headers: received, askAbout, body: answered };
  };
}

/** True unless the problem document names another key than the request. */
function isAbout(path: string, body: unknown): boolean {
  const { instance = path } = (body ?? {}) as { readonly instance?: unknown };
  return `${path}/`.startsWith(`${String(instance)}/`);
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
    async acquire(request, options) {
      const reply = await call("acquire", request, options);
      return waiting(reply) ?? held(reply, request, grantIn(reply));
    },
    async renew(request, options) {
      return held(await call(request.kind === "runs" ? "renewRun" : "renew", request, options), request, "renewed");
    },
    async check(ref, options) {
      const reply = await call(ref.kind === "runs" ? "checkRun" : "check", ref, options);
      return waiting(reply) ?? held(reply, ref, "checked");
    },
    async changeMode(request, options) {
      const reply = await call("changeMode", request, options);
      return held(reply, request, isReplay(reply) ? "replayed" : "changed");
    },
    async waitForCondition({ to, condition, ...ref }, options) {
      const reply = await call("wait", ref, options, { condition, ...to });
      return waiting(reply) ?? refusal(reply);
    },
    async notify(request, options) {
      return told(await call("notify", request, options), answers.isNotified, (notified) => ({ ok: true, how: "notified", ...notified }));
    },
    async transfer({ to, ...ref }, options) {
      const reply = await call("transfer", ref, options, to);
      return held(reply, { key: ref.key, leaseId: to.leaseId }, "transferred");
    },
    async release(ref, options) {
      const reply = await call(ref.kind === "runs" ? "abandonRun" : "release", ref, options);
      const state = reply.headers.get("lease-state");
      return reply.status === 204 ? { ok: true, state: answers.isLeaseState(state) ? state : "unknown" } : refusal(reply);
    },
  };
}

/** The calls that look at locks and end holds of others. */
function operatorCalls(call: Call): Pick<ServiceApi, "breakHold" | "inspect" | "list" | "health"> {
  return {
    async breakHold(request, options) {
      return told(await call("break", request, options), answers.isBreaking, asTold);
    },
    async inspect({ key, ifNoneMatch, waitMs }, options) {
      const reply = await call("inspect", { key, ifNoneMatch, waitMs }, options);
      return (
        unchanged(reply, ifNoneMatch) ??
        told(reply, of({ key }, answers.isInspection), (inspection) => ({ ok: true, tag: tagOf(reply), inspection }))
      );
    },
    async list(request, options) {
      return told(await call("list", request, options), answers.isList, asTold);
    },
    async health(request, options) {
      return told(await call("health", request, options), answers.isHealth, asTold);
    },
  };
}

/** The calls of runs. */
function runCalls(call: Call, sockets: () => Sockets): Pick<ServiceApi, "start" | "complete" | "run" | "runs" | "resetRun"> {
  return {
    async start(request, options) {
      const reply = await withinShare(sockets(), request.waitMs ?? 0, (waitMs) => call("start", { ...request, waitMs }, options));
      if (isSuccess(reply) && answers.isReplayed(reply.body)) return { ok: true, ...reply.body };
      return told(reply, of(request, answers.isStarted), ({ state, attempt, takeover, checkpoint, ...lease }): Started => ({
        ...{ ok: true, how: grantIn(reply), state, attempt, takeover, lease },
        ...(checkpoint !== undefined && { checkpoint }),
      }));
    },
    async complete({ outcome, ...ref }, options) {
      const reply = await call("complete", ref, options, outcome);
      return told(reply, answers.isRecorded, () => ({ ok: true, how: isReplay(reply) ? "replayed" : "recorded" }));
    },
    async run({ key, ifNoneMatch, waitMs }, options) {
      const reply = await call("run", { key, ifNoneMatch, waitMs }, options);
      return unchanged(reply, ifNoneMatch) ?? told(reply, of({ key }, answers.isRun), (run) => ({ ok: true, tag: tagOf(reply), run }));
    },
    async runs(request, options) {
      return told(await call("runs", request, options), answers.isRunList, asTold);
    },
    async resetRun(request, options) {
      return told(await call("resetRun", request, options), answers.isReset, () => ({ ok: true }));
    },
  };
}

/** The calls that name many leases. */
function setCalls(call: Call): Pick<ServiceApi, "acquireSet" | "renewSet" | "releaseSet" | "renewMany"> {
  return {
    async acquireSet(request, options) {
      const reply = await call("acquireSet", request, options);
      return heldSet(reply, { leaseId: request.leaseId, keys: request.locks.map(({ key }) => key) }, grantIn(reply));
    },
    async renewSet(request, options) {
      return heldSet(await call("renewSet", request, options), request, "renewed");
    },
    async releaseSet(request, options) {
      const isEnded = ofKeys(request.keys, answers.isSetEnded, ({ states }) => states);
      return told(await call("releaseSet", request, options), isEnded, asTold);
    },
    async renewMany({ leases }, options) {
      const body = { leases: leases.map(({ key, leaseId, leaseMs }) => ({ key, leaseId, leaseMs })) };
      const reply = await call("renewMany", {}, options, body);
      return told(reply, answers.isRenewals, ({ results }) => ({
        ok: true,
        results: leases.map((ref, at) => {
          const { status, ...one } = results[at] ?? NO_RESULT;
          return held({ ...reply, status: one.key === ref.key ? status : 0, body: one }, ref, "renewed");
        }),
      }));
    },
  };
}

function isSuccess({ status }: Pick<Reply, "status">): boolean {
  return status >= 200 && status < 300;
}

/** Returns the answer's word on a lease: granted now, or by an earlier request. */
function grantIn({ status }: Reply): "granted" | "replayed" {
  return status === 201 ? "granted" : "replayed";
}

/** True if the service carried the request out before. */
function isReplay({ headers }: Reply): boolean {
  return headers.get("idempotent-replayed") !== null;
}

function tagOf({ headers }: Reply): string {
  return headers.get("etag") ?? "";
}

/** Returns the answer that nothing changed, if the request named a state and this is one. */
function unchanged(reply: Reply, ifNoneMatch: string | undefined) {
  return reply.status === 304 && ifNoneMatch !== undefined ? ({ ok: true, tag: tagOf(reply), unchanged: true } as const) : undefined;
}

/** Returns the answer in the body of a success. @throws NoResponse if it isn't an answer to this request */
function told<Body, Told>(reply: Reply, isTold: Check<Body>, answerOf: (body: Body) => Told): Told | Refusal {
  if (!isSuccess(reply)) return refusal(reply);
  if (!isTold(reply.body)) throw new NoResponse(`the answer ${reply.status} is not one to this request`);
  return answerOf(reply.body);
}

/** Returns the members of the body as the answer. */
function asTold<Body extends object>(body: Body): Body & { readonly ok: true } {
  return { ...body, ok: true };
}

/** Returns a check that is passed by what is about this key, and this lease if it names one. */
function of<Body extends Partial<LeaseRef>>(
  { key, leaseId }: { readonly key: string; readonly leaseId?: string },
  isTold: Check<Body>,
): Check<Body> {
  return (body): body is Body => isTold(body) && body.key === key && (leaseId === undefined || body.leaseId === leaseId);
}

/** Returns a check that is passed by what has a member for each of these keys. */
function ofKeys<Body>(keys: readonly string[], isTold: Check<Body>, membersOf: (body: Body) => object): Check<Body> {
  return (body): body is Body => isTold(body) && keys.every((key) => Object.hasOwn(membersOf(body), key));
}

/** Returns the set. @throws NoResponse if the reply is not this one. */
function heldSet(reply: Reply, { leaseId, keys }: SetRef, how: SetHeld["how"]): SetHeld | Refusal {
  const isThis = ofKeys(keys, answers.isSet, (set) => (set.leaseId === leaseId ? set.fencingTokens : {}));
  return told(reply, isThis, (set) => ({ ok: true, how, ...set }));
}

/** Returns the lease. @throws NoResponse if the reply is not this one. */
function held(reply: Reply, ref: LeaseRef, how: Held["how"]): Held | Refusal {
  return told(reply, of<LeaseView>(ref, answers.isLease), (lease) => ({ ok: true, how, lease }));
}

/** Returns the place in the queue; undefined if the reply is not one. */
function waiting(reply: Reply): Waiting | Refusal | undefined {
  if (reply.status !== 202) return undefined;
  return told(reply, answers.isWaiting, ({ state, position, retryAfterMs, pollWithinMs, condition }) => ({
    ...{ ok: true, state, position, retryAfterMs, pollWithinMs },
    ...(condition !== undefined && { condition }),
  }));
}

/** Returns the refusal. @throws NoResponse if only a gateway answered, and the service may have been reached */
function refusal({ status, body, headers, askAbout }: Reply): Refusal {
  const after = headers.get("retry-after") ?? "";
  const retryAfterMs = /^\d+$/.test(after) ? 1000 * Number(after) : undefined;
  const refused = status >= 400 ? fromProblem(status, body, askAbout) : undefined;
  if (!refused) throw new NoResponse(`the answer was ${status}, not from the service`, { retryAfterMs });
  return { ...(retryAfterMs !== undefined && { retryAfterMs }), ...refused };
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
  const { code } = inner as NodeJS.ErrnoException;
  return code ?? SAID.find(([said]) => said.test(inner.message))?.[1] ?? inner.name;
}
