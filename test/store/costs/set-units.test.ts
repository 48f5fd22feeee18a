/** Costs of a set and of segments, counted at the engine. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { createLockClient } from "../../../lib/dynamodb.js";
import type { Lease, LeaseSet, LockClient } from "../../../lib/index.js";
import { DEFAULTS } from "../../../lib/core/limits.js";
import { freshTable } from "../../support/engine.js";
import { type FaultProxy, startFaultProxy } from "../../support/fault-proxy.js";
import { isThorough } from "../../support/tier.js";
import { A, B, C, D, dynamoStoreOn } from "../fixture.js";
import { SetScene } from "../sets-fixture.js";

let proxy: FaultProxy;
let locks: LockClient;
let another: () => LockClient;

beforeAll(async () => {
  proxy = await startFaultProxy();
  const { place } = await freshTable(proxy.endpoint);
  locks = createLockClient(place);
  another = () => createLockClient(place);
  await locks.withLock("clock", () => null); // A process reads the table's clock once.
});
afterAll(async () => {
  await locks.close();
  await proxy.close();
});

/** Returns the write units and the reads of `act`. */
async function cost(act: () => Promise<unknown>): Promise<readonly [writeUnits: number, reads: number]> {
  proxy.ledger.clear();
  await act();
  return [proxy.ledger.writeUnits, proxy.ledger.requests["GetItem"] ?? 0];
}

// DynamoDB Local counts the units of a transaction otherwise.
it.skipIf(process.env["DYNAMODB_ENDPOINT"])("a set: of each key 2 to acquire and 1 to release, and 1 for its heartbeat", async () => {
  let set: LeaseSet | undefined;
  expect(await cost(async () => (set = await locks.acquireAll(["a", "b", "c"])))).toEqual([6, 0]);
  expect(await cost(() => set!.renew({ leaseMs: 2 * DEFAULTS.leaseMs }))).toEqual([3, 0]);
  expect(await cost(() => set!.release())).toEqual([3, 0]);
});

it("a set on a table without transactions: as many units, and no read", async () => {
  const { calls, tableName } = await freshTable(proxy.endpoint);
  const sets = new SetScene(dynamoStoreOn({ calls, tableName }, () => 0, false));
  const keys = ["a", "b", "c"];
  expect(await cost(() => sets.acquire(A, keys))).toEqual([6, 0]);
  // One key is no set.
  expect(await cost(() => sets.acquire(D, ["w"]))).toEqual([1, 0]);
  // One that a key refuses: a take and its release for each of the others, and a read of the key that this process saw held.
  await sets.key("z").acquire(B);
  expect(await cost(() => sets.acquire(C, ["x", "y", "z"]))).toEqual([4, 1]);
});

// It waits in real time.
it.runIf(isThorough())("a set that waits looks by reads", async () => {
  await using _held = await locks.acquire("d");
  // Closed at the end, which waits for pending requests.
  await using waiting = another();
  await waiting.withLock("clock", () => null);
  proxy.ledger.clear();
  await expect(waiting.acquireAll(["d", "e"], { waitMs: 3000 })).rejects.toThrow(/still held|no answer in time/);
  const { GetItem = 0, TransactWriteItems = 0 } = proxy.ledger.requests;
  // One is the first request. On a busy machine a look may get no answer in time, and then the set is asked for again.
  expect(TransactWriteItems).toBeLessThanOrEqual(2);
  expect(GetItem).toBeGreaterThan(TransactWriteItems);
});

it("segments: as a mutex, and a read for each one that is passed because it was seen held", async () => {
  const hot = locks.segments("hot", 3);
  const leases: (Lease | null)[] = [];
  const acquire = async (): Promise<void> => void leases.push(await hot.acquire());
  expect(await cost(acquire)).toEqual([1, 0]);
  expect(await cost(() => leases[0]!.release())).toEqual([1, 0]);
  for (const segment of hot.keys) leases.push(await locks.acquire(segment));
  expect(await cost(() => hot.tryAcquire())).toEqual([0, hot.keys.length]);
});
