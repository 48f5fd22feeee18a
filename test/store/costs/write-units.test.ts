/**
 * The cost of each operation and of each kind of lock, in requests and capacity units at the engine. The test advances time itself;
 * operations that cost one more within the same millisecond have their own rows.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DEFAULTS } from "../../../lib/core/limits.js";
import type { Mode } from "../../../lib/core/record.js";
import type { LockStore } from "../../../lib/store/port.js";
import { freshTable } from "../../support/engine.js";
import { type FaultProxy, startFaultProxy } from "../../support/fault-proxy.js";
import { type AcquireOptions, A, B, C, dynamoStoreOn, leaseId, LEASE_MS, outcomeOf, POLICY, Fixture, START_MS } from "../fixture.js";

type Answer = Parameters<typeof outcomeOf>[0];
type Act = (lock: Fixture) => Promise<Answer>;
type Prepare = (lock: Fixture) => Promise<unknown>;

/** A caller with a principal in IAM's format, on a key of typical length. */
const ORDINARY = {
  by: "111122223333/AROAEXAMPLEEXAMPLEEXA",
  owner: "checkout-7",
  leaseMs: DEFAULTS.leaseMs,
  requestHash: "0123456789abcdef",
};
const READER = { mode: "shared" } as const;
const IN_SCOPE = { scope: "fedcba9876543210" } as const;
const permits = (count: number) => ({ permits: count, limit: 3 }) as const;
/** The time at which a lease of the default length may be taken over. */
const TAKEABLE_MS = DEFAULTS.leaseMs + POLICY.marginMs(DEFAULTS.leaseMs);

const acquire = (id: string, options: AcquireOptions = {}): Act => (lock) => lock.acquire(id, { ...ORDINARY, ...options }); // prettier-ignore
const renew = (id: string, leaseMs?: number): Act => (lock) => lock.renew(id, { by: ORDINARY.by, ...(leaseMs !== undefined && { leaseMs }) }); // prettier-ignore
const release = (id: string): Act => (lock) => lock.release(id, ORDINARY); // prettier-ignore
const transfer: Act = (lock) => lock.transfer(A, B, ORDINARY);
const breaking: Act = (lock) => lock.breakHold(lock.clocks.latestMs - 1);
const at = (ms: number): Prepare => async (lock) => void lock.at(ms); // prettier-ignore
const all = (...acts: readonly Prepare[]): Prepare => async (lock) => { for (const act of acts) await act(lock); }; // prettier-ignore
/** Changes the mode, by default with the first grant's token, which on a new key is the time. */
const change =
  (id: string, mode: Mode, fencingToken = START_MS): Act =>
  async (lock) =>
    (await lock.apply({ type: "mode", key: lock.address.key, leaseId: id, principal: ORDINARY.by, mode, fencingToken })).answer;
/** Creates the store of another process, which hasn't seen the key. */
let stranger: () => LockStore;
/** The same by another process. */
const elsewhere =
  (act: Act): Act =>
  (lock) => {
    const there = new Fixture(stranger(), lock.address);
    there.clocks = lock.clocks;
    return act(there);
  };

const UNUSED = all();
const HELD = all(acquire(A), at(1));
const USED = all(HELD, release(A), at(2));
/** A key with the largest past: eight tombstones, and a low watermark. */
const WELL_USED: Prepare = async (lock) => {
  for (let order = 1; order <= 10; order++) await all(at(order), acquire(leaseId(order)), release(leaseId(order)))(lock);
  lock.at(11);
};
const HELD_AND_WELL_USED = all(WELL_USED, acquire(leaseId(11)), at(12));
const ONE_READER = all(acquire(A, READER), at(1));
const TWO_READERS = all(ONE_READER, acquire(B, READER), at(2));
const NINE_READERS = all(...Array.from({ length: 9 }, (_, order) => all(acquire(leaseId(order + 10), READER), at(order + 1))));
const NESTED = all(acquire(A, IN_SCOPE), at(1), acquire(B, IN_SCOPE), at(2));

type Row = readonly [what: string, before: Prepare, act: Act, says: string, costs: readonly [reads: number, writes: number, units: number]];

// prettier-ignore
/** The operation · the preparation · the answer · reads, writes, write units. */
const ROWS: readonly Row[] = [
  ["an acquire of a new key", UNUSED, acquire(A), "granted", [0, 1, 1]],
  ["an acquire of a used key", USED, acquire(B), "granted", [0, 1, 1]],
  ["an acquire of a key used ten times", WELL_USED, acquire(leaseId(11)), "granted", [0, 1, 1]],
  ["an acquire in the millisecond of the last grant", all(acquire(A), release(A)), acquire(B), "granted", [0, 2, 2]],
  ["a renewal of the default length", HELD, renew(A), "renewed", [0, 1, 1]],
  ["a renewal of the length it says", HELD, renew(A, 60_000), "renewed", [0, 1, 1]],
  ["a renewal of a key used ten times", HELD_AND_WELL_USED, renew(leaseId(11)), "renewed", [0, 1, 1]],
  ["a renewal of another length without saying which", (lock) => lock.acquire(A, { ...ORDINARY, leaseMs: LEASE_MS }), renew(A), "renewed", [0, 1, 1]],
  ["a release", HELD, release(A), "released", [0, 1, 1]],
  ["a release of a key used ten times", HELD_AND_WELL_USED, release(leaseId(11)), "released", [0, 1, 1]],
  ["a takeover", all(HELD, at(TAKEABLE_MS)), acquire(B), "granted", [0, 1, 1]],
  ["a refusal", HELD, acquire(B), "locked", [1, 0, 0]],
  ["a refusal by a process that didn't see the grant", HELD, elsewhere(acquire(B)), "locked", [0, 1, 1]],
  ["a takeover by a process that didn't see the grant", all(HELD, at(TAKEABLE_MS)), elsewhere(acquire(B)), "granted", [0, 2, 2]],
  ["a refusal at a key used ten times", HELD_AND_WELL_USED, acquire(leaseId(12)), "locked", [1, 0, 0]],
  ["an acquire sent again", HELD, acquire(A), "replayed", [1, 0, 0]],
  ["an acquire by an id that ended", USED, acquire(A), "lease-over", [0, 1, 1]],
  ["an acquire by an id out of bounds", USED, acquire(leaseId(1, 3_600_000)), "lease-id-time", [1, 0, 0]],
  ["a renewal that is refused", USED, renew(A), "lease-lost: released", [0, 1, 1]],
  ["a release sent again", USED, release(A), "released", [0, 1, 1]],
  ["a release after expiry", all(HELD, at(DEFAULTS.leaseMs)), release(A), "expired", [0, 1, 1]],
  ["a cancel of a key nobody used", UNUSED, release(A), "never", [0, 2, 2]],
  ["a cancel of a used key", USED, release(C), "never", [0, 2, 2]],
  ["a transfer", HELD, transfer, "transferred", [0, 1, 1]],
  ["a transfer by a process that didn't see the grant", HELD, elsewhere(transfer), "transferred", [1, 1, 1]],
  ["a break", HELD, breaking, "breaking", [0, 1, 1]],
  ["a break by a process that didn't see the grant", HELD, elsewhere(breaking), "breaking", [1, 1, 1]],

  ["the first reader", UNUSED, acquire(A, READER), "granted", [0, 1, 1]],
  ["a reader that joins one", ONE_READER, acquire(B, READER), "granted", [0, 1, 1]],
  ["a reader that joins one that it has not seen", ONE_READER, elsewhere(acquire(B, READER)), "granted", [0, 2, 2]],
  ["a reader that joins after one that asked to become the writer has left", all(TWO_READERS, change(B, "exclusive", START_MS + 1), at(3), release(B), at(4)), elsewhere(acquire(C, READER)), "granted", [0, 2, 2]],
  ["a reader that joins nine", NINE_READERS, acquire(A, READER), "granted", [0, 1, 2]],
  ["a permit beside another", all(acquire(A, permits(1)), at(1)), acquire(B, permits(1)), "granted", [0, 1, 1]],
  ["a permit that doesn't fit", all(acquire(A, permits(3)), at(1)), acquire(B, permits(1)), "locked", [1, 0, 0]],
  ["a permit of another limit", all(acquire(A, permits(1)), at(1)), acquire(B), "limit-mismatch", [1, 0, 0]],
  ["a nested level", all(acquire(A, IN_SCOPE), at(1)), acquire(B, IN_SCOPE), "granted", [0, 1, 1]],
  ["a nested level asked for again", NESTED, acquire(B, IN_SCOPE), "replayed", [1, 0, 0]],
  ["a release of one reader of two", TWO_READERS, release(A), "released", [0, 1, 1]],
  ["a release of an inner level", NESTED, release(B), "released", [0, 1, 1]],
  ["a release of one reader of two by a process that has not seen them", TWO_READERS, elsewhere(release(A)), "released", [0, 2, 2]],
  ["a renewal of one reader of two", TWO_READERS, renew(A), "renewed", [0, 1, 1]],
  ["a writer among readers", TWO_READERS, acquire(C), "locked", [1, 0, 0]],
  ["a reader that takes over from two", all(TWO_READERS, at(TAKEABLE_MS + 3)), acquire(leaseId(1, TAKEABLE_MS), READER), "granted", [0, 1, 1]],
  ["an upgrade", ONE_READER, change(A, "exclusive"), "changed", [0, 1, 1]],
  ["a downgrade", HELD, change(A, "shared"), "changed", [0, 1, 1]],
  ["an upgrade that waits for another reader", TWO_READERS, change(A, "exclusive"), "locked", [0, 1, 1]],
  ["an upgrade in conflict", all(TWO_READERS, change(A, "exclusive"), at(3)), change(B, "exclusive", START_MS + 1), "upgrade-conflict", [1, 0, 0]],
  ["a change of mode sent again", HELD, change(A, "exclusive"), "replayed", [1, 0, 0]],
];

describe("counted at the engine", () => {
  let proxy: FaultProxy;
  let store: LockStore;
  beforeAll(async () => {
    proxy = await startFaultProxy();
    const table = await freshTable(proxy.endpoint);
    stranger = () => dynamoStoreOn(table);
    store = stranger();
  });
  afterAll(() => proxy.close());

  // Each read is of one unit.
  const rows = ROWS.map(([what, before, act, says, [readUnits, writes, writeUnits]]) => ({ what, before, act, says, readUnits, writes, writeUnits })); // prettier-ignore
  it.each(rows)("$what costs $writeUnits write and $readUnits read units", async ({ before, act, says, writes, writeUnits, readUnits }) => {
    const lock = new Fixture(store, { key: "checkout-service_ORDER_1231" });
    await before(lock);
    proxy.ledger.clear();
    expect(outcomeOf(await act(lock))).toBe(says);
    expect(proxy.ledger).toMatchObject({ readUnits, writeUnits });
    expect(proxy.ledger.requests).toEqual({ ...(writes > 0 && { UpdateItem: writes }), ...(readUnits > 0 && { GetItem: readUnits }) });
  });

  it("a look costs a read of one unit", async () => {
    const lock = new Fixture(store);
    await HELD(lock);
    proxy.ledger.clear();
    await lock.read();
    expect(proxy.ledger).toMatchObject({ requests: { GetItem: 1 }, writeUnits: 0, readUnits: 1 });
  });

  it("control: a note of 1 KB makes a write of two units", async () => {
    const lock = new Fixture(store);
    proxy.ledger.clear();
    await lock.acquire(A, { ...ORDINARY, meta: { note: "x".repeat(1000) } });
    expect(proxy.ledger.writeUnits).toBe(2);
    await elsewhere(acquire(B))(lock);
    expect(proxy.ledger.writeUnits).toBe(4);
  });
});
