/**
 * The engine of all adapters: it runs work once per key, or under a lock, and makes the answer when the work did not run or its response
 * can't be returned. A host says how a request is read and how a response is captured; nothing here knows one.
 */
import { brand, isA } from "../core/brand.js";
import { InvalidRequestError, LockError, LockLostError, LockUnavailableError } from "../client/wire/errors.js";
import { keyInHeader } from "../client/calls/batch.js";
import type { LockClient } from "../client/calls/lock-client.js";
import type { WhenUnavailable } from "../client/calls/options.js";
import { type Checks, checkOptions as checkNamed, checkWork } from "../client/wire/checks.js";
import type { Run } from "../client/calls/run/run-once.js";
import { type RunOptions, SERVED_RUN } from "../client/calls/run/run-options.js";
import { currentRun, runOnce } from "../client/calls/wrap/once.js";
import { checkMade } from "../client/calls/wrap/wrap-method.js";
import { type HttpAnswer, problemAnswer, refusalBefore } from "./problem.js";
import { type KeyOptions, type RequestParts, comparedOf, isSafe, requestKeys } from "./request.js";

/** Options of work that runs once per request, in addition to those of the run. `Asked` are the arguments by which the application sees it. */
export interface OnceOptions<Asked extends readonly unknown[]> extends KeyOptions<Asked>, Omit<RunOptions, "payload" | "largeResult"> {
  /** The client, created once outside of the handler. */
  readonly locks: LockClient;
  /**
   * The time to wait for the response of a concurrent run of the same key, in ms; 0 asks once. @default 5 000 for a request over HTTP, which
   * is then answered 409, else the client's default; in Lambda at most the remaining time − 1 s
   */
  readonly waitMs?: number | undefined;
  /**
   * The largest number of times that the work is started for a key; 0: no limit, because over HTTP the caller decides on retries.
   * @default 0
   */
  readonly maxAttempts?: number | undefined;
}

/** The rules of a host, made of its own options. */
interface OnceRules<Asked extends readonly unknown[], Response> extends OnceOptions<Asked>, WhenUnavailable {
  /** Names the run. @default the `Idempotency-Key` header of a request */
  readonly key?: ((...asked: Asked) => string) | undefined;
  /** Makes the content that must be equal when a key is repeated. @default the content of a request */
  readonly compared?: ((...asked: Asked) => unknown) | undefined;
  /** The host's name of that option. */
  readonly comparedBy: "fingerprint" | "payload";
  /** True for a response that ends the run. */
  readonly isRecorded: (response: Response) => boolean;
  /** Returns what is stored of a response. @default all of it */
  readonly storedOf?: ((response: Response) => Response) | undefined;
}

/** A request or an event, as its host reads it. */
interface HostCall<Asked extends readonly unknown[]> {
  readonly args: Asked;
  /** Undefined for an event that is no request: nobody waits for an answer, so a refusal is thrown. */
  readonly request: RequestParts | undefined;
  /** The client's view for this call. */
  readonly locks: LockClient;
}

/** The outcome of a call: a response, or an error with its answer over HTTP. `ran` is false for a replay and for a call that was skipped. */
export type CallOutcome<Response> =
  | { readonly how: "answered"; readonly ran: boolean; readonly response: Response }
  | { readonly how: "refused"; readonly error: unknown; readonly answer: HttpAnswer };

/** The default wait of a request, in ms. Gateways time out after half a minute, and people give up sooner. */
const HTTP_WAIT_MS = 5000;
/** Added to every replayed response over HTTP. */
export const REPLAYED = { "Idempotent-Replayed": "true" };
/** Statuses below 500 that are not a result of the work. */
const RETRYABLE_STATUSES: readonly number[] = [401, 403, 408, 409, 423, 425, 429];

/** True if a response with this status is a result of the work, which a repeated request must get too. */
export function isFinalStatus(status: number): boolean {
  return status < 500 && !RETRYABLE_STATUSES.includes(status);
}

/** True if a request runs under a key: it has a key or needs one. Safe methods need none, and their header is ignored. */
export function isCovered(
  { method, idempotencyKey }: Pick<RequestParts, "method" | "idempotencyKey">,
  { required = true }: { readonly required?: boolean | undefined } = {},
): boolean {
  return !isSafe(method) && (required || idempotencyKey !== undefined);
}

/** Returns the options of a call's wait. The sender of a request waits for an answer: not for long, and a skipped call has none. */
export function waitOf(
  isRequest: boolean,
  { waitMs, whenUnavailable }: Pick<RunOptions, "waitMs"> & WhenUnavailable,
): Pick<RunOptions, "waitMs"> & WhenUnavailable {
  return {
    waitMs: waitMs ?? (isRequest ? HTTP_WAIT_MS : undefined),
    whenUnavailable: isRequest && whenUnavailable === "skip" ? "throw" : whenUnavailable,
  };
}

/** A response that is not a result of the work: the run ends as failed, and the caller still gets the response. */
class NotRecorded extends Error {
  static {
    brand(this, "NotRecorded");
  }
  override readonly name = "NotRecorded";
}

/**
 * Returns the function that runs the work of a call once per key. It resolves when the response is recorded. A response that is not
 * `isRecorded`, or that can't be stored, is still the response of this call.
 * @throws InvalidRequestError naming the option that can't be in a key
 */
export function onceRunner<Asked extends readonly unknown[], Response>({
  locks,
  ...options
}: OnceRules<Asked, Response>): (
  call: HostCall<Asked>,
  work: (run: Run | undefined) => Promise<Response>,
) => Promise<CallOutcome<Response>> {
  const { service, caller, key: keyFor, compared, comparedBy, isRecorded, storedOf, ...ofRun } = options;
  const { isFinal, waitMs, whenUnavailable, maxAttempts = 0, ...run } = ofRun;
  const keys = requestKeys({ service, caller });

  function runOf({ args, request }: HostCall<Asked>): { readonly key: string; readonly payload: unknown } {
    if (!keyFor && !request)
      throw new InvalidRequestError("key: is needed for this event, which is no request over HTTP: it names the run", "key");
    const own: unknown = keyFor ? keyFor(...args) : keyInHeader(request?.idempotencyKey);
    checkMade("idempotency", own);
    const made = compared?.(...args);
    // JSON would be {} of every promise; the caller can't help it, so this is no refusal of the request.
    if (typeof (made as { readonly then?: unknown } | null | undefined)?.then === "function")
      throw new InvalidRequestError(`${comparedBy}: returned a promise; it must return the content itself`, "options");
    if (!request) return { key: keys.ofEvent(own), payload: made };
    return { key: keys.ofRequest(args, request, own), payload: comparedOf(request, compared ? { content: made } : request.content()) };
  }

  return (call, work) => {
    const isRequest = call.request !== undefined;
    const waits = waitOf(isRequest, { waitMs, whenUnavailable });
    return runProtected(isRequest, RUNS, work, (perform) => {
      const { key, payload } = runOf(call);
      const ends = { maxAttempts, isFinal: (error: unknown) => !isA(error, NotRecorded) && isFinal?.(error) === true };
      const named = { locks: call.locks, key: () => key, payload: () => payload };
      return runOnce({ ...run, ...waits, ...ends, ...named }, async function handler() {
        const response = await perform();
        if (isRecorded(response)) return storedOf?.(response) ?? response;
        throw new NotRecorded("answered with a response that is not recorded");
      })();
    });
  };
}

/** A lock or a run around work. */
export interface Protection<Under> {
  readonly current: () => Under;
  /** True if it was lost, and not given back. */
  readonly isLost: (under: Under) => boolean;
  /** The problem of a key that another call has. */
  readonly held: "locked" | "run-in-progress";
}

const RUNS: Protection<Run | undefined> = {
  current: currentRun,
  isLost: (run) => isA(run?.signal.reason, LockLostError) && run.signal.reason.reason !== "released",
  held: "run-in-progress",
};

interface Progress<Under, Response> {
  stage: "before" | "in" | "after";
  under?: Under;
  response?: Response;
  thrown?: unknown;
}

/**
 * Returns the outcome of `call`, which performs the work under a lock or as a run. Rejects with an error of the work or of the application's
 * configuration, and with every error if the call is no request.
 */
export async function runProtected<Under, Response>(
  isRequest: boolean,
  protection: Protection<Under>,
  work: (under: Under) => Promise<Response>,
  call: (perform: () => Promise<Response>) => Promise<Response>,
): Promise<CallOutcome<Response>> {
  const progress: Progress<Under, Response> = { stage: "before" };
  const perform = async (): Promise<Response> => {
    const under = protection.current();
    Object.assign(progress, { stage: "in", under });
    try {
      const response = await work(under);
      Object.assign(progress, { stage: "after", response });
      return response;
    } catch (thrown) {
      progress.thrown = thrown;
      throw thrown;
    }
  };
  try {
    const response = await call(perform);
    // Less of a response may be stored than was sent.
    return progress.stage === "before"
      ? { how: "answered", ran: false, response }
      : { how: "answered", ran: true, response: progress.response as Response };
  } catch (error) {
    // The work is done and only its record is missing: return the response to the caller.
    const isUnrecorded = isA(error, NotRecorded) || (isA(error, LockError) && error.code === "result-omitted");
    if (progress.stage === "after" && isUnrecorded) return { how: "answered", ran: true, response: progress.response as Response };
    const answer = isRequest ? refusal(error, progress, protection) : undefined;
    if (answer) return { how: "refused", error, answer };
    throw error;
  }
}

/** Returns the answer for an error of the lock or run; undefined for an error of the work or of its configuration. */
function refusal<Under>(error: unknown, { stage, under, thrown }: Progress<Under, unknown>, { isLost, held }: Protection<Under>) {
  if (stage === "before") return refusalBefore(error, held);
  if (isA(error, LockLostError)) {
    // Another process works on a run that was taken over, and a retry gets the result of that.
    if (error !== thrown) return problemAnswer(held === "locked" ? "lease-lost" : held);
    return isLost(under as Under) ? problemAnswer("lease-lost") : undefined;
  }
  return stage === "after" && isA(error, LockUnavailableError) ? problemAnswer("not-recorded", error) : undefined;
}

/**
 * Checks the options of an adapter once, so that not every call fails: its client, its functions, and those of the run.
 * @param own the checks of its other options
 * @param refused options of a run that the adapter doesn't have, and why
 * @throws InvalidRequestError naming the invalid option
 */
export function checkRunnerOptions(
  { locks, ...options }: { readonly locks: LockClient },
  functions: readonly string[],
  own: Checks = {},
  refused: Readonly<Record<string, string>> = {},
): void {
  checkClient(locks);
  const others = Object.entries(options);
  const ofRun = others.filter(([name]) => !functions.includes(name));
  checkNamed("a run here", Object.fromEntries(ofRun), { ...SERVED_RUN, ...own });
  for (const [name, value] of others) {
    if (Object.hasOwn(refused, name)) throw new InvalidRequestError(`${name}: ${refused[name]}`, name);
    if (functions.includes(name) && value !== undefined) checkFunction(name, value);
  }
}

/** @throws InvalidRequestError unless `locks` is a client. */
export function checkClient(locks: unknown): asserts locks is LockClient {
  if (typeof (locks as Partial<LockClient> | undefined)?.forInvocation !== "function")
    throw new InvalidRequestError("locks: must be a client, as createLockClient() makes it", "locks");
}

/** @throws InvalidRequestError unless `given` is a function that runs when it is called (a generator function doesn't). */
export function checkFunction(name: string, value: unknown): void {
  checkWork(name, name, value, "must be a function");
}
