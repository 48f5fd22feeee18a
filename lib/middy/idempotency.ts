/**
 * A handler that does its work once per idempotency key: whoever asks again, now or later, gets the recorded
 * response. `idempotencyHandler` goes around the handler, and around all of Middy where that is used, so that it
 * records what the caller was told; `idempotencyMiddleware` is the same for Middy's `use`, and belongs first there.
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

/** Options of a handler that works once per key, beside those of the run. The invocation's remaining time bounds all of it. */
export interface IdempotencyOptions<Event, Context> extends Omit<RunOptions, "payload" | "largeResult"> {
  /** The client, made once outside of the handler. */
  readonly locks: LockClient;
  /**
   * The idempotency key. Where callers choose theirs, put who they are before it, or one is answered with another's
   * response: `key("orders", callerOf(event), idempotencyKeyOf(event.headers))`.
   * @default the request's `Idempotency-Key` header; a request without one is answered 400
   */
  readonly key?: (event: Event, context: Context) => string;
  /**
   * What the run is about, as JSON: the same key with another payload is refused, over HTTP with 422.
   * @default method, path, query and body of a request over HTTP, the body as parsed JSON (where the event doesn't say its method: all of it but headers and context); of other events nothing: any matches
   */
  readonly payload?: (event: Event, context: Context) => unknown;
  /**
   * Which responses are final, and replayed. After any other the same key runs the handler again.
   * @default those below 500, and those without a status; but not 401, 403, 408, 409, 423, 425 and 429, which say that it is not this caller's turn
   */
  readonly isRecorded?: (response: unknown) => boolean;
  /** How long to wait for another's response to the same key, in ms; 0 asks once. @default 5 000 for a request over HTTP, else 30 000; at most the remaining time − 1 s */
  readonly waitMs?: number;
  /** How often the handler may be started for a key; 0: no end, for who asks again over HTTP decides that. @default 0 */
  readonly maxAttempts?: number;
}

/** Below 500, and yet not what came of the work. */
const NOT_NOW: readonly number[] = [401, 403, 408, 409, 423, 425, 429];
/** The fields of an event that a caller got wrong, rather than whoever put this together. */
const ASKED_WRONGLY: readonly unknown[] = ["Idempotency-Key", "payload"];

/** Put into every replayed response over HTTP. */
const REPLAYED = { "Idempotent-Replayed": "true" };

/**
 * `handler` once per key; `currentRun()` is the run. An event with a method, or with `headers` or `multiValueHeaders`
 * at its top, is a request over HTTP: what hands one on, such as a state machine, leaves those out. Its response is recorded if it `isRecorded`; an error that it
 * throws makes the next caller start again, a `FinalError` is kept and replayed as `RunFailedError`. Over HTTP, a
 * replay has the header `Idempotent-Replayed: true`, and a key that is still being worked on is answered 409 with
 * Retry-After; elsewhere that throws LockTimeoutError, so that the trigger tries again. A response that can't be kept
 * (over 256 KB) is given once; after that the answer is 409 `result-omitted`.
 * @throws InvalidRequestError naming an option that is wrong
 */
export function idempotencyHandler<Event, Context, Rest extends readonly unknown[], Result>(
  options: IdempotencyOptions<Event, Context>,
  handler: Handler<Event, Context, Rest, Result>,
): Wrapped<Event, Context, Rest, Result> {
  return handlerOf(asRun(options), handler);
}

/**
 * The same for Middy: `use` it first. Then what is recorded is what the caller was told, serialized and with all
 * headers; a replay passes by every other middleware. If one of those answers early, nothing is recorded and the key
 * stays taken until the lease is over: put `idempotencyHandler` around Middy then, which doesn't mind.
 * The handler has its run as `context.run`, other middlewares as `request.internal.run`.
 * @throws InvalidRequestError naming an option that is wrong
 */
export function idempotencyMiddleware<Event, Context = unknown>(
  options: IdempotencyOptions<Event, Context>,
): Middleware<Event, Context, { run?: Run | undefined }> {
  return middlewareOf("run", asRun(options), options.isRecorded ?? isFinalResponse);
}

/** A response that says nothing of the work: the run ends as one that failed, and the caller still gets it. */
class NotRecorded extends Error {
  override readonly name = "NotRecorded";
}

/** How far one call came. */
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
      // The work is done, and only its record is not to be had: the caller is told what came of it.
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

/** What to answer for an error of the run; undefined for one of the handler, or of whoever put this together. */
function refusal(error: unknown, { stage, run, thrown }: Progress): HttpAnswer | undefined {
  if (stage === "before") return refusalBefore(error);
  if (error instanceof LockLostError) {
    // Taken over: another works on it by now, and whoever asks again gets what comes of that.
    if (error !== thrown) return problemAnswer("run-in-progress");
    const lost: unknown = run?.signal.reason;
    return lost instanceof LockLostError && lost.reason !== "released" ? problemAnswer("lease-lost") : undefined;
  }
  return stage === "after" && error instanceof LockUnavailableError ? problemAnswer("not-recorded", error) : undefined;
}

function refusalBefore(error: unknown): HttpAnswer | undefined {
  if (error instanceof LockTimeoutError) return problemAnswer("run-in-progress", error);
  // Lost before anybody ran: the invocation is nearly over.
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
  // Only of a gateway it is known that it would make an answer of that.
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
