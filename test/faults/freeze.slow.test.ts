/**
 * A process that is stopped past its lease and wakes up. It finds that it holds nothing, its work fails, and its late
 * write is refused if the resource compares tokens. Real processes are really stopped, so this takes real time. The
 * test waits for each event, not for a fixed time.
 */
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { GetCommand, UpdateCommand } from "@aws-sdk/lib-dynamodb";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Gateway, startGateway } from "../../infra/local/gateway.js";
import { compose } from "../../lambda/compose.js";
import { type LockClient, createLockClient, fencedWrite } from "../../lib/index.js";
import { TABLE } from "../../lib/store/dynamo/table.js";
import { type Child, type Report, startChild } from "../support/child.js";
import { type FreshTable, freshTable } from "../support/engine.js";
import type { HolderOrder } from "./holder.js";

const LEASE_MS = 1500;
const MANNERS = ["asks", "listens"] as const;

/** The outcome of one frozen holder. */
interface Story {
  readonly held: Report;
  readonly woke: Report;
  readonly wrote: Report;
  readonly ended: Report;
  /** The token of the takeover in between. */
  readonly laterToken: number;
}

let locksTable: FreshTable;
let resource: FreshTable;
let gateway: Gateway;
let rival: LockClient;
const children: Child[] = [];
const stories = new Map<string, Story>();

const itemOf = (manner: string, kind: string) => ({ [TABLE.partitionKey]: manner, [TABLE.sortKey]: kind });

beforeAll(async () => {
  [locksTable, resource] = await Promise.all([freshTable(), freshTable()]);
  const handler = compose(locksTable.env, { log: () => undefined });
  gateway = await startGateway({ handler, port: 0 });
  rival = createLockClient({ url: gateway.url, owner: "rival" });
  await Promise.all(MANNERS.map(async (manner) => stories.set(manner, await freeze(manner))));
});

afterAll(async () => {
  await Promise.all(children.map((child) => child.kill()));
  await rival.close();
  await gateway.close();
  for (const { client } of [locksTable, resource]) client.destroy();
});

/** Starts a holder, stops it past its lease, takes its key over, writes, and wakes it up. */
async function freeze(manner: HolderOrder["manner"]): Promise<Story> {
  const key = `frozen:${manner}`;
  const { endpoint, tableName } = resource;
  const told: HolderOrder = {
    url: gateway.url,
    key,
    leaseMs: LEASE_MS,
    manner,
    resource: { endpoint, tableName, item: itemOf(manner, "fenced"), unprotected: itemOf(manner, "plain") },
  };
  const child = startChild("holder.ts", import.meta.url, told);
  children.push(child);
  const held = await child.reported("held");
  child.signal("SIGSTOP");
  const lease = await rival.acquire(key);
  for (const kind of ["fenced", "plain"]) await writeAsRival(resource.client, itemOf(manner, kind), lease.fencingToken);
  child.signal("SIGCONT");
  const [woke, wrote, ended] = await Promise.all(["woke", "wrote", "ended"].map((event) => child.reported(event)));
  expect(await child.ended).toEqual({ code: 0, stderr: "" });
  expect(lease.isHeld()).toBe(true);
  return { held, woke: woke!, wrote: wrote!, ended: ended!, laterToken: lease.fencingToken };
}

async function writeAsRival(client: DynamoDBClient, Key: Record<string, string>, fencingToken: number): Promise<void> {
  const fence = fencedWrite(fencingToken);
  const values = { ...fence.ExpressionAttributeValues, ":writer": "rival" };
  const UpdateExpression = `${fence.UpdateExpression}, writer = :writer`;
  await client.send(
    new UpdateCommand({ TableName: resource.tableName, Key, ...fence, UpdateExpression, ExpressionAttributeValues: values }),
  );
}

async function writerOf(manner: string, kind: string): Promise<unknown> {
  const { Item } = await resource.client.send(
    new GetCommand({ TableName: resource.tableName, Key: itemOf(manner, kind), ConsistentRead: true }),
  );
  return Item?.["writer"];
}

describe("a process that was stopped past its lease", () => {
  it("holds nothing at every call of its first statements after it wakes", () => {
    expect(stories.get("asks")?.woke).toMatchObject({
      held: [false, false, false],
      remainingMs: 0,
      state: "lost",
      asserted: "LockLostError",
    });
  });

  it("finds its signal aborted after the first timer turn, without asking anything", () => {
    expect(stories.get("listens")?.woke).toMatchObject({ aborted: true, reason: "LockLostError" });
  });

  it.each(MANNERS)("and %s: withLock throws LockLostError although its function returned a value", (manner) => {
    expect(stories.get(manner)?.ended).toEqual({ event: "ended", error: "LockLostError", reason: "deadline" });
  });

  it.each(MANNERS)("and %s: its token is below that of the one who took over", (manner) => {
    const { held, laterToken } = stories.get(manner)!;
    expect(laterToken).toBeGreaterThan(held["fencingToken"]);
  });

  it.each(MANNERS)("and %s: its late write with fencedWrite is refused, and changes nothing", async (manner) => {
    expect(stories.get(manner)?.wrote["fenced"]).toBe("ConditionalCheckFailedException");
    expect(await writerOf(manner, "fenced")).toBe("rival");
  });

  it.each(MANNERS)("and %s: control: the same write without fencedWrite goes through, over the later holder's", async (manner) => {
    expect(stories.get(manner)?.wrote["plain"]).toBe("written");
    expect(await writerOf(manner, "plain")).toBe("holder");
  });
});
