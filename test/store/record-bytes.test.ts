/** The core's byte count of a record, against the item that a store writes for it: never fewer, and few more. */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { EMPTY_RECORD } from "../../lib/core/lock/tombstones.js";
import { FOREVER_MS, LIMITS } from "../../lib/core/limits.js";
import { holdBytes, isCrowded, recordBytes } from "../../lib/core/record-bytes.js";
import type { Checkpoint, Tombstone, Hold, LockRecord, Member, Offer, Payload, Run, Waiter } from "../../lib/core/record.js";
import type { Address } from "../../lib/store/port.js";
import { storedId } from "../../lib/store/dynamo/stored-id.js";
import { LEFT, LEFT_BYTES, listBytes, NO_ENTRY } from "../../lib/store/dynamo/lists.js";
import { fromItem, itemKey, toItem } from "../../lib/store/dynamo/item.js";
import { HOLD } from "../../lib/store/dynamo/layout.js";
import { itemBytes } from "../support/item-bytes.js";
import { sized } from "../support/tier.js";
import { A, leaseId, START_MS } from "./fixture.js";

const ADDRESS: Address = { namespace: "n".repeat(200), kind: "locks", key: "k".repeat(LIMITS.keyChars) };
/** As long as the service's. */
const [PRINCIPAL, PARAMS, SCOPE, DIGEST] = [12, 16, 16, 43].map((chars) => "d".repeat(chars)) as [string, string, string, string];
const MOST = Number.MAX_SAFE_INTEGER;

/** The bytes of the item, with the longest primary key and the attributes that some writes add. Each reader and permit has joined others. */
function written(record: LockRecord): number {
  const item = toItem(record);
  const joined = Object.entries(record.holds).filter(([, { mode }]) => mode === "shared" || record.limit > 1);
  const holds = joined.map(([leaseId, one]) => [storedId(leaseId), HOLD.toItem({ ...one, fencingToken: 0 })] as const);
  const tokens = joined.map(([leaseId, { fencingToken }]) => [storedId(leaseId), fencingToken] as const);
  const sums = { cv: MOST, cp: 999, cb: LIMITS.recordBytes, co: LIMITS.leasesMax, jt: Object.fromEntries(tokens), rl: [], rz: MOST };
  const h = { ...(item["h"] as object), ...Object.fromEntries(holds) };
  return itemBytes({ ...itemKey(ADDRESS), ...item, h, ...sums, qb: 1, ol: MOST, ox: MOST });
}

const owner = fc.oneof(fc.constant(""), fc.constant("checkout-7"), fc.string({ unit: "grapheme", maxLength: LIMITS.ownerChars }));
const time = fc.constantFrom(START_MS, MOST);
const mode = fc.constantFrom("exclusive" as const, "shared" as const);
const permits = fc.constantFrom(1, 2, 1000, 999);
const text = fc.string({ unit: "grapheme", maxLength: 300 });

const hold: fc.Arbitrary<Hold> = fc.record(
  {
    principal: fc.constantFrom("", PRINCIPAL),
    owner,
    mode,
    permits,
    scope: fc.constant(SCOPE),
    fencingToken: time,
    leaseMs: fc.constantFrom(LIMITS.leaseMinMs, 12_345_678, LIMITS.leaseMaxMs),
    grantedAtMs: time,
    expiresAtMs: time,
    marginMs: fc.constantFrom(0, 1021, 173_801),
    requestHash: fc.constantFrom("", PARAMS),
    broken: fc.constantFrom("drain" as const, "forced" as const),
    notified: fc.record({ fencingToken: time, sequence: fc.constantFrom(1, MOST), count: fc.nat(LIMITS.membersMax) }),
    meta: fc.dictionary(text, fc.oneof(text, fc.double(), fc.constant(null))),
  },
  {
    requiredKeys: [
      ...(["principal", "owner", "mode", "permits", "fencingToken"] as const),
      ...(["leaseMs", "grantedAtMs", "expiresAtMs", "marginMs", "requestHash"] as const),
    ],
  },
);
const asking = { principal: fc.constant(PRINCIPAL), owner, mode, permits, requestHash: fc.constant(PARAMS), priority: fc.nat(9) };
const waiter: fc.Arbitrary<Omit<Waiter, "leaseId">> = fc.record({
  ...asking,
  aliveUntilMs: fc.constant(START_MS),
  ttlMs: fc.constantFrom(15_000, 114_000, 15_001),
});
const condition = fc.string({ unit: "grapheme", minLength: 1, maxLength: LIMITS.conditionChars });
const waits: fc.Arbitrary<Omit<Member, "leaseId">> = fc.tuple(waiter, condition).map(([one, name]) => ({ ...one, condition: name }));
const offer: fc.Arbitrary<Omit<Offer, "leaseId">> = fc.record({ ...asking, offeredAtMs: fc.constant(START_MS) });
const ended: fc.Arbitrary<Tombstone> = fc.record(
  {
    leaseId: fc.constant(leaseId(1)),
    ending: fc.constantFrom("released" as const, "transferred" as const),
    fencingToken: time,
    outcome: fc.constant("o".repeat(11)),
  },
  { requiredKeys: ["leaseId", "ending"] },
);
const payload: fc.Arbitrary<Payload> = fc.record(
  { digest: fc.constant(DIGEST), bytes: fc.nat(LIMITS.resultBytes), text, ttlAtSec: fc.constant(253_402_300_799), sequence: time },
  { requiredKeys: ["digest", "bytes"] },
);
const run: fc.Arbitrary<Run> = fc.record(
  {
    state: fc.constantFrom("running" as const, "interrupted" as const, "succeeded" as const),
    attempt: fc.constantFrom(1, LIMITS.attemptsMax - 1),
    takeover: fc.boolean(),
    fingerprint: fc.string({ unit: "grapheme", maxLength: LIMITS.fingerprintChars }),
    keepResultMs: fc.constantFrom(60_000, FOREVER_MS),
    checkpoint: payload,
    outcome: fc.record(
      {
        recordedBy: fc.constant(leaseId(1)),
        principal: fc.constant(PRINCIPAL),
        owner,
        startedAtMs: time,
        endedAtMs: time,
        payload,
        omitted: fc.constant(true as const),
        keptUntilMs: time,
      },
      { requiredKeys: ["recordedBy", "principal", "owner", "startedAtMs", "endedAtMs"] },
    ),
  },
  { requiredKeys: ["state", "attempt", "takeover", "fingerprint", "keepResultMs"] },
);

const named = <T extends object>(entries: readonly T[], from: number) =>
  entries.map((entry, index) => ({ leaseId: leaseId(from + index), ...entry }));
const records: fc.Arbitrary<LockRecord> = fc
  .record({
    holds: fc.array(hold, { maxLength: 8 }),
    offers: fc.array(offer, { maxLength: 4 }),
    waiters: fc.array(fc.oneof(waiter, waits), { maxLength: 8 }),
    waitSet: fc.array(waits, { maxLength: 8 }),
    tombstones: fc.array(ended, { maxLength: LIMITS.tombstonesMax }),
    run: fc.option(run, { nil: undefined }),
    upgrading: fc.option(fc.record({ leaseId: fc.constant(leaseId(1)), untilMs: time }), { nil: undefined }),
    numbers: time,
  })
  .map(({ holds, offers, waiters, waitSet, run: ran, upgrading, numbers, ...rest }) => ({
    ...EMPTY_RECORD,
    version: numbers,
    fencingToken: numbers,
    fenceFloor: numbers,
    limit: 999,
    lowWatermark: leaseId(1),
    ttlAtSec: 253_402_300_799,
    holds: Object.fromEntries(holds.map((one, index) => [leaseId(100 + index), one])),
    offers: named(offers, 200),
    waiters: named(waiters, 300),
    ...(waitSet.length > 0 && { waitSet: named(waitSet, 400) }),
    ...(ran && { run: ran }),
    ...(upgrading && { upgrading }),
    ...rest,
  }));

describe("the bytes that are counted of a record", () => {
  it("are never fewer than its item's", () => {
    fc.assert(
      fc.property(records, (record) => {
        expect(recordBytes(record)).toBeGreaterThanOrEqual(written(record));
      }),
      { seed: 20_270_501, numRuns: sized({ quick: 500, slow: 2_000 }) },
    );
  });

  it("are no more than its item's by 40 for each hold and offer, 20 for each waiter and 800 for all else", () => {
    fc.assert(
      fc.property(records, (record) => {
        const { holds, offers, waiters, waitSet = [] } = record;
        // Each member has room for a notify that its hold will note.
        const slack = 60 * (Object.keys(holds).length + waitSet.length) + 40 * offers.length + 20 * waiters.length + 800;
        expect(recordBytes(record)).toBeLessThanOrEqual(written(record) + slack);
      }),
      { seed: 20_270_502, numRuns: sized({ quick: 250, slow: 1_000 }) },
    );
  });
});

/** Each part of a record at its longest: every number has the most digits of a safe integer, except a waiter's. */
const LONGEST = (() => {
  const payloadOfAll: Checkpoint = { digest: DIGEST, bytes: MOST, text: "t", ttlAtSec: MOST, sequence: MOST };
  const outcome = {
    recordedBy: leaseId(1),
    principal: PRINCIPAL,
    owner: "",
    startedAtMs: MOST,
    endedAtMs: MOST,
    omitted: true,
    keptUntilMs: MOST,
  } as const;
  const times = { fencingToken: MOST, leaseMs: MOST, grantedAtMs: MOST, expiresAtMs: MOST, marginMs: MOST };
  const large: Hold = { principal: PRINCIPAL, owner: "", mode: "shared", permits: 999, requestHash: PARAMS, broken: "forced", ...times };
  const ran: Run = { state: "interrupted", attempt: MOST, takeover: true, fingerprint: "", keepResultMs: MOST, outcome };
  const waits = { principal: PRINCIPAL, owner: "", requestHash: PARAMS, mode: "shared", permits: 999, priority: 9 } as const;
  return {
    hold: { holds: { [A]: large } },
    "hold with a scope and a meta": { holds: { [A]: { ...large, scope: SCOPE, meta: { a: 1 } } } },
    "hold with a notify": { holds: { [A]: { ...large, notified: { fencingToken: MOST, sequence: MOST, count: 99 } } } },
    waiter: { waiters: [{ leaseId: A, ...waits, aliveUntilMs: START_MS, ttlMs: 114_000 }] },
    "waiter that was notified": { waiters: [{ leaseId: A, ...waits, condition: "é", aliveUntilMs: START_MS, ttlMs: 114_000 }] },
    run: { run: ran },
    "run with a fingerprint": { run: { ...ran, fingerprint: "é" } },
    "run with a checkpoint": { run: { ...ran, checkpoint: payloadOfAll } },
  } satisfies Readonly<Record<string, Partial<LockRecord>>>;
})();
const EMPTY: LockRecord = {
  ...{ ...EMPTY_RECORD, version: MOST, fencingToken: MOST, fenceFloor: MOST, limit: 999, lowWatermark: leaseId(1), ttlAtSec: MOST },
  tombstones: Array.from({ length: LIMITS.tombstonesMax }, () => ({
    ...({ leaseId: leaseId(1), ending: "transferred", fencingToken: MOST, outcome: "o".repeat(11) } as const),
  })),
  upgrading: { leaseId: leaseId(1), untilMs: MOST },
};

describe("the bytes that are counted are the item's to the byte, where everything is at its longest:", () => {
  it.each([["nobody", {}] as const, ...Object.entries(LONGEST)])("%s", (_what, part) => {
    expect(recordBytes({ ...EMPTY, ...part })).toBe(written({ ...EMPTY, ...part }));
  });
});

it("the bytes of ended leases that are listed are those of their ids in a list", () => {
  const ids = [leaseId(2), leaseId(3), LEFT];
  expect(itemBytes({ rl: [A, ...ids] }) - itemBytes({ rl: [A] })).toBe(listBytes(ids));
});

it("the bytes of a place that was left are those of its mark and its entry", () => {
  const queue = (waits: number) => ({ q: Array<object>(waits).fill(NO_ENTRY), qi: Array<string>(waits).fill(LEFT) });
  expect(itemBytes(queue(2)) - itemBytes(queue(1))).toBe(LEFT_BYTES);
});

it("the bytes of a hold that can join others include those of its own token", () => {
  const large: Hold = Object.values(LONGEST.hold.holds)[0]!;
  const bytesOf = (mode: Hold["mode"], limit: number): number => holdBytes({ ...large, mode }, limit);
  expect(bytesOf("shared", 1) - bytesOf("exclusive", 1)).toBe(25);
  expect(bytesOf("exclusive", 2)).toBe(bytesOf("shared", 1));
});

describe("an item is marked as one that nobody is queued for without a look", () => {
  const member: Hold = fc.sample(hold, { seed: 1, numRuns: 1 })[0]!;
  const holders = (count: number, owned: string): LockRecord => {
    const { scope: _scope, meta: _meta, ...small } = member;
    return {
      ...EMPTY_RECORD,
      holds: Object.fromEntries(Array.from({ length: count }, (_, index) => [leaseId(index), { ...small, owner: owned }])),
    };
  };

  it("while a full queue might not fit beside its holders", () => {
    const marked = Array.from({ length: LIMITS.leasesMax }, (_, count) => Object.hasOwn(toItem(holders(count, "x".repeat(100))), "qb"));
    const from = marked.indexOf(true);
    expect(marked).toEqual(marked.map((_, count) => count >= from));
    const most = recordBytes(holders(from - 1, "x".repeat(100)));
    expect(most).toBeLessThanOrEqual(LIMITS.recordBytes - LIMITS.queueBytes);
    expect(isCrowded(holders(from, "x".repeat(100)))).toBe(true);
    expect(fromItem(toItem(holders(from, "x".repeat(100))))).toEqual(holders(from, "x".repeat(100)));
  });

  it("however many wait: control, the queue itself is no reason", () => {
    const waiting = named(
      fc.sample(waiter, { seed: 2, numRuns: 90 }).map((one) => ({ ...one, owner: "" })),
      300,
    );
    expect(toItem({ ...holders(1, ""), waiters: waiting })).not.toHaveProperty("qb");
  });
});
