/** The SDK's errors. `code`, `definite` and `retry` come from the service's registry where it answered. */
import type { HolderView, LostReason, Refusal, RetryAdvice } from "../core/errors.js";

/** What every error of the SDK tells. */
export interface LockErrorDetails {
  readonly code: string;
  /** The operation certainly did not happen. */
  readonly definite: boolean;
  readonly retry: RetryAdvice;
  readonly retryAfterMs?: number | undefined;
  readonly cause?: unknown;
}

/** The base of the SDK's errors. A lock that is held is an answer (`null`), not an error. */
export class LockError extends Error {
  override readonly name: string = "LockError";
  readonly code: string;
  readonly definite: boolean;
  readonly retry: RetryAdvice;
  readonly retryAfterMs: number | undefined;

  constructor(message: string, { code, definite, retry, retryAfterMs, cause }: LockErrorDetails) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.definite = definite;
    this.retry = retry;
    this.retryAfterMs = retryAfterMs;
  }
}

/** What a wait knew of the key when it came to its end. */
export interface Awaited {
  readonly holders?: readonly HolderView[] | undefined;
  readonly position?: number | undefined;
  readonly retryAfterMs?: number | undefined;
}

/** The key did not become free within `waitMs`. Nothing is held and nothing is left behind. */
export class LockTimeoutError extends LockError {
  override readonly name = "LockTimeoutError";
  /** The leases that were in the way, as far as they are known: their owners, tokens and times. */
  readonly holders: readonly HolderView[];
  /** The last known place in the key's queue, 1 is next; callers of one process share theirs. Undefined where there was none. */
  readonly position: number | undefined;
  /** The time waited, in ms. */
  readonly waitedMs: number;

  constructor(
    message: string,
    { holders = [], position, waitedMs = 0, ...details }: LockErrorDetails & Awaited & { readonly waitedMs?: number },
  ) {
    super(message, details);
    this.holders = holders;
    this.position = position;
    this.waitedMs = waitedMs;
  }
}

/** The error of a wait for `what` that came to its end, knowing this. */
export function timeoutOf(what: string, { holders = [], position, retryAfterMs }: Awaited, waited = 0, hint = ""): LockTimeoutError {
  const [first] = holders;
  const by = first ? `${first.owner || "another"} (for ${first.heldMs} ms)` : "another";
  const others = holders.length > 1 ? ` and ${holders.length - 1} more` : "";
  const place = position === undefined ? "" : `, at place ${position} of its queue`;
  const waitedMs = Math.round(waited);
  const details = { code: "wait-timeout", definite: true, retry: "later", retryAfterMs, holders, position, waitedMs } as const;
  return new LockTimeoutError(`${what}: still held by ${by}${others} after ${waitedMs} ms${place}${hint}`, details);
}

/** The lease is not held any more: stop, and don't trust what was done since it was last checked. */
export class LockLostError extends LockError {
  override readonly name = "LockLostError";
  /** Why, as far as it is known; `deadline` when no renewal landed in time. */
  readonly reason: LostReason | "deadline" | "max-hold" | "invocation-ends" | "closed";

  constructor(message: string, reason: LockLostError["reason"], cause?: unknown) {
    super(message, { code: "lease-lost", definite: true, retry: "new-lease", cause });
    this.reason = reason;
  }
}

/** The service or the table could not be reached, or could not decide. */
export class LockUnavailableError extends LockError {
  override readonly name = "LockUnavailableError";
}

/** The call breaks a rule: a bad key, an option out of range. Nothing was sent, or the service refused it. */
export class InvalidRequestError extends LockError {
  override readonly name = "InvalidRequestError";
  /** The option or field that broke the rule. */
  readonly field: string | undefined;

  constructor(message: string, field?: string) {
    super(message, { code: "invalid-request", definite: true, retry: "never" });
    this.field = field;
  }
}

/**
 * For the function of a run to throw: the work failed for good. It is recorded, and every later caller gets a
 * {@link RunFailedError} with this message. Any other error makes the next caller start again.
 */
export class FinalError extends Error {
  override readonly name: string = "FinalError";
}

/** The run failed for good in an earlier call: replayed, with the message that was kept. Its function was not called. */
export class RunFailedError extends LockError {
  override readonly name = "RunFailedError";
  /** Which attempt failed. */
  readonly attempt: number;

  /** @param cause the error as it was kept: its name and message */
  constructor(key: string, cause: Error, attempt: number) {
    super(`${key}: ${cause.message}`, { code: "run-failed", definite: true, retry: "never", cause });
    this.attempt = attempt;
  }
}

const UNAVAILABLE: ReadonlySet<string> = new Set(["unavailable", "throttled", "clock-skew", "newer-format", "internal"]);

/** The error for a refusal that is not an answer. */
export function errorOf(refusal: Refusal, what: string): LockError {
  const message = `${what}: ${refusal.detail}`;
  if (refusal.code === "invalid-request") return new InvalidRequestError(message, refusal.field);
  if (refusal.code === "lease-lost") return new LockLostError(message, refusal.reason ?? "taken");
  const details = { code: refusal.code, definite: refusal.definite, retry: refusal.retry, retryAfterMs: refusal.retryAfterMs };
  return UNAVAILABLE.has(refusal.code) ? new LockUnavailableError(message, details) : new LockError(message, details);
}
