/** The requests of a limit on a table, for processes that each remember what they saw; the item's TTL and format. */
import { GetCommand, UpdateCommand } from "@aws-sdk/lib-dynamodb";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Take, Taken } from "../../lib/core/rate.js";
import type { Refusal } from "../../lib/core/errors.js";
import type { TableCalls } from "../../lib/store/dynamo/calls.js";
import { FORMAT_VERSION, itemKey } from "../../lib/store/dynamo/item.js";
import type { LimitStore } from "../../lib/store/port.js";
import { type FreshTable, freshTable } from "../support/engine.js";
import { dynamoStoreOn, POLICY, START_MS } from "./fixture.js";

const TEN = { rates: [{ count: 10, perMs: 1000, burst: 10 }], cost: 1, waitMs: 0 };

let table: FreshTable;
beforeAll(async () => {
  table = await freshTable();
});
afterAll(() => table.client.destroy());

let requests = { writes: 0, reads: 0 };

/** The limits of a process that has seen nothing. Its requests are counted. What a take replaces is drawn from `random`. */
function newProcess(random?: () => number): LimitStore {
  const counted: TableCalls = {
    ...table.calls,
    updateItem: (input) => ((requests.writes += 1), table.calls.updateItem(input)),
    getItem: (input) => ((requests.reads += 1), table.calls.getItem(input)),
  };
  return dynamoStoreOn({ calls: counted, tableName: table.tableName }, random).limits;
}

let keys = 0;
/** A limit that nobody has used, at a time that the test turns. */
class Scene {
  readonly name = { namespace: "limits", key: `partner_${++keys}` };
  ms = 0;

  take(by: LimitStore, take: Partial<Take> = {}): Promise<Taken | Refusal> {
    return by.take(this.name, { ...TEN, ...take }, () => ({ earliestMs: START_MS + this.ms, latestMs: START_MS + this.ms + 2 }));
  }
}

/** Counts the requests of `work`. */
async function counting(work: () => Promise<unknown>): Promise<typeof requests> {
  requests = { writes: 0, reads: 0 };
  await work();
  return requests;
}

describe("the requests of a take", () => {
  it("are one write, of a limit that is full: also by a process that has never seen it", async () => {
    const scene = new Scene();
    const known = newProcess();
    for (const by of [known, known, newProcess(), known]) {
      scene.ms += 5000;
      expect(await counting(() => scene.take(by))).toEqual({ writes: 1, reads: 0 });
    }
  });

  it("are one write, of a limit in use, and two by one in seven processes that have never seen it", async () => {
    const scene = new Scene();
    const known = newProcess(() => 0);
    await scene.take(known);
    expect(await counting(() => scene.take(known))).toEqual({ writes: 1, reads: 0 });
    const writes = [];
    for (let place = 0; place < 7; place++) {
      const fresh = new Scene();
      await fresh.take(newProcess(() => 0));
      writes.push((await counting(() => fresh.take(newProcess(() => place / 7)))).writes);
    }
    expect(writes).toEqual([2, 1, 1, 1, 1, 1, 1]);
  });

  it("are one write of whoever comes after the second of these two, until the limit is full again", async () => {
    const scene = new Scene();
    await scene.take(newProcess(() => 0));
    await scene.take(newProcess(() => 0));
    for (let place = 0; place < 7; place++)
      expect(await counting(() => scene.take(newProcess(() => place / 7)))).toEqual({ writes: 1, reads: 0 });
  });

  it("are none, until there can be room, by a process that was refused", async () => {
    const scene = new Scene();
    const known = newProcess();
    await scene.take(known, { cost: 10 });
    let granted = 0;
    const { writes } = await counting(async () => {
      for (let step = 0; step < 200; step++) {
        scene.ms += 20;
        if ((await scene.take(known)).ok) granted++;
      }
    });
    expect(granted).toBe(40); // 10 a second in 4 s.
    expect(writes).toBe(granted); // 0.2 a decision.
  });

  it("are at most 1.1 writes, by eight processes at once that wait", async () => {
    const scene = new Scene();
    const processes = Array.from({ length: 8 }, () => newProcess());
    const take = { rates: [{ count: 10, perMs: 1000, burst: 5 }], waitMs: 60_000 };
    await Promise.all(processes.map((by) => scene.take(by, take)));
    const starts: number[] = [];
    const { writes } = await counting(async () => {
      for (let round = 0; round < 15; round++) {
        scene.ms += 30;
        const answers = await Promise.all(processes.map((by) => scene.take(by, take)));
        starts.push(...answers.map((answer) => scene.ms + (answer.ok ? answer.startInMs : Number.NaN)));
      }
    });
    expect(writes / starts.length).toBeLessThanOrEqual(1.1);
    const gaps = starts.toSorted((a, b) => a - b).map((atMs, index, all) => atMs - (all[index - 1] ?? atMs - 100));
    expect(new Set(gaps)).toEqual(new Set([100]));
  });
});

describe("of 25 processes at once that have never seen the limit", () => {
  const grantedOf = async (change: (condition: string) => string): Promise<number> => {
    const updateItem: TableCalls["updateItem"] = (input) =>
      table.calls.updateItem({ ...input, ConditionExpression: change(input.ConditionExpression) });
    const scene = new Scene();
    const unknowing = () => dynamoStoreOn({ calls: { ...table.calls, updateItem }, tableName: table.tableName }).limits;
    const processes = Array.from({ length: 25 }, unknowing);
    const answers = await Promise.all(processes.map((by) => scene.take(by)));
    return answers.filter(({ ok }) => ok).length;
  };

  it("ten are granted, as there is room", async () => {
    expect(await grantedOf((condition) => condition)).toBe(10);
  });

  it("control: more are, if the write takes every guess for right", async () => {
    expect(await grantedOf((condition) => `(${condition}) OR attribute_not_exists(nothing)`)).toBeGreaterThan(10);
  });
});

describe("the item", () => {
  const read = async ({ name }: Scene) =>
    (
      await table.client.send(
        new GetCommand({ TableName: table.tableName, Key: itemKey({ ...name, kind: "limits" }), ConsistentRead: true }),
      )
    ).Item;

  const candidatesIn = (item: object = {}) => Object.entries(item).flatMap(([name, value]) => (/^g\d/.test(name) ? [Number(value)] : []));

  it("outlives the longest time until the limit is full by the retention", async () => {
    const scene = new Scene();
    const rates = [{ count: 1, perMs: 86_400_000, burst: 3 }];
    const by = newProcess();
    for (const waitMs of [0, 0, 0, 86_400_000]) await scene.take(by, { rates, waitMs });
    const item = await read(scene);
    const fullAtSec = Math.max(...candidatesIn(item)) / 1e6;
    expect(Number(item?.["x"]) - fullAtSec).toBeGreaterThanOrEqual(POLICY.retentionMs / 1000 - 1);
  });

  it("has no bucket left of a rate that is no longer given", async () => {
    const scene = new Scene();
    const by = newProcess();
    await scene.take(by, { rates: [1, 2, 3].map((seconds) => ({ count: 9, perMs: 1000 * seconds, burst: 9 })) });
    scene.ms += 10_000;
    const rates = [{ count: 9, perMs: 1000, burst: 9 }];
    expect(await scene.take(newProcess(), { rates })).toMatchObject({ ok: true, remaining: [8] });
    expect(candidatesIn(await read(scene))).toEqual([(START_MS + scene.ms + 2) * 1000 + Math.ceil(1_000_000 / 9)]);
  });

  it("of a newer format is neither read nor changed", async () => {
    const scene = new Scene();
    await scene.take(newProcess());
    await table.client.send(
      new UpdateCommand({
        TableName: table.tableName,
        Key: itemKey({ ...scene.name, kind: "limits" }),
        UpdateExpression: "SET fv = :newer",
        ExpressionAttributeValues: { ":newer": FORMAT_VERSION + 1 },
      }),
    );
    const before = await read(scene);
    await expect(scene.take(newProcess())).rejects.toMatchObject({ code: "newer-format" });
    await expect(newProcess().read(scene.name)).rejects.toMatchObject({ code: "newer-format" });
    expect(await read(scene)).toEqual(before);
  });
});
