/**
 * The use of AWS by an open tab of the console: its own data and its own polls, in simulated time, on a table that has what the case says.
 * Five minutes are counted, after which a tab does the same again: an hour is twelve times that.
 */
import { type AttributeValue, BatchWriteItemCommand, GetItemCommand } from "@aws-sdk/client-dynamodb";
import { type Handlers, handlersOf, PAID_POLL_MS } from "../../console/handlers.js";
import { ABOUT_POLL_MS, EXHAUSTED_POLL_MS, KEY_POLL_MS, poll } from "../../console/page/poll.js";
import { engineClient } from "../../infra/local/engine-client.js";
import { SHARED_NAMESPACE } from "../../lib/service/caller.js";
import { itemKey } from "../../lib/store/dynamo/item-key.js";
import { TABLE } from "../../lib/store/dynamo/table.js";
import { type Counts, type Meter, type MeterOptions, meterOnTable, meterOverHttp } from "./meter.js";

const MINUTE_MS = 60_000;
const COUNTED_MS = 5 * MINUTE_MS;
const HOUR_MS = 60 * MINUTE_MS;
/** The largest number of items that one request writes. */
const BATCH = 25;

/** A tab, and what the table has. */
export interface TabCase {
  readonly title: string;
  /** The data that the tab shows, and the interval of its requests in ms. It asks for the service's state too, and for runs that need a person. */
  readonly path: "locks" | "lock";
  readonly query: Readonly<Record<string, string>>;
  readonly everyMs: number;
  readonly held: number;
  readonly idle: number;
}

/** Every case, in the order of the page. */
export const TAB_CASES: readonly TabCase[] = [
  { title: "the list, 100 keys held", path: "locks", query: {}, everyMs: PAID_POLL_MS, held: 100, idle: 0 },
  { title: "the list, 20,000 idle keys", path: "locks", query: {}, everyMs: PAID_POLL_MS, held: 0, idle: 20_000 },
  {
    title: "a search that finds none of 5,000 held keys",
    path: "locks",
    query: { find: "nobody" },
    everyMs: PAID_POLL_MS,
    held: 5000,
    idle: 0,
  },
  { title: "one key", path: "lock", query: { key: keyOf(0) }, everyMs: KEY_POLL_MS, held: 1, idle: 0 },
];

/** An hour of a tab over HTTP and directly on a table, in the use of AWS. */
export interface TabRow {
  readonly title: string;
  readonly http: Counts;
  readonly direct: Counts;
}

/** Counts a case over HTTP and directly, on a table of its own. */
export async function tabRow(place: Omit<MeterOptions, "tableName">, tab: TabCase): Promise<TabRow> {
  const options = { ...place, tableName: `open-tab-${process.pid}-${unique++}` };
  const [http, direct] = [
    await hourOf(await meterOverHttp(options), options, tab, true),
    await hourOf(await meterOnTable(options), options, tab, false),
  ];
  return { title: tab.title, http, direct };
}

let unique = 0;

async function hourOf(meter: Meter, options: MeterOptions, tab: TabCase, isFirst: boolean): Promise<Counts> {
  try {
    if (isFirst) await fill(meter, options, tab);
    meter.clear();
    await watch(meter, tab);
    const { requests, writeUnits, readUnits, logBytes } = meter.counts();
    const hours = HOUR_MS / COUNTED_MS;
    return { requests: requests * hours, writeUnits: writeUnits * hours, readUnits: readUnits * hours, logBytes: logBytes * hours };
  } finally {
    await meter.close();
  }
}

/** Leaves the tab open for the counted time. It reads on: its first look, which doesn't, is not counted. */
async function watch(meter: Meter, { path, query, everyMs }: TabCase): Promise<void> {
  const { clock } = meter;
  const face: Handlers = handlersOf({ locks: meter.client(), where: "bench", canChange: false, pollMs: PAID_POLL_MS });
  const keep = (name: string, given: Readonly<Record<string, string>>, ms: number) =>
    poll({
      ask: (reader) => face.answers[name]?.(new URLSearchParams(given), reader) ?? Promise.reject(new Error(name)),
      tell: (result) => {
        if ("error" in result) throw result.error;
      },
      everyMs: ms,
      isIdle: () => false,
      later(delayMs, run) {
        const timer = clock.after(delayMs, run);
        return () => timer.cancel();
      },
    });
  const polls = [keep("about", {}, ABOUT_POLL_MS), keep("exhausted", {}, EXHAUSTED_POLL_MS), keep(path, { ...query, on: "1" }, everyMs)];
  await clock.settle(clock.sleep(COUNTED_MS));
  for (const { stop } of polls) stop();
}

function keyOf(order: number): string {
  return `checkout-service_ORDER_${String(order).padStart(6, "0")}`;
}

/** Fills the table: the keys are copies of one that is held, or that was used and released. */
async function fill(meter: Meter, { endpoint, tableName }: MeterOptions, { held, idle }: TabCase): Promise<void> {
  const locks = meter.client();
  const lease = await meter.clock.settle(locks.acquire(keyOf(0), { leaseMs: HOUR_MS, heartbeat: false }));
  if (idle > 0) await meter.clock.settle(lease.release());
  const client = engineClient(endpoint);
  const { Item: item = {} } = await client.send(new GetItemCommand({ TableName: tableName, Key: wireKey(keyOf(0)) }));
  for (let first = 1; first < held + idle; first += BATCH) {
    const orders = Array.from({ length: Math.min(BATCH, held + idle - first) }, (_, at) => first + at);
    const puts = orders.map((order) => ({ PutRequest: { Item: { ...item, ...wireKey(keyOf(order)) } } }));
    await client.send(new BatchWriteItemCommand({ RequestItems: { [tableName]: puts } }));
  }
  client.destroy();
}

function wireKey(key: string): Record<string, AttributeValue> {
  const { [TABLE.partitionKey]: partition = "", [TABLE.sortKey]: sort = "" } = itemKey({ namespace: SHARED_NAMESPACE, kind: "locks", key });
  return { [TABLE.partitionKey]: { S: partition }, [TABLE.sortKey]: { S: sort } };
}
