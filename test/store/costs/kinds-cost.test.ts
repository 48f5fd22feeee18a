/** The cost of each kind of lock, in requests and capacity units at the engine, one row for each. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Mode } from "../../../lib/core/record.js";
import { DEFAULTS } from "../../../lib/core/limits.js";
import { systemClock } from "../../../lib/core/time.js";
import { createDynamoStore } from "../../../lib/store/dynamo/dynamo-store.js";
import type { LockStore } from "../../../lib/store/port.js";
import { freshTable } from "../../support/engine.js";
import { startFaultProxy } from "../../support/fault-proxy.js";
import type { FaultProxy } from "../../support/fault-proxy.js";
import { A, B, C, leaseId, outcomeOf, POLICY, Fixture, START_MS } from "../fixture.js";
import type { AcquireOptions } from "../fixture.js";

type Act = (lock: Fixture) => Promise<Parameters<typeof outcomeOf>[0]>;

/** A caller with a principal in IAM's format. */
const ORDINARY = {
  by: "111122223333/AROAEXAMPLEEXAMPLEEXA",
  owner: "checkout-7",
  leaseMs: DEFAULTS.leaseMs,
  requestHash: "0123456789abcdef",
};
const READER = { mode: "shared" } as const;
const IN_SCOPE = { scope: "fedcba9876543210" } as const;
const permits = (count: number) => ({ permits: count, limit: 3 }) as const;
const TAKEABLE_MS = DEFAULTS.leaseMs + POLICY.marginMs(DEFAULTS.leaseMs);

const acquire =
  (id: string, options: AcquireOptions = {}): Act =>
  (lock) =>
    lock.acquire(id, { ...ORDINARY, ...options });
const release =
  (id: string): Act =>
  (lock) =>
    lock.release(id, ORDINARY);
const renew =
  (id: string): Act =>
  (lock) =>
    lock.renew(id, { by: ORDINARY.by });
/** The same by a process that has not seen the key. */
const elsewhere =
  (act: Act): Act =>
  (lock) => {
    const there = new Fixture(stranger(), lock.address);
    there.clocks = lock.clocks;
    return act(there);
  };
let stranger: () => LockStore;
/** Changes the mode, by default with the first grant's token, which on a new key is the time. */
const change =
  (id: string, mode: Mode, fencingToken = START_MS): Act =>
  async (lock) =>
    (await lock.apply({ type: "mode", key: lock.address.key, leaseId: id, principal: ORDINARY.by, mode, fencingToken })).answer;

interface Row {
  readonly what: string;
  /** Run in sequence, a millisecond apart. */
  readonly before: readonly Act[];
  readonly act: Act;
  readonly atMs?: number;
  readonly outcome: string;
  readonly writes: number;
  readonly reads?: number;
  readonly writeUnits: number;
}

const NINE_READERS = Array.from({ length: 9 }, (_, order) => acquire(leaseId(order + 10), READER));

const ROWS: readonly Row[] = [
  { what: "the first reader", before: [], act: acquire(A, READER), outcome: "granted", writes: 1, writeUnits: 1 },
  { what: "a reader that joins one", before: [acquire(A, READER)], act: acquire(B, READER), outcome: "granted", writes: 1, writeUnits: 1 },
  {
    what: "a reader that joins one that it has not seen",
    before: [acquire(A, READER)],
    act: elsewhere(acquire(B, READER)),
    outcome: "granted",
    writes: 2,
    writeUnits: 2,
  },
  {
    what: "a reader that joins after one that asked to become the writer has left",
    before: [acquire(A, READER), acquire(B, READER), change(B, "exclusive", START_MS + 1), release(B)],
    act: elsewhere(acquire(C, READER)),
    outcome: "granted",
    writes: 2,
    writeUnits: 2,
  },
  { what: "a reader that joins nine", before: NINE_READERS, act: acquire(A, READER), outcome: "granted", writes: 1, writeUnits: 2 },
  {
    what: "a permit beside another",
    before: [acquire(A, permits(1))],
    act: acquire(B, permits(1)),
    outcome: "granted",
    writes: 1,
    writeUnits: 1,
  },
  {
    what: "a permit that doesn't fit",
    before: [acquire(A, permits(3))],
    act: acquire(B, permits(1)),
    outcome: "locked",
    writes: 1,
    writeUnits: 1,
  },
  {
    what: "a permit of another limit",
    before: [acquire(A, permits(1))],
    act: acquire(B),
    outcome: "limit-mismatch",
    writes: 1,
    writeUnits: 1,
  },
  { what: "a nested level", before: [acquire(A, IN_SCOPE)], act: acquire(B, IN_SCOPE), outcome: "granted", writes: 2, writeUnits: 2 },
  {
    what: "a nested level asked for again",
    before: [acquire(A, IN_SCOPE), acquire(B, IN_SCOPE)],
    act: acquire(B, IN_SCOPE),
    outcome: "replayed",
    writes: 1,
    writeUnits: 1,
  },
  {
    what: "a release of one reader of two",
    before: [acquire(A, READER), acquire(B, READER)],
    act: release(A),
    outcome: "released",
    writes: 1,
    writeUnits: 1,
  },
  {
    what: "a release of an inner level",
    before: [acquire(A, IN_SCOPE), acquire(B, IN_SCOPE)],
    act: release(B),
    outcome: "released",
    writes: 1,
    writeUnits: 1,
  },
  {
    what: "a release of one reader of two by a process that has not seen them",
    before: [acquire(A, READER), acquire(B, READER)],
    act: elsewhere(release(A)),
    outcome: "released",
    writes: 2,
    writeUnits: 2,
  },
  {
    what: "a renewal of one reader of two",
    before: [acquire(A, READER), acquire(B, READER)],
    act: renew(A),
    outcome: "renewed",
    writes: 1,
    writeUnits: 1,
  },
  {
    what: "a writer among readers",
    before: [acquire(A, READER), acquire(B, READER)],
    act: acquire(C),
    outcome: "locked",
    writes: 1,
    writeUnits: 1,
  },
  {
    what: "a reader that takes over from two",
    before: [acquire(A, READER), acquire(B, READER)],
    act: acquire(leaseId(1, TAKEABLE_MS), READER),
    atMs: TAKEABLE_MS + 3,
    outcome: "granted",
    writes: 2,
    writeUnits: 2,
  },
  { what: "an upgrade", before: [acquire(A, READER)], act: change(A, "exclusive"), outcome: "changed", writes: 1, writeUnits: 1 },
  { what: "a downgrade", before: [acquire(A)], act: change(A, "shared"), outcome: "changed", writes: 1, writeUnits: 1 },
  {
    what: "an upgrade that waits for another reader",
    before: [acquire(A, READER), acquire(B, READER)],
    act: change(A, "exclusive"),
    outcome: "locked",
    writes: 1,
    writeUnits: 1,
  },
  {
    what: "an upgrade in conflict",
    before: [acquire(A, READER), acquire(B, READER), change(A, "exclusive")],
    act: change(B, "exclusive", START_MS + 1),
    outcome: "upgrade-conflict",
    writes: 0,
    reads: 1,
    writeUnits: 0,
  },
  {
    what: "a change of mode sent again",
    before: [acquire(A)],
    act: change(A, "exclusive"),
    outcome: "replayed",
    writes: 0,
    reads: 1,
    writeUnits: 0,
  },
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

  it.each(ROWS)(
    "$what costs $writes writes of $writeUnits units",
    async ({ before, act, atMs, outcome, writes, reads = 0, writeUnits }) => {
      const lock = new Fixture(store, { key: "checkout-service_ORDER_1231" });
      for (const [ms, each] of before.entries()) await each(lock.at(ms));
      lock.at(atMs ?? before.length);
      proxy.ledger.clear();
      expect(outcomeOf(await act(lock))).toBe(outcome);
      const { requests, writeUnits: units } = proxy.ledger;
      expect({ requests, units }).toEqual({
        requests: { ...(writes > 0 && { UpdateItem: writes }), ...(reads > 0 && { GetItem: reads }) },
        units: writeUnits,
      });
    },
  );
});
