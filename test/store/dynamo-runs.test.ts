/** Runs on the DynamoDB table only: their items, payloads with their own expiry, late writes. */
import { DynamoDBDocumentClient, GetCommand } from "@aws-sdk/lib-dynamodb";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { engineClient } from "../../infra/local/engine-client.js";
import type { TableCalls } from "../../lib/store/dynamo/calls.js";
import { sdkCalls } from "../support/sdk-calls.js";
import { itemKey, payloadKey } from "../../lib/store/dynamo/item.js";
import { type Address, type LockStore, StoreUnavailable } from "../../lib/store/port.js";
import { TABLE } from "../../lib/store/dynamo/table.js";
import { type FreshTable, engineCalls, freshTable, throughSdk } from "../support/engine.js";
import { type FaultProxy, holding, startFaultProxy } from "../support/fault-proxy.js";
import { RunScene, small } from "./run-fixture.js";
import { A, B, dynamoStoreOn, LEASE_MS, MARGIN_MS, outcomeOf } from "./fixture.js";
import { mutate } from "./mutate.js";

let table: FreshTable;
let store: LockStore;
beforeAll(async () => {
  table = await freshTable();
  store = storeOn(table);
});

function storeOn({ calls, tableName = table.tableName }: { readonly calls: TableCalls; readonly tableName?: string }): LockStore {
  return dynamoStoreOn({ calls, tableName });
}

/** Returns an item as stored in the table. */
async function itemAt(key: Record<string, string>, { client, tableName } = table): Promise<Record<string, unknown> | undefined> {
  const { Item } = await DynamoDBDocumentClient.from(client).send(new GetCommand({ TableName: tableName, Key: key, ConsistentRead: true }));
  return Item;
}

describe("a run's item", () => {
  it("keeps nothing of a run that was reset or given up", async () => {
    const run = new RunScene(store);
    await run.start(A);
    expect(await itemAt(itemKey(run.address))).toHaveProperty("rn");
    await run.release(A);
    expect(await itemAt(itemKey(run.address))).not.toHaveProperty("rn");
    await run.at(1).start(B);
    await run.complete(B);
    await run.reset();
    expect(await itemAt(itemKey(run.address))).not.toHaveProperty("rn");
  });
});

describe("the item of a payload", () => {
  const kept = async (address: Address, at = table): Promise<unknown> => (await itemAt(payloadKey(address, "d"), at))?.[TABLE.ttlAttribute];

  /** Stores the payload until each of these times, with and without its text, and returns the TTLs. */
  async function ttlsAfter(times: readonly number[], on: LockStore, at = table): Promise<readonly unknown[]> {
    const { address } = new RunScene(on);
    const seen = [];
    for (const [index, ttlAtSec] of times.entries()) {
      await on.keepPayload(address, { digest: "d", ttlAtSec }, index % 2 === 0 ? '"text"' : undefined);
      seen.push(await kept(address, at));
    }
    return seen;
  }
  const TIMES = [1_900_000_000, 1_900_000_005, 1_900_000_005, 1, 1_900_000_003, 1_900_000_009];

  it("is only ever kept for longer", async () => {
    const highest = TIMES.map((_, index) => Math.max(...TIMES.slice(0, index + 1)));
    expect(await ttlsAfter(TIMES, store)).toEqual(highest);
  });

  it("control: is kept for shorter by a table that takes every later time for right", async () => {
    const other = await freshTable();
    mutate(other.client, "#x < :x");
    expect(await ttlsAfter(TIMES, storeOn(throughSdk(other)), other)).toEqual(TIMES);
  });

  it("is not made by keeping it for longer when it was collected: it would have no text", async () => {
    const { address } = new RunScene(store);
    await store.keepPayload(address, { digest: "d", ttlAtSec: 1_900_000_000 });
    expect(await itemAt(payloadKey(address, "d"))).toBeUndefined();
  });
});

describe("an engine that answers late, or not", () => {
  let proxy: FaultProxy;
  beforeAll(async () => {
    proxy = await startFaultProxy();
  });
  afterAll(() => proxy.close());

  /** A run whose writes may be delayed, and a rival on the same key without delay. */
  function bothWays() {
    const late = new RunScene(storeOn({ calls: engineCalls(proxy.endpoint) }));
    return { late, rival: new RunScene(store, late.address) };
  }

  it("keeps a takeover from landing on the outcome of one that woke up meanwhile: it is replayed", async () => {
    const { late, rival } = bothWays();
    await rival.start(A);
    const held = holding(proxy, ({ body }) => String(body.ConditionExpression ?? "").startsWith("v = :seen"));
    const takeover = late.at(LEASE_MS + MARGIN_MS).start(B);
    await held.reached;
    expect(outcomeOf(await rival.at(LEASE_MS + MARGIN_MS).complete(A, "succeeded", { payload: small('"paid"') }))).toBe("recorded");
    held.letGo();
    expect(await takeover).toEqual({ ok: true, state: "succeeded", attempt: 1, payload: small('"paid"') });
  });

  it("keeps an outcome that lands after a takeover from being recorded: the zombie is told", async () => {
    const { late, rival } = bothWays();
    await rival.start(A);
    const held = holding(proxy, ({ body }) => String(body.ConditionExpression ?? "").includes("h.#me.a >= :lately"));
    const outcome = late.at(LEASE_MS - 1).complete(A, "succeeded", { payload: small('"of a zombie"') });
    await held.reached;
    expect(outcomeOf(await rival.at(LEASE_MS + MARGIN_MS).start(B))).toBe("granted");
    held.letGo();
    expect(outcomeOf(await outcome)).toBe("lease-lost: taken");
    expect((await rival.read())?.run).toMatchObject({ state: "running", attempt: 2, takeover: true });
    expect((await rival.read())?.run).not.toHaveProperty("outcome");
  });

  it("control: such an outcome is recorded over the newer run by a table that takes it on trust", async () => {
    const client = engineClient(proxy.endpoint, { maxAttempts: 3 });
    mutate(client, "h.#me.p = :principal", "h.#me.e > :earlier", "attribute_not_exists(h.#me.b)", "h.#me.a >= :lately");
    // The write names the hold too, which is gone.
    client.middlewareStack.add(
      (next) => (args) => {
        const { UpdateExpression: update } = args.input as { readonly UpdateExpression?: string };
        const named = update?.replace("h.#me.o", ":me").replace("h.#me.a", ":now");
        return next({ ...args, input: { ...args.input, UpdateExpression: named } });
      },
      { step: "initialize" },
    );
    const run = new RunScene(store);
    const zombie = new RunScene(storeOn({ calls: sdkCalls(client) }), run.address).at(LEASE_MS - 1);
    await run.start(A);
    await run.at(LEASE_MS + MARGIN_MS).start(B);
    await zombie.complete(A, "succeeded", { payload: small('"of a zombie"') });
    expect((await run.read())?.run).toMatchObject({ state: "succeeded", attempt: 2, outcome: { recordedBy: A } });
  });

  it("keeps a payload all the same when the answer is lost, and says so when nothing answers", async () => {
    const on = storeOn({ calls: engineCalls(proxy.endpoint) });
    const { address } = new RunScene(on);
    const payload = { digest: "d", ttlAtSec: 1_900_000_000 };
    const lost = proxy.plan({ kind: "lose-reply" }, { times: 2 });
    await on.keepPayload(address, payload, '"text"');
    expect(lost.struck).toBe(2);
    proxy.plan({ kind: "lose-reply" }, { times: 3 });
    await expect(on.readPayload(address, "d")).rejects.toBeInstanceOf(StoreUnavailable);
    expect(await on.readPayload(address, "d")).toBe('"text"');
    proxy.plan({ kind: "lose-request" }, { times: 3 });
    await expect(on.keepPayload(address, { ...payload, digest: "e" }, '"text"')).rejects.toMatchObject({ definite: false });
    expect(await on.readPayload(address, "e")).toBeUndefined();
  });
});
