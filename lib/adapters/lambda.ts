/**
 * Handlers of Lambda: the logic around one, and its direct attachment, where nothing can run in between. ./middy.ts attaches the same as a
 * middleware.
 */
import { type InvocationContext, ENDLESS } from "../client/invocation.js";
import type { LockClient } from "../client/lock-client.js";
import type { AnswerTo } from "./lambda-http.js";
import { type Outcome, checkClient, checkFunction } from "./once.js";

/**
 * Runs `work`, the rest of the call, under a lease or as a run, and passes the lease or run to it; or returns without calling `work`.
 * Rejects with the error of `work`, or with its own error if the caller doesn't use HTTP.
 */
export type Around<Event, Context, Under> = (
  event: Event,
  context: Context,
  work: (under: Under) => Promise<unknown>,
) => Promise<Outcome<unknown>>;

/** A handler, as Lambda and Middy call it. `Rest` is the arguments after event and context. */
export type Handler<Event, Context, Rest extends readonly unknown[], Result> = (
  event: Event,
  context: Context,
  ...rest: Rest
) => Promise<Result> | Result;

/** A wrapped handler, which can answer a request itself. */
export type Wrapped<Event, Context, Rest extends readonly unknown[], Result> = (
  event: Event,
  context: Context,
  ...rest: Rest
) => Promise<Result | AnswerTo<Event>>;

/** The options that every wrapper of a handler has. */
export interface WrapperOptions {
  /** The client, created once outside of the handler. */
  readonly locks: LockClient;
  /**
   * The behaviour if the locks can't be reached: `"throw"` throws LockUnavailableError (503 with Retry-After over HTTP), `"skip"` returns
   * undefined (over HTTP it acts as `"throw"`), and `"proceed"` runs the handler without its lock or run: perhaps beside another or a second
   * time, and nothing is recorded. The client's `onEvent` reports the latter two.
   * @default "throw"
   */
  readonly whenUnavailable?: "throw" | "skip" | "proceed" | undefined;
}

/** Returns `handler` with `around` applied to each call. */
export function handlerOf<Event, Context, Under, Rest extends readonly unknown[], Result>(
  around: Around<Event, Context, Under>,
  handler: Handler<Event, Context, Rest, Result>,
): Wrapped<Event, Context, Rest, Result> {
  checkFunction("handler", handler);
  return async (event, context, ...rest) => {
    const outcome = await around(event, context, async () => handler(event, context, ...rest));
    return (outcome.how === "answered" ? outcome.response : outcome.answer) as Result | AnswerTo<Event>;
  };
}

/** Returns the invocation that a handler's context describes. */
export function invocationOf(context: unknown): InvocationContext {
  const { getRemainingTimeInMillis } = (context ?? {}) as Partial<InvocationContext>;
  return typeof getRemainingTimeInMillis === "function" ? (context as InvocationContext) : ENDLESS;
}

/**
 * Returns `handler` with a view of `locks` for each invocation. The invocation's remaining time bounds leases and waits. When the handler
 * ends, its remaining leases are released and their heartbeats stop, before the sandbox can be frozen.
 * @throws InvalidRequestError if `locks` is not a client
 */
export function withInvocation<Event, Context, Result>(
  locks: LockClient,
  handler: (event: Event, context: Context, locks: LockClient) => Promise<Result> | Result,
): (event: Event, context: Context) => Promise<Result> {
  checkClient(locks);
  checkFunction("handler", handler);
  return async (event, context) => {
    await using view = locks.forInvocation(invocationOf(context));
    return await handler(event, context, view);
  };
}
