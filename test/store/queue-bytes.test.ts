/**
 * The size of a record has a bound, holders included, because the cost of every write depends on the item's size.
 * Regressions: 150 permits with 1 KB of meta made an item of 282 KB, each heartbeat of which cost 282 units; and with
 * long principals the table itself refused the 125th acquire, as an outage.
 */
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient, GetCommand } from "@aws-sdk/lib-dynamodb";
import { describe, expect, it } from "vitest";
import { LIMITS } from "../../lib/core/limits.js";
import { systemClock } from "../../lib/core/time.js";
import { createDynamoStore } from "../../lib/store/dynamo/dynamo-store.js";
import { itemKey } from "../../lib/store/dynamo/item.js";
import type { Address, LockStore } from "../../lib/store/port.js";
import { tableInMemory } from "../simulation/dynamo/table-in-memory.js";
import { QueueScene } from "./queue-fixture.js";
import { A, leaseId, leaseIn, LEASE_MS, outcomeOf, POLICY } from "./fixture.js";
import { mutate } from "./mutate.js";
import { itemBytes } from "../support/item-bytes.js";

const OWNER = "o".repeat(LIMITS.ownerChars);
const META = { note: "m".repeat(LIMITS.metaBytes - '{"note":""}'.length) };
const SCOPE = "0123456789abcdef";

/** A store on its own table, and the size of an item in it. */
function freshStore(prepare?: (client: DynamoDBClient) => unknown) {
  const { client, calls, tableName } = tableInMemory();
  prepare?.(client);
  // What a process saw is remembered, however long the test takes.
  const clock = { ...systemClock, monotonicMs: () => 0 };
  const startProcess = (): LockStore => createDynamoStore({ calls, tableName, policy: POLICY, clock, random: () => 0 });
  const bytesAt = async (address: Address): Promise<number> => {
    const get = new GetCommand({ TableName: tableName, Key: itemKey(address), ConsistentRead: true });
    return itemBytes((await DynamoDBDocumentClient.from(client).send(get)).Item ?? {});
  };
  return { store: startProcess(), startProcess, bytesAt };
}

/** A key whose holder has that many reentrant holds with 1 KB of meta, and a queue that began before them. */
async function crowded(store: LockStore, levels: number): Promise<QueueScene> {
  const lock = new QueueScene(store);
  await lock.acquire(A, { scope: SCOPE });
  expect(outcomeOf(await lock.queue(leaseId(1000)))).toBe("waiting");
  for (let order = 0; order < levels; order++) await lock.acquire(leaseId(100 + order), { scope: SCOPE, owner: OWNER, meta: META });
  return lock;
}

/** Queues as many more waiters for the key as have places, each by a process that saw the key before any of them came. Returns their outcomes. */
async function queueOn({ address }: QueueScene, startProcess: () => LockStore): Promise<readonly string[]> {
  const outcomes: string[] = [];
  const processes = Array.from({ length: LIMITS.waitersMax - 1 }, () => new QueueScene(startProcess(), address));
  for (const process of processes) await process.read();
  for (const [order, process] of processes.entries())
    outcomes.push(outcomeOf(await process.queue(leaseId(1001 + order), { owner: "checkout-7".repeat(4) })));
  return outcomes;
}

describe("a queue", () => {
  it("grows no item beyond the bound, though nobody reads it to be queued behind large holders: 429 key-full", async () => {
    const { store, startProcess, bytesAt } = freshStore();
    const lock = await crowded(store, 20);
    const outcomes = await queueOn(lock, startProcess);
    const queued = outcomes.filter((outcome) => outcome === "waiting").length;
    expect(queued).toBeGreaterThan(0);
    expect(outcomes.slice(queued)).toEqual(Array(outcomes.length - queued).fill("key-full"));
    expect(outcomes.at(-1)).toBe("key-full");
    expect(await bytesAt(lock.address)).toBeLessThanOrEqual(LIMITS.recordBytes);
  });

  it("control: grows it beyond by a table that takes every one more for right", async () => {
    const { store, startProcess, bytesAt } = freshStore((client) => mutate(client, "attribute_not_exists(qb)"));
    const lock = await crowded(store, 21);
    await queueOn(lock, startProcess);
    expect(await bytesAt(lock.address)).toBeGreaterThan(LIMITS.recordBytes);
  });

  it("control: takes all that may wait behind an ordinary holder", async () => {
    const { store, startProcess } = freshStore();
    expect(new Set(await queueOn(await crowded(store, 0), startProcess))).toEqual(new Set(["waiting"]));
  });
});

describe("a holder of a large record", () => {
  it("can't say more in a renewal than there is room for, and goes on renewing: 429 key-full", async () => {
    const { store, bytesAt } = freshStore();
    const lock = await crowded(store, 22);
    const last = leaseIn(await lock.acquire(leaseId(300), { scope: SCOPE, owner: OWNER }));
    const before = await bytesAt(lock.address);
    // With an explicit length, so that nothing but the meta keeps it from the form of a renewal.
    expect(outcomeOf(await lock.renew(last.leaseId, { meta: META, leaseMs: LEASE_MS }))).toBe("key-full");
    expect(await bytesAt(lock.address)).toBe(before);
    expect(outcomeOf(await lock.renew(last.leaseId))).toBe("renewed");
    expect(outcomeOf(await lock.renew(leaseId(100), { meta: {} }))).toBe("renewed");
    expect(outcomeOf(await lock.renew(last.leaseId, { meta: META, leaseMs: LEASE_MS }))).toBe("renewed");
    expect((await lock.read())?.holds[last.leaseId]?.meta).toEqual(META);
  });
});
