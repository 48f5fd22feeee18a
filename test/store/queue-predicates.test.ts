/**
 * Predicates of a queue's writes that no common write of one process needs (forms.test.ts has the others): each has an example with two
 * processes that has another outcome without it.
 */
import type { DynamoDBClient, UpdateItemCommandInput } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient, GetCommand, UpdateCommand } from "@aws-sdk/lib-dynamodb";
import { describe, expect, it } from "vitest";
import { DEFAULTS, LIMITS } from "../../lib/core/limits.js";
import { FORMAT_VERSION, itemKey } from "../../lib/store/dynamo/item.js";
import { createMemoryStore } from "../support/memory-store.js";
import { KNOWN_FORMAT } from "../../lib/store/dynamo/predicates.js";
import { UnreadableRecord } from "../../lib/store/port.js";
import { tableOfTier } from "../support/tier.js";
import { FORMS } from "./differential/differential-queue.js";
import { mutateWhere } from "./mutate.js";
import type { EngineTable } from "./differential/differential-pair.js";
import { type outcomeOf, A, B, C, D, dynamoStoreOn, leaseId, LEASE_MS, POLICY, START_MS } from "./fixture.js";
import { QueueScene, READER } from "./queue-fixture.js";

/** Process `here` acts on its recent records, and doesn't see the writes of process `there`. */
interface Stage {
  readonly here: QueueScene;
  readonly there: QueueScene;
  /** Runs `act` just before the next write of this kind arrives. */
  readonly before: (write: keyof typeof FORMS, act: () => Promise<unknown>) => Promise<unknown>;
}

interface Example {
  readonly write: keyof typeof FORMS;
  readonly predicate: string;
  readonly why: string;
  readonly play: (stage: Stage) => Promise<Parameters<typeof outcomeOf>[0]>;
}

function pass({ here, there }: Stage, ms: number): void {
  here.at(ms);
  there.at(ms);
}

/** Process `here` acquires A and queues these, a millisecond apart. */
async function line(stage: Stage, ...ids: readonly string[]): Promise<void> {
  await stage.here.acquire(A);
  for (const [ms, id] of ids.entries()) await stage.here.at(ms + 1).queue(id);
  pass(stage, ids.length + 1);
}

const EXAMPLES: readonly Example[] = [
  {
    write: "renew",
    predicate: "h.#me.e <= :expires",
    why: "a process whose clock is ahead has renewed the lease meanwhile",
    async play({ here, there }) {
      await here.acquire(A);
      // Within a second: in seconds, the record's TTL stays the same.
      await there.at(20).renew(A);
      return here.at(10).renew(A);
    },
  },
  {
    write: "enqueue",
    predicate: "NOT (r7.i = :me)",
    why: "its id was cancelled meanwhile, and others after it",
    async play({ here, there }) {
      await here.acquire(A);
      for (let order = 1; order <= LIMITS.tombstonesMax; order++) await there.release(leaseId(order, order));
      return here.at(10).queue(leaseId(1, 1));
    },
  },
  {
    write: "join",
    predicate: "ug.i = :upgrader",
    why: "the reader that asked to become the writer has left, and another one has asked since",
    async play({ here, there }) {
      for (const id of [A, B, C]) await here.acquire(id, READER);
      const asked = { type: "mode", key: here.address.key, principal: "P", mode: "exclusive" } as const;
      await here.apply({ ...asked, leaseId: B, fencingToken: START_MS + 1 });
      await here.release(B);
      await there.apply({ ...asked, leaseId: A, fencingToken: START_MS });
      return here.acquire(D, READER);
    },
  },
  {
    write: "join",
    predicate: "x >= :ttl",
    why: "a shorter lease has followed the longer one",
    async play(stage) {
      const { here, there } = stage;
      await here.acquire(A, { ...READER, leaseMs: 600_000 });
      await there.release(A);
      pass(stage, 1);
      await there.acquire(C, READER);
      return here.acquire(B, { ...READER, leaseMs: 300_000 });
    },
  },
  {
    write: "touchWaiter",
    predicate: "attribute_exists(q[1].g.#me)",
    why: "who was ahead of it was offered the key meanwhile",
    async play(stage) {
      await line(stage, B, C, D);
      pass(stage, DEFAULTS.waiterTtlMs / 2 + 3);
      await stage.before("touchWaiter", () => stage.there.release(A));
      return stage.here.queue(C);
    },
  },
  {
    write: "touchWaiter",
    predicate: "x < :kept",
    why: "a long lease was granted meanwhile, and the record lives longer by it",
    async play(stage) {
      const { here, there } = stage;
      await here.acquire(A);
      await here.wait(A, B);
      const ms = LEASE_MS + POLICY.retentionMs;
      pass(stage, ms);
      await stage.before("touchWaiter", () => there.acquire(leaseId(9, ms), { leaseMs: LIMITS.leaseMaxMs }));
      return here.queue(B);
    },
  },
  {
    write: "decided",
    predicate: "v = :seen",
    why: "somebody came to wait meanwhile",
    async play(stage) {
      await stage.here.acquire(A);
      await stage.before("decided", () => stage.there.queue(B));
      return stage.here.queue(C, { priority: 5 });
    },
  },
  {
    write: "decided",
    predicate: "attribute_not_exists(qv)",
    why: "one who waits was heard of meanwhile, for the first time",
    async play(stage) {
      const { here, there } = stage;
      await line(stage, B, C, D);
      await here.release(A);
      pass(stage, 4 + LIMITS.keepAliveAfterMs);
      await there.queue(C);
      pass(stage, 4 + DEFAULTS.offerWindowMs);
      return here.queue(D);
    },
  },
];

describe("each predicate is needed", () => {
  it.each(EXAMPLES)("for the $write when $why: $predicate", async ({ write, predicate, play }) => {
    const here = new QueueScene(createMemoryStore({ policy: POLICY }));
    const wanted = await played({ here, there: new QueueScene(here.store, here.address), before: (_, act) => act() }, play);
    expect(await played(stageOn(await tableOfTier()), play)).toEqual(wanted);

    const table = await tableOfTier();
    const weakened = mutateWhere(table.client, FORMS[write], predicate);
    // A write that makes no sense without it is an error of the table.
    const weak = await played(stageOn(table), play).catch((error: unknown) => error);
    expect(weak).not.toEqual(wanted);
    expect(weakened(), "conditions that had it").toBeGreaterThan(0);
  });

  it("for what was decided when a newer version has written the record meanwhile: KNOWN_FORMAT", async () => {
    const items = async (table: EngineTable) => {
      const stage = stageOn(table);
      const documents = DynamoDBDocumentClient.from(table.client);
      const key = { TableName: table.tableName, Key: itemKey(stage.here.address) };
      const read = async () => (await documents.send(new GetCommand({ ...key, ConsistentRead: true }))).Item;
      await line(stage, B);
      let before: unknown;
      await stage.before("decided", async () => {
        const newer = { UpdateExpression: "SET fv = :newer", ExpressionAttributeValues: { ":newer": FORMAT_VERSION + 1 } };
        await documents.send(new UpdateCommand({ ...key, ...newer }));
        before = await read();
      });
      await stage.here.queue(C, { priority: 5 }).catch((error: unknown) => expect(error).toBeInstanceOf(UnreadableRecord));
      expect(before).toBeDefined();
      return { before, after: await read() };
    };
    const untouched = await items(await tableOfTier());
    expect(untouched.after).toEqual(untouched.before);
    const table = await tableOfTier();
    mutateWhere(table.client, FORMS.decided, KNOWN_FORMAT);
    const touched = await items(table);
    expect(touched.after).not.toEqual(touched.before);
  });
});

async function played(stage: Stage, play: Example["play"]) {
  const answer = await play(stage);
  return { answer, record: await stage.there.read() };
}

function stageOn({ client, calls, tableName }: EngineTable): Stage {
  const process = () => dynamoStoreOn({ calls, tableName }, () => 0);
  const here = new QueueScene(process());
  return {
    here,
    there: new QueueScene(process(), here.address),
    before: (write, act) => beforeNext(client, FORMS[write], act),
  };
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
