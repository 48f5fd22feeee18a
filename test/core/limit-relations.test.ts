/** A constant that breaks a safety assumption is named; test/infra/bundle.slow.test.ts has that no code is made with it. */
import { describe, expect, it } from "vitest";
import { assertLimits } from "../../lib/core/limit-relations.js";
import { DEFAULTS, isServerWait, LIMITS, RETENTION_MIN_MS, takeoverMarginMs } from "../../lib/core/limits.js";

describe("the relations between limits", () => {
  it("hold", () => {
    expect(() => assertLimits()).not.toThrow();
  });

  const { leaseMinMs, leaseMaxMs, pollMaxMs, outcomeBodyBytes, inlineBytes } = LIMITS;
  const { clockErrorMs, clockGuardMs } = DEFAULTS;
  const fullBytes = LIMITS.queueBytes + LIMITS.smallRecordBytes + 2 * (3 * LIMITS.ownerChars + LIMITS.metaBytes);
  const reachMs = RETENTION_MIN_MS - LIMITS.leaseIdAheadMs - LIMITS.leaseIdBehindMs - clockGuardMs;
  const outlastsMs = DEFAULTS.leaseMs + takeoverMarginMs(DEFAULTS.leaseMs) + 2 * pollMaxMs;
  type Changed = Partial<Record<keyof typeof LIMITS | keyof typeof DEFAULTS, number>>;

  it.each<[rule: string, justHolds: Changed, isBroken: Changed]>([
    ["the default lease is within its bounds", { leaseMs: leaseMaxMs, waitMs: 2 * leaseMaxMs }, { leaseMs: leaseMaxMs + 1 }],
    ["the default lease is within its bounds", { leaseMs: leaseMinMs }, { leaseMs: leaseMinMs - 1 }],
    ["the default wait outlasts a crashed holder's lease", { waitMs: outlastsMs }, { waitMs: outlastsMs - 1 }],
    ["a client treats the shortest lease as held for most of it", { leaseMinMs: 101 }, { leaseMinMs: 100 }],
    ["a full queue leaves room for one hold", { recordBytes: fullBytes }, { recordBytes: fullBytes - 1 }],
    ["an item outlives every late duplicate of its ids", { leaseIdReachMs: reachMs }, { leaseIdReachMs: reachMs + 1 }],
    [
      "an offer outlasts its waiter's next poll",
      { offerWindowMs: pollMaxMs + 2 * clockErrorMs + 300 },
      { offerWindowMs: pollMaxMs + 2 * clockErrorMs + 299 },
    ],
    ["a waiter is seen before its offer lapses", { keepAliveAfterMs: pollMaxMs - 1001 }, { keepAliveAfterMs: pollMaxMs - 1000 }],
    ["a waiter that polls in time is seen before it loses its place", { waiterTtlMs: 2 * pollMaxMs + 1 }, { waiterTtlMs: 2 * pollMaxMs }],
    ["the default retention is not below its minimum", { retentionMs: RETENTION_MIN_MS }, { retentionMs: RETENTION_MIN_MS - 1 }],
    [
      "an outcome's body has room for its result",
      { resultBytes: outcomeBodyBytes - inlineBytes - 1 },
      { resultBytes: outcomeBodyBytes - inlineBytes },
    ],
    ["the guard is wider than the error it guards", { clockGuardMs: 2 * clockErrorMs + 1 }, { clockGuardMs: 2 * clockErrorMs }],
  ])("are named where one does not hold, to the last figure: %s", (rule, justHolds, isBroken) => {
    const assertWith = (changed: Changed) => () => assertLimits({ ...LIMITS, ...changed }, { ...DEFAULTS, ...changed });
    expect(assertWith(justHolds)).not.toThrow();
    expect(assertWith(isBroken)).toThrow(rule);
  });

  it.each([
    [-1, false],
    [0, true],
    [0.5, false],
    [Number.NaN, false],
    [LIMITS.serverWaitMs, true],
    [LIMITS.serverWaitMs + 1, false],
  ])("bound the wait in the service: %d ms is accepted: %s", (waitMs, is) => {
    expect(isServerWait(waitMs)).toBe(is);
  });
});
