/**
 * The logic around a handler, independent of how it is attached: directly around the handler, where nothing can run in between, or as a
 * Middy middleware (./middleware.ts).
 */
import type { InvocationContext } from "../client/invocation.js";
import { ENDLESS } from "../client/invocation.js";
import { checkFunction } from "../web/once.js";
import type { HttpAnswer } from "../web/problem.js";
import type { AnswerTo } from "./http.js";

/** The outcome of a call: a response (the handler's or a substitute), or an error with an HTTP answer. */
export type Outcome =
  | { readonly how: "answered"; readonly response: unknown }
  | { readonly how: "refused"; readonly error: unknown; readonly answer: HttpAnswer };

/**
 * Runs `work`, the rest of the call, under a lease or as a run, and passes the lease or run to it; or returns without calling `work`.
 * Rejects with the error of `work`, or with its own error if the caller doesn't use HTTP.
 */
export type Around<Event, Context, Under> = (event: Event, context: Context, work: (under: Under) => Promise<unknown>) => Promise<Outcome>;

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
