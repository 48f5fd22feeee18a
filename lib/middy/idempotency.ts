/**
 * A handler that does its work once per idempotency key. Repeated requests, now or later, get the recorded response. `idempotencyHandler`
 * wraps the handler, or the whole Middy chain, and so records the response that the caller received. `idempotencyMiddleware` is the same
 * for Middy's `use`, and must be the first middleware.
 */
import { idempotencyKeyOf } from "../client/events.js";
import { InvalidRequestError, LockError, LockLostError, LockTimeoutError, LockUnavailableError } from "../client/errors.js";
import type { LockClient } from "../client/lock-client.js";
import { currentRun, runOnce } from "../client/wrap/once.js";
import type { Run } from "../client/run/run-once.js";
import type { RunOptions } from "../client/run/run-options.js";
import { checkRun } from "../client/run/run-options.js";
import { checkMade } from "../client/wrap/wrap-method.js";
import type { Around, Handler, Wrapped } from "./around.js";
import { checkClient, checkFunction, handlerOf, invocationOf } from "./around.js";
import type { HttpAnswer, HttpRequest } from "./http.js";
import { answerFrom, askedOf, headersOf, HTTP_WAIT_MS, isHttp, saysMethod, statusOf, withHeaders } from "./http.js";
import type { Middleware } from "./middleware.js";
import { middlewareOf } from "./middleware.js";
import type { ProblemCode } from "./problem.js";
import { problemAnswer, PROBLEMS } from "./problem.js";

/** Options of an idempotent handler, in addition to those of the run. The invocation's remaining time bounds all of them. */
export interface IdempotencyOptions<Event, Context> extends Omit<RunOptions, "payload" | "largeResult"> {
  /** The client, created once outside of the handler. */
  readonly locks: LockClient;
  /**
   * The idempotency key. If callers choose their keys, prefix the key with the caller's identity; otherwise a caller can get another
   * caller's response: `key("orders", callerOf(event), idempotencyKeyOf(event.headers))`.
   * @default the request's `Idempotency-Key` header; a request without it is answered 400
   */
  readonly key?: (event: Event, context: Context) => string;
  /**
   * The payload of the run, as JSON. The same key with another payload is refused, over HTTP with 422.
   * @default for a request over HTTP: method, path, query and body (the body as parsed JSON), or everything but headers and context if
   *   the event doesn't have its method where the gateways put it; for other events: none, so any payload matches
   */
  readonly payload?: (event: Event, context: Context) => unknown;
  /**
   * Decides which responses are final and replayed. After any other response, the same key runs the handler again.
   * @default those below 500 and those without a status, except 401, 403, 408, 409, 423, 425 and 429, which say nothing about the work
   *   itself
   */
  readonly isRecorded?: (response: unknown) => boolean;
  /**
   * The time to wait for the response of a concurrent run of the same key, in ms; 0 asks once. @default 5 000 for a request over HTTP, else
   * 30 000; at most the remaining time − 1 s
   */
  readonly waitMs?: number;
  /**
   * The largest number of times that the handler is started for a key; 0: no limit, because over HTTP the caller decides on retries.
   * @default 0
   */
  readonly maxAttempts?: number;
}

/** Statuses below 500 that are not a result of the work. */
const NOT_NOW: readonly number[] = [401, 403, 408, 409, 423, 425, 429];
/** The fields whose errors are the caller's mistake, not the application developer's. */
const ASKED_WRONGLY: readonly unknown[] = ["Idempotency-Key", "payload"];

/** Added to every replayed response over HTTP. */
const REPLAYED = { "Idempotent-Replayed": "true" };

/**
 * Returns `handler`, run once per key; `currentRun()` is the run. An event with a method, or with `headers` or `multiValueHeaders` at its
 * top level, is a request over HTTP; a component that forwards requests, such as a state machine, should leave these out. A response is
 * recorded if it `isRecorded`. An error of the handler makes the next caller start again; a `FinalError` is stored and replayed as
 * `RunFailedError`. Over HTTP, a replay has the header `Idempotent-Replayed: true`, and a key that is still in progress is answered 409
 * with Retry-After. For other events, that throws LockTimeoutError, so that the trigger tries again. A response that can't be stored (over
 * 256 KB) is returned once; after that the answer is 409 `result-omitted`.
 * @throws InvalidRequestError naming the invalid option
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
 * @throws InvalidRequestError naming the invalid option
 */
export function idempotencyMiddleware<Event, Context = unknown>(
  options: IdempotencyOptions<Event, Context>,
): Middleware<Event, Context, { run?: Run | undefined }> {
  return middlewareOf("run", asRun(options), options.isRecorded ?? isFinalResponse);
}

/** A response that is not a result of the work: the run ends as failed, and the caller still gets the response. */
class NotRecorded extends Error {
  override readonly name = "NotRecorded";
}

/** The progress of one call. */
interface Progress {
  stage: "before" | "in" | "after";
  run?: Run | undefined;
  response?: unknown;
  thrown?: unknown;
}

function asRun<Event, Context>(options: IdempotencyOptions<Event, Context>): Around<Event, Context, Run | undefined> {
  checkOptions(options);
  const { locks, key: keyFor = keyInHeaders, payload: payloadFor = payloadAsked, waitMs, ...rest } = options;
  const { isRecorded = isFinalResponse, isFinal, maxAttempts = 0, ...run } = rest;

  return async (event, context, work) => {
    const http = isHttp(event);
    const progress: Progress = { stage: "before" };
    try {
      const key: unknown = keyFor(event, context);
      checkMade("idempotency", key);
      const payload = payloadFor(event, context);
      const call = runOnce(
        {
          ...run,
          maxAttempts,
          locks: locks.forInvocation(invocationOf(context)),
          key: () => key,
          payload: () => payload,
          ...((waitMs !== undefined || http) && { waitMs: waitMs ?? HTTP_WAIT_MS }),
          isFinal: (error) => !(error instanceof NotRecorded) && isFinal?.(error) === true,
        },
        async function handler() {
          const response = await performed(work, progress);
          if (isRecorded(response)) return response;
          throw new NotRecorded(`answered ${String(statusOf(response) ?? "what is not recorded")}`);
        },
      );
      const response = await call();
      const isReplay = progress.stage === "before";
      return { how: "answered", response: isReplay && http ? replayOf(response, event) : response };
    } catch (error) {
      const { stage, response } = progress;
      // The work is done and only its record is missing: return the response to the caller.
      if (stage === "after" && (error instanceof NotRecorded || codeOf(error) === "result-omitted")) return { how: "answered", response };
      const answer = http ? refusal(error, progress) : undefined;
      if (answer) return { how: "refused", error, answer };
      throw error;
    }
  };
}

async function performed(work: (run: Run | undefined) => Promise<unknown>, progress: Progress): Promise<unknown> {
  progress.stage = "in";
  progress.run = currentRun();
  try {
    progress.response = await work(progress.run);
  } catch (error) {
    progress.thrown = error;
    throw error;
  }
  progress.stage = "after";
  return progress.response;
}

/** Returns the answer for an error of the run; undefined for an error of the handler or of its configuration. */
function refusal(error: unknown, { stage, run, thrown }: Progress): HttpAnswer | undefined {
  if (stage === "before") return refusalBefore(error);
  if (error instanceof LockLostError) {
    // The run was taken over: another process works on it now, and a retry gets the result of that.
    if (error !== thrown) return problemAnswer("run-in-progress");
    const lost: unknown = run?.signal.reason;
    return lost instanceof LockLostError && lost.reason !== "released" ? problemAnswer("lease-lost") : undefined;
  }
  return stage === "after" && error instanceof LockUnavailableError ? problemAnswer("not-recorded", error) : undefined;
}

function refusalBefore(error: unknown): HttpAnswer | undefined {
  if (error instanceof LockTimeoutError) return problemAnswer("run-in-progress", error);
  // The lease ended before the handler ran: the invocation is nearly over.
  if (error instanceof LockUnavailableError || error instanceof LockLostError) return problemAnswer("unavailable", error);
  if (error instanceof InvalidRequestError) {
    return ASKED_WRONGLY.includes(error.field) ? problemAnswer("invalid-request", { detail: error.message }) : undefined;
  }
  const code = codeOf(error);
  return code !== undefined && code in PROBLEMS ? problemAnswer(code as ProblemCode) : undefined;
}

function codeOf(error: unknown): string | undefined {
  return error instanceof LockError ? error.code : undefined;
}

function keyInHeaders(event: unknown): string {
  return idempotencyKeyOf(headersOf(event ?? {}));
}

function payloadAsked(event: unknown): unknown {
  return isHttp(event) ? askedOf(event) : undefined;
}

function isFinalResponse(response: unknown): boolean {
  const status = statusOf(response);
  return status === undefined || (status < 500 && !NOT_NOW.includes(status));
}

function replayOf(response: unknown, event: HttpRequest): unknown {
  // Only a gateway is known to turn a plain response into an answer.
  if (response === undefined || (statusOf(response) === undefined && !saysMethod(event))) return response;
  const answer = answerFrom(response);
  return { ...answer, headers: withHeaders(answer, REPLAYED) };
}

function checkOptions<Event, Context>(options: IdempotencyOptions<Event, Context>): void {
  const { locks, key, payload, isRecorded, ...run } = options;
  checkClient(locks);
  checkRun(run);
  for (const [name, option] of Object.entries({ key, payload, isRecorded })) {
    if (option !== undefined) checkFunction(name, option);
  }
  if ("largeResult" in run)
    throw new InvalidRequestError("largeResult: is not an option here: a response that can't be kept is given once", "largeResult");
}
