/** The metrics of a client. Durations are in seconds, and one metric has both successes and failures: the latter have `error.type`. */
import { isA } from "../core/brand.js";
import type { Attributes, Counter, Histogram, Meter, UpDownCounter } from "@opentelemetry/api";
import { ERRORS } from "../core/errors.js";
import { LockError, LockLostError } from "../client/wire/errors.js";

export interface Instruments {
  readonly acquireSec: Histogram;
  readonly holdSec: Histogram;
  readonly renewSec: Histogram;
  readonly runSec: Histogram;
  readonly takeSec: Histogram;
  readonly activeLocks: UpDownCounter;
  readonly activeWaiters: UpDownCounter;
  readonly lostLocks: Counter;
}

/** From a single write to a long hold, in s. The SDK's own boundaries are for milliseconds. */
const BOUNDARIES_SEC = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

/** Creates the metrics. */
export function instrumentsOf(meter: Meter): Instruments {
  const duration = (name: string, description: string): Histogram => {
    const advice = { explicitBucketBoundaries: BOUNDARIES_SEC };
    return meter.createHistogram(name, { unit: "s", description, advice });
  };
  return {
    acquireSec: duration("holdfast.acquire.duration", "Time from asking for a key to its grant or refusal"),
    holdSec: duration("holdfast.hold.duration", "Time from the grant of a lock to its release or loss"),
    renewSec: duration("holdfast.renew.duration", "Time that a heartbeat took, with its retries"),
    runSec: duration("holdfast.run.duration", "Time of a call of runOnce, with its wait and its work"),
    takeSec: duration("holdfast.take.duration", "Time from asking a limit to the start or the refusal"),
    activeLocks: meter.createUpDownCounter("holdfast.lock.active", { unit: "{lock}", description: "Locks held" }),
    activeWaiters: meter.createUpDownCounter("holdfast.waiter.active", { unit: "{waiter}", description: "Calls that wait for a lock" }),
    lostLocks: meter.createCounter("holdfast.locks.lost", { unit: "{lock}", description: "Holds that ended other than by their holder" }),
  };
}

/** The value of an attribute for everything that is not in its list: each value is a time series. */
const OTHER = "_OTHER";

/** The codes of this package's errors. One from the wire can be any text. */
const CODES: ReadonlySet<string> = new Set([...Object.keys(ERRORS), ...["closed", "result-omitted", "run-failed", "wait-timeout"]]);
/** The names of other errors that are told: those of the language, of the platform, and `FinalError`. An application's can be any text. */
const NAMES: ReadonlySet<string> = new Set([
  ...["Error", "AggregateError", "EvalError", "RangeError", "ReferenceError", "SyntaxError", "TypeError", "URIError"],
  ...["AbortError", "TimeoutError", "FinalError"],
]);

/** Returns the error's type: the code of one of this package's, else its name if that is a usual one. Never its message, which can quote a key. */
export function errorType(error: unknown): string {
  const [type, known] = isA(error, LockError) ? [error.code, CODES] : [(error as Partial<Error> | undefined)?.name, NAMES];
  return type !== undefined && known.has(type) ? type : OTHER;
}

const REASONS: Readonly<Record<LockLostError["reason"], true>> = {
  expired: true,
  taken: true,
  broken: true,
  released: true,
  transferred: true,
  never: true,
  deadline: true,
  "max-hold": true,
  "no-progress": true,
  "invocation-ends": true,
  closed: true,
  restored: true,
};

/** Returns the reason for which a hold ended, from its signal's. */
export function endReason(error: unknown): string {
  if (!isA(error, LockLostError)) return errorType(error);
  return Object.hasOwn(REASONS, error.reason) ? error.reason : OTHER;
}

/** Returns the attributes of a failure. */
export function failure(error: unknown): Attributes {
  return { "error.type": errorType(error) };
}
