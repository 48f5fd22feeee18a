/** Expiry of leases, offers, waiters and ids, each by the clock whose error is safe. */
import { type Refusal, refuse } from "../errors.js";
import { type LeaseId, highestLeaseIdAt, leaseIdTimeMs } from "../lease-id.js";
import { DEFAULTS, LIMITS } from "../limits.js";
import type { Hold, Offer, Waiter } from "../record.js";
import type { ClockReading } from "../time.js";

/** The time after which a request that was refused because of the clocks is sent again. */
const SKEW_RETRY_MS = 1000;

/** True if the lease has not expired, by the earliest clock: a fast clock must not take a lease from its holder. */
export function isLive(hold: Hold, reading: ClockReading): boolean {
  return hold.expiresAtMs > reading.earliestMs;
}

/** True if the key may be granted to another lease, by the earliest clock: a fast clock must not take it too early. */
export function isReclaimable(hold: Hold, reading: ClockReading): boolean {
  return hold.expiresAtMs + hold.marginMs <= reading.earliestMs;
}

/** True if an offer may go to the next waiter, by the earliest clock: the first waiter's claim may be on its way. */
export function isLapsed(offer: Offer, { earliestMs }: ClockReading): boolean {
  return offerEndsAtMs(offer) <= earliestMs;
}

/** Returns the time at which an unclaimed offer lapses. An agent claims for a waiter that sleeps, which takes longer. */
export function offerEndsAtMs({ offeredAtMs, asleep }: Offer): number {
  return offeredAtMs + (asleep ? DEFAULTS.wakeWindowMs : DEFAULTS.offerWindowMs);
}

/** True if a waiter keeps its place, by the earliest clock: a fast clock must not take it. */
export function isWaiting({ aliveUntilMs }: Waiter, { earliestMs }: ClockReading): boolean {
  return aliveUntilMs > earliestMs;
}

/** True if an id is too old for a first grant, whether or not the key has a tombstone of it. */
export function isLongOver(leaseId: LeaseId, { earliestMs }: ClockReading): boolean {
  return leaseIdTimeMs(leaseId) < earliestMs - LIMITS.leaseIdBehindMs - LIMITS.leaseIdAheadMs;
}

/** True if the two server clocks are so far apart that they may not grant, renew or take over anything. */
export function isSkewed({ earliestMs, latestMs }: ClockReading): boolean {
  return latestMs - earliestMs > DEFAULTS.clockGuardMs;
}

/**
 * Returns the refusal of what these clocks can't decide. Other functions' clocks, or the same ones later, can. The process that decides is
 * the service's, or the caller's own if it goes straight to the table.
 */
export function refuseBySkew({ earliestMs, latestMs }: ClockReading): Refusal {
  const detail = `The deciding process's clock is ${latestMs - earliestMs} ms from that of the table or the gateway`;
  return refuse("clock-skew", { retryAfterMs: SKEW_RETRY_MS, detail });
}

/**
 * True if the low watermark may rise to an id whose tombstone is dropped. Uses the earliest clock, and stays below the
 * highest time of a new id by both servers' clock errors, so that every server accepts a new id above the watermark.
 */
export function mayRaiseLowWatermark(leaseId: LeaseId, reading: ClockReading): boolean {
  return leaseId <= highestLowWatermark(reading);
}

/** Returns the highest id to which the low watermark may rise now. */
export function highestLowWatermark({ earliestMs }: ClockReading): LeaseId {
  return highestLeaseIdAt(earliestMs + LIMITS.leaseIdAheadMs - 2 * DEFAULTS.clockErrorMs);
}

/** True if an id is so far ahead that its tombstone would be gone before it could be granted. */
export function isBeyondReach(leaseId: LeaseId, reading: ClockReading): boolean {
  return leaseIdTimeMs(leaseId) > reading.latestMs + LIMITS.leaseIdReachMs + LIMITS.leaseIdAheadMs;
}
