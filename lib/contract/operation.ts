/** The parts of a row of the contract, and the forms of answers that several rows share. */
import type * as v from "valibot";
import type { ServiceApi } from "../core/api/runs.js";
import type { Ended, Held, Waiting } from "../core/commands.js";
import type { ErrorCode, Refusal } from "../core/errors.js";
import { toSecondsUp } from "../core/time.js";
import type { ANSWERS } from "./answers.js";
import type { REQUESTS } from "./requests.js";
import type { OperationName, PathOf } from "./routes.js";

/** The name of a body's schema. */
export type RequestName = keyof typeof REQUESTS;
/** The name of an answer's schema; `empty`: the answer has no body. */
export type AnswerName = keyof typeof ANSWERS | "empty";

/** A query: every member is text. */
type QuerySchema = v.GenericSchema<unknown, object> & { readonly entries: Readonly<Record<string, v.GenericSchema>> };

export interface DecodedRequest<Path, Body = object, Query = object> {
  readonly path: Path;
  /** The body; `{}` for an operation without one. */
  readonly body: Body;
  readonly query: Query;
  /** `Prefer: wait=N`, in ms. */
  readonly waitMs: number | undefined;
  /** `If-None-Match`. */
  readonly ifNoneMatch: string | undefined;
  /** `Holdfast-Task-Token`. */
  readonly taskToken: string | undefined;
}

/** An answer in the form of HTTP. An answer without a body has none. */
export interface Answer {
  readonly status: number;
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The schemas of an operation's request and answers. */
export interface OperationDoc {
  readonly body?: RequestName;
  /** The longest body, in bytes. @default LIMITS.bodyBytes */
  readonly maxBytes?: number;
  readonly query?: QuerySchema;
  /** The schema of each successful answer, by status. */
  readonly answers: Readonly<Record<number, AnswerName>>;
  /** The refusals besides those that every operation may return. */
  readonly refusals?: readonly ErrorCode[];
}

/** A row of the contract. */
export interface OperationRow<Path = never, Body = never, Query = never> extends OperationDoc {
  /** Calls the service, and puts its answer into the form of HTTP. */
  readonly serve: (api: ServiceApi, request: DecodedRequest<Path, Body, Query>) => Promise<Answer | Refusal>;
}

type BodyOf<Name extends RequestName> = v.InferOutput<(typeof REQUESTS)[Name]>;

/** Returns the row of the operation `name`, whose `serve` gets what the route and the schemas say. */
export function operation<Name extends OperationName, Body extends RequestName, Query extends QuerySchema>(
  _name: Name,
  row: OperationRow<PathOf<Name>, BodyOf<Body>, v.InferOutput<Query>> & { readonly body?: Body; readonly query?: Query },
): typeof row {
  return row;
}

/** Marks the answer to a request that was already carried out. */
export const REPLAYED = { "idempotent-replayed": "true" };

/** Returns the answer, marked if its request was already carried out. */
export function marked(how: string, made: Answer): Answer {
  return how === "replayed" ? { ...made, headers: REPLAYED } : made;
}

/** Returns the answer in the form that `respond` gives it, or the refusal as it is. */
export function answer<A extends { readonly ok: true }>(result: A | Refusal, respond: (result: A) => Answer): Answer | Refusal {
  return result.ok ? respond(result) : result;
}

/** 201 for a new lease, 200 for a repeat; its version is the ETag. */
export function leaseAnswer({ how, lease }: Held): Answer {
  const headers = { etag: `"v${lease.version}"`, ...(how === "replayed" && REPLAYED) };
  return { status: how === "granted" ? 201 : 200, body: lease, headers };
}

/** The answer with a lease, or with a place in the queue. */
export function heldOrWaiting(found: Held | Waiting): Answer {
  return "state" in found ? waitingAnswer(found) : leaseAnswer(found);
}

/** The answer with a place in the queue. */
export function waitingAnswer(waiting: Waiting): Answer {
  if (waiting.asleep) return { status: 202, body: { state: "asleep", position: waiting.position } };
  return { status: 202, body: withoutOk(waiting), headers: { "retry-after": String(toSecondsUp(waiting.retryAfterMs)) } };
}

/** The answer with the state of a lease that is over. */
export function endedAnswer({ state }: Ended): Answer {
  return { status: 204, headers: { "lease-state": state } };
}

/** The answer to a look: with the tag, and without the body if nothing changed. */
export function readAnswer(tag: string, body: object | undefined): Answer {
  return body ? { status: 200, body, headers: { etag: tag } } : { status: 304, headers: { etag: tag } };
}

/** The answer with all its members as the body. */
export function plainAnswer(result: { readonly ok: true }): Answer {
  return { status: 200, body: withoutOk(result) };
}

function withoutOk({ ok: _ok, ...members }: { readonly ok: true }): object {
  return members;
}
