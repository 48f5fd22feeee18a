/**
 * Handlers of Lambda: the logic around one, and its direct attachment, where nothing can run in between. ./middy.ts attaches the same as a
 * middleware.
 */
import { checkResult } from "../client/wire/checks.js";
import { InvalidRequestError } from "../client/wire/errors.js";
import { type InvocationContext, ENDLESS } from "../client/wire/invocation.js";
import type { LockClient } from "../client/calls/lock-client.js";
import type { AnswerTo } from "./lambda-http.js";
import { type CallOutcome, checkClient, checkFunction } from "./once.js";

/**
 * Runs `work`, the rest of the call, under a lease or as a run, and passes the lease or run to it; or returns without calling `work`.
 * Rejects with the error of `work`, or with its own error if the caller doesn't use HTTP.
 */
export type Around<Event, Context, Under> = (
  event: Event,
  context: Context,
  work: (under: Under) => Promise<unknown>,
) => Promise<CallOutcome<unknown>>;

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

/** The mark that Lambda's `streamifyResponse` leaves on a handler. */
const STREAMING = Symbol.for("aws.lambda.runtime.handler.streaming");

/** @throws InvalidRequestError if `handler` is none that returns its response */
function checkHandler(handler: unknown): void {
  checkFunction("handler", handler);
  if ((handler as { readonly [STREAMING]?: unknown })[STREAMING] !== undefined) throw streaming();
}

/**
 * Returns `work`, which fails if it answers with a stream, or with one as its body: what the stream does would come after the call, under no
 * lock, and recorded as done.
 */
export function answering<Under>(work: (under: Under) => Promise<unknown>): (under: Under) => Promise<unknown> {
  return async (under) => {
    const response = checkResult(await work(under));
    const { body } = (response ?? {}) as { readonly body?: unknown };
    if (typeof body === "object" && body !== null && Symbol.asyncIterator in body) throw streaming();
    return response;
  };
}

function streaming(): InvalidRequestError {
  return new InvalidRequestError(
    "handler: answers by a stream, of which nothing could be held back or repeated; return the response",
    "handler",
  );
}

/** Returns `handler` with `around` applied to each call. */
export function handlerOf<Event, Context, Under, Rest extends readonly unknown[], Result>(
  around: Around<Event, Context, Under>,
  handler: Handler<Event, Context, Rest, Result>,
): Wrapped<Event, Context, Rest, Result> {
  checkHandler(handler);
  return async (event, context, ...rest) => {
    const [callback] = rest as readonly unknown[];
    const isByCallback = handler.length > 2 && typeof callback === "function";
    const outcome = await around(event, context, async () =>
      isByCallback ? calledBack(handler as unknown as CallbackHandler, event, context) : handler(event, context, ...rest),
    );
    return (outcome.how === "answered" ? outcome.response : outcome.answer) as Result | AnswerTo<Event>;
  };
}

/** A handler that answers by the callback that Lambda passed to handlers until Node 22. */
type CallbackHandler = (event: unknown, context: unknown, callback: (error?: Error | string | null, response?: unknown) => void) => unknown;

/** Calls the handler. Resolves with what it calls back, or returns if that is a promise: Lambda takes the earlier one, too. */
function calledBack(handler: CallbackHandler, event: unknown, context: unknown): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const returned = handler(event, context, (error, response) => {
      if (error) reject(error instanceof Error ? error : new Error(error));
      else resolve(response);
    });
    if (typeof (returned as Partial<Promise<unknown>> | undefined)?.then === "function") resolve(returned);
  });
}

/**
 * Returns the invocation that a handler's context describes.
 * @throws InvalidRequestError if the handler gets a stream in its place, and in a durable execution: an invocation of it may end before its work
 */
export function invocationOf(event: unknown, context: unknown): InvocationContext {
  refuseDurable(event, context);
  const { getRemainingTimeInMillis, write } = (context ?? {}) as Partial<InvocationContext> & { readonly write?: unknown };
  if (typeof write === "function") throw streaming();
  return typeof getRemainingTimeInMillis === "function" ? (context as InvocationContext) : ENDLESS;
}

/**
 * Refuses the event of a durable execution, which its SDK gets, and the context that the SDK makes of it. An invocation that suspends answers,
 * or leaves the work pending: the answer would be taken for the result, and the key freed while the execution goes on.
 */
function refuseDurable(event: unknown, context: unknown): void {
  const { DurableExecutionArn: arn } = (event ?? {}) as { readonly DurableExecutionArn?: unknown };
  const { executionContext } = (context ?? {}) as { readonly executionContext?: { readonly durableExecutionArn?: unknown } };
  const field = arn !== undefined ? "event" : executionContext?.durableExecutionArn !== undefined ? "context" : undefined;
  if (field === undefined) return;
  const why = "is of a durable execution, whose work goes on in later invocations";
  throw new InvalidRequestError(`${field}: ${why}; use withDurableLock or withDurableRun of holdfast/durable inside of it`, field);
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
  checkHandler(handler);
  return async (event, context) => {
    await using view = locks.forInvocation(invocationOf(event, context));
    return await handler(event, context, view);
  };
}
