/** The SDK's errors. `code`, `definite` and `retry` come from the service's registry if the service answered. */
import { brand, hasInstance, isA } from "../../core/brand.js";
import type { HolderView, LostReason, Refusal, RetryAdvice } from "../../core/errors.js";

/** The details of every error of the SDK. */
export interface LockErrorDetails {
  readonly code: string;
  /** True if the operation certainly did not happen, as always of a read, which changes nothing; false if it may have happened. */
  readonly definite: boolean;
  readonly retry: RetryAdvice;
  readonly retryAfterMs?: number | undefined;
  readonly httpStatus?: number | undefined;
  readonly cause?: unknown;
}

/** The base class of the SDK's errors. A held key is an answer (`null`), not an error. */
export class LockError extends Error {
  static {
    brand(this, "LockError");
  }

  /** Goes by the brand, so `instanceof` knows the errors of another copy of the package. */
  static override [Symbol.hasInstance](value: unknown): boolean {
    return hasInstance(this, value);
  }

  override readonly name: string = "LockError";
  readonly code: string;
  readonly definite: boolean;
  readonly retry: RetryAdvice;
  readonly retryAfterMs: number | undefined;
  /**
   * The HTTP status of the refusal, of the service or of a gateway. Undefined if nothing answered, straight on the table, and for what has a
   * class of its own: a loss, an invalid request, a limit and a wait that ended.
   */
  readonly httpStatus: number | undefined;

  constructor(message: string, { code, definite, retry, retryAfterMs, httpStatus, cause }: LockErrorDetails) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.definite = definite;
    this.retry = retry;
    this.retryAfterMs = retryAfterMs;
    this.httpStatus = httpStatus;
  }
}

/** The last known state of the key when a wait ended. */
export interface Awaited {
  readonly holders?: readonly HolderView[] | undefined;
  readonly position?: number | undefined;
  readonly retryAfterMs?: number | undefined;
  readonly waitedMs?: number | undefined;
  readonly key?: string | undefined;
  /** The refusal that ended the wait, if it doesn't say that anybody holds the key. */
  readonly cause?: unknown;
}

/** The key did not become free within `waitMs`. Nothing is held, and the caller has left the queue. */
export class LockTimeoutError extends LockError {
  static {
    brand(this, "LockTimeoutError");
  }
  override readonly name = "LockTimeoutError";
  /** The leases that held the key, as far as known: their owners, tokens and times. */
  readonly holders: readonly HolderView[];
  /** The last known position in the key's queue; 1 is next. Callers of one process share a position. Undefined if unknown. */
  readonly position: number | undefined;
  /** The time waited, in ms. */
  readonly waitedMs: number;
  /** The key, with the client's prefix; the keys of a set, separated by spaces; undefined if the wait was for something else. */
  readonly key: string | undefined;

  constructor(message: string, { holders = [], position, waitedMs = 0, key, ...details }: LockErrorDetails & Awaited) {
    super(message, details);
    this.holders = holders;
    this.position = position;
    this.waitedMs = waitedMs;
    this.key = key;
  }
}

/** Returns the error for a wait for `what` that ended in this state. */
export function timeoutOf(what: string, { holders = [], position, retryAfterMs, cause }: Awaited, waited = 0): LockTimeoutError {
  const [first] = holders;
  const by = first ? `${first.owner || "another"} (for ${first.heldMs} ms)` : "another";
  const others = holders.length > 1 ? ` and ${holders.length - 1} more` : "";
  const place = position === undefined ? "" : `, at place ${position} of its queue`;
  const waitedMs = Math.round(waited);
  const isHeld = first !== undefined || !isA(cause, LockError);
  const why = isHeld ? `still held by ${by}${others} after ${waitedMs} ms${place}` : `not granted after ${waitedMs} ms: ${cause.message}`;
  const details = { code: "wait-timeout", definite: true, retry: "later", retryAfterMs, holders, position, waitedMs, cause } as const;
  return new LockTimeoutError(`${what}: ${why}`, details);
}

/** The details of a loss: the key, and what led to it. */
interface LossDetails {
  readonly key?: string | undefined;
  readonly cause?: unknown;
}

/** The lease is no longer held. Stop, and don't trust work done since the lease was last checked. */
export class LockLostError extends LockError {
  static {
    brand(this, "LockLostError");
  }
  override readonly name = "LockLostError";
  /**
   * The reason, as far as known; `deadline` if no renewal succeeded in time, `restored` in a process that went on from a snapshot of Node:
   * another such process would hold it too.
   */
  readonly reason: LostReason | "deadline" | "max-hold" | "no-progress" | "invocation-ends" | "closed" | "restored";
  /** The key, with the client's prefix; the keys of a set, separated by spaces. */
  readonly key: string | undefined;

  constructor(message: string, reason: LockLostError["reason"], { key, cause }: LossDetails = {}) {
    super(message, { code: "lease-lost", definite: true, retry: "new-lease", cause });
    this.reason = reason;
    this.key = key;
  }
}

/** The reason of a hold that its own client ended: it gave it back, or closed. */
export function endedError(key: string, by: "released" | "closed"): LockLostError {
  return new LockLostError(`${key}: ${by === "closed" ? "the client was closed" : "the lease was released before"}`, by, { key });
}

/** A limit has no room for the take within its `waitMs`. Nothing was taken. */
export class LimitExceededError extends LockError {
  static {
    brand(this, "LimitExceededError");
  }
  override readonly name = "LimitExceededError";
  /** The time after which it would have room, if nobody else takes, in ms. */
  declare readonly retryAfterMs: number;

  constructor(message: string, retryAfterMs: number) {
    super(message, { code: "rate-limited", definite: true, retry: "later", retryAfterMs });
  }
}

/** The service or the table could not be reached, or could not decide. */
export class LockUnavailableError extends LockError {
  static {
    brand(this, "LockUnavailableError");
  }
  override readonly name = "LockUnavailableError";
}

/** The call breaks a rule, such as an invalid key or an option out of range. Nothing was sent, or the service refused the request. */
export class InvalidRequestError extends LockError {
  static {
    brand(this, "InvalidRequestError");
  }
  override readonly name = "InvalidRequestError";
  /** The option or field that broke the rule. */
  readonly field: string | undefined;

  constructor(message: string, field?: string) {
    super(message, { code: "invalid-request", definite: true, retry: "never" });
    this.field = field;
  }
}

/**
 * Throw this from the function of a run if no retry would change the result: a declined card is an outcome, not a failed attempt. It is
 * recorded, and every later caller gets a {@link RunFailedError} with this message and data. Any other error is a failed attempt, and makes
 * the next caller start again, up to `maxAttempts`.
 */
export class FinalError extends Error {
  static {
    brand(this, "FinalError");
  }

  /** Goes by the brand, so `instanceof` knows the errors of another copy of the package. */
  static override [Symbol.hasInstance](value: unknown): boolean {
    return hasInstance(this, value);
  }

  override readonly name: string = "FinalError";
  /** Details for callers, stored as a result is. What can't be stored (over 128 KB as JSON, or not representable in JSON) is left out. */
  readonly data: unknown;

  constructor(message?: string, options?: ErrorOptions & { readonly data?: unknown }) {
    super(message, options);
    this.data = options?.data;
  }
}

/** The run failed for good in an earlier call. This replays the stored message; the function was not called. */
export class RunFailedError extends LockError {
  static {
    brand(this, "RunFailedError");
  }
  override readonly name = "RunFailedError";
  /** The number of the attempt that failed. */
  readonly attempt: number;
  /** The `data` of the {@link FinalError}. */
  readonly data: unknown;

  /** @param cause the error as stored: its name and message */
  constructor(key: string, cause: Error, attempt: number, data?: unknown) {
    super(`${key}: ${cause.message}`, { code: "run-failed", definite: true, retry: "never", cause });
    this.attempt = attempt;
    this.data = data;
  }
}

/** True if the call ended without an answer: in an outage, or since its invocation ended before one could come. */
export function isUnanswered(error: unknown): boolean {
  return isA(error, LockUnavailableError) || (isA(error, LockError) && error.code === "invocation-ends");
}

/** The codes of an outage. A record that can't be read is none: the table answered, and another version uses the key. */
const UNAVAILABLE: ReadonlySet<string> = new Set(["unavailable", "throttled", "clock-skew", "internal"]);

/** Returns the error for a refusal. @param loss the details if it says that a lease is lost */
export function errorOf(refusal: Refusal, what: string, loss?: LossDetails): LockError {
  const message = `${what}: ${refusal.detail}`;
  if (refusal.invocationEnds)
    return new LockError(`${message}: the invocation ends`, { ...refusal, code: "invocation-ends", retry: "later" });
  if (refusal.code === "invalid-request") return new InvalidRequestError(message, refusal.field);
  if (refusal.code === "lease-lost") return new LockLostError(message, refusal.reason ?? "taken", loss);
  if (refusal.code === "rate-limited") return new LimitExceededError(message, refusal.retryAfterMs ?? 0);
  return UNAVAILABLE.has(refusal.code) ? new LockUnavailableError(message, refusal) : new LockError(message, refusal);
}

/** Returns the error for a refused read. It changed nothing, whatever became of its requests. */
export function readErrorOf(refusal: Refusal, what: string): LockError {
  return errorOf({ ...refusal, definite: true }, what);
}
