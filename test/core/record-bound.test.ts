/** A record grows to its bound and no further. A write that makes it smaller is never refused, however large the record is. */
import { describe, expect, it } from "vitest";
import type { Acquire, Command } from "../../lib/core/commands.js";
import { EMPTY_RECORD } from "../../lib/core/lock/tombstones.js";
import { LIMITS } from "../../lib/core/limits.js";
import { renewAfterMs } from "../../lib/core/renewal.js";
import { isCrowded, recordBytes } from "../../lib/core/record-bytes.js";
import type { Hold, LockRecord } from "../../lib/core/record.js";
import { transition } from "../../lib/core/transition.js";
import { A, B, C, D, leaseId, LEASE_MS, MARGIN_MS, outcomeOf, POLICY, START_MS } from "../store/fixture.js";

const OWNER = "o".repeat(LIMITS.ownerChars);
const META = { note: "m".repeat(LIMITS.metaBytes - '{"note":""}'.length) };
const KB = 1024;

const hold: Hold = {
  principal: "P",
  owner: OWNER,
  mode: "exclusive",
  permits: 1,
  fencingToken: START_MS,
  leaseMs: LEASE_MS,
  grantedAtMs: START_MS,
  expiresAtMs: START_MS + LEASE_MS,
  marginMs: MARGIN_MS,
  requestHash: "same",
  meta: META,
};
/** A semaphore's record with `count` large holders, A and B among them, and C waiting for more permits than are free. */
const held = (count: number): LockRecord => ({
  ...EMPTY_RECORD,
  version: START_MS,
  fencingToken: START_MS,
  fenceFloor: START_MS,
  limit: LIMITS.leasesMax,
  holds: {
    [A]: hold,
    [B]: { ...hold, fencingToken: START_MS - 1 },
    ...Object.fromEntries(Array.from({ length: count - 2 }, (_, order) => [leaseId(100 + order), hold])),
  },
  waiters: [
    {
      ...{ leaseId: C, principal: "P", owner: "", mode: "exclusive", permits: LIMITS.leasesMax, requestHash: "same", priority: 0 },
      ...{ aliveUntilMs: START_MS + LEASE_MS, ttlMs: LEASE_MS },
    },
  ],
  ttlAtSec: Math.ceil((START_MS + POLICY.retentionMs) / 1000),
});
/** A record larger than the bound, as an earlier version left it. */
const TOO_LARGE = held(150);
/** A record without room for another large holder. */
const FULL = held(22);

const lease = { key: "seats", leaseId: A, principal: "P" } as const;
const acquire = (id: string, said: Partial<Acquire> = {}): Acquire => ({
  ...{ ...lease, type: "acquire", leaseId: id, owner: "", leaseMs: LEASE_MS, mode: "exclusive", limit: LIMITS.leasesMax },
  ...{ permits: 1, priority: 9, requestHash: "same", ...said },
});

const decided = (record: LockRecord, command: Command, ms = 1) => {
  const reading = { earliestMs: START_MS + ms, latestMs: START_MS + ms };
  return transition(record, command, reading, POLICY);
};

const GROWS: readonly (readonly [string, Command])[] = [
  ["a grant", acquire(D, { owner: OWNER, meta: META, wait: true })],
  ["another waiter", acquire(D, { permits: LIMITS.leasesMax, owner: OWNER, wait: true })],
  ["a renewal with more meta", { type: "renew", ...lease, meta: { ...META, more: "m".repeat(500) } }],
  ["a hand-over to a longer owner", { type: "transfer", ...lease, toLeaseId: D, toOwner: OWNER.repeat(2) }],
];
const SHRINKS: readonly (readonly [string, Command, string])[] = [
  ["a release", { type: "release", ...lease }, "released"],
  ["a cancel of what never came", { type: "release", ...lease, leaseId: D }, "never"],
  ["the leaving of a waiter", { type: "release", ...lease, leaseId: C }, "never"],
  ["a break", { type: "break", key: "seats", fencingToken: START_MS - 1, drainMs: 0 }, "broken"],
  ["a break that lets it drain", { type: "break", key: "seats", fencingToken: START_MS - 1 }, "breaking"],
  ["a renewal", { type: "renew", ...lease }, "renewed"],
  ["a renewal with less meta", { type: "renew", ...lease, meta: {} }, "renewed"],
  ["a hand-over", { type: "transfer", ...lease, toLeaseId: D, toOwner: "" }, "transferred"],
];

describe.each([
  ["at its bound", FULL],
  ["far above it", TOO_LARGE],
])("a record %s", (_, record) => {
  it.each(GROWS)("refuses %s, says how much is taken, and stays as it is", (_what, command) => {
    const { answer, next, events } = decided(record, command);
    expect(answer).toMatchObject({ ok: false, code: "key-full", definite: true, retry: "later", retryAfterMs: LIMITS.pollMaxMs });
    expect(answer).toHaveProperty("detail", expect.stringContaining(`seats take ${recordBytes(record)} of ${LIMITS.recordBytes} bytes`));
    expect([next, events]).toEqual([undefined, []]);
  });

  it.each(SHRINKS)("takes %s", (_what, command, outcome) => {
    const { answer, next } = decided(record, command);
    expect(outcomeOf(answer)).toBe(outcome);
    expect(recordBytes(next!)).toBeLessThanOrEqual(recordBytes(record));
  });

  it("tells the same lease again, and grants once its holders ran out", () => {
    expect(outcomeOf(decided(record, acquire(A)).answer)).toBe("replayed");
    const late = acquire(leaseId(9, LEASE_MS + MARGIN_MS), { owner: OWNER, meta: META });
    expect(outcomeOf(decided({ ...record, waiters: [] }, late, LEASE_MS + MARGIN_MS).answer)).toBe("granted");
  });
});

/** A record with room for so many more bytes. */
const roomFor = (bytes: number, record = held(20)): LockRecord => {
  const missing = LIMITS.recordBytes - bytes - recordBytes(record);
  return { ...record, holds: { ...record.holds, [A]: { ...hold, owner: "o".repeat(OWNER.length + missing) } } };
};

it("a record below its bound takes what fits to the last byte", () => {
  const command = acquire(D, { owner: OWNER });
  const needed = recordBytes(decided(held(2), command).next!) - recordBytes(held(2));
  expect(outcomeOf(decided(roomFor(needed), command).answer)).toBe("granted");
  const { answer } = decided(roomFor(needed - 1), command);
  expect(answer).toMatchObject({ code: "key-full", detail: expect.stringContaining(`asks for ${needed} more`) as string });
});

it("a record is crowded if a full queue doesn't fit beside its holders to the last byte, and its own waiters don't count", () => {
  const alone = { ...held(10), waiters: [] };
  const fits = roomFor(LIMITS.queueBytes, alone);
  expect([fits, roomFor(LIMITS.queueBytes - 1, alone)].map(isCrowded)).toEqual([false, true]);
  expect(isCrowded({ ...fits, waiters: held(2).waiters })).toBe(false);
});

it.each([
  [0, 10_000],
  [4 * KB, 10_000],
  [18 * KB, 12_500],
  [32 * KB, 15_000],
  [300 * KB, 15_000],
])("a lease of 30 s in a record of %d bytes is renewed after %d ms", (bytes, afterMs) => {
  expect(renewAfterMs(30_000, bytes)).toBe(afterMs);
});

describe("the heartbeats of a key's holders", () => {
  const { meta: _meta, ...withoutMeta } = hold;
  const permit = (leaseMs: number, count: number): LockRecord => ({
    ...held(2),
    waiters: [],
    holds: Object.fromEntries(
      Array.from({ length: count }, (_, order) => [
        leaseId(100 + order),
        { ...withoutMeta, owner: "checkout-1", leaseMs, expiresAtMs: START_MS + leaseMs },
      ]),
    ),
  });
  /** The number of holders with short owners beside which no further one is granted. */
  const holdersOf = (leaseMs: number): number => {
    const asks = acquire(D, { leaseMs, owner: "checkout-1" });
    let count = 1;
    while (count < LIMITS.leasesMax && decided(permit(leaseMs, count), asks).answer.ok) count++;
    return count;
  };

  it("take no more than an item has: how many holders with which lease, as docs/costs.md says", () => {
    const most = [1000, 3000, 5000, 10_000, 30_000].map((leaseMs) => [leaseMs, holdersOf(leaseMs)]);
    expect(Object.fromEntries(most)).toEqual({ 1000: 37, 3000: 74, 5000: 99, 10_000: 150, 30_000: 150 });
  });

  it("refuse a further holder, and tell why; a longer lease, a renewal and a release are granted", () => {
    const full = permit(3000, 74);
    const refused = decided(full, acquire(D, { leaseMs: 3000 })).answer;
    expect(outcomeOf(refused)).toBe("key-full");
    expect(refused).toMatchObject({ detail: expect.stringContaining("ask for a longer lease") as string });
    expect(outcomeOf(decided(permit(3000, 73), acquire(D, { leaseMs: 60_000 })).answer)).toBe("granted");
    for (const type of ["renew", "release"] as const)
      expect(decided(full, { type, ...lease, leaseId: leaseId(100) }).answer.ok, type).toBe(true);
  });

  it("of leases that ran out are none", () => {
    expect(outcomeOf(decided(permit(3000, 100), acquire(D, { leaseMs: 3000 }), 3001 + MARGIN_MS).answer)).not.toBe("key-full");
  });
});
