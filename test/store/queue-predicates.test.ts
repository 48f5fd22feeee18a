/** Each predicate of a queue's writes is needed: without it, an example has another outcome. */
import type { DynamoDBClient, UpdateItemCommandInput } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient, GetCommand, PutCommand, UpdateCommand } from "@aws-sdk/lib-dynamodb";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../lib/core/time.js";
import { createDynamoStore } from "../../lib/store/dynamo/dynamo-store.js";
import { FORMAT_VERSION, itemKey, toItem } from "../../lib/store/dynamo/item.js";
import { NewerFormat } from "../../lib/store/port.js";
import { createMemoryStore, createMemoryTable } from "../../lib/store/memory-store.js";
import { tableOfTier } from "../support/tier.js";
import { EXAMPLES } from "./queue-predicates.js";
import type { Example, Stage } from "./queue-predicates.js";
import { QueueScene } from "./queue-fixture.js";
import { FAST_PATHS, mutateWhere } from "./differential/differential-queue.js";
import { A, B, C, POLICY } from "./fixture.js";
import type { EngineTable } from "./differential/differential-pair.js";

describe("each predicate is needed", () => {
  it.each(EXAMPLES)("for the $write when $why: $predicate", async ({ write, predicate, play }) => {
    const wanted = await inMemory(play);
    expect(await onTable(await tableOfTier(), play)).toEqual(wanted);

    const table = await tableOfTier();
    const weakened = mutateWhere(table.client, FAST_PATHS[write], predicate);
    // A write that makes no sense without it is an error of the table.
    const weak = await onTable(table, play).catch((error: unknown) => error);
    expect(weak).not.toEqual(wanted);
    expect(weakened(), "conditions that had it").toBeGreaterThan(0);
  });

  it.each(["enqueue", "claim", "join", "handOver", "leave", "touchWaiter", "decided"] as const)(
    "for the %s when a newer version has written the record meanwhile: KNOWN_FORMAT",
    async (write) => {
      const items = async (table: EngineTable) => {
        const stage = stageOn(table);
        const { here } = stage;
        const documents = DynamoDBDocumentClient.from(table.client);
        const key = { TableName: table.tableName, Key: itemKey(here.address) };
        const update = { UpdateExpression: "SET fv = :newer", ExpressionAttributeValues: { ":newer": FORMAT_VERSION + 1 } };
        const read = async () => (await documents.send(new GetCommand({ ...key, ConsistentRead: true }))).Item;
        await NEWER[write].prepare(here);
        let before: unknown;
        await stage.before(write, async () => {
          await documents.send(new UpdateCommand({ ...key, ...update }));
          before = await read();
        });
        await NEWER[write].act(here).catch((error: unknown) => expect(error).toBeInstanceOf(NewerFormat));
        expect(before).toBeDefined();
        return { before, after: await read() };
      };
      const untouched = await items(await tableOfTier());
      expect(untouched.after).toEqual(untouched.before);
      const table = await tableOfTier();
      mutateWhere(table.client, FAST_PATHS[write], "(attribute_not_exists(fv) OR fv <= :format)");
      const touched = await items(table);
      expect(touched.after).not.toEqual(touched.before);
    },
  );
});

type Act = (here: QueueScene) => Promise<unknown>;
const inUse: Act = (here) => here.acquire(A);
const inLine: Act = async (here) => (await inUse(here), await here.queue(B), here.at(1));

/** The steps that cause each kind of write. */
const NEWER: Readonly<Record<keyof typeof FAST_PATHS, { readonly prepare: Act; readonly act: Act }>> = {
  enqueue: { prepare: inUse, act: (here) => here.queue(B) },
  join: { prepare: (here) => here.acquire(A, { mode: "shared" }), act: (here) => here.acquire(B, { mode: "shared" }) },
  claim: { prepare: async (here) => (await inLine(here), here.release(A)), act: (here) => here.at(2).queue(B) },
  handOver: { prepare: inLine, act: (here) => here.release(A) },
  leave: {
    prepare: async (here) => (await here.acquire(A, { mode: "shared" }), here.acquire(B, { mode: "shared" })),
    act: (here) => here.release(A),
  },
  touchWaiter: { prepare: inLine, act: (here) => here.at(9_000).queue(B) },
  decided: { prepare: inLine, act: (here) => here.queue(C, { priority: 5 }) },
};

/** The outcome of an example by the core alone. */
async function inMemory(play: Example["play"]) {
  const table = createMemoryTable();
  const here = new QueueScene(createMemoryStore({ policy: POLICY, table }));
  const put: Stage["put"] = async (record) => (table.remove(here.address), table.replace(here.address, record, undefined));
  return played({ here, there: new QueueScene(here.store, here.address), put, putByFormer: put, before: (_, act) => act() }, play);
}

/** Its outcome on this table, with two processes. */
function onTable(table: EngineTable, play: Example["play"]) {
  return played(stageOn(table), play);
}

async function played(stage: Stage, play: Example["play"]) {
  const answer = await play(stage);
  return { answer, record: await stage.there.read() };
}

function stageOn({ client, calls, tableName }: EngineTable): Stage {
  const process = () => createDynamoStore({ calls, tableName, policy: POLICY, clock: systemClock, random: () => 0 });
  const here = new QueueScene(process());
  const documents = DynamoDBDocumentClient.from(client);
  const put: Stage["put"] = (record) =>
    documents.send(new PutCommand({ TableName: tableName, Item: { ...itemKey(here.address), ...toItem(record) } }));
  const putByFormer: Stage["putByFormer"] = async (record, isNew = false) => {
    const parts = Object.entries(toItem(record)).filter(([name]) => !["cv", "cp", "cb", "jt"].includes(name));
    if (isNew) {
      const Item = { ...itemKey(here.address), ...Object.fromEntries(parts) };
      return documents.send(new PutCommand({ TableName: tableName, Item }));
    }
    return documents.send(
      new UpdateCommand({
        TableName: tableName,
        Key: itemKey(here.address),
        UpdateExpression: `SET ${parts.map(([name]) => `${name} = :${name}`).join(", ")}`,
        ExpressionAttributeValues: Object.fromEntries(parts.map(([name, value]) => [`:${name}`, value])),
      }),
    );
  };
  const before: Stage["before"] = (write, act) => beforeNext(client, FAST_PATHS[write], act);
  return { here, there: new QueueScene(process(), here.address), put, putByFormer, before };
}

/** Runs `act` just before the next write whose update expression contains `updates`. */
async function beforeNext(client: DynamoDBClient, updates: string, act: () => Promise<unknown>): Promise<void> {
  let left = 1;
  client.middlewareStack.add(
    (next) => async (args) => {
      if (left > 0 && (args.input as Partial<UpdateItemCommandInput>).UpdateExpression?.includes(updates)) {
        left--;
        await act();
      }
      return next(args);
    },
    { step: "initialize" },
  );
}
