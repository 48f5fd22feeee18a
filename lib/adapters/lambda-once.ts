/**
 * A handler that does its work once per idempotency key. Repeated requests, now or later, get the recorded response. `idempotencyHandler`
 * wraps the handler, or the whole Middy chain, and so records the response that the caller received. `idempotencyMiddleware` is the same
 * for Middy's `use`, and must be the first middleware.
 */
import { WHEN_UNAVAILABLE } from "../client/calls/options.js";
import { type Checks, unchecked } from "../client/wire/checks.js";
import type { Run } from "../client/calls/run/run-once.js";
import { type Around, type Handler, type Wrapped, type WrapperOptions, answering, handlerOf, invocationOf } from "./lambda.js";
import { replayOf, requestOf, statusOf, withoutCookies } from "./lambda-http.js";
import { type Middleware, middlewareOf } from "./middy.js";
import { type OnceOptions, checkRunnerOptions, isCovered, isFinalStatus, onceRunner } from "./once.js";

/** Options of an idempotent handler, in addition to those of the run. The invocation's remaining time bounds all of them. */
export interface IdempotencyOptions<Event, Context> extends OnceOptions<readonly [event: Event, context: Context]>, WrapperOptions {
  /**
   * Makes the idempotency key. For a request over HTTP it is any text, and takes the place of the header: service, caller and route stand
   * before it. For another event it is a whole key, as `key()` makes it, and only the service stands before it. With it, requests of every
   * method run once.
   * @default the `Idempotency-Key` header of a request; a request without it is answered 400. GET, HEAD and OPTIONS need none, and are
   *   handled without a run
   */
  readonly key?: ((event: Event, context: Context) => string) | undefined;
  /**
   * The payload of the run, as JSON. The same key with another payload is refused, over HTTP with 422. There, method and path are always
   * compared as well.
   * @default for a request over HTTP: query and body (the body as parsed JSON), or everything but headers and context if the event doesn't
   *   have its method where the gateways put it; for other events: none, so any payload matches
   */
  readonly payload?: ((event: Event, context: Context) => unknown) | undefined;
  /**
   * Decides which responses are final and replayed. After any other response, the same key runs the handler again. So a handler answers an
   * outcome such as a declined card with a status of its own, 402; for events that are no requests it throws a `FinalError`.
   * @default those below 500 and those without a status, except 401, 403, 408, 409, 423, 425 and 429, which say nothing about the work
   *   itself
   */
  readonly isRecorded?: ((response: unknown) => boolean) | undefined;
}

/**
 * Returns `handler`, run once per key. The handler's arguments stay event and context: it has its run by `currentRun()`, whose
 * `idempotencyKey` goes to every system that takes one. An event with a method, or with `headers` or `multiValueHeaders` at its
 * top level, is a request over HTTP; a component that forwards requests, such as a state machine, should leave these out. A response is
 * recorded if it `isRecorded`. An error of the handler makes the next caller start again; a `FinalError` is stored and replayed as
 * `RunFailedError`. Over HTTP, a replay has the header `Idempotent-Replayed: true`, and a key that is still in progress is answered 409
 * with Retry-After. For other events, that throws LockTimeoutError, so that the trigger tries again. A response that can't be stored (over
 * 256 KB) is returned once; after that the answer is 409 `result-omitted`.
 * @throws InvalidRequestError naming the invalid option; at a call, if that is of a durable execution
 */
export function idempotencyHandler<Event, Context, Rest extends readonly unknown[], Result>(
  options: IdempotencyOptions<Event, Context>,
  handler: Handler<Event, Context, Rest, Result>,
): Wrapped<Event, Context, Rest, Result> {
  return handlerOf(asRun(options), handler);
}

/**
 * The same as a Middy middleware: `use` it first. It records the response that the caller received, serialized and with all headers, and a
 * replay bypasses every other middleware. If another middleware answers early, nothing is recorded and the key stays in progress until the
 * lease ends. In that case, wrap Middy in `idempotencyHandler`, which handles early answers. The handler has its run as `context.run`, and
 * other middlewares have it as `request.internal.run`.
 * @throws InvalidRequestError naming the invalid option; at a call, if that is of a durable execution
 */
export function idempotencyMiddleware<Event, Context = unknown>(
  options: IdempotencyOptions<Event, Context>,
): Middleware<Event, Context, { run?: Run | undefined }> {
  return middlewareOf("run", asRun(options), options.isRecorded ?? isFinalResponse);
}

/** The options beside those of the run and the functions. Service and caller are checked where keys are made. */
const OWN: Checks = { service: unchecked, caller: unchecked, ...WHEN_UNAVAILABLE };

function asRun<Event, Context>(options: IdempotencyOptions<Event, Context>): Around<Event, Context, Run | undefined> {
  const { locks, key, payload, isRecorded = isFinalResponse, ...rest } = options;
  checkRunnerOptions(options, ["key", "payload", "isRecorded"], OWN, {
    largeResult: "is not an option here: a response that can't be kept is given once",
  });
  const rules = { ...rest, locks, key, compared: payload, comparedBy: "payload", isRecorded, storedOf: withoutCookies } as const;
  const run = onceRunner<readonly [Event, Context], unknown>(rules);

  return async (event, context, work) => {
    const invocation = invocationOf(event, context);
    const request = requestOf(event);
    if (request && !key && !isCovered(request)) return { how: "answered", ran: true, response: await work(undefined) };
    const outcome = await run({ args: [event, context], request, locks: locks.forInvocation(invocation) }, answering(work));
    return outcome.how === "answered" && !outcome.ran ? { ...outcome, response: replayOf(outcome.response, event) } : outcome;
  };
}

function isFinalResponse(response: unknown): boolean {
  const status = statusOf(response);
  return status === undefined || isFinalStatus(status);
}
