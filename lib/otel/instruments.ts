/** The metrics of a client. Durations are in seconds, and one metric has both successes and failures: the latter have `error.type`. */
import type { Attributes, Counter, Histogram, Meter, UpDownCounter } from "@opentelemetry/api";
import { LockError } from "../client/errors.js";

/** The metrics. */
export interface Instruments {
  readonly acquireSec: Histogram;
  readonly holdSec: Histogram;
  readonly renewSec: Histogram;
  readonly runSec: Histogram;
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
    activeLocks: meter.createUpDownCounter("holdfast.lock.active", { unit: "{lock}", description: "Locks held" }),
    activeWaiters: meter.createUpDownCounter("holdfast.waiter.active", { unit: "{waiter}", description: "Calls that wait for a lock" }),
    lostLocks: meter.createCounter("holdfast.locks.lost", { unit: "{lock}", description: "Holds that ended other than by their holder" }),
  };
}

/** Returns the error's type: the code of one of this package's, else its name. Never its message, which can quote a key. */
export function errorType(error: unknown): string {
  if (error instanceof LockError) return error.code;
  return error instanceof Error && error.name !== "" ? error.name : "_OTHER";
}

/** Returns the attributes of a failure. */
export function failure(error: unknown): Attributes {
  return { "error.type": errorType(error) };
}
