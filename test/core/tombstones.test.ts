/** The memory of ended leases: eight of them with their endings, the others through the low watermark. */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { EMPTY_RECORD, endingOf, endLease } from "../../lib/core/lock/tombstones.js";
import { leaseIdTimeMs } from "../../lib/core/lease-id.js";
import { DEFAULTS, LIMITS, RETENTION_MIN_MS } from "../../lib/core/limits.js";
import type { LockRecord } from "../../lib/core/record.js";
import type { ClockReading } from "../../lib/core/time.js";
import { createPolicy } from "../../lib/core/policy.js";
import { transition } from "../../lib/core/transition.js";
import { leaseId as idOf } from "../store/fixture.js";
import { leaseIdAt } from "../support/lease-ids.js";
import { ID } from "./kinds-key.js";
import { QueueKey } from "./queue-key.js";

const NOW_MS = Date.UTC(2027, 0, 1);
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
/** The furthest ahead of the clock that an id may be, and be remembered. */
const REACH_MS = LIMITS.leaseIdReachMs + LIMITS.leaseIdAheadMs;
/** The shortest retention: a record has the least time to remember. */
const POLICY = createPolicy({ retentionMs: RETENTION_MIN_MS });
const at = (ms: number): ClockReading => ({ earliestMs: ms, latestMs: ms });
const READING = at(NOW_MS);

const cancel = (record: LockRecord | undefined, leaseId: string, reading = READING) =>
  transition(record, { type: "release", key: "k", leaseId, principal: "me" }, reading, POLICY);

function acquire(record: LockRecord | undefined, leaseId: string, reading = READING) {
  const usual = { owner: "", leaseMs: 1000, mode: "exclusive", limit: 1, permits: 1, priority: 0, requestHash: "" } as const;
  return transition(record, { type: "acquire", key: "k", leaseId, principal: "me", ...usual }, reading, POLICY);
}

/** Cancels ids that are so many minutes ahead of the clock, in this order. */
const cancelledAhead = (minutes: readonly number[]) =>
  minutes.reduce<LockRecord | undefined>(
    (record, ahead) => cancel(record, leaseIdAt(NOW_MS + ahead * MINUTE_MS)).next ?? record,
    undefined,
  );
const minutesAhead = (record: LockRecord | undefined) =>
  (record?.tombstones ?? []).map(({ leaseId }) => (leaseIdTimeMs(leaseId) - NOW_MS) / MINUTE_MS);

function after(leaseIds: readonly string[], from: LockRecord = EMPTY_RECORD): LockRecord {
  return leaseIds.reduce((record, leaseId) => endLease(record, leaseId, "released", READING), from);
}

function ids(count: number, fromMs: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => leaseIdAt(fromMs + index));
}

describe("the ring of ended leases", () => {
  it("remembers eight, the latest first, and no floor until one has left", () => {
    const ended = ids(8, NOW_MS - 1000);
    const record = after(ended);
    expect(record.tombstones.map(({ leaseId }) => leaseId)).toEqual([...ended].reverse());
    expect(record.lowWatermark).toBe("");
  });

  it("raises the floor to the id that leaves, and never lowers it", () => {
    const ended = ids(9, NOW_MS - 1000);
    const record = after(ended);
    expect(record.lowWatermark).toBe(ended[0]);
    const older = leaseIdAt(NOW_MS - 9000);
    expect(after([older, ...ids(8, NOW_MS - 500)], record).lowWatermark > (ended[8] ?? "")).toBe(false);
    expect(after([older, ...ids(8, NOW_MS - 500)], record).lowWatermark).toBe(ended[8]);
  });

  it("refuses as forgotten whatever is at or below the floor", () => {
    const record = after(ids(9, NOW_MS - 1000));
    expect(endingOf(record, record.lowWatermark)).toBe("forgotten");
    expect(endingOf(record, leaseIdAt(NOW_MS - 5000))).toBe("forgotten");
    expect(endingOf(record, leaseIdAt(NOW_MS))).toBeUndefined();
  });
});

describe("a release of an id that the key has no word of", () => {
  const OLDEST_MS = NOW_MS - LIMITS.leaseIdBehindMs - LIMITS.leaseIdAheadMs;

  it("remembers it as cancelled while it might still be granted", () => {
    const { answer, next, events } = cancel(undefined, leaseIdAt(OLDEST_MS));
    expect(answer).toEqual({ ok: true, state: "never" });
    expect(next?.tombstones).toMatchObject([{ ending: "cancelled" }]);
    expect(events).toMatchObject([{ event: "ended", reason: "cancelled" }]);
  });

  it.each([
    ["too old for a grant: it may have held, and been forgotten with the whole key", OLDEST_MS - 1, "unknown"],
    ["so far ahead that the key would have forgotten it before its time", NOW_MS + REACH_MS + 1, "never"],
  ])("writes and logs nothing if it is %s", (_when, madeAtMs, state) => {
    expect(cancel(undefined, leaseIdAt(madeAtMs))).toEqual({ answer: { ok: true, state }, events: [] });
  });

  it("control: remembers one that is ahead by as much as a key may remember", () => {
    expect(cancel(undefined, leaseIdAt(NOW_MS + REACH_MS)).next).toBeDefined();
  });
});

describe("an id that a wrong clock made in the future", () => {
  it("never shuts the key, however many of them are cancelled", () => {
    let record: LockRecord | undefined;
    for (let order = 0; order < 50; order++) record = cancel(record, leaseIdAt(NOW_MS + HOUR_MS / 2 + order)).next ?? record;
    expect(record?.lowWatermark).toBe("");
    expect(acquire(record, leaseIdAt(NOW_MS)).answer).toMatchObject({ ok: true, how: "granted" });
  });

  it("is refused as long as at most four of them are remembered; of more, the furthest ahead is forgotten", () => {
    const record = cancelledAhead([30, 5, 20, 10, 15]);
    expect(minutesAhead(record)).toEqual([15, 10, 20, 5]);
    expect(cancel(record, leaseIdAt(NOW_MS + 25 * MINUTE_MS))).toEqual({ answer: { ok: true, state: "never" }, events: [] });
  });

  it.each([[[5, 30, 20, 10, 15]], [[15, 5, 20, 30, 10]], [[5, 10, 15, 20, 30]]])(
    "is forgotten if it is the furthest ahead, whenever it was cancelled: of %j",
    (minutes) => {
      expect(minutesAhead(cancelledAhead(minutes)).toSorted((a, b) => a - b)).toEqual([5, 10, 15, 20]);
    },
  );

  it("leaves room for how other leases ended", () => {
    const ended = ids(6, NOW_MS - 1000);
    const record = after(ended, cancelledAhead([30, 5, 20, 10]));
    expect(record.lowWatermark).toBe(ended[1]);
    expect(ended.slice(2).map((leaseId) => endingOf(record, leaseId))).toEqual(["released", "released", "released", "released"]);
  });

  it("is kept by name until its time has come, so that a new id above the floor is always taken", () => {
    const slightly = ids(12, NOW_MS + LIMITS.leaseIdAheadMs);
    const record = { ...after(slightly), version: 9 };
    expect(leaseIdTimeMs(record.lowWatermark) - NOW_MS).toBe(LIMITS.leaseIdAheadMs + 3);
    const bounded = after(ids(12, NOW_MS + LIMITS.leaseIdAheadMs - 1500));
    expect(leaseIdTimeMs(bounded.lowWatermark)).toBeLessThanOrEqual(NOW_MS + LIMITS.leaseIdAheadMs - 2 * DEFAULTS.clockErrorMs);
    const next = leaseIdAt(leaseIdTimeMs(bounded.lowWatermark) + 1);
    expect(acquire(bounded, next).answer).toMatchObject({ ok: true, how: "granted" });
  });
});

/** Regression: callers that held nothing raised a key's floor by cancelling ids that were ahead, until no new id fitted above it. */
describe("ids that are cancelled by callers that hold nothing", () => {
  it.each([
    ["right", 0, 0],
    ["days ahead", 0, 3 * DAY_MS],
    ["days behind", -3 * DAY_MS, 3 * DAY_MS],
  ])("leave every key open to one id that fits a fresh key too, handled by a clock that is %s", (_where, atMs, aheadMs) => {
    const key = new QueueKey();
    const release = (leaseId: string) => key.at(atMs, aheadMs).send({ type: "release", key: "k", leaseId, principal: "P" });
    for (const ms of [38 * MINUTE_MS, 11_000, 10_000, 9_500, 9_000, 100, 3 * DAY_MS])
      for (let order = 1; order <= 20; order++) release(idOf(order, ms));
    for (const one of [key.at(0), new QueueKey()])
      expect(one.acquire("A", { leaseId: idOf(99, LIMITS.leaseIdAheadMs) })).toMatchObject({ how: "granted" });
  });

  it("handled days ahead leave no floor behind, after eight holds either", () => {
    const key = new QueueKey();
    for (let order = 1; order <= 20; order++)
      key.at(0, 3 * DAY_MS).send({ type: "release", key: "k", leaseId: idOf(order, 3 * DAY_MS), principal: "P" });
    for (const [index, letter] of Array.from("ABCDEFGHIJ").entries()) {
      expect(key.at(index + 1).acquire(letter)).toMatchObject({ how: "granted" });
      key.release(letter);
    }
    expect(key.at(100).acquire("K")).toMatchObject({ how: "granted" });
    expect(key.record?.lowWatermark).toBe(ID("F"));
  });
});

describe("cancelled ids that lie between two clocks far apart", () => {
  const CLOCKS = [
    ["days behind", { earliestMs: NOW_MS - 3 * DAY_MS, latestMs: NOW_MS }],
    ["days ahead", { earliestMs: NOW_MS, latestMs: NOW_MS + 3 * DAY_MS }],
  ] as const;
  const between = (days: string): number => (days === "days behind" ? NOW_MS - MINUTE_MS : NOW_MS + MINUTE_MS);

  it.each(CLOCKS)("are not forgotten for another by a clock that is %s: it is refused", (days, reading) => {
    const cancelled = ids(9, between(days));
    const record = cancelled
      .slice(0, 8)
      .reduce<LockRecord | undefined>((before, leaseId) => cancel(before, leaseId, reading).next, undefined);
    expect(record?.tombstones.map(({ leaseId }) => leaseId)).toEqual(cancelled.slice(0, 8).reverse());
    const [leaseId = ""] = cancelled.slice(8);
    const ninth = cancel(record, leaseId, reading);
    expect(ninth.answer).toMatchObject({ ok: false, code: "clock-skew", definite: true, retry: "later" });
    expect([ninth.next, ninth.events]).toEqual([undefined, []]);
    // A waiter that leaves is refused too, and keeps its place.
    const waiter = { leaseId, principal: "me" } as LockRecord["waiters"][number];
    expect(cancel({ ...record!, waiters: [waiter] }, leaseId, reading)).toEqual({ answer: ninth.answer, events: [] });
  });

  it.each(CLOCKS)("leave for the end of a lease by a clock that is %s, and none of them is granted then", (days, reading) => {
    const cancelled = ids(8, between(days));
    const record = cancelled.reduce<LockRecord | undefined>((before, leaseId) => cancel(before, leaseId, reading).next, undefined);
    const held = leaseIdAt(NOW_MS - 1000);
    const ended = endLease(record ?? EMPTY_RECORD, held, "released", reading);
    expect(ended.tombstones).toHaveLength(8);
    expect(ended.lowWatermark <= held).toBe(true);
    for (const leaseId of cancelled) expect(endingOf(ended, leaseId)).toBeDefined();
  });

  it("leave for the end of a lease from the lowest id on, whenever that was cancelled", () => {
    const [days, reading] = CLOCKS[0];
    const cancelled = ids(8, between(days));
    const [lowest = "", ...higher] = cancelled;
    for (const order of [cancelled, [...higher, lowest], [...higher.slice(0, 3), lowest, ...higher.slice(3)]]) {
      const record = order.reduce<LockRecord | undefined>((before, leaseId) => cancel(before, leaseId, reading).next, undefined);
      const ended = endLease(record ?? EMPTY_RECORD, leaseIdAt(NOW_MS - 1000), "released", reading);
      expect(ended.lowWatermark).toBe(lowest);
      expect(ended.tombstones.map(({ leaseId }) => leaseId)).not.toContain(lowest);
    }
  });

  it("leave by the low watermark once a lease among them held", () => {
    const [, reading] = CLOCKS[0];
    const held = leaseIdAt(NOW_MS - 120_000);
    const cancelled = ids(8, between("days behind"));
    const record = cancelled.reduce<LockRecord>((before, leaseId) => cancel(before, leaseId, reading).next ?? before, after([held]));
    expect(record.lowWatermark).toBe(held);
    for (const leaseId of cancelled) expect(endingOf(record, leaseId)).toBe("cancelled");
  });
});

/**
 * Regressions: an id that was cancelled nearly an hour ahead of the clock had a tombstone, but the record was collected before the id's time
 * had passed, and a late duplicate of its acquire was granted. A function whose clock was days behind forgot the id that was cancelled last.
 */
describe("ended ids over the whole life of a record", () => {
  /** From hours behind to hours ahead of the clock, and the bounds themselves. */
  const madeByMs = fc.oneof(
    fc.integer({ min: -2 * HOUR_MS, max: 2 * HOUR_MS }),
    fc.constantFrom(REACH_MS, REACH_MS + 1, LIMITS.leaseIdReachMs, 58 * 60_000, RETENTION_MIN_MS),
  );

  it("an id that was cancelled is refused until its record is collected, and its time has passed by then", () => {
    const property = fc.property(madeByMs, fc.double({ min: 0, max: 1, noNaN: true }), fc.nat(48 * HOUR_MS), (byMs, share, afterMs) => {
      const leaseId = leaseIdAt(NOW_MS + byMs);
      const { next } = cancel(undefined, leaseId);
      fc.pre(next !== undefined);
      const collectedAtMs = next.ttlAtSec * 1000;
      expect(acquire(next, leaseId, at(NOW_MS + share * (collectedAtMs - NOW_MS))).answer).toMatchObject({ code: "lease-over" });
      expect(acquire(undefined, leaseId, at(collectedAtMs + afterMs)).answer).toMatchObject({ code: "lease-id-time" });
    });
    fc.assert(property, { numRuns: 500 });
  });

  const [held = "", ...cancelled] = Array.from({ length: 9 }, (_, order) => leaseIdAt(NOW_MS + order));
  const latest = cancelled.at(-1) ?? "";
  const behind = { earliestMs: NOW_MS - 3 * DAY_MS, latestMs: NOW_MS + 10 };
  const release = (record: LockRecord | undefined, leaseId: string, reading = at(NOW_MS + 10)) =>
    cancel(record, leaseId, reading).next ?? record;

  it.each([
    ["that itself is handled", false],
    ["that the next release is handled", true],
  ])("the latest of many is refused when it is by a function whose clock is days behind %s", (_what, isHeld) => {
    let record = isHeld ? acquire(undefined, held).next : undefined;
    for (const leaseId of cancelled) record = release(record, leaseId, leaseId === latest && !isHeld ? behind : at(NOW_MS + 10));
    if (isHeld) record = release(record, held, behind);
    expect(acquire(record, latest, at(NOW_MS + 20)).answer).toMatchObject({ code: "lease-over" });
  });

  interface Step {
    readonly byMs: number;
    readonly passMs: number;
    readonly isAcquire: boolean;
  }
  const steps = fc.array(fc.record<Step>({ byMs: madeByMs, passMs: fc.nat(600_000), isAcquire: fc.boolean() }), {
    minLength: 1,
    maxLength: 30,
  });

  it("no id that was remembered or granted is granted again once the record is collected", () => {
    let granted = 0;
    const property = fc.property(steps, (history) => {
      let record: LockRecord | undefined;
      let nowMs = NOW_MS;
      const known: string[] = [];
      for (const { byMs, passMs, isAcquire } of history) {
        nowMs += passMs;
        const leaseId = leaseIdAt(nowMs + byMs);
        if (isAcquire) {
          const { answer, next } = acquire(record, leaseId, at(nowMs));
          if (!answer.ok || !("lease" in answer)) continue;
          granted++;
          record = next;
        }
        const { next } = cancel(record, leaseId, at(nowMs));
        if (!next) continue;
        record = next;
        known.push(leaseId);
      }
      const collectedAtMs = (record?.ttlAtSec ?? 0) * 1000;
      for (const leaseId of known) {
        expect(leaseIdTimeMs(leaseId)).toBeLessThan(collectedAtMs);
        expect(acquire(undefined, leaseId, at(collectedAtMs)).answer).toMatchObject({ code: "lease-id-time" });
      }
    });
    fc.assert(property, { numRuns: 500 });
    expect(granted).toBeGreaterThan(0);
  });
});
