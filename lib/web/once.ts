/**
 * A request that does its work once per idempotency key: the run around it, the decision which responses end it, and the answer when the
 * work did not run or its response can't be returned. Nothing here knows a framework.
 */
import { InvalidRequestError, LockError, LockLostError, LockUnavailableError } from "../client/errors.js";
import type { LockClient } from "../client/lock-client.js";
import { checkWork } from "../client/options.js";
import type { Run } from "../client/run/run-once.js";
import type { RunOptions } from "../client/run/run-options.js";
import { currentRun, runOnce } from "../client/wrap/once.js";
import type { HttpAnswer } from "./problem.js";
import { problemAnswer, refusalBefore } from "./problem.js";

/**
 * The default wait of a request for a key, or for the response of a concurrent run, in ms. Gateways time out after half a minute, and
 * people give up sooner.
 */
export const HTTP_WAIT_MS = 5000;
/** Added to every replayed response over HTTP. */
export const REPLAYED = { "Idempotent-Replayed": "true" };

/** Statuses below 500 that are not a result of the work. */
const RETRYABLE_STATUSES: readonly number[] = [401, 403, 408, 409, 423, 425, 429];

/** True if a response with this status is a result of the work, which a repeated request must get too. */
export function isFinalStatus(status: number): boolean {
  return status < 500 && !RETRYABLE_STATUSES.includes(status);
}

/** One request, and the rules for its run. */
export interface OnceRequest<Response> extends Omit<RunOptions, "payload" | "largeResult"> {
  readonly locks: LockClient;
  /** Makes the run's key and payload. Errors of it are answered as those of the run. */
  readonly asked: () => { readonly key: string; readonly payload: unknown };
  readonly isRecorded: (response: Response) => boolean;
  /** The behaviour if the locks can't be reached. After `"skip"` the response is undefined. @default "throw" */
  readonly whenUnavailable?: "throw" | "skip" | "proceed" | undefined;
}

/** The outcome of a request: the response of the work, now or replayed, or an error with its answer over HTTP. */
export type Answered<Response> =
  | { readonly how: "ran" | "replayed"; readonly response: Response }
  | { readonly how: "refused"; readonly error: unknown; readonly answer: HttpAnswer };

/** A response that is not a result of the work: the run ends as failed, and the caller still gets the response. */
class NotRecorded extends Error {
  override readonly name = "NotRecorded";
}

/** The progress of one request. */
interface Progress<Response> {
  stage: "before" | "in" | "after";
  run?: Run | undefined;
  response?: Response;
  thrown?: unknown;
}

/**
 * Runs `work` once per key, and resolves when its response is recorded. A response that is not `isRecorded`, or that can't be stored, is
 * still the response of this request. Rejects with an error of the work or of the application's configuration.
 */
export async function answerOnce<Response>(
  { locks, asked, isRecorded, isFinal, maxAttempts = 0, whenUnavailable, ...run }: OnceRequest<Response>,
  work: (run: Run | undefined) => Promise<Response>,
): Promise<Answered<Response>> {
  const progress: Progress<Response> = { stage: "before" };
  try {
    const { key, payload } = asked();
    const call = runOnce(
      {
        ...run,
        maxAttempts,
        whenUnavailable,
        locks,
        key: () => key,
        payload: () => payload,
        isFinal: (error) => !(error instanceof NotRecorded) && isFinal?.(error) === true,
      },
      async function handler() {
        const response = await performed(work, progress);
        if (isRecorded(response)) return response;
        throw new NotRecorded("answered with a response that is not recorded");
      },
    );
    const response = await call();
    return { how: progress.stage === "before" ? "replayed" : "ran", response };
  } catch (error) {
    // The work is done and only its record is missing: return the response to the caller.
    const isUnrecorded = error instanceof NotRecorded || (error instanceof LockError && error.code === "result-omitted");
    if (progress.stage === "after" && isUnrecorded) return { how: "ran", response: progress.response as Response };
    const answer = refusal(error, progress);
    if (answer) return { how: "refused", error, answer };
    throw error;
  }
}

async function performed<Response>(work: (run: Run | undefined) => Promise<Response>, progress: Progress<Response>): Promise<Response> {
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

/** Returns the answer for an error of the run; undefined for an error of the work or of its configuration. */
function refusal(error: unknown, { stage, run, thrown }: Progress<unknown>): HttpAnswer | undefined {
  if (stage === "before") return refusalBefore(error, "run-in-progress");
  if (error instanceof LockLostError) {
    // The run was taken over: another process works on it now, and a retry gets the result of that.
    if (error !== thrown) return problemAnswer("run-in-progress");
    const lost: unknown = run?.signal.reason;
    return lost instanceof LockLostError && lost.reason !== "released" ? problemAnswer("lease-lost") : undefined;
  }
  return stage === "after" && error instanceof LockUnavailableError ? problemAnswer("not-recorded", error) : undefined;
}

/** @throws InvalidRequestError unless `locks` is a client. */
export function checkClient(locks: unknown): asserts locks is LockClient {
  if (typeof (locks as Partial<LockClient> | undefined)?.forInvocation !== "function")
    throw new InvalidRequestError("locks: must be a client, as createLockClient() makes it", "locks");
}

/** @throws InvalidRequestError unless `given` is a function that runs when it is called (a generator function doesn't). */
export function checkFunction(name: string, given: unknown): void {
  checkWork(name, name, given, "must be a function");
}
