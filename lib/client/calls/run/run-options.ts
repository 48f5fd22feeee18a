/** The options of a run, and the checks that name the option and the rule before anything is sent. */
import { isA } from "../../../core/brand.js";
import * as LIMITS from "../../../core/request-limits.js";
import { InvalidRequestError } from "../../wire/errors.js";
import type { WhenUnavailable } from "../options.js";
import type { Check, Checks } from "../../wire/checks.js";
import { WHEN_UNAVAILABLE } from "../options.js";
import { CHECKS, ms, must, oneOf, unchecked, whole } from "../../wire/checks.js";
import { toJson, UnkeepableError } from "./json-codec.js";

export interface RunOptions {
  /**
   * The payload of the run, as JSON, at the time of the call. The same key with another payload is refused with `fingerprint-mismatch`. Only
   * its SHA-256 is sent.
   * @default none: any payload matches
   */
  readonly payload?: unknown;
  /**
   * The lease's length in ms. If this process dies, another caller takes the run over after this and the takeover margin. Heartbeats renew
   * the lease; its length does not limit the work.
   * @default the client's `leaseMs`, else 30 000 (1 000 – 86 400 000); in Lambda at most the remaining time + 2 s
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
   * The time to wait for the outcome of a concurrent run, in ms; 0 asks once.
   * @default the client's `waitMs`, else 45 000; in Lambda at most the remaining time − 1 s
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
  /**
   * The longest time between two `run.progress()` or `run.saveCheckpoint()`, in ms, at least `leaseMs`; the first counts from the start.
   * After it the signal aborts and heartbeats end, so another caller takes the run over. No limit by default.
   */
  readonly progressMs?: number | undefined;
}

/** The time for which an outcome is stored. */
export const keepMs: Check = (name, value) => {
  if (value !== "forever") ms(LIMITS.keepResultMinMs, LIMITS.keepResultMaxMs)(name, value);
};
/** The number of times that the work of a run is started. */
export const maxAttempts = whole(0, LIMITS.attemptsMax);

export const RUN: Checks<RunOptions & WhenUnavailable> = {
  payload: unchecked,
  leaseMs: CHECKS.leaseMs,
  keepResultMs: keepMs,
  maxAttempts,
  waitMs: CHECKS.waitMs,
  signal: CHECKS.signal,
  isFinal: must((value) => typeof value === "function", "it must be a function"),
  largeResult: oneOf("throw", "omit"),
  owner: CHECKS.owner,
  heartbeat: CHECKS.heartbeat,
  progressMs: CHECKS.progressMs,
  ...WHEN_UNAVAILABLE,
};

const { payload: _payload, whenUnavailable: _whenUnavailable, ...ofServed } = RUN;
/**
 * The checks of the options of a run for a message, an event or a request. Its payload is made of that. Nothing goes on without the run,
 * unless the wrapper says so: SQS would delete a message whose work was skipped.
 */
export const SERVED_RUN: Checks<Omit<RunOptions, "payload">> = ofServed;

/** Returns a caller's `value` as JSON, as {@link toJson} does. @throws InvalidRequestError naming the member of `field` that can't be JSON */
export function inputToJson(value: unknown, field: string): unknown {
  try {
    return toJson(value, field);
  } catch (error) {
    throw isA(error, UnkeepableError) ? new InvalidRequestError(error.message, field) : error;
  }
}
