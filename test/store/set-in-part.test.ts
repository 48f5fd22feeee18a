/**
 * A set whose leaseId already holds a part of it. Regression: only the changed keys were written on condition that
 * nothing had changed. A part that was released meanwhile was missing from a set that was granted all the same.
 */
import type { DynamoDBClient, TransactWriteItemsCommandInput } from "@aws-sdk/client-dynamodb";
import { describe, expect, it } from "vitest";
import { sdkCalls } from "../support/sdk-calls.js";
import type { LockStore } from "../../lib/store/port.js";
import { createMemoryStore, createMemoryTable } from "../support/memory-store.js";
import { A, B, dynamoStoreOn, LEASE_MS, MARGIN_MS, POLICY } from "./fixture.js";
import { setOutcome, SetScene } from "./sets-fixture.js";
import { freshTable } from "../support/engine.js";

const KEYS = ["a", "b", "c"];

/** An action just before the transaction of a set, and a switch that leaves unchanged parts out of the transaction. */
interface Hooks {
  beforeWrite?: () => Promise<unknown>;
  changesOnly?: boolean;
}

function memoryStore(hooks: Hooks): LockStore {
  const table = createMemoryTable();
  return createMemoryStore({
    policy: POLICY,
    table: {
      ...table,
      async replaceAll(changes) {
        await hooks.beforeWrite?.();
        return table.replaceAll(hooks.changesOnly ? changes.filter(({ next }) => next) : changes);
      },
    },
  });
}

async function dynamoStore(hooks: Hooks): Promise<LockStore> {
  const { client, tableName } = await freshTable();
  beforeTransactions(client, hooks);
  return dynamoStoreOn({ calls: sdkCalls(client), tableName });
}

/** Runs the hooks at the transactions that follow a read. */
function beforeTransactions(client: DynamoDBClient, hooks: Hooks): void {
  client.middlewareStack.add(
    (next) => async (args) => {
      const { TransactItems: items = [] } = args.input as Partial<TransactWriteItemsCommandInput>;
      if (!items.some(({ Update }) => Update?.ConditionExpression?.includes("v = :seen"))) return next(args);
      await hooks.beforeWrite?.();
      const kept = hooks.changesOnly ? items.filter(({ Update }) => Update?.UpdateExpression !== "SET v = :seen") : items;
      return next({ ...args, input: { ...args.input, TransactItems: kept } });
    },
    { step: "initialize" },
  );
}

const STORES = [
  { name: "memory-store", open: async (hooks: Hooks) => memoryStore(hooks) },
  { name: "dynamo-store", open: dynamoStore },
];

/** Acquires the set with an id that holds its first key, and ends that hold while the set is written. */
async function askForTheRest(open: (hooks: Hooks) => Promise<LockStore>, changesOnly: boolean) {
  const hooks: Hooks = { changesOnly };
  const sets = new SetScene(await open(hooks));
  await sets.key("b").acquire(B);
  sets.at(LEASE_MS + MARGIN_MS);
  await sets.key("a").acquire(A);
  hooks.beforeWrite = async () => {
    delete hooks.beforeWrite;
    expect(await sets.key("a").release(A)).toMatchObject({ state: "released" });
  };
  const outcome = setOutcome(KEYS, await sets.acquire(A, KEYS));
  return { outcome, holders: await sets.holders(KEYS) };
}

describe.each(STORES)("$name, a set whose leaseId holds one of its keys, which is released while the rest is written", ({ open }) => {
  it("is granted no other key", async () => {
    expect(await askForTheRest(open, false)).toEqual({ outcome: "a lease-over", holders: [[], [B], []] });
  });

  it("control: is granted in part where only the keys that change are written on condition", async () => {
    expect(await askForTheRest(open, true)).toEqual({ outcome: "granted and replayed", holders: [[], [A], [A]] });
  });

  it("control: is granted whole, and replayed whole, where nothing is released", async () => {
    const sets = new SetScene(await open({}));
    const first = await sets.key("a").acquire(A);
    expect(setOutcome(KEYS, await sets.acquire(A, KEYS))).toBe("granted and replayed");
    const [before] = await sets.records(KEYS);
    expect(before?.version).toBe(first.ok ? first.lease.version : 0);
    expect(setOutcome(KEYS, await sets.acquire(A, KEYS))).toBe("replayed");
  });
});
