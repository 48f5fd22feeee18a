/** Runs on the DynamoDB table only: their items, payloads with their own expiry, late writes. */
import { DynamoDBDocumentClient, GetCommand, UpdateCommand } from "@aws-sdk/lib-dynamodb";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { engineClient } from "../../infra/local/engine-client.js";
import type { LockRecord, Run } from "../../lib/core/record.js";
import { systemClock } from "../../lib/core/time.js";
import type { TableCalls } from "../../lib/store/dynamo/calls.js";
import { createDynamoStore } from "../../lib/store/dynamo/dynamo-store.js";
import { sdkCalls } from "../../lib/store/dynamo/sdk-calls.js";
import { FORMAT_VERSION, fromItem, itemKey, payloadKey, toItem } from "../../lib/store/dynamo/item.js";
import type { Address, LockStore } from "../../lib/store/port.js";
import { NewerFormat, StoreUnavailable } from "../../lib/store/port.js";
import { TABLE } from "../../lib/store/dynamo/table.js";
import type { FreshTable } from "../support/engine.js";
import { engineCalls, freshTable, throughSdk } from "../support/engine.js";
import { startFaultProxy } from "../support/fault-proxy.js";
import type { FaultProxy } from "../support/fault-proxy.js";
import { large, RunScene, small } from "./run-fixture.js";
import { A, B, LEASE_MS, MARGIN_MS, outcomeOf, POLICY } from "./fixture.js";
import { mutate } from "./mutate.js";

let table: FreshTable;
let store: LockStore;
beforeAll(async () => {
  table = await freshTable();
  store = storeOn(table);
});

function storeOn({ calls, tableName = table.tableName }: { readonly calls: TableCalls; readonly tableName?: string }): LockStore {
  return createDynamoStore({ calls, tableName, policy: POLICY, clock: systemClock, random: () => 0.5 });
}

/** Returns an item as stored in the table. */
async function itemAt(key: Record<string, string>, { client, tableName } = table): Promise<Record<string, unknown> | undefined> {
  const { Item } = await DynamoDBDocumentClient.from(client).send(new GetCommand({ TableName: tableName, Key: key, ConsistentRead: true }));
  return Item;
}

describe("a run's item", () => {
  it("never moves, and is in another place than a lock's or a payload's of the same key", () => {
    const address: Address = { namespace: "acme", kind: "runs", key: "ORDER_1" };
    expect(itemKey(address)).toEqual({ p: "acme/runs/11", k: "ORDER_1" });
    expect(itemKey({ ...address, kind: "locks" })).toEqual({ p: "acme/locks/11", k: "ORDER_1" });
    expect(payloadKey(address, "d")).toEqual({ p: "acme/payloads/11", k: "ORDER_1/d" });
  });

  const base: Run = { state: "running", attempt: 1, takeover: false, fingerprint: "", keepResultMs: 60_000 };
  const record = (run: Run): LockRecord => ({
    version: 7,
    fencingToken: 9,
    fenceFloor: 9,
    limit: 1,
    holds: {},
    offers: [],
    waiters: [],
    tombstones: [],
    lowWatermark: "",
    run,
    ttlAtSec: 8,
  });

  it.each<[string, Run]>([
    ["running", base],
    ["taken over, with a checkpoint", { ...base, attempt: 1_000_000, takeover: true, fingerprint: "f", checkpoint: small("1") }],
    ["with a large checkpoint", { ...base, checkpoint: large("page", 253_402_300_799) }],
    ["interrupted", { ...base, state: "interrupted" }],
    [
      "to be tried again",
      { ...base, state: "retry", outcome: { recordedBy: A, principal: "P", payload: small('""') }, checkpoint: small("1") },
    ],
    [
      "over",
      {
        ...base,
        state: "succeeded",
        outcome: { recordedBy: A, principal: "P", payload: large("receipt", 5), keptUntilMs: 864_000_000_000_000 },
      },
    ],
    [
      "over, its result left out",
      { ...base, state: "succeeded", outcome: { recordedBy: A, principal: "P", omitted: true, keptUntilMs: 0 } },
    ],
    ["over, without a result", { ...base, state: "failed", outcome: { recordedBy: A, principal: "P", keptUntilMs: 1 } }],
  ])("is the same in both directions: %s", (_, run) => {
    expect(fromItem(toItem(record(run)))).toEqual(record(run));
  });

  it.each(["a", "k"])("is not read where a number is damaged: %s", (name) => {
    const { rn, ...item } = toItem(record(base));
    for (const value of [1.5, "1", undefined])
      expect(() => fromItem({ ...item, rn: { ...(rn as object), [name]: value } }), String(value)).toThrow(/safe integer/);
  });

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

describe("a run of a newer format", () => {
  const setFormat = (run: RunScene, format: number): Promise<unknown> =>
    DynamoDBDocumentClient.from(table.client).send(
      new UpdateCommand({
        TableName: table.tableName,
        Key: itemKey(run.address),
        UpdateExpression: "SET fv = :fv",
        ExpressionAttributeValues: { ":fv": format },
      }),
    );

  it.each<[string, (run: RunScene) => Promise<unknown>]>([
    ["start", (run) => run.start(B)],
    ["start again", (run) => run.start(A)],
    ["renew", (run) => run.renew(A, { leaseMs: 60_000 })],
    ["renew with a checkpoint", (run) => run.save(A, small("1"), { leaseMs: 60_000 })],
    ["complete", (run) => run.complete(A)],
    ["release", (run) => run.release(A)],
    ["reset", (run) => run.reset()],
    ["read", (run) => run.read()],
    ["list", (run) => run.store.list({ ...run.address, prefix: "", after: "", max: 10 })],
  ])("is refused and left as it is: %s", async (_, act) => {
    const run = new RunScene(store);
    await run.start(A);
    const before = await run.read();
    await setFormat(run, FORMAT_VERSION + 1);
    await expect(act(run)).rejects.toBeInstanceOf(NewerFormat);
    await setFormat(run, FORMAT_VERSION);
    expect(await run.read()).toEqual(before);
  });

  it("is refused a start when it is as good as new", async () => {
    const run = new RunScene(store);
    await run.start(A);
    await run.release(A);
    await setFormat(run, FORMAT_VERSION + 1);
    await expect(run.at(1).start(B)).rejects.toBeInstanceOf(NewerFormat);
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

  /** A run whose writes with this condition are delayed, and a rival on the same key without delay. */
  function delayed(held: (condition: string) => boolean) {
    const late = new RunScene(storeOn({ calls: engineCalls(proxy.endpoint) }));
    const rival = new RunScene(store, late.address);
    let go = (): void => undefined;
    const until = new Promise<void>((resolve) => (go = resolve));
    const plan = (): Promise<void> =>
      proxy.plan({ kind: "hold-request", until }, { when: ({ body }) => held(String(body.ConditionExpression ?? "")) }).first;
    return { late, rival, plan, go };
  }

  it("keeps a takeover from landing on the outcome of one that woke up meanwhile: it is replayed", async () => {
    const { late, rival, plan, go } = delayed((condition) => condition.startsWith("v = :seen"));
    await rival.start(A);
    const onItsWay = plan();
    const takeover = late.at(LEASE_MS + MARGIN_MS).start(B);
    await onItsWay;
    expect(outcomeOf(await rival.at(LEASE_MS + MARGIN_MS).complete(A, "succeeded", { payload: small('"paid"') }))).toBe("recorded");
    go();
    expect(await takeover).toEqual({ ok: true, state: "succeeded", attempt: 1, payload: small('"paid"') });
  });

  it("keeps an outcome that lands after a takeover from being recorded: the zombie is told", async () => {
    const { late, rival, plan, go } = delayed((condition) => condition.includes("h.#me.a >= :lately"));
    await rival.start(A);
    const onItsWay = plan();
    const outcome = late.at(LEASE_MS - 1).complete(A, "succeeded", { payload: small('"of a zombie"') });
    await onItsWay;
    expect(outcomeOf(await rival.at(LEASE_MS + MARGIN_MS).start(B))).toBe("granted");
    go();
    expect(outcomeOf(await outcome)).toBe("lease-lost: taken");
    expect((await rival.read())?.run).toMatchObject({ state: "running", attempt: 2, takeover: true });
    expect((await rival.read())?.run).not.toHaveProperty("outcome");
  });

  it("control: such an outcome is recorded over the newer run by a table that takes it on trust", async () => {
    const client = engineClient(proxy.endpoint, { maxAttempts: 3 });
    mutate(client, "h.#me.p = :principal", "h.#me.e > :earlier", "attribute_not_exists(h.#me.b)", "h.#me.a >= :lately");
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
