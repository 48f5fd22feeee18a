/**
 * Ended ids over the whole life of a key's record. Regressions: an id that was cancelled nearly an hour ahead of the
 * clock had a tombstone, but the record was collected at the shortest retention, before the id's time had passed. A
 * late duplicate of its acquire was then granted: an ended lease held again. And a function whose clock was days behind
 * forgot the id that was cancelled last, because all of the ids were ahead of its clock.
 */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { leaseIdTimeMs } from "../../lib/core/lease-id.js";
import { LIMITS, RETENTION_MIN_MS } from "../../lib/core/limits.js";
import type { LockRecord } from "../../lib/core/record.js";
import { createPolicy } from "../../lib/core/policy.js";
import { transition } from "../../lib/core/transition.js";
import { leaseIdAt } from "../support/lease-ids.js";

const NOW_MS = Date.UTC(2027, 0, 1);
const HOUR_MS = 3_600_000;
const REACH_MS = LIMITS.leaseIdReachMs + LIMITS.leaseIdAheadMs;
const POLICY = createPolicy({ retentionMs: RETENTION_MIN_MS });
const at = (ms: number) => ({ earliestMs: ms, latestMs: ms });

const cancel = (record: LockRecord | undefined, leaseId: string, atMs: number) =>
  transition(record, { type: "release", key: "k", leaseId, principal: "me" }, at(atMs), POLICY);
const acquire = (record: LockRecord | undefined, leaseId: string, atMs: number) =>
  transition(
    record,
    {
      type: "acquire",
      key: "k",
      leaseId,
      principal: "me",
      owner: "",
      leaseMs: 1000,
      mode: "exclusive",
      limit: 1,
      permits: 1,
      priority: 0,
      requestHash: "",
    },
    at(atMs),
    POLICY,
  );

/** From hours behind to hours ahead, and the bounds themselves. */
const madeByMs = fc.oneof(
  fc.integer({ min: -2 * HOUR_MS, max: 2 * HOUR_MS }),
  fc.constantFrom(REACH_MS, REACH_MS + 1, LIMITS.leaseIdReachMs, 58 * 60_000, RETENTION_MIN_MS),
);

describe("an id that was cancelled", () => {
  it.each([
    [REACH_MS, true],
    [REACH_MS + 1, false],
    [58 * 60_000, false],
    [HOUR_MS, false],
    [24 * HOUR_MS, false],
  ])("%d ms ahead of the clock is remembered: %s", (aheadMs, isRemembered) => {
    const { answer, next } = cancel(undefined, leaseIdAt(NOW_MS + aheadMs), NOW_MS);
    expect(answer).toMatchObject({ ok: true, state: "never" });
    expect(next !== undefined).toBe(isRemembered);
  });

  it("is refused until its record is collected, and its time has passed by then", () => {
    const property = fc.property(madeByMs, fc.double({ min: 0, max: 1, noNaN: true }), fc.nat(48 * HOUR_MS), (byMs, share, afterMs) => {
      const leaseId = leaseIdAt(NOW_MS + byMs);
      const { next } = cancel(undefined, leaseId, NOW_MS);
      fc.pre(next !== undefined);
      const collectedAtMs = next.ttlAtSec * 1000;
      expect(acquire(next, leaseId, NOW_MS + share * (collectedAtMs - NOW_MS)).answer).toMatchObject({ code: "lease-over" });
      expect(acquire(undefined, leaseId, collectedAtMs + afterMs).answer).toMatchObject({ code: "lease-id-time" });
    });
    fc.assert(property, { numRuns: 500 });
  });
});

describe("the latest id that was cancelled, of many", () => {
  const DAYS_MS = 72 * HOUR_MS;
  const [held = "", ...cancelled] = Array.from({ length: 9 }, (_, order) => leaseIdAt(NOW_MS + order));
  const latest = cancelled.at(-1) ?? "";
  const behind = { earliestMs: NOW_MS - DAYS_MS, latestMs: NOW_MS + 10 };
  const release = (record: LockRecord | undefined, leaseId: string, reading = at(NOW_MS + 10)) =>
    transition(record, { type: "release", key: "k", leaseId, principal: "me" }, reading, POLICY).next ?? record;

  it.each([
    ["that itself is handled", false],
    ["that the next release is handled", true],
  ])("is refused when it is by a function whose clock is days behind %s", (_what, isHeld) => {
    let record = isHeld ? acquire(undefined, held, NOW_MS).next : undefined;
    for (const leaseId of cancelled) record = release(record, leaseId, leaseId === latest && !isHeld ? behind : at(NOW_MS + 10));
    if (isHeld) record = release(record, held, behind);
    expect(acquire(record, latest, NOW_MS + 20).answer).toMatchObject({ code: "lease-over" });
  });
});

describe("every id that a key remembers or ever granted", () => {
  interface Step {
    readonly byMs: number;
    readonly passMs: number;
    readonly isAcquire: boolean;
  }
  const steps = fc.array(fc.record<Step>({ byMs: madeByMs, passMs: fc.nat(600_000), isAcquire: fc.boolean() }), {
    minLength: 1,
    maxLength: 30,
  });

  it("is never granted again once the record is collected", () => {
    let granted = 0;
    const property = fc.property(steps, (history) => {
      let record: LockRecord | undefined;
      let nowMs = NOW_MS;
      const known: string[] = [];
      for (const { byMs, passMs, isAcquire } of history) {
        nowMs += passMs;
        const leaseId = leaseIdAt(nowMs + byMs);
        if (isAcquire) {
          const { answer, next } = acquire(record, leaseId, nowMs);
          if (!answer.ok || !("lease" in answer)) continue;
          granted++;
          record = next;
        }
        const { next } = cancel(record, leaseId, nowMs);
        if (!next) continue;
        record = next;
        known.push(leaseId);
      }
      const collectedAtMs = (record?.ttlAtSec ?? 0) * 1000;
      for (const leaseId of known) {
        expect(leaseIdTimeMs(leaseId)).toBeLessThan(collectedAtMs);
        expect(acquire(undefined, leaseId, collectedAtMs).answer).toMatchObject({ code: "lease-id-time" });
      }
    });
    fc.assert(property, { numRuns: 500 });
    expect(granted).toBeGreaterThan(0);
  });
});
