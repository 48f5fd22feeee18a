/** What a caller may ask of a run, and the checks that name the option and the rule before anything is sent. */
import { LIMITS } from "../../core/limits.js";
import { checkLease, checkMs, checkNames, checkOneOf, checkSignal, checkWhole, refused } from "../options.js";

/** Options of a run. */
export interface RunOptions {
  /**
   * What the run is about, as JSON: the same key with another payload is refused with
   * `fingerprint-mismatch`. Its SHA-256 is sent, nothing else. @default none: any payload matches
   */
  readonly payload?: unknown;
  /**
   * The lease's length in ms: after this, and the takeover margin, another caller takes the run over if this
   * process dies. Heartbeats renew it; it does not bound the work.
   * @default 30 000 (1 000 – 86 400 000); in Lambda at most the remaining time + 2 s
   */
  readonly leaseMs?: number;
  /** How long the outcome is kept and replayed, in ms, or `"forever"`. @default 86 400 000 (1 min – 365 d) */
  readonly keepResultMs?: number | "forever";
  /** How often the work may be started; 0: no end. A run that failed as often is refused with `attempts-exhausted`. @default 5 */
  readonly maxAttempts?: number;
  /** How long to wait for the outcome of another's run, in ms; 0 asks once. @default 30 000; in Lambda at most the remaining time − 1 s */
  readonly waitMs?: number;
  /** Gives the wait up with an AbortError; nothing stays started. Once the work runs, it is the work's own affair. */
  readonly signal?: AbortSignal;
  /** Which errors end the run for good, beside {@link FinalError}; all others make the next caller start again. @default none */
  readonly isFinal?: (error: unknown) => boolean;
  /**
   * What happens when the result can't be kept (over 256 KB as JSON, or nothing that JSON has a form for). Either
   * way the work is recorded as succeeded and never done again. `"throw"`: an error with the code
   * `result-omitted`, now and at every replay. `"omit"`: the value now, `undefined` and `resultOmitted` at every replay.
   * @default "throw"
   */
  readonly largeResult?: "throw" | "omit";
  /** A label for people who look who runs what. @default the client's `owner` */
  readonly owner?: string;
  /** `false`: a fixed lease, renewed by nobody: work that takes longer may be taken over. @default true */
  readonly heartbeat?: boolean;
}

const OPTIONS = [
  ...["payload", "leaseMs", "keepResultMs", "maxAttempts", "waitMs", "signal"],
  ...["isFinal", "largeResult", "owner", "heartbeat"],
];

/** @throws InvalidRequestError naming what is wrong with a run's options. */
export function checkRun(options: RunOptions): void {
  checkNames("runOnce", options, OPTIONS);
  checkLease(options);
  checkMs("waitMs", options.waitMs, 0, Number.MAX_SAFE_INTEGER);
  checkSignal(options.signal);
  const { keepResultMs, maxAttempts, isFinal, largeResult } = options;
  if (keepResultMs !== "forever") checkMs("keepResultMs", keepResultMs, LIMITS.keepResultMinMs, LIMITS.keepResultMaxMs);
  checkWhole("maxAttempts", maxAttempts, 0, LIMITS.attemptsMax);
  if (isFinal !== undefined && typeof isFinal !== "function") throw refused("isFinal", isFinal, "it must be a function of the error");
  checkOneOf("largeResult", largeResult, "throw", "omit");
}
