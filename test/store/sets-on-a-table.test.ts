/** Sets on a faulty or busy table: lost responses, conflicting transactions, and the cost. */
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient, PutCommand } from "@aws-sdk/lib-dynamodb";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { sdkCalls } from "../support/sdk-calls.js";
import { FORMAT_VERSION, itemKey, toItem } from "../../lib/store/dynamo/item.js";
import { itemText } from "../../lib/store/dynamo/wire-text.js";
import { type LockStore, StoreUnavailable } from "../../lib/store/port.js";
import { engineClient } from "../../infra/local/engine-client.js";
import { engineCalls, freshTable } from "../support/engine.js";
import { type FaultProxy, cancelledFor, holding, startFaultProxy } from "../support/fault-proxy.js";
import { A, B, dynamoStoreOn, leaseIn, LEASE_MS, MARGIN_MS } from "./fixture.js";
import { setOutcome, SetScene } from "./sets-fixture.js";

const KEYS = ["a", "b", "c"];
const isTransaction = ({ target }: { readonly target: string }): boolean => target === "TransactWriteItems";

let tableName: string;
let proxy: FaultProxy;
beforeAll(async () => {
  ({ tableName } = await freshTable());
  proxy = await startFaultProxy();
});
afterAll(() => proxy.close());

/** With its own operations, because those that retry often stop retrying. */
function storeVia(endpoint: string, maxAttempts = 3, prepareClient?: (client: DynamoDBClient) => void): LockStore {
  const client = engineClient(endpoint, { maxAttempts });
  prepareClient?.(client);
  const calls = prepareClient ? sdkCalls(client) : engineCalls(endpoint, maxAttempts);
  return dynamoStoreOn({ calls, tableName }, () => 0.1);
}

/**
 * Sends every attempt without the token by which an engine recognises a repeated transaction. AWS forgets the token,
 * too, after some time.
 */
function forgetRequestTokens(client: DynamoDBClient): void {
  client.middlewareStack.add(
    (next) => (args) => {
      const request = args.request as { body: Uint8Array | string; headers: Record<string, string> };
      const { ClientRequestToken: _token, ...body } = JSON.parse(new TextDecoder().decode(request.body as Uint8Array)) as Record<
        string,
        unknown
      >;
      const text = JSON.stringify(body);
      request.body = text;
      request.headers["content-length"] = String(Buffer.byteLength(text));
      return next(args);
    },
    { step: "finalizeRequest", priority: "low" },
  );
}

/** Keys that were never held; or one of them was held, and may be taken over now. */
const STATES = [
  { state: "free keys", prepare: async () => undefined },
  {
    state: "keys to be taken over",
    prepare: async (sets: SetScene) => {
      await sets.key("b").acquire(B);
      sets.at(LEASE_MS + MARGIN_MS);
    },
  },
];

describe.each(STATES)("an answer about $state that is lost after the transaction", ({ state, prepare }) => {
  /** The transaction that succeeds. If a lease must be taken over, the first one is refused. */
  const which = state === "free keys" ? 1 : 2;
  const losing = (times: number) => {
    let seen = 0;
    return proxy.plan({ kind: "lose-reply" }, { when: (request) => isTransaction(request) && ++seen >= which, times });
  };

  it.each([
    { token: "known by its request token", outcome: "granted", prepareClient: () => undefined },
    { token: "known by nothing but what it wrote", outcome: "replayed", prepareClient: forgetRequestTokens },
  ])("is a success all the same, when the SDK sends it again by itself, $token", async ({ outcome, prepareClient }) => {
    const sets = new SetScene(storeVia(proxy.endpoint, 3, prepareClient));
    await prepare(sets);
    const lost = losing(1);
    proxy.ledger.clear();
    const applied = await sets.acquire(A, KEYS);
    expect(lost.struck).toBe(1);
    expect(setOutcome(KEYS, applied)).toBe(outcome);
    // Control: the engine got one request more than without the loss.
    expect(proxy.ledger.requests["TransactWriteItems"]).toBe(which + 1);
    const records = await sets.records(KEYS);
    expect(applied.map((one) => one && leaseIn(one.answer).fencingToken)).toEqual(records.map((record) => record?.fencingToken));
    // The set was granted once.
    const calm = new SetScene(storeVia(proxy.endpoint));
    await prepare(calm);
    await calm.acquire(A, KEYS);
    expect(records).toEqual(await calm.records(KEYS));
  });

  it("of all attempts may have happened, and asking again tells that it did", async () => {
    const sets = new SetScene(storeVia(proxy.endpoint, 2));
    await prepare(sets);
    const lost = losing(2);
    const error: unknown = await sets.acquire(A, KEYS).catch((reason: unknown) => reason);
    expect(lost.struck).toBe(2);
    expect(error).toBeInstanceOf(StoreUnavailable);
    expect(error).toMatchObject({ definite: false });
    expect(setOutcome(KEYS, await sets.acquire(A, KEYS))).toBe("replayed");
  });

  it("or a request that never arrived: it is simply sent again", async () => {
    const sets = new SetScene(storeVia(proxy.endpoint));
    await prepare(sets);
    const lost = proxy.plan({ kind: "lose-request" }, { when: isTransaction });
    expect(setOutcome(KEYS, await sets.acquire(A, KEYS))).toBe("granted");
    expect(lost.struck).toBe(1);
  });
});

it("a set that lost the race after it was decided is decided again, on what is there then", async () => {
  const sets = new SetScene(storeVia(proxy.endpoint));
  await sets.key("a").acquire(B);
  sets.at(LEASE_MS + MARGIN_MS);
  const held = holding(proxy, (request) => isTransaction(request) && JSON.stringify(request.body).includes("v = :seen"));
  const late = sets.acquire(A, KEYS);
  await held.reached;
  // Another lease takes a key that was free when the set was decided.
  expect((await sets.key("c").acquire(B)).ok).toBe(true);
  held.letGo();
  expect(setOutcome(KEYS, await late)).toBe("c locked");
  expect(await sets.holders(KEYS)).toEqual([[B], [], [B]]);
});

describe("a transaction that meets another", () => {
  const NONE = { Code: "None" };
  const CONFLICT = { Code: "TransactionConflict", Message: "Transaction is ongoing for the item" };
  const cancel = (times: number, ...reasons: readonly { readonly Code: string }[]) =>
    proxy.plan(cancelledFor(...reasons), { when: isTransaction, times });

  it("is sent again, which the SDK does not do, and is never taken for a refusal", async () => {
    const sets = new SetScene(storeVia(proxy.endpoint));
    const cancelled = cancel(4, NONE, CONFLICT, NONE);
    expect(setOutcome(KEYS, await sets.acquire(A, KEYS))).toBe("granted");
    expect(cancelled.struck).toBe(4);
  });

  const THROTTLES = [{ Code: "ThrottlingError" }, { Code: "ProvisionedThroughputExceeded" }];
  it.each(THROTTLES.flatMap((throttled) => [NONE, CONFLICT].map((other) => [throttled, other] as const)))(
    "or is throttled is sent once, and certainly did nothing: %o beside %o",
    async (throttled, other) => {
      const sets = new SetScene(storeVia(proxy.endpoint));
      const cancelled = cancel(1, other, throttled, NONE);
      await expect(sets.acquire(A, KEYS)).rejects.toMatchObject({ name: "StoreUnavailable", definite: true, throttled: true });
      expect(cancelled.struck).toBe(1);
    },
  );

  it("too often is unavailable: certainly nothing was written, and the table asks for fewer requests", async () => {
    const sets = new SetScene(storeVia(proxy.endpoint));
    cancel(5, CONFLICT, NONE, CONFLICT);
    const error: unknown = await sets.acquire(A, KEYS).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(StoreUnavailable);
    expect(error).toMatchObject({ definite: true, throttled: true });
    expect(await sets.holders(KEYS)).toEqual([[], [], []]);
  });

  it("is refused where another of its keys is held: the conflict changes nothing about that", async () => {
    const sets = new SetScene(storeVia(proxy.endpoint));
    await sets.key("c").acquire(B);
    const record = await sets.key("c").read();
    const Item = JSON.parse(itemText(toItem(record!))) as object;
    const refused = { Code: "ConditionalCheckFailed", Message: "The conditional request failed", Item };
    cancel(1, CONFLICT, NONE, refused);
    expect(setOutcome(KEYS, await sets.acquire(A, KEYS))).toBe("c locked");
  });
});

it("a set with a key whose record is of a newer format decides nothing", async () => {
  const store = storeVia(proxy.endpoint);
  const sets = new SetScene(store);
  await sets.key("b").acquire(B);
  const { address } = sets.key("b");
  const record = await sets.key("b").read();
  const documents = DynamoDBDocumentClient.from(engineClient(inject("engineEndpoint")));
  await documents.send(new PutCommand({ TableName: tableName, Item: { ...itemKey(address), ...toItem(record!), fv: FORMAT_VERSION + 1 } }));
  await expect(sets.acquire(A, KEYS)).rejects.toMatchObject({ code: "newer-format" });
  expect(await sets.holders(["a", "c"])).toEqual([[], []]);
});

/** Two units for each key, as AWS charges a transaction; DynamoDB Local reports two for all of it. */
function unitsOf(keys: number): unknown {
  return process.env["DYNAMODB_ENDPOINT"] === undefined ? 2 * keys : expect.any(Number);
}

describe.each([2, 25])("counted at the engine, a set of %i keys", (count) => {
  const keys = Array.from({ length: count }, (_, index) => `checkout-service_ORDER_${index}`);
  const ORDINARY = { by: "111122223333/AROAEXAMPLEEXAMPLEEXA", owner: "checkout-7", leaseMs: 30_000, requestHash: "0123456789abcdef" };
  const counted = async (sets: SetScene, id: string) => {
    proxy.ledger.clear();
    const outcome = setOutcome(keys.slice(0, 1), (await sets.acquire(id, keys, ORDINARY)).slice(0, 1));
    const { requests, writeUnits, readUnits } = proxy.ledger;
    return { outcome, requests, writeUnits, readUnits };
  };

  it("costs one request where the keys are free, and two units for each: a transaction's", async () => {
    const sets = new SetScene(storeVia(proxy.endpoint));
    const requests = { TransactWriteItems: 1 };
    expect(await counted(sets, A)).toEqual({ outcome: "granted", requests, writeUnits: unitsOf(count), readUnits: 0 });
    // A refusal is one request too. No engine reports its charge.
    expect(await counted(sets.at(1), B)).toMatchObject({ outcome: `${keys[0] ?? ""} locked`, requests });
  });

  it("costs a read of each more where it is asked for again", async () => {
    const sets = new SetScene(storeVia(proxy.endpoint));
    await sets.acquire(A, keys, ORDINARY);
    const requests = { TransactWriteItems: 1, GetItem: count };
    expect(await counted(sets.at(1), A)).toEqual({ outcome: "replayed", requests, writeUnits: 0, readUnits: count });
  });

  it("costs a read of each and a second transaction where one of them is taken over", async () => {
    const sets = new SetScene(storeVia(proxy.endpoint));
    await sets.key(keys[0] ?? "").acquire(B);
    const requests = { TransactWriteItems: 2, GetItem: count };
    const cost = await counted(sets.at(LEASE_MS + MARGIN_MS), A);
    expect(cost).toEqual({ outcome: "granted", requests, writeUnits: unitsOf(count), readUnits: count });
  });
});
