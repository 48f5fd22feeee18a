/** The memory of ended leases: eight of them with their endings, the others through the low watermark. */
import { describe, expect, it } from "vitest";
import { EMPTY_RECORD, endingOf, endLease } from "../../lib/core/lock/tombstones.js";
import { leaseIdTimeMs } from "../../lib/core/lease-id.js";
import { DEFAULTS, LIMITS } from "../../lib/core/limits.js";
import type { LockRecord } from "../../lib/core/record.js";
import type { ClockReading } from "../../lib/core/time.js";
import { createPolicy } from "../../lib/core/policy.js";
import { transition } from "../../lib/core/transition.js";
import { leaseIdAt } from "../support/lease-ids.js";

const NOW_MS = Date.UTC(2027, 0, 1);
const READING = { earliestMs: NOW_MS, latestMs: NOW_MS };

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
  const released = (idMs: number) => {
    const command = { type: "release", key: "k", leaseId: leaseIdAt(idMs), principal: "P" } as const;
    return transition(undefined, command, READING, createPolicy());
  };

  it("remembers it as cancelled while it might still be granted", () => {
    const { answer, next, events } = released(OLDEST_MS);
    expect(answer).toEqual({ ok: true, state: "never" });
    expect(next?.tombstones).toMatchObject([{ ending: "cancelled" }]);
    expect(events).toMatchObject([{ event: "ended", reason: "cancelled" }]);
  });

  it("writes and logs nothing if it is too old for a grant: it may have held, and been forgotten with the whole key", () => {
    expect(released(OLDEST_MS - 1)).toEqual({ answer: { ok: true, state: "unknown" }, events: [] });
  });
});

describe("an id that a wrong clock made in the future", () => {
  const acquireAt = (record: LockRecord | undefined, madeAtMs: number) =>
    transition(
      record,
      {
        type: "acquire",
        key: "k",
        leaseId: leaseIdAt(madeAtMs),
        principal: "me",
        owner: "",
        leaseMs: 1000,
        mode: "exclusive",
        limit: 1,
        permits: 1,
        priority: 0,
        requestHash: "",
      },
      READING,
      createPolicy(),
    ).answer;

  const cancelAt = (record: LockRecord | undefined, madeAtMs: number): LockRecord | undefined =>
    transition(record, { type: "release", key: "k", leaseId: leaseIdAt(madeAtMs), principal: "me" }, READING, createPolicy()).next;

  it("never shuts the key, however many of them are cancelled", () => {
    let record: LockRecord | undefined;
    for (let order = 0; order < 50; order++) record = cancelAt(record, NOW_MS + 1_800_000 + order) ?? record;
    expect(record?.lowWatermark).toBe("");
    expect(acquireAt(record, NOW_MS)).toMatchObject({ ok: true, how: "granted" });
  });

  it("is refused as long as at most four of them are remembered; of more, the furthest ahead is forgotten", () => {
    const minutes = [30, 5, 20, 10, 15];
    const record = minutes.reduce<LockRecord | undefined>(
      (before, ahead) => cancelAt(before, NOW_MS + ahead * 60_000) ?? before,
      undefined,
    );
    expect(record?.tombstones.map(({ leaseId }) => (leaseIdTimeMs(leaseId) - NOW_MS) / 60_000)).toEqual([15, 10, 20, 5]);
    const furthest = { type: "release", key: "k", leaseId: leaseIdAt(NOW_MS + 25 * 60_000), principal: "me" } as const;
    expect(transition(record, furthest, READING, createPolicy())).toEqual({ answer: { ok: true, state: "never" }, events: [] });
  });

  it.each([[[5, 30, 20, 10, 15]], [[15, 5, 20, 30, 10]], [[5, 10, 15, 20, 30]]])(
    "is forgotten if it is the furthest ahead, whenever it was cancelled: of %j",
    (minutes) => {
      const record = minutes.reduce<LockRecord | undefined>(
        (before, ahead) => cancelAt(before, NOW_MS + ahead * 60_000) ?? before,
        undefined,
      );
      const left = (record?.tombstones ?? []).map(({ leaseId }) => (leaseIdTimeMs(leaseId) - NOW_MS) / 60_000);
      expect(left.sort((a, b) => a - b)).toEqual([5, 10, 15, 20]);
    },
  );

  it("leaves room for how other leases ended", () => {
    const cancelled = [30, 5, 20, 10].reduce<LockRecord | undefined>(
      (before, ahead) => cancelAt(before, NOW_MS + ahead * 60_000) ?? before,
      undefined,
    );
    const ended = ids(6, NOW_MS - 1000);
    const record = after(ended, cancelled);
    expect(record.lowWatermark).toBe(ended[1]);
    expect(ended.slice(2).map((leaseId) => endingOf(record, leaseId))).toEqual(["released", "released", "released", "released"]);
  });

  it("is kept by name until its time has come, so that a new id above the floor is always taken", () => {
    const slightly = ids(12, NOW_MS + LIMITS.leaseIdAheadMs);
    const record = { ...after(slightly), version: 9 };
    expect(leaseIdTimeMs(record.lowWatermark) - NOW_MS).toBe(LIMITS.leaseIdAheadMs + 3);
    const bounded = after(ids(12, NOW_MS + LIMITS.leaseIdAheadMs - 1500));
    expect(leaseIdTimeMs(bounded.lowWatermark)).toBeLessThanOrEqual(NOW_MS + LIMITS.leaseIdAheadMs - 2 * DEFAULTS.clockErrorMs);
    expect(acquireAt(bounded, leaseIdTimeMs(bounded.lowWatermark) + 1)).toMatchObject({ ok: true, how: "granted" });
  });

  it("is not remembered when the key would have forgotten it before its time", () => {
    const cancel = (madeAtMs: number) =>
      transition(undefined, { type: "release", key: "k", leaseId: leaseIdAt(madeAtMs), principal: "me" }, READING, createPolicy());
    expect(cancel(NOW_MS + LIMITS.leaseIdReachMs + LIMITS.leaseIdAheadMs + 1)).toEqual({
      answer: { ok: true, state: "never" },
      events: [],
    });
    expect(cancel(NOW_MS + LIMITS.leaseIdReachMs + LIMITS.leaseIdAheadMs).next).toBeDefined();
  });
});

describe("cancelled ids that lie between two clocks far apart", () => {
  const DAY_MS = 24 * 60 * 60_000;
  const CLOCKS = [
    ["days behind", { earliestMs: NOW_MS - 3 * DAY_MS, latestMs: NOW_MS }],
    ["days ahead", { earliestMs: NOW_MS, latestMs: NOW_MS + 3 * DAY_MS }],
  ] as const;
  const between = (days: string): number => (days === "days behind" ? NOW_MS - 60_000 : NOW_MS + 60_000);
  const cancel = (record: LockRecord | undefined, leaseId: string, reading: ClockReading) =>
    transition(record, { type: "release", key: "k", leaseId, principal: "me" }, reading, createPolicy());

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
