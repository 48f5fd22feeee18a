/**
 * The operations over HTTP. Each call is one attempt and results in one answer or {@link NoResponse}. This layer never retries, because
 * only its caller knows whether that is safe.
 */
import { isA } from "../../core/brand.js";
import type { Held, Waiting } from "../../core/commands.js";
import { type LocalDetails, type Refusal, refuseLocally } from "../../core/errors.js";
import { type AnswerOf, type Call, type Operation, type RequestOf, apiBy } from "../../core/api/call.js";
import { type CallOptions, type LeaseRef, NoResponse } from "../../core/api/locks.js";
import type { ServiceApi, Started } from "../../core/api/runs.js";
import type { SetHeld, SetRef } from "../../core/api/sets.js";
import * as answers from "../../contract/checks.js";
import { type Encoded, encode } from "../../contract/encode.js";
import { fromProblem, PROBLEM_TYPE, STRUCK, withoutIds } from "../../contract/problem.js";
import type { Check, CheckOf } from "../../contract/rules.js";
import { Contact, meaningOfFailure, meaningOfStatus } from "../../core/what-came-back.js";
import type { HttpOptions } from "./http-options.js";
import { type HttpResponse, senderBy, socketsTo, StaleConnection, withinShare } from "./send.js";

interface ParsedResponse extends Omit<HttpResponse, "text"> {
  /** A question about the options, for an answer of a gateway that they may have caused. */
  readonly askAbout?: string;
  readonly body: unknown;
}

/** The codes with which a runtime refuses to send a request, and what it says of code that fails by itself. */
const UNSENDABLE = /^ERR_(?:INVALID|HTTP_INVALID|UNESCAPED)/;
const DEFECT = /^Cannot |\b(?:undefined|null)\b|is not (?:an? |iterable|defined)/;
/** The words in which runtimes report a failed connection as a TypeError without a code. */
const CONNECTION = /fetch|network|load failed|connect|socket|request|dns|certificate|time/i;

/** The characters of the name and of the value of a header. */
const HEADER_NAME = /^[\w!#$%&'*+.^`|~-]+$/;
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** A shorter value is no credential, and may be a part of any word. */
const CREDENTIAL_MIN_CHARS = 8;

/** Stands for the result of a heartbeat that the answer lacks. */
const NO_RESULT: { readonly key?: string; readonly status: number } = { status: 0 };

/** Returns the operations of the service at `options.url`. */
export function httpApi(options: HttpOptions): ServiceApi {
  const contact = new Contact();
  const send = senderOf(options, contact);
  const call: Call = async (operation, request, callOptions = {}) => {
    const { waitMs } = request as { readonly waitMs?: number | undefined };
    const ask = (ms: number | undefined): Promise<ParsedResponse> => send(encode(operation, { ...request, waitMs: ms }), callOptions);
    const decode: Decoder<typeof operation> = DECODERS[operation];
    try {
      const reply = await (operation === "start" ? withinShare(socketsTo(options.url, options.fetch), waitMs ?? 0, ask) : ask(waitMs));
      const answer = decode(reply, request);
      if (answer.ok || !answer.undecided) contact.made();
      return answer;
    } catch (error) {
      if (!isA(error, NoResponse) || !error.isStranger || !contact.missed()) throw error;
      const { message, httpStatus } = error;
      const detail = `${message}: is ${baseOf(options)} the API's URL?`;
      const nobody = { definite: false, detail, httpStatus, undecided: true, unreached: true } as const;
      // eslint-disable-next-line @typescript-eslint/no-unnecessary-type-assertion -- without it, the compiler unites the answers of all operations
      return refuseLocally("not-configured", nobody) as AnswerOf<typeof operation>;
    }
  };
  return apiBy(DECODERS, call);
}

/** Returns what tells the caller of this call chain from others, or a promise of it. */
export type Callers = () => unknown;

/** Returns what tells the callers of a client with these options apart; undefined if all its requests are of one caller. */
export function callersOf({ sign, token }: Pick<HttpOptions, "sign" | "token">): Callers | undefined {
  if (sign && sign.oneCaller !== true) return () => Symbol("unknown");
  return typeof token === "function" ? token : undefined;
}

function baseOf({ url }: HttpOptions): string {
  return url.replace(/\/+$/, "");
}

function senderOf(options: HttpOptions, contact: Contact): (request: Encoded, options: CallOptions) => Promise<ParsedResponse> {
  const { sign, token } = options;
  const send = senderBy(options.fetch);
  const base = baseOf(options);
  const isSigned = sign !== undefined || token !== undefined;
  const askAbout = `is ${base.replace(/[?#].*/, "")} the API's URL, with its stage${isSigned ? "" : ", and does it need the option `sign`"}?`;
  return async ({ method, path, body, headers: asked }, callOptions) => {
    // An error may quote the URL, whose leaseId proves a hold.
    const quotable = (cause: unknown): string => withoutIds((cause instanceof Error ? cause.message : String(cause)).replaceAll(url, base));
    const url = base + path;
    const text = body && JSON.stringify(body);
    const plain = { ...options.headers, ...asked, ...(text !== undefined && { "content-type": "application/json" }) };
    let headers: Record<string, string>;
    const signed = async (): Promise<Record<string, string>> => ({
      ...plain,
      ...(await sign?.({ method, url, headers: plain, ...(text !== undefined && { body: text }) })),
      ...(token !== undefined && { authorization: `Bearer ${typeof token === "string" ? token : await token()}` }),
    });
    try {
      headers = await signed();
    } catch (cause) {
      // Nothing was sent. Fetching credentials is worth another attempt, unless there are none.
      const code = (cause as { readonly code?: unknown } | undefined)?.code === "not-configured" ? "not-configured" : "unavailable";
      return unsent(code, { definite: true, detail: `The request was not signed: ${quotable(cause)}` });
    }
    const wrong = Object.entries<unknown>(headers).find(([name, value]) => !isHeader(name, value));
    if (wrong) return unsent("not-configured", { definite: true, detail: `The header ${JSON.stringify(wrong[0])} ${wrongIn(wrong[1])}` });
    let answer: HttpResponse;
    try {
      answer = await send(url, { method, headers, body: text }, callOptions);
      const refusal = { text: answer.text, date: answer.headers.get("date"), headers };
      if (answer.status === 403 && !isProblem(answer) && (await sign?.refused?.(refusal))) {
        headers = await signed();
        answer = await send(url, { method, headers, body: text }, callOptions);
      }
    } catch (cause) {
      return unreached(cause, contact, { method, base, quotable });
    }
    const { status, headers: received, text: raw } = answer;
    const parsed = parse(isSuccess(answer) || isProblem(answer) ? raw : withoutCredentials(raw, headers));
    if (status >= 400 && !isAbout(path, parsed))
      throw new NoResponse(`the answer ${status} is one to another request`, { isStranger: true });
    const asks = status === 403 && token !== undefined ? `does the token have a scope for this call, and ${askAbout}` : askAbout;
    return { status, headers: received, askAbout: asks, body: parsed };
  };
}

/** True of the service's own refusals. */
function isProblem({ headers }: HttpResponse): boolean {
  return headers.get("content-type")?.startsWith(PROBLEM_TYPE) === true;
}

/** A request whose sending failed, as an error may name it. */
interface Failed {
  readonly method: string;
  readonly base: string;
  /** Returns the message of an error without ids. */
  readonly quotable: (cause: unknown) => string;
}

/**
 * Returns the refusal of a request that can't be sent: a caller with a wrong URL learns that soon, and not after all waits are over.
 * @throws NoResponse if the request may have arrived
 */
function unreached(cause: unknown, contact: Contact, { method, base, quotable }: Failed): ParsedResponse {
  const { meaning, why } = meaningOfFailure(cause);
  if (meaning === "nobody") {
    const detail = `no answer (${why}) from ${base}`;
    if (contact.wasMade) return unsent("unavailable", { definite: true, detail });
    const retry = contact.missed() ? "never" : "same";
    return unsent("not-configured", { definite: true, retry, unreached: true, detail: `${detail}: is the URL right, and does it run?` });
  }
  if (meaning === "untrusted")
    return unsent("not-configured", { definite: true, detail: `The certificate of ${base} is not trusted (${why})` });
  if (meaning === "not-permitted") return unsent("not-configured", { definite: true, detail: `${base}: ${quotable(cause)}` });
  // A `fetch` of the caller's may have sent the request before it failed.
  if (isDefect(cause)) {
    const detail = `What sends the request failed: ${quotable(cause)}`;
    return unsent("not-configured", { detail, definite: false, ...(quotesNothing(cause) && { cause }) });
  }
  const isStranger = meaning === "stranger";
  throw new NoResponse(`${method} ${base}: no answer (${why})`, { cause, isStale: isA(cause, StaleConnection), isStranger });
}

/** True unless the problem document names another key than the request. */
function isAbout(path: string, body: unknown): boolean {
  const { instance = path } = (body ?? {}) as { readonly instance?: unknown };
  return `${path}/`.startsWith(`${String(instance)}/`);
}

/** Returns this side's own refusal of a request in place of a reply: its status is nobody's. */
function unsent(code: "unavailable" | "not-configured", details: LocalDetails): ParsedResponse {
  return { status: 503, headers: new Headers(), body: refuseLocally(code, { undecided: true, httpStatus: undefined, ...details }) };
}

function isHeader(name: string, value: unknown): boolean {
  return HEADER_NAME.test(name) && typeof value === "string" && HEADER_VALUE.test(value);
}

function wrongIn(value: unknown): string {
  return typeof value === "string" ? "has a character that none may have, such as a line break" : `is ${typeof value}, and must be text`;
}

/** Returns a gateway's error without the values of the request's headers: it may quote a token that it doesn't accept. */
function withoutCredentials(text: string, { "content-type": _type, prefer: _prefer, ...headers }: Record<string, string>): string {
  const values = Object.values(headers).flatMap((value) => [value, value.replace(/^Bearer /i, "")]);
  return values.filter(({ length }) => length >= CREDENTIAL_MIN_CHARS).reduce((struck, value) => struck.replaceAll(value, STRUCK), text);
}

/** Makes the answer of a reply. @throws NoResponse if the reply is none to this request */
type Decoder<Name extends Operation> = (reply: ParsedResponse, request: RequestOf<Name>) => AnswerOf<Name>;

const heldOrWaiting = (reply: ParsedResponse, ref: LeaseRef, how: Held["how"]): Held | Waiting | Refusal =>
  waiting(reply) ?? held(reply, ref, how);

const DECODERS: { readonly [Name in Operation]: Decoder<Name> } = {
  acquire: (reply, ref) => heldOrWaiting(reply, ref, grantIn(reply)),
  renew: (reply, ref) => held(reply, ref, "renewed"),
  check: (reply, ref) => heldOrWaiting(reply, ref, "checked"),
  changeMode: (reply, ref) => held(reply, ref, isReplay(reply) ? "replayed" : "changed"),
  waitForCondition: (reply) => waiting(reply) ?? refusal(reply),
  notify: (reply) => checked(reply, answers.isNotified, (notified) => ({ ok: true, how: "notified", ...notified })),
  transfer: (reply, { key, to: { leaseId } }) => held(reply, { key, leaseId }, "transferred"),
  release(reply) {
    const state = reply.headers.get("lease-state");
    return reply.status === 204 ? { ok: true, state: answers.isLeaseState(state) ? state : "unknown" } : refusal(reply);
  },
  breakHold: (reply) => checked(reply, answers.isBreaking, asAnswer),
  inspect: (reply, { key, ifNoneMatch }) =>
    unchanged(reply, ifNoneMatch) ??
    checked(reply, of({ key }, answers.isInspection), (inspection) => ({ ok: true, tag: tagOf(reply), inspection })),
  list: (reply) => checked(reply, answers.isList, asAnswer),
  health: (reply) => checked(reply, answers.isHealth, asAnswer),
  acquireSet: (reply, { leaseId, locks }) => heldSet(reply, { leaseId, keys: locks.map(({ key }) => key) }, grantIn(reply)),
  renewSet: (reply, set) => heldSet(reply, set, "renewed"),
  releaseSet(reply, { keys }) {
    const isThis = ofKeys(keys, answers.isSetEnded, ({ states }) => states);
    return checked(reply, isThis, asAnswer);
  },
  renewMany: (reply, { leases }) =>
    checked(reply, answers.isRenewals, ({ results }) => ({
      ok: true,
      results: leases.map((ref, at) => {
        const { status, ...one } = results[at] ?? NO_RESULT;
        return held({ ...reply, status: one.key === ref.key ? status : 0, body: one }, ref, "renewed");
      }),
    })),
  start(reply, ref) {
    if (isSuccess(reply) && answers.isReplayed(reply.body)) return { ok: true, ...reply.body };
    return checked(reply, of(ref, answers.isStarted), ({ state, attempt, takeover, checkpoint, ...lease }): Started => ({
      ok: true,
      how: grantIn(reply),
      state,
      attempt,
      takeover,
      lease,
      ...(checkpoint !== undefined && { checkpoint }),
    }));
  },
  complete: (reply) => checked(reply, answers.isRecorded, () => ({ ok: true, how: isReplay(reply) ? "replayed" : "recorded" })),
  run: (reply, { key, ifNoneMatch }) =>
    unchanged(reply, ifNoneMatch) ?? checked(reply, of({ key }, answers.isRun), (run) => ({ ok: true, tag: tagOf(reply), run })),
  runs: (reply) => checked(reply, answers.isRunList, asAnswer),
  resetRun: (reply) => checked(reply, answers.isReset, asAnswer),
  take: takenFrom,
  shutLimit: takenFrom,
  limit: (reply, { key }) => checked(reply, of({ key }, answers.isLimit), (limit) => ({ ok: true, limit })),
  resetLimit: (reply) => checked(reply, answers.isReset, asAnswer),
  limits: (reply) => checked(reply, answers.isLimitList, asAnswer),
};

function takenFrom(reply: ParsedResponse, { rates }: Pick<RequestOf<"take">, "rates">) {
  const isThis = ((body) => answers.isTaken(body) && body.remaining.length === rates.length) as CheckOf<"isTaken">;
  return checked(reply, isThis, asAnswer);
}

function isSuccess({ status }: Pick<ParsedResponse, "status">): boolean {
  return status >= 200 && status < 300;
}

/** Returns the answer's word on a lease: granted now, or by an earlier request. */
function grantIn({ status }: ParsedResponse): "granted" | "replayed" {
  return status === 201 ? "granted" : "replayed";
}

/** True if the service carried the request out before. */
function isReplay({ headers }: ParsedResponse): boolean {
  return headers.get("idempotent-replayed") !== null;
}

function tagOf({ headers }: ParsedResponse): string {
  return headers.get("etag") ?? "";
}

/** Returns the answer that nothing changed, if the request named a state and this is one. */
function unchanged(reply: ParsedResponse, ifNoneMatch: string | undefined) {
  return reply.status === 304 && ifNoneMatch !== undefined ? ({ ok: true, tag: tagOf(reply), unchanged: true } as const) : undefined;
}

/** Returns the answer in the body of a success. @throws NoResponse if it isn't an answer to this request */
function checked<Body, Result>(reply: ParsedResponse, isBody: Check<Body>, answerOf: (body: Body) => Result): Result | Refusal {
  if (!isSuccess(reply)) return refusal(reply);
  if (!isBody(reply.body)) throw new NoResponse(`the answer ${reply.status} is not one to this request`, { isStranger: true });
  return answerOf(reply.body);
}

function asAnswer<Body extends object>(body: Body): Body & { readonly ok: true } {
  return { ...body, ok: true };
}

/** Returns a check that is passed by what is about this key, and this lease if it names one. */
function of<Body extends Partial<LeaseRef>>(
  { key, leaseId }: { readonly key: string; readonly leaseId?: string },
  isBody: Check<Body>,
): Check<Body> {
  return (body): body is Body => isBody(body) && body.key === key && (leaseId === undefined || body.leaseId === leaseId);
}

/** Returns a check that is passed by what has a member for each of these keys. */
function ofKeys<Body>(keys: readonly string[], isBody: Check<Body>, membersOf: (body: Body) => object): Check<Body> {
  return (body): body is Body => isBody(body) && keys.every((key) => Object.hasOwn(membersOf(body), key));
}

function heldSet(reply: ParsedResponse, { leaseId, keys }: SetRef, how: SetHeld["how"]): SetHeld | Refusal {
  const isThis = ofKeys(keys, answers.isSet, (set) => (set.leaseId === leaseId ? set.fencingTokens : {}));
  return checked(reply, isThis, (set) => ({ ok: true, how, ...set }));
}

function held(reply: ParsedResponse, ref: LeaseRef, how: Held["how"]): Held | Refusal {
  return checked(reply, of(ref, answers.isLease), (lease) => ({ ok: true, how, lease }));
}

/** The answer to a caller that sleeps: no poll is useful, and the place is kept without any. */
const ASLEEP = { ok: true, state: "waiting", asleep: true, retryAfterMs: Infinity, pollWithinMs: Infinity } as const;

/** Returns the place in the queue; undefined if the reply is not one. */
function waiting(reply: ParsedResponse): Waiting | Refusal | undefined {
  if (reply.status !== 202) return undefined;
  if (answers.isAsleep(reply.body)) return { ...ASLEEP, position: reply.body.position };
  return checked(reply, answers.isWaiting, asAnswer);
}

/** Returns the refusal. @throws NoResponse if only a gateway answered, and the service may have been reached */
function refusal({ status, body, headers, askAbout }: ParsedResponse): Refusal {
  const after = headers.get("retry-after") ?? "";
  const retryAfterMs = /^\d+$/.test(after) ? 1000 * Number(after) : undefined;
  const refused = status >= 400 ? fromProblem(status, body, askAbout) : undefined;
  if (!refused)
    throw new NoResponse(`the answer was ${status}, not from the service`, {
      retryAfterMs,
      httpStatus: status,
      isStranger: meaningOfStatus(status) === "stranger",
    });
  return { ...(retryAfterMs !== undefined && { retryAfterMs }), httpStatus: status, ...refused };
}

function parse(text: string): unknown {
  try {
    return text === "" ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** True if nothing of the error names an id. */
function quotesNothing(cause: unknown): boolean {
  const whole = cause instanceof Error ? `${cause.message} ${cause.stack}` : String(cause);
  return withoutIds(whole) === whole;
}

/** True for a mistake in what sends the requests, such as a `fetch` of the caller's that reads a member of undefined: no retry mends it. */
function isDefect(cause: unknown): boolean {
  if (!(cause instanceof Error)) return false;
  const inner = cause.cause instanceof Error ? cause.cause : cause;
  const { code } = inner as NodeJS.ErrnoException;
  if (code !== undefined) return UNSENDABLE.test(code);
  return inner.name === "ReferenceError" || (inner.name === "TypeError" && (DEFECT.test(inner.message) || !CONNECTION.test(inner.message)));
}
