/** Whether a lease still counts and an id still may, each by the clock whose error is safe. */
import type { LeaseId } from "../lease-id.js";
import { highestLeaseIdAt, leaseIdTimeMs } from "../lease-id.js";
import { DEFAULTS, LIMITS } from "../limits.js";
import type { Hold, Offer, Waiter } from "../record.js";
import type { ClockReading } from "../time.js";

/** Whether the lease still counts. With the earlier clock: a fast one must not rob a living holder. */
export function isLive(hold: Hold, reading: ClockReading): boolean {
  return hold.expiresAtMs > reading.earliestMs;
}

/** Whether somebody else may be granted the key. With the earlier clock: a fast one must not take. */
export function isReclaimable(hold: Hold, reading: ClockReading): boolean {
  return hold.expiresAtMs + hold.marginMs <= reading.earliestMs;
}

/** Whether an offer may go to the next. With the earlier clock: whoever it was made to may be on its way. */
export function isLapsed({ offeredAtMs }: Offer, { earliestMs }: ClockReading): boolean {
  return offeredAtMs + DEFAULTS.offerWindowMs <= earliestMs;
}

/** Whether a waiter keeps its place. With the earlier clock: a fast one must not take it. */
export function isWaiting({ aliveUntilMs }: Waiter, { earliestMs }: ClockReading): boolean {
  return aliveUntilMs > earliestMs;
}

/** Whether an id is too old to be granted for the first time, whatever the key remembers. */
export function isLongOver(leaseId: LeaseId, { earliestMs }: ClockReading): boolean {
  return leaseIdTimeMs(leaseId) < earliestMs - LIMITS.leaseIdBehindMs - LIMITS.leaseIdAheadMs;
}

/** Whether the two server clocks disagree so far that nothing is granted, renewed or taken over by them. */
export function isSkewed({ earliestMs, latestMs }: ClockReading): boolean {
  return latestMs - earliestMs > DEFAULTS.clockGuardMs;
}

/**
 * Whether the low watermark may rise to an id that is forgotten by name. By the earlier clock, and short of what a new id
 * may be ahead by both servers' clock errors: then a new id above the watermark is accepted by every server.
 */
export function mayRaiseLowWatermark(leaseId: LeaseId, reading: ClockReading): boolean {
  return leaseId <= highestLowWatermark(reading);
}

/** The highest id to which the low watermark may rise now. */
export function highestLowWatermark({ earliestMs }: ClockReading): LeaseId {
  return highestLeaseIdAt(earliestMs + LIMITS.leaseIdAheadMs - 2 * DEFAULTS.clockErrorMs);
}

/** Whether an id is so far ahead that the key would have forgotten it before it could be granted. */
export function isBeyondReach(leaseId: LeaseId, reading: ClockReading): boolean {
  return leaseIdTimeMs(leaseId) > reading.latestMs + LIMITS.leaseIdReachMs + LIMITS.leaseIdAheadMs;
}
