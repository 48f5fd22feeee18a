/** The boundary of each time, to the millisecond, by the clock whose error is safe. */
import { describe, expect, it } from "vitest";
import {
  highestLowWatermark,
  isBeyondReach,
  isLapsed,
  isLive,
  isLongOver,
  isReclaimable,
  isSkewed,
  isWaiting,
  mayRaiseLowWatermark,
  refuseBySkew,
} from "../../lib/core/lock/expiry.js";
import { isSameLeaseId, leaseIdFrom, leaseIdTimeMs } from "../../lib/core/lease-id.js";
import { DEFAULTS, LIMITS } from "../../lib/core/limits.js";
import type { Hold, Offer, Waiter } from "../../lib/core/record.js";
import type { ClockReading } from "../../lib/core/time.js";
import { leaseIdAt } from "../support/lease-ids.js";

const NOW_MS = Date.UTC(2027, 0, 1);
/** Beyond any bound, for the clock that must not count. */
const FAR_MS = 10 * DEFAULTS.retentionMs;
const hold = { expiresAtMs: NOW_MS, marginMs: 100 } as Hold;

/** A question, the clock that answers it, and the first time by that clock at which the answer is the second. */
const BOUNDS: readonly (readonly [
  question: string,
  ask: (reading: ClockReading) => boolean,
  by: keyof ClockReading,
  atMs: number,
  then: boolean,
])[] = [
  ["a lease has not expired", (reading) => isLive(hold, reading), "earliestMs", 0, false],
  ["a lease may be taken over", (reading) => isReclaimable(hold, reading), "earliestMs", 100, true],
  ["an offer lapsed", (reading) => isLapsed({ offeredAtMs: NOW_MS } as Offer, reading), "earliestMs", DEFAULTS.offerWindowMs, true],
  ["a waiter keeps its place", (reading) => isWaiting({ aliveUntilMs: NOW_MS } as Waiter, reading), "earliestMs", 0, false],
  [
    "an id is too old for a grant by any clock",
    (reading) => isLongOver(leaseIdAt(NOW_MS), reading),
    "earliestMs",
    LIMITS.leaseIdBehindMs + LIMITS.leaseIdAheadMs + 1,
    true,
  ],
  [
    "the low watermark may rise to an id",
    (reading) => mayRaiseLowWatermark(leaseIdAt(NOW_MS), reading),
    "earliestMs",
    2 * DEFAULTS.clockErrorMs - LIMITS.leaseIdAheadMs,
    true,
  ],
  [
    "an id is too far ahead to be remembered",
    (reading) => isBeyondReach(leaseIdAt(NOW_MS), reading),
    "latestMs",
    -(LIMITS.leaseIdReachMs + LIMITS.leaseIdAheadMs),
    false,
  ],
];

describe("whether", () => {
  it.each(BOUNDS)("%s changes at its time, by the one clock alone", (_, ask, by, atMs, then) => {
    const other = by === "earliestMs" ? { latestMs: NOW_MS + FAR_MS } : { earliestMs: NOW_MS - FAR_MS };
    const reading = (ms: number): ClockReading => ({ earliestMs: 0, latestMs: 0, ...other, [by]: NOW_MS + atMs + ms });
    expect([ask(reading(-1)), ask(reading(0))]).toEqual([!then, then]);
  });

  it("the clocks are too far apart is decided by their distance: the guard itself is not too far", () => {
    const apart = (ms: number): boolean => isSkewed({ earliestMs: NOW_MS, latestMs: NOW_MS + ms });
    expect([apart(0), apart(DEFAULTS.clockGuardMs), apart(DEFAULTS.clockGuardMs + 1)]).toEqual([false, false, true]);
  });

  it("the low watermark may rise to an id includes the highest id of that time", () => {
    const reading = { earliestMs: NOW_MS, latestMs: NOW_MS };
    const highest = highestLowWatermark(reading);
    expect(leaseIdTimeMs(highest)).toBe(NOW_MS + LIMITS.leaseIdAheadMs - 2 * DEFAULTS.clockErrorMs);
    expect(highest).toBe(leaseIdFrom(leaseIdTimeMs(highest), new Uint8Array(10).fill(0xff)));
    expect(mayRaiseLowWatermark(highest, reading)).toBe(true);
  });
});

it("a refusal because of the clocks says how far apart they are, and when to ask again", () => {
  expect(refuseBySkew({ earliestMs: NOW_MS, latestMs: NOW_MS + 12_345 })).toMatchObject({
    code: "clock-skew",
    retryAfterMs: 1000,
    detail: "The deciding process's clock is 12345 ms from that of the table or the gateway",
  });
});

it("ids are the same if they are of one length, and equal in every character", () => {
  expect([isSameLeaseId("ab", "ab"), isSameLeaseId("ab", "abc"), isSameLeaseId("abc", "ab")]).toEqual([true, false, false]);
  for (const other of ["xbc", "axc", "abx", "bac"]) expect(isSameLeaseId("abc", other), other).toBe(false);
});
