/**
 * Fields that a newer version adds in the same format, anywhere in an item: this version preserves them and still
 * decides. Regressions: an extra field in a waiter's entry made every write of the queue fail for ever, and an extra
 * field in a hold was dropped when the record was written.
 */
import { GetCommand, PutCommand, DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { describe, expect, it } from "vitest";
import type { Item } from "../../lib/store/dynamo/layout.js";
import { fromItem, itemKey, toItem } from "../../lib/store/dynamo/item.js";
import { storedId } from "../../lib/store/dynamo/stored-id.js";
import { freshTable } from "../support/engine.js";
import { QueueScene } from "./queue-fixture.js";
import { A, B, C, D, dynamoStoreOn, LEASE_MS, MARGIN_MS } from "./fixture.js";

const NEWER = { zz: "of a newer version" };

/** Adds a field to each part of `item` that has parts. */
function withNewerFields(item: Item): Item {
  const more = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(more);
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, more(member)]));
  };
  const part = (value: unknown): Item => ({ ...(more(value) as Item), ...NEWER });
  const mapped = (of: Item): Item => Object.fromEntries(Object.entries(of).map(([name, value]) => [name, part(value)]));
  const place = (value: unknown): Item => ({ ...(value as Item), ...NEWER, g: mapped((value as Item)["g"] as Item) });
  return {
    ...item,
    ...NEWER,
    h: mapped(item["h"] as Item),
    q: ((item["q"] ?? []) as readonly unknown[]).map(place),
    ...(item["cw"] !== undefined && {
      cw: Object.fromEntries(Object.entries(item["cw"] as Item).map(([leaseId, value]) => [leaseId, place(value)])),
    }),
    r0: part(item["r0"]),
  };
}

/**
 * A table, and a key on it that A holds and these wait for, with newer fields in its item. After "wait": A waits for a condition as the
 * first, and the second holds.
 */
async function newer(...waiters: readonly string[]) {
  const { client, calls, tableName } = await freshTable();
  const store = dynamoStoreOn({ calls, tableName }, () => 0);
  const documents = DynamoDBDocumentClient.from(client);
  const key = new QueueScene(store);
  const at = { TableName: tableName, Key: itemKey(key.address) };
  const item = async (): Promise<Item> => ((await documents.send(new GetCommand({ ...at, ConsistentRead: true }))).Item ?? {}) as Item;
  await key.acquire(D);
  await key.at(1).release(D);
  await key.at(2).acquire(A);
  if (waiters[0] === "wait") {
    const [, waits = "", holds = ""] = waiters;
    await key.at(3).wait(A, waits);
    await key.at(4).acquire(holds);
  } else for (const id of waiters) await key.at(3).queue(id);
  await documents.send(new PutCommand({ TableName: tableName, Item: withNewerFields(await item()) }));
  // Another process, which hasn't seen the key before.
  const elsewhere = dynamoStoreOn({ calls, tableName }, () => 0);
  return { key: new QueueScene(elsewhere, key.address), item };
}

const isStored = (part: unknown): boolean => (part as Item | undefined)?.["zz"] === NEWER.zz;
const member = (of: unknown, leaseId: string): unknown => (of as Item)[storedId(leaseId)];

describe("a record with fields of a newer version in all its parts", () => {
  it("lets a waiter leave, and the others keep their fields", async () => {
    const { key, item } = await newer(B, C);
    expect(await key.at(10).release(B)).toMatchObject({ state: "never" });
    const { h, q, zz } = await item();
    expect(zz).toBe(NEWER.zz);
    expect(isStored(member(h, A))).toBe(true);
    const [, second] = q as readonly Item[];
    expect([isStored(second), isStored(member(second?.["g"], C))]).toEqual([true, true]);
  });

  it("is taken over, and what an offer was made of keeps its fields", async () => {
    const { key, item } = await newer(B, C);
    expect(await key.at(2 + LEASE_MS + MARGIN_MS).queue(C)).toMatchObject({ state: "waiting" });
    const { h, q } = await item();
    expect(isStored(member(h, B))).toBe(true);
    expect(isStored((q as readonly unknown[])[0])).toBe(true);
  });

  it("keeps the fields of a hold that is renewed, and of a lease that ended", async () => {
    const { key, item } = await newer();
    await key.at(10).renew(A, { leaseMs: 2 * LEASE_MS });
    const { h, r0 } = await item();
    expect([isStored(member(h, A)), isStored(r0)]).toEqual([true, true]);
  });

  it("keeps the fields of a lease that waits for a condition, through its notify and its offer", async () => {
    const { key, item } = await newer("wait", B, C);
    const whole = await item();
    expect(isStored(member(whole["cw"], B))).toBe(true);
    expect({ ...whole, ...toItem(fromItem(whole)) }).toEqual(whole);
    expect(await key.at(10).notify(C)).toMatchObject({ notified: 1 });
    const { q } = await item();
    const [first] = q as readonly Item[];
    expect([isStored(first), isStored(member(first?.["g"], B))]).toEqual([true, true]);
    await key.release(C);
    expect(isStored(member((await item())["h"], B))).toBe(true);
  });
});
