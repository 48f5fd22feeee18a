/** The options of a run, and the checks that name the option and the rule before anything is sent. */
import * as LIMITS from "../../core/request-limits.js";
import type { WhenUnavailable } from "../options.js";
import { checkMs, checkOneOf, checkWaiting, checkWhole, refused, WHEN_UNAVAILABLE } from "../options.js";

/** Options of a run. */
export interface RunOptions {
  /**
   * The payload of the run, as JSON. The same key with another payload is refused with `fingerprint-mismatch`. Only its SHA-256 is sent.
   * @default none: any payload matches
   */
  readonly payload?: unknown;
  /**
   * The lease's length in ms. If this process dies, another caller takes the run over after this and the takeover margin. Heartbeats renew
   * the lease; its length does not limit the work.
   * @default 30 000 (1 000 – 86 400 000); in Lambda at most the remaining time + 2 s
   */
  readonly leaseMs?: number | undefined;
  /** The time for which the outcome is stored and replayed, in ms, or `"forever"`. @default 86 400 000 (1 min – 365 d) */
  readonly keepResultMs?: number | "forever" | undefined;
  /**
   * The largest number of times that the work is started; 0: no limit. A run that failed this often is refused with `attempts-exhausted`
   * until it is reset. Throw {@link FinalError} for a failure that is an outcome, such as a declined card.
   * @default 5
   */
  readonly maxAttempts?: number | undefined;
  /**
   * The time to wait for the outcome of a concurrent run, in ms; 0 asks once. @default 30 000; in Lambda at most the remaining time − 1 s
   */
  readonly waitMs?: number | undefined;
  /** Cancels the wait with an AbortError; nothing stays started. It does not stop work that has begun. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Decides which errors end the run for good, in addition to {@link FinalError}; all others make the next caller start again. @default
   * none
   */
  readonly isFinal?: ((error: unknown) => boolean) | undefined;
  /**
   * The behaviour if the result can't be stored (over 256 KB as JSON, or not representable in JSON). In both cases the work is recorded as
   * succeeded and never repeated. `"throw"` throws an error with the code `result-omitted`, now and at every replay. `"omit"` returns the
   * value now, and `undefined` with `resultOmitted` at every replay.
   * @default "throw"
   */
  readonly largeResult?: "throw" | "omit" | undefined;
  /** A label for people who inspect the run. @default the client's `owner` */
  readonly owner?: string | undefined;
  /** `false`: a fixed lease without heartbeats; work that takes longer can be taken over. @default true */
  readonly heartbeat?: boolean | undefined;
}

const OPTIONS = [
  ...["payload", "leaseMs", "keepResultMs", "maxAttempts", "waitMs", "signal"],
  ...["isFinal", "largeResult", "owner", "heartbeat", ...WHEN_UNAVAILABLE],
];

/** @throws InvalidRequestError naming the invalid option of a run. */
export function checkRun(options: RunOptions & WhenUnavailable): void {
  checkWaiting("runOnce", options, OPTIONS);
  const { keepResultMs, maxAttempts, isFinal, largeResult } = options;
  if (keepResultMs !== "forever") checkMs("keepResultMs", keepResultMs, LIMITS.keepResultMinMs, LIMITS.keepResultMaxMs);
  checkWhole("maxAttempts", maxAttempts, 0, LIMITS.attemptsMax);
  if (isFinal !== undefined && typeof isFinal !== "function") throw refused("isFinal", isFinal, "it must be a function");
  checkOneOf("largeResult", largeResult, "throw", "omit");
}
