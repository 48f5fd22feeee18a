/** The same client with three backends: in memory, over HTTP to the real handler, and directly on the table, which the slow tier tests. */
import { ScanCommand } from "@aws-sdk/lib-dynamodb";
import { startGateway } from "../../../infra/local/gateway.js";
import { compose } from "../../../lambda/compose.js";
import { digestOf } from "../../../lib/core/canonical.js";
import { createLockClient as createTableClient } from "../../../lib/dynamodb.js";
import { type ClientOptions, type LockClient, createLockClient as createHttpClient } from "../../../lib/index.js";
import type { LogLine } from "../../../lib/service/log.js";
import { TABLE } from "../../../lib/store/dynamo/table.js";
import { createLockClient as createMemoryClient } from "../../../lib/testing.js";
import { type FreshTable, freshTable } from "../../support/engine.js";
import { isThorough } from "../../support/tier.js";

/** One service and its clients. */
export interface Backend {
  client(options?: ClientOptions): LockClient;
  /** Settles as `promise` does. The backend's time passes until then. */
  passing<T>(promise: Promise<T>): Promise<T>;
  /** The service's log lines. */
  readonly lines: readonly LogLine[];
  /** True if this JSON is stored on its own item beside the key's record. */
  isKeptApart(key: string, json: unknown): Promise<boolean>;
  close(): Promise<void>;
}

type Backends = readonly (readonly [name: string, open: () => Promise<Backend>])[];

/** The backend whose time is turned by the test. */
export const IN_MEMORY: Backends = [["in memory", openMemory]];
/** The backends whose time is real. */
export const IN_REAL_TIME: Backends = [
  ["over HTTP", openHttp],
  ["straight on the table", openTable],
];
/** The backends of the tier, by their names in test titles: the quick one has those of most users. */
export const BACKENDS: Backends = isThorough() ? [["straight on the table", openTable]] : [...IN_MEMORY, ["over HTTP", openHttp]];

async function openMemory(): Promise<Backend> {
  const { clock, store } = createMemoryClient();
  const lines: LogLine[] = [];
  return {
    client: (options) => createMemoryClient({ ...options, clock, store, log: (line) => void lines.push(line) }),
    passing: (promise) => clock.settle(promise),
    lines,
    isKeptApart: async (key, json) => (await store.readPayload({ namespace: "test", kind: "runs", key }, digestOf(json))) !== undefined,
    close: async () => undefined,
  };
}

/** The service behind the gateway, on its own table. */
async function openHttp(): Promise<Backend> {
  const table = await freshTable();
  const lines: LogLine[] = [];
  const handler = compose(table.env, { log: (line) => void lines.push(line) });
  const gateway = await startGateway({ handler, port: 0 });
  return {
    client: (options) => createHttpClient({ ...options, url: gateway.url }),
    passing: (promise) => promise,
    lines,
    isKeptApart: (key, json) => hasItem(table, `${key}/${digestOf(json)}`),
    async close() {
      await gateway.close();
      table.client.destroy();
    },
  };
}

/** The service within the client, on its own table. */
async function openTable(): Promise<Backend> {
  const table = await freshTable();
  const lines: LogLine[] = [];
  return {
    client: (options) => createTableClient({ ...options, ...table.place, log: (line) => void lines.push(line) }),
    passing: (promise) => promise,
    lines,
    isKeptApart: (key, json) => hasItem(table, `${key}/${digestOf(json)}`),
    close: async () => table.client.destroy(),
  };
}

/** The share of requests whose answer is lost: one in this many. */
const LOST_EVERY = 4;

/**
 * A client with two ways: the service behind the gateway, and its table. Every fourth answer of the service is lost after the request was
 * carried out, so the request is repeated straight on the table.
 */
export async function openBothWays(): Promise<Backend> {
  const table = await freshTable();
  const lines: LogLine[] = [];
  const log = (line: LogLine): void => void lines.push(line);
  const gateway = await startGateway({ handler: compose(table.env, { log }), port: 0 });
  let asked = 0;
  const losing: typeof fetch = async (...request) => {
    const response = await fetch(...request);
    if (++asked % LOST_EVERY === 0) throw new TypeError("fetch failed: the answer was lost");
    return response;
  };
  return {
    client: (options) => createTableClient({ ...options, ...table.place, log, via: "auto", url: gateway.url, fetch: losing }),
    passing: (promise) => promise,
    lines,
    isKeptApart: (key, json) => hasItem(table, `${key}/${digestOf(json)}`),
    async close() {
      await gateway.close();
      table.client.destroy();
    },
  };
}

async function hasItem({ client, tableName }: FreshTable, sortKey: string): Promise<boolean> {
  const query = {
    TableName: tableName,
    ConsistentRead: true,
    FilterExpression: "#key = :key",
    ExpressionAttributeNames: { "#key": TABLE.sortKey },
    ExpressionAttributeValues: { ":key": sortKey },
  };
  for (let start: Record<string, unknown> | undefined; ;) {
    const { Count, LastEvaluatedKey } = await client.send(new ScanCommand({ ...query, ExclusiveStartKey: start }));
    if (Count) return true;
    if (!LastEvaluatedKey) return false;
    start = LastEvaluatedKey;
  }
}
