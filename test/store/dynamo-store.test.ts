/** Behaviour of the DynamoDB table only: shards, formats of other versions, transactions, invalid responses. */
import { DynamoDBDocumentClient, UpdateCommand } from "@aws-sdk/lib-dynamodb";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { FORMAT_VERSION, itemKey, SHARDS } from "../../lib/store/dynamo/item.js";
import { type LockStore, StoreUnavailable } from "../../lib/store/port.js";
import { TABLE } from "../../lib/store/dynamo/table.js";
import { type FreshTable, engineCalls, freshTable } from "../support/engine.js";
import { type FaultProxy, holding, startFaultProxy } from "../support/fault-proxy.js";
import { pagesOf } from "./conformance/listing.js";
import { DEFAULTS } from "../../lib/core/limits.js";
import { permits } from "./queue-fixture.js";
import { A, B, C, D, dynamoStoreOn, freshNamespace, LEASE_MS, leaseIn, MARGIN_MS, outcomeOf, Fixture } from "./fixture.js";

let table: FreshTable;
let store: LockStore;
beforeAll(async () => {
  table = await freshTable();
  store = storeOn(table.endpoint);
});

function storeOn(endpoint: string, maxAttempts = 3): LockStore {
  const calls = engineCalls(endpoint, maxAttempts);
  return dynamoStoreOn({ calls, tableName: table.tableName });
}

describe("a list over the shards", () => {
  it("goes on where one shard has more than a query looks at, whether its keys are held or free", async () => {
    const namespace = freshNamespace();
    const shard = (key: string): unknown => itemKey({ namespace, kind: "locks", key })[TABLE.partitionKey];
    const everywhere = Array.from({ length: 6_000 }, (_, index) => `ORDER_${index}`);
    // More than two queries' worth in one shard, of which the first 130 are free, and a few keys in the others.
    const crowded = everywhere
      .filter((key) => shard(key) === shard("ORDER_0"))
      .sort()
      .slice(0, 250);
    const others = everywhere.slice(0, 40).filter((key) => !crowded.includes(key));
    await Promise.all([...crowded.slice(130), ...others].map((key) => new Fixture(store, { namespace, key }).acquire(A)));
    await Promise.all(crowded.slice(0, 130).map((key) => new Fixture(store, { namespace, key }).release(A)));

    const held = [...crowded.slice(130), ...others].sort();
    for (const max of [10, 1000]) {
      const pages = await pagesOf(store, { namespace, prefix: "", max });
      expect(pages.flat()).toEqual(held);
    }
  });
});

describe("a key's shard", () => {
  const shardOf = (key: string): string => itemKey({ namespace: "acme", kind: "locks", key })[TABLE.partitionKey] ?? "";

  it("is as likely as any other, so that no partition is crowded", () => {
    const shards = new Map<string, number>();
    for (let order = 0; order < 100 * SHARDS; order++)
      shards.set(shardOf(`ORDER_${order}`), (shards.get(shardOf(`ORDER_${order}`)) ?? 0) + 1);
    expect(shards.size).toBe(SHARDS);
    expect(Math.max(...shards.values())).toBeLessThan(150);
  });
});

describe("a record of a newer format", () => {
  const newer = async (lock: Fixture): Promise<void> => {
    const documents = DynamoDBDocumentClient.from(table.client);
    const format = { UpdateExpression: "SET fv = :fv", ExpressionAttributeValues: { ":fv": FORMAT_VERSION + 1 } };
    await documents.send(new UpdateCommand({ TableName: table.tableName, Key: itemKey(lock.address), ...format }));
  };

  it.each<[string, (lock: Fixture) => Promise<unknown>]>([
    ["acquire", (lock) => lock.acquire(B)],
    ["acquire, free", async (lock) => (await lock.release(A), await newer(lock), lock.at(1).acquire(B))],
    ["renew", (lock) => lock.renew(A, { leaseMs: 60_000 })],
    ["release", (lock) => lock.release(A)],
    ["transfer", (lock) => lock.transfer(A, B)],
    ["break", (lock) => lock.breakHold(1, 0)],
    ["read", (lock) => lock.read()],
    ["list", (lock) => lock.store.list({ ...lock.address, prefix: "", after: "", max: 10 })],
  ])("is refused and left as it is: %s", async (operation, act) => {
    const lock = new Fixture(store);
    await lock.acquire(A);
    if (operation !== "acquire, free") await newer(lock);
    await expect(act(lock)).rejects.toMatchObject({ code: "newer-format" });

    // Marks the item as this version's format.
    const documents = DynamoDBDocumentClient.from(table.client);
    const back = { UpdateExpression: "SET fv = :fv", ExpressionAttributeValues: { ":fv": FORMAT_VERSION } };
    await documents.send(new UpdateCommand({ TableName: table.tableName, Key: itemKey(lock.address), ...back }));
    expect(await lock.acquire(A)).toMatchObject(operation === "acquire, free" ? { code: "lease-over" } : { how: "replayed" });
  });
});

describe("an engine that says something else", () => {
  let proxy: FaultProxy;
  beforeAll(async () => {
    proxy = await startFaultProxy();
  });
  afterAll(() => proxy.close());

  const answers = (errorName: string, status: number, times: number) => proxy.plan({ kind: "answer", errorName, status }, { times });

  it.each(["TransactionConflictException", "ReplicatedWriteConflictException"])(
    "is asked again when another write is on the item, which the SDK does not do, and contended after five of them: %s",
    async (name) => {
      const conflict = answers(name, 400, 4);
      expect(await new Fixture(storeOn(proxy.endpoint)).acquire(A)).toMatchObject({ how: "granted" });
      expect(conflict.struck).toBe(4);
      answers(name, 400, 5);
      await expect(new Fixture(storeOn(proxy.endpoint)).acquire(A)).rejects.toMatchObject({ name: "KeyContended", definite: true });
    },
  );

  it.each([
    { errorName: "TransactionConflictException", status: 400, times: 5, attempts: 1, definite: true, throttled: true },
    // A write and the read in its place, each of which is sent once.
    { errorName: "ThrottlingException", status: 400, times: 2, attempts: 3, definite: true, throttled: true },
    { errorName: "ProvisionedThroughputExceededException", status: 400, times: 2, attempts: 3, definite: true, throttled: true },
    { errorName: "ResourceNotFoundException", status: 400, times: 1, attempts: 3, definite: true, throttled: false },
    { errorName: "ValidationException", status: 400, times: 1, attempts: 3, definite: true, throttled: false },
    { errorName: "AccessDeniedException", status: 400, times: 1, attempts: 3, definite: true, throttled: false },
    { errorName: "InternalServerError", status: 500, times: 1, attempts: 1, definite: false, throttled: false },
    { errorName: "ServiceUnavailable", status: 503, times: 3, attempts: 3, definite: false, throttled: false },
  ])("is unavailable, definitely: $definite, throttled: $throttled, after $errorName × $times in $attempts attempts", async (row) => {
    const { errorName, status, times, attempts, definite, throttled } = row;
    const lock = new Fixture(storeOn(proxy.endpoint, attempts));
    const plan = answers(errorName, status, times);
    const error: unknown = await lock.acquire(A).catch((reason: unknown) => reason);
    expect(plan.struck).toBe(times);
    expect(error).toBeInstanceOf(StoreUnavailable);
    expect(error).toMatchObject({ definite, throttled });
    expect(await lock.read()).toBeUndefined();
  });

  it("is read by who only tries, if it throttles the write", async () => {
    const lock = new Fixture(storeOn(proxy.endpoint));
    await new Fixture(store, lock.address).acquire(A);
    const throttled = proxy.plan({ kind: "answer", errorName: "ThrottlingException", status: 400 }, { times: 1 });
    expect(outcomeOf(await lock.acquire(B))).toBe("locked");
    expect(throttled.struck).toBe(1);
    // Who waits needs a write, and gets the refusal.
    answers("ThrottlingException", 400, 1);
    await expect(new Fixture(storeOn(proxy.endpoint), lock.address).queue(C)).rejects.toMatchObject({ definite: true, throttled: true });
  });

  it("is no success when a lost reply was followed by a refusal that is none: a throttled second sending", async () => {
    const lock = new Fixture(storeOn(proxy.endpoint, 2));
    proxy.plan({ kind: "lose-reply" });
    answers("ThrottlingException", 400, 1);
    await expect(lock.acquire(A)).rejects.toMatchObject({ definite: false });
    expect(await lock.acquire(A)).toMatchObject({ how: "replayed" });
  });

  it("decides on what it lost to, when a write came first", async () => {
    const lock = new Fixture(storeOn(proxy.endpoint));
    const { fencingToken } = leaseIn(await lock.acquire(A));
    lock.at(LEASE_MS + MARGIN_MS);
    const rival = new Fixture(store, lock.address).at(LEASE_MS + MARGIN_MS);
    const held = holding(proxy, ({ body }) => body.ConditionExpression?.startsWith("v = :seen"));
    const late = lock.acquire(B);
    await held.reached;
    // The holder woke up and released, and another lease was granted: the late takeover must not succeed.
    expect(outcomeOf(await rival.release(A))).toBe("expired");
    const next = leaseIn(await rival.acquire("01a2ce8b-d400-7000-8000-0000000000ff"));
    held.letGo();
    expect(outcomeOf(await late)).toBe("locked");
    expect(next.fencingToken).toBeGreaterThan(fencingToken);
    expect((await lock.read())?.fencingToken).toBe(next.fencingToken);
  });

  it("tells a waiter its place as it was written, when others came first", async () => {
    const lock = new Fixture(storeOn(proxy.endpoint));
    const elsewhere = new Fixture(store, lock.address);
    await elsewhere.acquire(A);
    const held = holding(proxy, ({ body }) => body.UpdateExpression?.includes("list_append(q, :waiters)") === true);
    const third = lock.queue(D);
    await held.reached;
    for (const id of [B, C]) await elsewhere.queue(id);
    held.letGo();
    expect(await third).toMatchObject({ state: "waiting", position: 3 });
  });

  it("tells a waiter whose keep-alive was written no more than that, when there was room for it by then", async () => {
    const lock = new Fixture(storeOn(proxy.endpoint));
    const elsewhere = new Fixture(store, lock.address);
    await elsewhere.acquire(A, { ...permits(1), leaseMs: 60_000 });
    await elsewhere.acquire(B, { ...permits(2), leaseMs: 60_000 });
    await lock.queue(C, permits(2));
    for (const process of [lock, elsewhere]) process.at(DEFAULTS.waiterTtlMs - 1);
    const held = holding(proxy, ({ body }) => body.UpdateExpression?.includes(".u = :until") === true);
    const poll = lock.queue(C, permits(2));
    await held.reached;
    // It leaves the queue to its next poll.
    expect(outcomeOf(await elsewhere.release(B))).toBe("released");
    held.letGo();
    expect(await poll).toMatchObject({ state: "waiting", position: 1 });
    expect(Object.keys((await lock.read())!.holds)).toEqual([A]);
    expect(outcomeOf(await lock.queue(C, permits(2)))).toBe("granted");
  });
});
