/**
 * The cost of each operation, in requests and capacity units at the engine. The test advances time itself; operations
 * that cost one more within the same millisecond have their own rows.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DEFAULTS } from "../../../lib/core/limits.js";
import { systemClock } from "../../../lib/core/time.js";
import { createDynamoStore } from "../../../lib/store/dynamo/dynamo-store.js";
import type { LockStore } from "../../../lib/store/port.js";
import { freshTable } from "../../support/engine.js";
import { startFaultProxy } from "../../support/fault-proxy.js";
import type { FaultProxy } from "../../support/fault-proxy.js";
import { A, B, C, leaseId, leaseIn, LEASE_MS, POLICY, Fixture } from "../fixture.js";

const WRITE = { UpdateItem: 1 };
const TWO_WRITES = { UpdateItem: 2 };
const READ = { GetItem: 1 };
const READ_AND_WRITE = { GetItem: 1, UpdateItem: 1 };

type Act = (lock: Fixture) => Promise<unknown>;

interface Row {
  readonly what: string;
  readonly before?: Act;
  readonly act: Act;
  readonly requests: Readonly<Record<string, number>>;
  readonly writeUnits: number;
  readonly readUnits: number;
}

/** A caller with a principal in IAM's format, on a key of typical length. */
const ORDINARY = {
  by: "111122223333/AROAEXAMPLEEXAMPLEEXA",
  owner: "checkout-7",
  leaseMs: DEFAULTS.leaseMs,
  requestHash: "0123456789abcdef",
};

const acquire =
  (id: string): Act =>
  (lock) =>
    lock.acquire(id, ORDINARY);
const renew =
  (id: string, leaseMs?: number): Act =>
  async (lock) =>
    leaseIn(await lock.renew(id, { by: ORDINARY.by, ...(leaseMs !== undefined && { leaseMs }) }));
const release =
  (id: string): Act =>
  (lock) =>
    lock.release(id, ORDINARY);
const at =
  (ms: number): Act =>
  async (lock) =>
    void lock.at(ms);
const all =
  (...acts: readonly Act[]): Act =>
  async (lock) => {
    for (const act of acts) await act(lock);
  };

const HELD = acquire(A);
const USED = all(HELD, at(1), release(A), at(2));
/** A key with the largest past: eight tombstones, and a low watermark. */
const WELL_USED: Act = async (lock) => {
  for (let order = 1; order <= 10; order++) await all(at(order), acquire(leaseId(order)), release(leaseId(order)))(lock);
  lock.at(11);
}; /** When a lease of the default length may be taken over. */
const TAKEABLE_MS = DEFAULTS.leaseMs + POLICY.marginMs(DEFAULTS.leaseMs);

const transfer = (lock: Fixture) => lock.transfer(A, B, ORDINARY);
const breaking = (lock: Fixture) => lock.breakHold(lock.clocks.latestMs - 1);

/** Creates the store of another process, which hasn't seen the key. */
let stranger: () => LockStore;
const elsewhere =
  (act: (lock: Fixture) => Promise<unknown>) =>
  (lock: Fixture): Promise<unknown> => {
    const there = new Fixture(stranger(), lock.address);
    there.clocks = lock.clocks;
    return act(there);
  };

const ROWS: readonly Row[] = [
  { what: "an acquire of a new key", act: acquire(A), requests: WRITE, writeUnits: 1, readUnits: 0 },
  { what: "an acquire of a used key", before: USED, act: acquire(B), requests: WRITE, writeUnits: 1, readUnits: 0 },
  {
    what: "an acquire of a key used ten times",
    before: WELL_USED,
    act: acquire(leaseId(11)),
    requests: WRITE,
    writeUnits: 1,
    readUnits: 0,
  },
  {
    what: "an acquire in the millisecond of the last grant",
    before: all(HELD, release(A)),
    act: acquire(B),
    requests: TWO_WRITES,
    writeUnits: 2,
    readUnits: 0,
  },
  { what: "a renewal of the default length", before: all(HELD, at(1)), act: renew(A), requests: WRITE, writeUnits: 1, readUnits: 0 },
  {
    what: "a renewal of the length it says",
    before: all(HELD, at(1)),
    act: renew(A, 60_000),
    requests: WRITE,
    writeUnits: 1,
    readUnits: 0,
  },
  {
    what: "a renewal of a key used ten times",
    before: all(WELL_USED, acquire(leaseId(11)), at(12)),
    act: renew(leaseId(11)),
    requests: WRITE,
    writeUnits: 1,
    readUnits: 0,
  },
  {
    what: "a renewal of another length without saying which",
    before: (lock) => lock.acquire(A, { ...ORDINARY, leaseMs: LEASE_MS }),
    act: renew(A),
    requests: TWO_WRITES,
    writeUnits: 2,
    readUnits: 0,
  },
  { what: "a release", before: all(HELD, at(1)), act: release(A), requests: WRITE, writeUnits: 1, readUnits: 0 },
  {
    what: "a release of a key used ten times",
    before: all(WELL_USED, acquire(leaseId(11)), at(12)),
    act: release(leaseId(11)),
    requests: WRITE,
    writeUnits: 1,
    readUnits: 0,
  },
  { what: "a takeover", before: all(HELD, at(TAKEABLE_MS)), act: acquire(B), requests: TWO_WRITES, writeUnits: 2, readUnits: 0 },
  { what: "a refusal", before: all(HELD, at(1)), act: acquire(B), requests: WRITE, writeUnits: 1, readUnits: 0 },
  {
    what: "a refusal at a key used ten times",
    before: all(WELL_USED, acquire(leaseId(11)), at(12)),
    act: acquire(leaseId(12)),
    requests: WRITE,
    writeUnits: 1,
    readUnits: 0,
  },
  { what: "an acquire sent again", before: all(HELD, at(1)), act: acquire(A), requests: WRITE, writeUnits: 1, readUnits: 0 },
  { what: "an acquire by an id that ended", before: USED, act: acquire(A), requests: WRITE, writeUnits: 1, readUnits: 0 },
  {
    what: "an acquire by an id out of bounds",
    before: USED,
    act: acquire(leaseId(1, 3_600_000)),
    requests: READ,
    writeUnits: 0,
    readUnits: 1,
  },
  { what: "a renewal that is refused", before: USED, act: (lock) => lock.renew(A), requests: WRITE, writeUnits: 1, readUnits: 0 },
  { what: "a release sent again", before: USED, act: release(A), requests: WRITE, writeUnits: 1, readUnits: 0 },
  {
    what: "a release after expiry",
    before: all(HELD, at(DEFAULTS.leaseMs)),
    act: release(A),
    requests: TWO_WRITES,
    writeUnits: 2,
    readUnits: 0,
  },
  { what: "a cancel of a key nobody used", act: release(A), requests: TWO_WRITES, writeUnits: 2, readUnits: 0 },
  { what: "a cancel of a used key", before: USED, act: release(C), requests: TWO_WRITES, writeUnits: 2, readUnits: 0 },
  { what: "a transfer", before: all(HELD, at(1)), act: transfer, requests: WRITE, writeUnits: 1, readUnits: 0 },
  {
    what: "a transfer by a process that didn't see the grant",
    before: all(HELD, at(1)),
    act: elsewhere(transfer),
    requests: READ_AND_WRITE,
    writeUnits: 1,
    readUnits: 1,
  },
  { what: "a break", before: all(HELD, at(1)), act: breaking, requests: WRITE, writeUnits: 1, readUnits: 0 },
  {
    what: "a break by a process that didn't see the grant",
    before: all(HELD, at(1)),
    act: elsewhere(breaking),
    requests: READ_AND_WRITE,
    writeUnits: 1,
    readUnits: 1,
  },
  { what: "a look", before: HELD, act: (lock) => lock.read(), requests: READ, writeUnits: 0, readUnits: 1 },
];

describe("counted at the engine", () => {
  let proxy: FaultProxy;
  let store: LockStore;
  beforeAll(async () => {
    proxy = await startFaultProxy();
    const { calls, tableName } = await freshTable(proxy.endpoint);
    stranger = () => createDynamoStore({ calls, tableName, policy: POLICY, clock: systemClock, random: () => 0.5 });
    store = stranger();
  });
  afterAll(() => proxy.close());

  it.each(ROWS)("$what costs $writeUnits write and $readUnits read units", async ({ before, act, requests, writeUnits, readUnits }) => {
    const lock = new Fixture(store, { key: "checkout-service_ORDER_1231" });
    await before?.(lock);
    const { ledger } = proxy;
    ledger.clear();
    await act(lock);
    expect({ requests: ledger.requests, writeUnits: ledger.writeUnits, readUnits: ledger.readUnits }).toEqual({
      requests,
      writeUnits,
      readUnits,
    });
  });

  it("control: a note of 1 KB makes a write of two units", async () => {
    const lock = new Fixture(store);
    proxy.ledger.clear();
    await lock.acquire(A, { ...ORDINARY, meta: { note: "x".repeat(1000) } });
    expect(proxy.ledger.writeUnits).toBe(2);
    await lock.acquire(B);
    expect(proxy.ledger.writeUnits).toBe(4);
  });
});
