/**
 * Growth: requests to the table and capacity units for one operation, as waiters, leases of one key, and keys become
 * more. Counted on an engine in simulated time, so the speed of the machine plays no part.
 */
import { type AttributeValue, GetItemCommand } from "@aws-sdk/client-dynamodb";
import { engineClient } from "../../infra/local/engine-client.js";
import { type Engine, startEngine } from "../../infra/local/engine.js";
import type { LockClient } from "../../lib/index.js";
import { SHARED_NAMESPACE } from "../../lib/service/caller.js";
import { itemKey } from "../../lib/store/dynamo/item.js";
import { type Meter, meterOnTable } from "./meter.js";
import { poster } from "../contest/poster.js";
import type { Plot, Report, Sizes } from "../report/report.js";
import { markdownTable } from "../report/table.js";

const WAITERS = [1, 2, 5, 10, 20, 50, 100] as const;
const LEASES = [1, 10, 50, 100, 150] as const;
const KEYS = [1, 100, 10_000, 500_000] as const;
const QUICK = { waiters: [1, 5], leases: [1, 10], keys: [1, 100] } as const;
const HOLD_MS = 50;
const HOUR_MS = 3_600_000;
/** The leases that the semaphore allows. */
const LIMIT = Math.max(...LEASES);
/** The operations that are counted, where they are repeated. */
const REPEATS = 20;
const APART_MS = 2000;
const BATCH = 25;
const BATCHES_AT_ONCE = 8;
const KEY = "checkout-service_ORDER_1231";
const A_LIST = "list of all held keys, by keys in the table";

/** The counts of one operation at a size. */
export interface GrowthPoint {
  readonly of: string;
  readonly size: number;
  readonly requests: number;
  readonly writeUnits: number;
  readonly readUnits: number;
}

/** Returns the table. @throws StartError if no engine can start. */
export async function growth({ isQuick, untilMs }: Sizes): Promise<Report> {
  const sizes = isQuick ? QUICK : { waiters: WAITERS, leases: LEASES, keys: KEYS };
  const engine = await startEngine({});
  const points: GrowthPoint[] = [];
  try {
    for (const size of sizes.waiters) {
      points.push(await count(engine, `waiters-${size}`, "a grant, by waiters of as many processes", size, waiting));
    }
    for (const size of sizes.leases) {
      points.push(await count(engine, `leases-${size}`, "acquire and release, by leases of the semaphore", size, besideLeases));
    }
    for (const size of sizes.keys) {
      points.push(
        await count(engine, "keys", "acquire and release of a fresh key, by keys in the table", size, besideKeys(engine, untilMs)),
      );
      points.push(await count(engine, "keys", A_LIST, points.at(-1)!.size, listing));
    }
  } finally {
    await engine.stop();
  }
  // A list takes a hundred times as many requests as the others.
  const drawn = points.filter(({ of }) => of !== A_LIST);
  const rows = points.map(({ of, size, requests, writeUnits, readUnits }) => [
    of,
    size.toLocaleString("en"),
    ...[requests, writeUnits, readUnits].map((each) => String(Number(each.toFixed(2)))),
  ]);
  return {
    tables: [markdownTable([["straight on the table, one", "size", "requests", "write units", "read units"], ...rows])],
    notes: [
      `Counted. Waiters all arrive within ${HOLD_MS} ms and hold the key for ${HOLD_MS} ms each; a write is charged by the size of the record, which contains its queue and its leases.`,
    ],
    plots: [
      plotOf("growth-requests", "requests to the table", drawn, ({ requests }) => requests),
      plotOf("growth-units", "write units", drawn, ({ writeUnits }) => writeUnits),
    ],
    figures: points,
  };
}

/** The operations since the meter was cleared, and how many others they ran beside. */
interface Counted {
  readonly operations: number;
  readonly size: number;
}

/** Runs operations beside as many others as `size` says. */
type Operations = (meter: Meter, size: number, tableName: string) => Promise<Counted>;

async function count({ endpoint }: Engine, tableName: string, of: string, wanted: number, run: Operations): Promise<GrowthPoint> {
  const meter = await meterOnTable({ endpoint, tableName, accessLogFormat: "" });
  try {
    const { operations, size } = await run(meter, wanted, tableName);
    const { writeUnits, readUnits } = meter.counts();
    const each = (total: number): number => total / operations;
    return { of, size, requests: each(meter.tableRequests()), writeUnits: each(writeUnits), readUnits: each(readUnits) };
  } finally {
    await meter.close();
  }
}

/** Each waiter is a process of its own, and wants the key once. */
async function waiting(meter: Meter, size: number): Promise<Counted> {
  const { clock, random } = meter;
  const clients = Array.from({ length: size }, () => meter.client());
  const use = async (client: LockClient, key: string): Promise<void> => {
    await clock.sleep(HOLD_MS * random.unit());
    const lease = await client.acquire(key, { waitMs: HOUR_MS });
    await clock.sleep(HOLD_MS);
    await lease.release();
  };
  const useAll = async (): Promise<void> => void (await Promise.all(clients.map((client) => use(client, KEY))));
  // A client's first request also reads the table's settings.
  await clock.settle(Promise.all(clients.map((client, index) => use(client, `warm:${index}`))));
  meter.clear();
  await clock.settle(useAll());
  return { operations: size, size };
}

async function besideLeases(meter: Meter, size: number): Promise<Counted> {
  const client = meter.client();
  const options = { limit: LIMIT, heartbeat: false, leaseMs: HOUR_MS };
  // The last lease is the one that is counted.
  for (let held = 1; held < size; held++) await meter.clock.settle(client.acquire(KEY, options));
  return repeat(meter, size, async () => void (await (await client.acquire(KEY, options)).release()));
}

function besideKeys({ endpoint }: Engine, untilMs: number): Operations {
  return async (meter, wanted, tableName) => {
    const client = meter.client();
    const cycle = async (key: string): Promise<void> => void (await (await client.acquire(key)).release());
    await meter.clock.settle(cycle(KEY));
    const size = await fill({ endpoint, tableName, keys: wanted, untilMs });
    let fresh = 0;
    return repeat(meter, size, () => cycle(`fresh:${wanted}:${++fresh}`));
  };
}

/** Reads all pages of the list. Keys that nobody holds any more are read too, until their records are deleted. */
async function listing(meter: Meter, size: number): Promise<Counted> {
  const client = meter.client();
  const readAll = async (): Promise<void> => {
    for (let page = await client.list({ max: 100 }); page.cursor !== undefined;)
      page = await client.list({ max: 100, cursor: page.cursor });
  };
  await meter.clock.settle(client.list({ max: 1 })); // A client's first request also reads the table's settings.
  meter.clear();
  await meter.clock.settle(readAll());
  return { operations: 1, size };
}

async function repeat(meter: Meter, size: number, operation: () => Promise<void>): Promise<Counted> {
  await meter.clock.settle(operation()); // A client's first request also reads the table's settings.
  meter.clear();
  for (let done = 0; done < REPEATS; done++) {
    // A key that is used again within a second takes another write (docs/decisions/019).
    await meter.clock.settle(meter.clock.sleep(APART_MS));
    await meter.clock.settle(operation());
  }
  return { operations: REPEATS, size };
}

interface Filling {
  readonly endpoint: string;
  readonly tableName: string;
  readonly keys: number;
  readonly untilMs: number;
}

/** Copies the record of {@link KEY} until the table has `keys` records or the time is up, and returns how many it has. */
async function fill({ endpoint, tableName, keys, untilMs }: Filling): Promise<number> {
  const keyOf = (key: string): Record<string, AttributeValue> =>
    Object.fromEntries(
      Object.entries(itemKey({ namespace: SHARED_NAMESPACE, kind: "locks", key })).map(([name, text]) => [name, { S: text }]),
    );
  const client = engineClient(endpoint);
  const { Item } = await client.send(new GetItemCommand({ TableName: tableName, Key: keyOf(KEY) }));
  client.destroy();
  if (!Item) throw new Error(`${tableName} has no record of ${KEY}`);
  const send = poster(endpoint, "BatchWriteItem");
  let next = 1;
  const worker = async (): Promise<void> => {
    while (next < keys && performance.now() < untilMs) {
      const first = next;
      next = Math.min(first + BATCH, keys);
      const copies = Array.from({ length: next - first }, (_, index) => ({ ...Item, ...keyOf(`ORDER_${first + index}`) }));
      const requests = copies.map((copy) => ({ PutRequest: { Item: copy } }));
      const { status, text } = await send(JSON.stringify({ RequestItems: { [tableName]: requests } }));
      if (status !== 200) throw new Error(text);
    }
  };
  await Promise.all(Array.from({ length: BATCHES_AT_ONCE }, worker));
  return next;
}

function plotOf(name: string, value: string, points: readonly GrowthPoint[], figure: (point: GrowthPoint) => number): Plot {
  return {
    name,
    title: `Growth: ${value}`,
    kind: "lines",
    value,
    across: "waiters, leases of the semaphore, or keys",
    points: points.map((point) => ({ group: point.of, series: point.of, x: point.size, y: figure(point) })),
  };
}
