/**
 * A queue through the store that guesses, as several processes see it, and through the core alone: the same
 * answers and the same records, step by step, but for who is queued blind (queue-twins.ts says what is held of
 * that). And each predicate of what is written is needed: without it an example comes to something else.
 */
import type { DynamoDBClient, UpdateItemCommandInput } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient, GetCommand, PutCommand, UpdateCommand } from "@aws-sdk/lib-dynamodb";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../lib/core/time.js";
import { createDynamoStore } from "../../lib/store/dynamo-store.js";
import { itemKey, toItem } from "../../lib/store/item.js";
import { NewerFormat } from "../../lib/store/lock-store.js";
import { createMemoryStore, createMemoryTable } from "../../lib/store/memory-store.js";
import { freshTable } from "../support/engine.js";
import { queueHistories, writerHistories } from "./queue-histories.js";
import { EXAMPLES } from "./queue-predicates.js";
import type { Example, Stage } from "./queue-predicates.js";
import { QueueScene } from "./queue-scene.js";
import type { Play } from "./queue-twins.js";
import { GUESSES, queueTwins, weakenWhere } from "./queue-twins.js";
import { A, B, C, RULES } from "./scene.js";
import type { EngineTable } from "./twins.js";

/** So many histories at once, each of a key of its own: most of the time is spent in waiting for the engine. */
const AT_ONCE = 3;
const SEED = 20_270_701;
/** They take a while on an engine that is slow. */
const LONG_MS = 180_000;

const samePlayed = (play: Play, histories = queueHistories, told: (outcome: string) => void = () => undefined) =>
  fc.asyncProperty(fc.tuple(...Array.from({ length: AT_ONCE }, () => histories)), async (together) => {
    await Promise.all(together.map((history) => play(history, told)));
  });

/** What the histories come to, each at least once. */
const REACHED = [
  ...["granted", "replayed", "waiting", "locked", "queue-full", "limit-mismatch", "lease-over", "lease-reused", "forbidden"].map(
    (outcome) => `acquire: ${outcome}`,
  ),
  ...["released", "expired", "never", "forbidden"].map((outcome) => `release: ${outcome}`),
  ...["queued", "offered", "skipped", "granted", "ended", "changed", "transferred"].map((event) => `event: ${event}`),
  ...Object.keys(GUESSES).map((write) => `by ${write}`),
  "break: broken",
];

describe("a queue that several processes see", () => {
  it("comes to the same as the core alone in 150 histories, and reaches every kind of outcome", { timeout: LONG_MS }, async () => {
    const told = new Map<string, number>();
    const count = (outcome: string): void => void told.set(outcome, (told.get(outcome) ?? 0) + 1);
    const play = queueTwins(await freshTable());
    await fc.assert(samePlayed(play, queueHistories, count), { seed: SEED, numRuns: 75 / AT_ONCE });
    await fc.assert(samePlayed(play, writerHistories, count), { seed: SEED, numRuns: 75 / AT_ONCE });
    expect(
      REACHED.filter((outcome) => !told.has(outcome)),
      JSON.stringify([...told]),
    ).toEqual([]);
  });

  it.each([
    ["enqueue", "NOT contains(qi, :me)"],
    ["enqueue", "NOT (r7.i = :me)"],
    ["decided", "v = :seen"],
  ] as const)("control: is told apart from it when the %s goes without %s", { timeout: LONG_MS }, async (write, predicate) => {
    const table = await freshTable();
    const weakened = weakenWhere(table.client, GUESSES[write], predicate);
    const parameters = { seed: SEED, numRuns: 75, endOnFailure: true };
    const { failed, errorInstance } = await fc.check(samePlayed(queueTwins(table), writerHistories), parameters);
    expect(weakened(), "conditions that had it").toBeGreaterThan(0);
    expect(failed).toBe(true);
    // By what it says or keeps, and not by a request that the table could not take.
    expect((errorInstance as Error).name).toBe("AssertionError");
  });
});

describe("each predicate is needed", () => {
  it.each(EXAMPLES)("for the $write when $why: $predicate", async ({ write, predicate, play }) => {
    const wanted = await inMemory(play);
    expect(await onTable(await freshTable(), play)).toEqual(wanted);

    const table = await freshTable();
    const weakened = weakenWhere(table.client, GUESSES[write], predicate);
    expect(await onTable(table, play)).not.toEqual(wanted);
    expect(weakened(), "conditions that had it").toBeGreaterThan(0);
  });

  it.each(["enqueue", "claim", "handOver", "leave", "hear", "decided"] as const)(
    "for the %s when a newer version has written the record meanwhile: KNOWN_FORMAT",
    async (write) => {
      const items = async (table: EngineTable) => {
        const stage = stageOn(table);
        const { here } = stage;
        const documents = DynamoDBDocumentClient.from(table.client);
        const key = { TableName: table.tableName, Key: itemKey(here.address) };
        const update = { UpdateExpression: "SET fv = :newer", ExpressionAttributeValues: { ":newer": 2 } };
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
      const untouched = await items(await freshTable());
      expect(untouched.after).toEqual(untouched.before);
      const table = await freshTable();
      weakenWhere(table.client, GUESSES[write], "(attribute_not_exists(fv) OR fv <= :format)");
      const touched = await items(table);
      expect(touched.after).not.toEqual(touched.before);
    },
  );
});

type Act = (here: QueueScene) => Promise<unknown>;
const inUse: Act = (here) => here.acquire(A);
const inLine: Act = async (here) => (await inUse(here), await here.queue(B), here.at(1));

/** What brings each kind of write about. */
const NEWER: Readonly<Record<keyof typeof GUESSES, { readonly prepare: Act; readonly act: Act }>> = {
  enqueue: { prepare: inUse, act: (here) => here.queue(B) },
  claim: { prepare: async (here) => (await inLine(here), here.release(A)), act: (here) => here.at(2).queue(B) },
  handOver: { prepare: inLine, act: (here) => here.release(A) },
  leave: {
    prepare: async (here) => (await here.acquire(A, { mode: "shared" }), here.acquire(B, { mode: "shared" })),
    act: (here) => here.release(A),
  },
  hear: { prepare: inLine, act: (here) => here.at(9_000).queue(B) },
  decided: { prepare: inLine, act: (here) => here.queue(C, { priority: 5 }) },
};

/** What an example comes to by the core alone. */
async function inMemory(play: Example["play"]) {
  const table = createMemoryTable();
  const here = new QueueScene(createMemoryStore({ rules: RULES, table }));
  const put: Stage["put"] = async (record) => (table.remove(here.address), table.replace(here.address, record, undefined));
  return played({ here, there: new QueueScene(here.store, here.address), put, before: (_, act) => act() }, play);
}

/** What it comes to on this table, by two processes. */
function onTable(table: EngineTable, play: Example["play"]) {
  return played(stageOn(table), play);
}

async function played(stage: Stage, play: Example["play"]) {
  const answer = await play(stage);
  return { answer, record: await stage.there.read() };
}

function stageOn({ client, tableName }: EngineTable): Stage {
  const process = () => createDynamoStore({ client, tableName, rules: RULES, clock: systemClock, random: () => 0 });
  const here = new QueueScene(process());
  const documents = DynamoDBDocumentClient.from(client);
  const put: Stage["put"] = (record) =>
    documents.send(new PutCommand({ TableName: tableName, Item: { ...itemKey(here.address), ...toItem(record) } }));
  return { here, there: new QueueScene(process(), here.address), put, before: (write, act) => beforeNext(client, GUESSES[write], act) };
}

/** Does something just before the next write that updates this. */
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
