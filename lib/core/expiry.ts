/** Whether a lease still counts and an id still may, each by the clock whose error is safe. */
import type { LeaseId } from "./lease-id.js";
import { leaseIdTimeMs } from "./lease-id.js";
import { DEFAULTS, LIMITS } from "./limits.js";
import type { Hold, Offer, Waiter } from "./record.js";
import type { ClockReading } from "./time.js";

/** Whether the lease still counts. With the earlier clock: a fast one must not rob a living holder. */
export function isLive(hold: Hold, reading: ClockReading): boolean {
  return hold.expiresAtMs > reading.earlierMs;
}

/** Whether somebody else may be granted the key. With the earlier clock: a fast one must not take. */
export function isTakeable(hold: Hold, reading: ClockReading): boolean {
  return hold.expiresAtMs + hold.marginMs <= reading.earlierMs;
}

/** Whether an offer may go to the next. With the earlier clock: whoever it was made to may be on its way. */
export function isLapsed({ offeredAtMs }: Offer, { earlierMs }: ClockReading): boolean {
  return offeredAtMs + DEFAULTS.offerWindowMs <= earlierMs;
}

/** Whether a waiter keeps its place. With the earlier clock: a fast one must not take it. */
export function isWaiting({ heardUntilMs }: Waiter, { earlierMs }: ClockReading): boolean {
  return heardUntilMs > earlierMs;
}

/** Whether an id is too old to be granted for the first time, whatever the key remembers. */
export function isLongOver(leaseId: LeaseId, reading: ClockReading): boolean {
  return leaseIdTimeMs(leaseId) < reading.earlierMs - LIMITS.leaseIdBehindMs - LIMITS.leaseIdAheadMs;
}

/** Whether an id is so far ahead that the key would have forgotten it before it could be granted. */
export function isBeyondReach(leaseId: LeaseId, reading: ClockReading): boolean {
  return leaseIdTimeMs(leaseId) > reading.laterMs + LIMITS.leaseIdReachMs + LIMITS.leaseIdAheadMs;
}
