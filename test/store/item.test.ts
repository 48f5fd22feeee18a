/** The layout of an item: every attribute, in both directions, with what an older or a newer version may leave in it. */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { leaseIdFrom } from "../../lib/core/lease-id.js";
import type { Hold, LockRecord } from "../../lib/core/record.js";
import { addTombstone } from "../../lib/store/dynamo/predicates.js";
import { leaseIdOf, storedId } from "../../lib/store/dynamo/stored-id.js";
import type { Item } from "../../lib/store/dynamo/layout.js";
import { FORMAT_VERSION, fromItem, itemKey, NO_TOMBSTONE, payloadKey, shardKey, toItem, TOMBSTONES } from "../../lib/store/dynamo/item.js";
import { markOf } from "../../lib/store/dynamo/lists.js";
import { plain, plainItem } from "../../lib/store/dynamo/attribute-value.js";
import { UnreadableRecord } from "../../lib/store/port.js";
import { recordBytes, SHORT_OWNER_BYTES } from "../../lib/core/record-bytes.js";
import { A, B, C, D, leaseId } from "./fixture.js";

const HOLD: Hold = {
  ...{ principal: "P", owner: "checkout-7", mode: "exclusive", permits: 3, fencingToken: 9_007_199_254_740_991 },
  ...{ leaseMs: 1, grantedAtMs: 2, expiresAtMs: 3, marginMs: 0, requestHash: "" },
};
const ASKS = { principal: "digest", owner: "checkout-8", permits: 2, requestHash: "same", priority: 9 };
const EMPTY: LockRecord = {
  ...{ version: 1, fencingToken: 2, fenceFloor: 0, limit: 1, holds: {}, offers: [], waiters: [] },
  ...{ tombstones: [], lowWatermark: "", ttlAtSec: 3 },
};
const FULL: LockRecord = {
  version: 7,
  fencingToken: 9_007_199_254_740_991,
  fenceFloor: 6,
  limit: 3,
  upgrading: { leaseId: B, untilMs: 4 },
  holds: {
    [A]: { ...HOLD, scope: "s", broken: "drain" },
    [B]: { ...HOLD, mode: "shared", broken: "forced", meta: { step: 1 }, notified: { fencingToken: 7, sequence: 2, count: 3 } },
  },
  offers: [
    { leaseId: leaseId(9), ...ASKS, mode: "shared", permits: 1, priority: 0, offeredAtMs: 4 },
    { leaseId: C, ...ASKS, mode: "exclusive", condition: "ready", offeredAtMs: 5 },
  ],
  // Not in the order of their ids, in which an engine may keep a map.
  waitSet: [8, 7].map((order) => ({
    ...{ leaseId: leaseId(order), ...ASKS, mode: "exclusive", aliveUntilMs: 9, ttlMs: 15_000 },
    condition: `not ${order}`,
  })),
  waiters: [
    { leaseId: D, ...ASKS, mode: "shared", permits: 1, priority: 0, aliveUntilMs: 9, ttlMs: 15_000 },
    { leaseId: leaseId(5), ...ASKS, mode: "exclusive", aliveUntilMs: 8, ttlMs: 16_000 },
  ],
  heldMs: 40,
  heldBeforeMs: 41,
  tombstones: [
    { leaseId: leaseId(11), ending: "broken", fencingToken: 5 },
    { leaseId: leaseId(12), ending: "taken", outcome: "digest" },
  ],
  lowWatermark: leaseId(10),
  run: {
    state: "running",
    attempt: 2,
    takeover: true,
    fingerprint: "f",
    keepResultMs: 60_000,
    checkpoint: { digest: "c", bytes: 1, text: "1", sequence: 4 },
    outcome: {
      recordedBy: C,
      principal: "P",
      owner: "w",
      startedAtMs: 1,
      endedAtMs: 2,
      payload: { digest: "o", bytes: 5_000, ttlAtSec: 77 },
      omitted: true,
      keptUntilMs: 6,
    },
  },
  ttlAtSec: 8,
};

describe("an item", () => {
  it("of a record with everything has these attributes", () => {
    const asked = { p: "digest", o: "checkout-8", ph: "same" };
    const held = { p: "P", o: "checkout-7", n: 3, t: 9_007_199_254_740_991, l: 1, a: 2, e: 3, g: 0, ph: "" };
    expect(toItem(FULL)).toStrictEqual({
      h: {
        [storedId(A)]: { ...held, m: "x", sc: "s", b: 1 },
        [storedId(B)]: { ...held, m: "s", b: 2, mt: '{"step":1}', nt: { t: 7, s: 2, n: 3 } },
        [storedId(leaseId(9))]: { ...asked, m: "s", a: 4 },
        [storedId(C)]: { ...asked, n: 2, pr: 9, c: "ready", a: 5 },
      },
      cw: {
        [storedId(leaseId(8))]: { g: { [storedId(leaseId(8))]: { ...asked, n: 2, pr: 9, c: "not 8" } }, u: 9, s: 15_000, n: 0 },
        [storedId(leaseId(7))]: { g: { [storedId(leaseId(7))]: { ...asked, n: 2, pr: 9, c: "not 7" } }, u: 9, s: 15_000, n: 1 },
      },
      f: 9_007_199_254_740_991,
      ff: 6,
      lim: 3,
      v: 7,
      fl: storedId(leaseId(10)),
      r0: { i: storedId(leaseId(11)), w: "broken", t: 5 },
      r1: { i: storedId(leaseId(12)), w: "taken", o: "digest" },
      ...Object.fromEntries(TOMBSTONES.slice(2).map((name) => [name, { i: "", w: "" }])),
      q: [
        { g: { [storedId(D)]: { ...asked, m: "s" } }, u: 9, s: 15_000, m: "s" },
        { g: { [storedId(leaseId(5))]: { ...asked, n: 2, pr: 9 } }, u: 8, s: 16_000 },
      ],
      qi: [markOf(D), markOf(leaseId(5))],
      hl: 40,
      hp: 41,
      x: 8,
      fv: FORMAT_VERSION,
      ug: { i: storedId(B), u: 4 },
      rn: {
        ...{ s: "running", a: 2, t: true, ph: "f", k: 60_000, c: { d: "c", n: 1, t: "1", q: 4 } },
        ...{ b: storedId(C), p: "P", w: "w", g: 1, e: 2, o: { d: "o", n: 5_000, x: 77 }, om: true, u: 6 },
      },
    });
    expect(fromItem(toItem(FULL))).toStrictEqual(FULL);
  });

  it("of a record with as little as possible has no more, and is read as that", () => {
    expect(toItem(EMPTY)).toStrictEqual({
      ...{ h: {}, f: 2, lim: 1, v: 1, fl: "", q: [], qi: [], x: 3, fv: FORMAT_VERSION },
      ...Object.fromEntries(TOMBSTONES.map((name) => [name, NO_TOMBSTONE])),
    });
    expect(fromItem(toItem(EMPTY))).toStrictEqual(EMPTY);
    expect(fromItem({ v: 1, x: 3, fv: FORMAT_VERSION })).toStrictEqual({ ...EMPTY, fencingToken: 0 });
  });

  it("of readers has their sums, and their tokens apart from those that join later", () => {
    const readers = { [A]: { ...HOLD, mode: "shared", fencingToken: 7 }, [B]: { ...HOLD, mode: "shared", fencingToken: 8 } } as const;
    const record: LockRecord = { ...EMPTY, version: 9, holds: readers };
    const item = toItem(record);
    expect(item).toMatchObject({ cv: 9, cp: 6, cb: recordBytes(record), jt: {} });
    expect(fromItem(item)).toStrictEqual(record);
    const joined = { [storedId(A)]: 9, [storedId(B)]: 3 };
    expect(Object.values(fromItem({ ...item, jt: joined }).holds).map(({ fencingToken }) => fencingToken)).toEqual([9, 8]);
    expect(toItem({ ...record, holds: { [A]: HOLD } })).not.toHaveProperty("cv");
  });

  it("has a mark for each sleeper, and one while the key is offered to a sleeper", () => {
    const queued: LockRecord = { ...EMPTY, waiters: [FULL.waiters[1]!, { ...FULL.waiters[0]!, ttlMs: 0, asleep: true }] };
    expect(toItem(queued)).toMatchObject({ q: [{}, { z: 1, g: { [storedId(D)]: { z: 1 } } }] });
    expect(toItem(queued)).not.toHaveProperty("dl");
    expect(fromItem(toItem(queued))).toStrictEqual(queued);
    const offered: LockRecord = { ...EMPTY, offers: [{ leaseId: C, ...ASKS, mode: "exclusive", asleep: true, offeredAtMs: 5 }] };
    expect(toItem(offered)).toMatchObject({ dl: "1" });
    expect(fromItem(toItem(offered))).toStrictEqual(offered);
    const awake: LockRecord = { ...EMPTY, offers: [{ leaseId: C, ...ASKS, mode: "exclusive", offeredAtMs: 5 }] };
    expect(toItem(awake)).not.toHaveProperty("dl");
  });

  it("is read in the order of its offers and members, in whichever order an engine has them", () => {
    const item = toItem(FULL);
    const turned = (part: unknown) => Object.fromEntries(Object.entries(part as object).reverse());
    expect(fromItem({ ...item, h: turned(item["h"]), cw: turned(item["cw"]) })).toStrictEqual({ ...FULL, holds: turned(FULL.holds) });
    expect(Object.keys(turned(item["cw"]))).toEqual([storedId(leaseId(7)), storedId(leaseId(8))]);
  });

  it.each<[string, NonNullable<LockRecord["run"]>]>([
    ["without an outcome", { state: "running", attempt: 1, takeover: false, fingerprint: "", keepResultMs: 1 }],
    [
      "with an outcome that has no more than its lease",
      {
        ...{ state: "retry", attempt: 1, takeover: false, fingerprint: "", keepResultMs: 1 },
        ...{
          checkpoint: { digest: "c", bytes: 9, ttlAtSec: 5 },
          outcome: { recordedBy: A, principal: "P", owner: "", startedAtMs: 1, endedAtMs: 2 },
        },
      },
    ],
  ])("has a run %s", (_, run) => {
    const item = toItem({ ...EMPTY, run });
    expect(fromItem(item)).toStrictEqual({ ...EMPTY, run });
    const { c: itsCheckpoint = {}, ...parts } = item["rn"] as Item;
    expect([...Object.values(parts), ...Object.values(itsCheckpoint as object)]).not.toContain(undefined);
  });

  it("counts its keep-alives, which only their own writes change", () => {
    expect(fromItem({ ...toItem(EMPTY), qv: 4 })).toStrictEqual({ ...EMPTY, touches: 4 });
    expect(toItem({ ...EMPTY, touches: 4 })).not.toHaveProperty("qv");
  });

  it.each([
    ["beside it", { ox: 9 }],
    ["beside it, later than the waiter was last seen", { ox: 9, ol: 8 }],
    ["beside it, before the waiter was last seen", { ox: 7, ol: 9 }],
  ])("has the time of an offer that a release made %s", (_how, times) => {
    const { h, ...rest } = toItem({ ...EMPTY, offers: [{ leaseId: C, ...ASKS, mode: "exclusive", offeredAtMs: 5 }] });
    const { a: _own, ...offer } = (h as Record<string, Record<string, unknown>>)[storedId(C)]!;
    expect(fromItem({ ...rest, h: { [storedId(C)]: offer }, ...times }).offers).toMatchObject([{ leaseId: C, offeredAtMs: 9 }]);
  });

  it("says that a queue may become too large, for a long waiter's sake or since the rest of the record is large", () => {
    const waiter = (owner: string) => ({ ...FULL.waiters[0]!, mode: "exclusive" as const, permits: 1, priority: 0, owner });
    const markOf = (parts: Partial<LockRecord>): unknown => toItem({ ...EMPTY, ...parts })["qb"];
    const longest = "o".repeat(SHORT_OWNER_BYTES);
    expect(markOf({ waiters: [waiter(""), waiter(longest)] })).toBeUndefined();
    expect(markOf({ waiters: [waiter(""), waiter(`${longest}o`)] })).toBe(1);
    const holds = Object.fromEntries(Array.from({ length: 60 }, (_, order) => [leaseId(order), { ...HOLD, owner: "o".repeat(200) }]));
    expect(markOf({ holds })).toBe(2);
    expect(markOf({ holds, waiters: [waiter(`${longest}o`)] })).toBe(1);
  });

  it("keeps the fields of a newer version in each of its parts, apart from those that this version knows", () => {
    const newer = { zz: "of a newer version" };
    const item = toItem(FULL);
    const each = (parts: unknown) =>
      Object.fromEntries(Object.entries(parts as object).map(([name, part]) => [name, { ...(part as object), ...newer }]));
    const run = item["rn"] as Record<string, object>;
    const whole = {
      ...item,
      h: each(item["h"]),
      q: (item["q"] as readonly Record<string, unknown>[]).map((place) => ({ ...place, g: each(place["g"]), ...newer })),
      r0: { ...(item["r0"] as object), ...newer },
      ug: { ...(item["ug"] as object), ...newer },
      rn: { ...run, ...newer, c: { ...run["c"], ...newer }, o: { ...run["o"], ...newer } },
    };
    const record = fromItem(whole);
    expect(toItem(record)).toStrictEqual(whole);
    const { waiters, offers, holds, tombstones, upgrading, run: itsRun } = record;
    const parts = [waiters[0], offers[0], holds[A], tombstones[0], upgrading, itsRun, itsRun?.checkpoint, itsRun?.outcome?.payload];
    expect(parts.map((part) => part?.unknown)).toStrictEqual(parts.map(() => newer));
    expect(waiters[0]?.unknownOfPlace).toStrictEqual(newer);
  });

  it.each<[string, object, string]>([
    ["this format", { fv: FORMAT_VERSION }, "read"],
    ["no format", {}, "older-format"],
    ["an older format", { fv: FORMAT_VERSION - 1 }, "older-format"],
    ["a newer format", { fv: FORMAT_VERSION + 1 }, "newer-format"],
    ["a damaged format", { fv: "3" }, "unreadable-record"],
  ])("of %s is read, or refused by name", (_, format, code) => {
    const { fv: _format, ...item } = toItem(EMPTY);
    const read = (): LockRecord => fromItem({ ...item, ...format });
    if (code === "read") expect(read()).toStrictEqual(EMPTY);
    else expect(read).toThrow(expect.objectContaining({ name: "UnreadableRecord", code }));
  });

  /** Returns the ways to the attributes of an item, and of its parts. */
  const waysIn = (part: unknown, way: readonly string[] = []): readonly (readonly string[])[] =>
    typeof part !== "object" || part === null
      ? [way]
      : [...(way.length > 0 ? [way] : []), ...Object.entries(part).flatMap(([name, inner]) => waysIn(inner, [...way, name]))];
  const damagedAt = (part: unknown, [name = "", ...rest]: readonly string[], value: unknown): unknown => {
    const changed = rest.length > 0 ? damagedAt((part as Item)[name], rest, value) : value;
    if (Array.isArray(part)) return part.with(Number(name), changed);
    return { ...(part as object), [name]: changed };
  };

  it.each(waysIn(toItem(FULL)).map((way) => [way.join(" › "), way] as const))(
    "with damage is read, or refused with the attribute: %s",
    (_name, way) => {
      for (const value of [undefined, null, 1.5, -1, "text", "", true, [], {}, [[]], new Set(["a"])]) {
        const item = { p: "acme/locks/3", k: "ORDER_1", ...(damagedAt(toItem(FULL), way, value) as object) };
        try {
          const { holds } = fromItem(item);
          for (const hold of Object.values(holds))
            expect(hold).toMatchObject({ owner: expect.any(String), fencingToken: expect.any(Number) });
        } catch (error) {
          expect(error).toBeInstanceOf(UnreadableRecord);
          const { code, message } = error as UnreadableRecord;
          if (way[0] !== "fv") expect(code).toBe("unreadable-record");
          else continue;
          expect(message).toContain(`the lock "ORDER_1" has a damaged attribute "${way[0]}`);
          expect(message, "no leaseId").not.toMatch(/[-\w]{22}/);
        }
      }
    },
  );

  it.each(["f", "ff", "v", "lim", "x", "qv"])("is not read where a number is damaged: %s", (name) => {
    for (const value of [1.5, Number.NaN, "1", 2 ** 53])
      expect(() => fromItem({ ...toItem(EMPTY), [name]: value }), String(value)).toThrow(/safe integer/);
  });

  it.each(["a", "k"])("is not read where a number of its run is damaged: %s", (name) => {
    const { rn, ...item } = toItem(FULL);
    for (const value of [1.5, "1", undefined])
      expect(() => fromItem({ ...item, rn: { ...(rn as object), [name]: value } }), String(value)).toThrow(/safe integer/);
  });
});

describe("the key of an item", () => {
  it("is in a shard of its namespace that never moves", () => {
    const shards = ["ORDER_1", "refund:42", ""].map((key) => itemKey({ namespace: "acme", kind: "locks", key })["p"]);
    expect(shards).toEqual(["acme/locks/11", "acme/locks/9", "acme/locks/5"]);
    expect(itemKey({ namespace: "acme", kind: "runs", key: "ORDER_1" })).toEqual({ p: "acme/runs/11", k: "ORDER_1" });
    expect(payloadKey({ namespace: "acme", kind: "runs", key: "ORDER_1" }, "digest")).toEqual({
      p: "acme/payloads/11",
      k: "ORDER_1/digest",
    });
    expect(shardKey("acme", "locks", 3)).toBe("acme/locks/3");
  });
});

describe("a leaseId", () => {
  it("is stored in 22 characters that compare as the ids do, and read back", () => {
    const some = fc
      .tuple(fc.nat(2 ** 48 - 1), fc.uint8Array({ minLength: 10, maxLength: 10 }))
      .map(([ms, random]) => leaseIdFrom(ms, random));
    fc.assert(
      fc.property(some, some, (one, other) => {
        expect(storedId(one)).toMatch(/^[-\w]{22}$/);
        expect(leaseIdOf(storedId(one))).toBe(one);
        expect(storedId(one) < storedId(other)).toBe(one < other);
      }),
    );
    expect([storedId(""), leaseIdOf("")]).toEqual(["", ""]);
  });
});

describe("the end of a lease", () => {
  it("shifts the tombstones by one and puts this lease first", () => {
    expect(addTombstone(A, "rises")).toEqual({
      update:
        "fl = if_not_exists(r7.i, :nofloor), r0 = :ended, r1 = if_not_exists(r0, :nil), r2 = if_not_exists(r1, :nil), " +
        "r3 = if_not_exists(r2, :nil), r4 = if_not_exists(r3, :nil), r5 = if_not_exists(r4, :nil), r6 = if_not_exists(r5, :nil), " +
        "r7 = if_not_exists(r6, :nil)",
      values: { ":ended": { i: storedId(A), w: "released" }, ":nil": NO_TOMBSTONE, ":nofloor": "" },
    });
    expect(addTombstone(A, "rises", "digest").values[":ended"]).toStrictEqual({ i: storedId(A), w: "released", o: "digest" });
    expect(addTombstone(A, "rises").values[":ended"]).toStrictEqual({ i: storedId(A), w: "released" });
  });
});

describe("a value from the wire", () => {
  it.each<[wire: Parameters<typeof plain>[0], value: unknown]>([
    [{ S: "" }, ""],
    [{ N: "-7.5" }, -7.5],
    [{ M: { a: { N: "1" } } }, { a: 1 }],
    [{ L: [{ S: "a" }, { NULL: true }] }, ["a", null]],
    [{ BOOL: false }, false],
    [{ NULL: true }, null],
    [{ SS: ["a"] }, new Set(["a"])],
    [{ NS: ["1"] }, new Set([1])],
    [{ BS: ["AQ=="] }, new Set([Buffer.of(1)])],
    [{ B: "AQ==" }, Buffer.of(1)],
    [{ B: Uint8Array.of(1) }, Uint8Array.of(1)],
    [{ NULL: false, B: "AQ==" }, Buffer.of(1)],
    [{ N: "-9007199254740991" }, -Number.MAX_SAFE_INTEGER],
  ])("%j is plain", (wire, value) => {
    expect(plain(wire)).toStrictEqual(value);
  });

  it.each<[wire: Parameters<typeof plain>[0], says: string]>([
    [{}, "the item holds the unknown type "],
    [{ V: "1" }, "the item holds the unknown type V"],
    [{ L: [{ M: { a: { NULL: false } } }] }, "the item holds the unknown type NULL"],
    [{ N: "9007199254740992" }, "the item holds 9007199254740992, which would be rounded"],
    [{ N: "-9007199254740993" }, "the item holds -9007199254740993, which would be rounded"],
    [{ NS: ["1", "1e30"] }, "the item holds 1e30, which would be rounded"],
  ])("%j is an error, since it could not be written back", (wire, says) => {
    expect(() => plain(wire)).toThrow(says);
  });

  it("may have a member __proto__, as any other", () => {
    const item = plainItem(JSON.parse('{"__proto__":{"N":"1"},"a":{"N":"2"}}') as Parameters<typeof plainItem>[0]);
    expect(Object.entries(item)).toEqual([
      ["__proto__", 1],
      ["a", 2],
    ]);
    expect(Object.getOwnPropertyDescriptor(item, "__proto__")).toEqual({ value: 1, enumerable: true, configurable: true, writable: true });
  });
});
