/**
 * What wraps a handler, apart from how it is put there: around the handler itself, where nothing gets in between,
 * or as a Middy middleware (./middleware.ts).
 */
import { InvalidRequestError } from "../client/errors.js";
import type { InvocationContext } from "../client/invocation.js";
import type { LockClient } from "../client/lock-client.js";
import { checkWork } from "../client/options.js";
import type { AnswerTo, HttpAnswer } from "./http.js";

/** What came of a call: the handler's response (or another's, in its place), or an error for which HTTP has an answer. */
export type Outcome =
  | { readonly how: "answered"; readonly response: unknown }
  | { readonly how: "refused"; readonly error: unknown; readonly answer: HttpAnswer };

/**
 * Runs `work`, the rest of the call, under a lease or as a run, and hands that to it; or settles without `work`.
 * Rejects with what `work` threw, and with an error of its own where nobody is to be answered over HTTP.
 */
export type Around<Event, Context, Under> = (event: Event, context: Context, work: (under: Under) => Promise<unknown>) => Promise<Outcome>;

/** A handler, as Lambda and Middy call it. `Rest` is what they hand to it beside event and context. */
export type Handler<Event, Context, Rest extends readonly unknown[], Result> = (
  event: Event,
  context: Context,
  ...rest: Rest
) => Promise<Result> | Result;

/** A wrapped handler, which may answer a request by itself. */
export type Wrapped<Event, Context, Rest extends readonly unknown[], Result> = (
  event: Event,
  context: Context,
  ...rest: Rest
) => Promise<Result | AnswerTo<Event>>;

/** `handler` with `around` around each of its calls. */
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

/** An invocation without an end: a handler that runs in a test or a container. */
const ENDLESS: InvocationContext = { getRemainingTimeInMillis: () => Number.POSITIVE_INFINITY };

/** The invocation that a handler's context tells of. */
export function invocationOf(context: unknown): InvocationContext {
  const { getRemainingTimeInMillis } = (context ?? {}) as Partial<InvocationContext>;
  return typeof getRemainingTimeInMillis === "function" ? (context as InvocationContext) : ENDLESS;
}

/** @throws InvalidRequestError unless `locks` is a client. */
export function checkClient(locks: unknown): asserts locks is LockClient {
  if (typeof (locks as Partial<LockClient> | undefined)?.forInvocation !== "function")
    throw new InvalidRequestError("locks: must be a client, as createLockClient() makes it", "locks");
}

/** @throws InvalidRequestError unless `given` is a function that runs when it is called. */
export function checkFunction(name: string, given: unknown): void {
  checkWork(name, name, given, "must be a function");
}
