/**
 * Clients on a real table, over HTTP or directly, with counts of everything that AWS charges for: requests at the
 * client, invocations at the gateway, units at the engine, bytes where the logs are written. As on AWS, an environment
 * of a function serves one request at a time and remembers only its own requests.
 */
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { createTable } from "../../infra/local/create-table.js";
import { engineClient } from "../../infra/local/engine-client.js";
import { startGateway } from "../../infra/local/gateway.js";
import { compose } from "../../lambda/compose.js";
import { type Invocation, aliasOf } from "../../lambda/function-url.js";
import type { HttpEvent, HttpResult } from "../../lambda/http.js";
import { printed } from "../../lambda/printed.js";
import { dutyOf } from "../../lambda/routes.js";
import { LeaseIds } from "../../lib/client/ask/lease-ids.js";
import { createClient } from "../../lib/client/client.js";
import { httpApi } from "../../lib/client/wire/http.js";
import { createPolicy } from "../../lib/core/policy.js";
import type { ServiceApi } from "../../lib/core/api/runs.js";
import type { LockClient } from "../../lib/index.js";
import type { AgentDeps, Tell } from "../../lib/service/agent.js";
import { SHARED_NAMESPACE } from "../../lib/service/caller.js";
import { tableClocks } from "../../lib/service/clocks.js";
import { lockService } from "../../lib/service/service.js";
import { createDynamoStore } from "../../lib/store/dynamo/dynamo-store.js";
import { sdkCalls } from "../../test/support/sdk-calls.js";
import { createSleeperStore } from "../../lib/store/dynamo/sleeper-store.js";
import type { LockStore, SleeperStore } from "../../lib/store/port.js";
import { watchTableClock } from "../../lib/store/dynamo/table-clock.js";
import { Random } from "../../test/simulation/random.js";
import { engineCalls } from "../../test/support/engine.js";
import { startFaultProxy } from "../../test/support/fault-proxy.js";
import { accessLineBytes, lineBytes } from "./log-bytes.js";
import { QuietClock } from "./quiet-clock.js";

/**
 * The network latency, in ms one way: uniform between half and one and a half times that. An assumption; only the idle
 * times of contended keys depend on it.
 */
export const ONE_WAY_MS = { toTheApi: 8, toTheTable: 2 } as const;

/** The use of AWS. */
export interface Counts {
  /** HTTP requests, each of them an invocation. */
  readonly requests: number;
  readonly writeUnits: number;
  readonly readUnits: number;
  /** The bytes in both log groups. */
  readonly logBytes: number;
}

/** Clients whose use of AWS is counted. */
export interface Meter {
  readonly clock: QuietClock;
  readonly random: Random;
  /** Creates a client in its own process. */
  client(): LockClient;
  /** The counts since the start, or since `clear`. */
  counts(): Counts;
  /** The requests to the table since then. */
  tableRequests(): number;
  clear(): void;
  close(): Promise<void>;
}

/** Clients over HTTP, of a service whose agent wakes sleepers. */
export interface MeterOverHttp extends Meter {
  /** Returns the parts of an agent in its own process, which tells by `tell`. Its use of AWS is counted, but for its invocations. */
  agent(tell: Tell): AgentDeps;
}

/** The place of the records. */
export interface MeterOptions {
  /** The URL of an engine. */
  readonly endpoint: string;
  readonly tableName: string;
  /** The API's access log format. */
  readonly accessLogFormat: string;
  /** True for clients that call a function URL: one function serves all their requests, and there is no access log. @default false */
  readonly byFunctionUrl?: boolean;
}

const ACCOUNT = "111122223333";
const SEED = 7;

/** As long as API Gateway's request ids. */
const REQUEST_ID = "JKJaXmPLvHcESHA=";

/** Returns the id of a role, as long as IAM's. */
function roleId(order: number): string {
  return `AROAEXAMPLE${String(order).padStart(10, "0")}`;
}

interface Wire {
  readonly clock: QuietClock;
  readonly random: Random;
  /** Waits for the latency of a message. */
  travel(oneWayMs: number): Promise<void>;
}

function wireOf(clock: QuietClock, random: Random): Wire {
  return { clock, random, travel: (oneWayMs) => clock.sleep(oneWayMs * random.between(0.5, 1.5)) };
}

/** A client of the engine whose messages have latency. */
function tableClient(endpoint: string, { clock, travel }: Wire): DynamoDBClient {
  const client = engineClient(endpoint);
  client.middlewareStack.add(
    (next) => async (args) => {
      await travel(ONE_WAY_MS.toTheTable);
      clock.sent();
      const answer = await next(args).finally(() => clock.arrived());
      await travel(ONE_WAY_MS.toTheTable);
      return answer;
    },
    { step: "initialize" },
  );
  return client;
}

/** The table's clock: this clock, in whole seconds. The SDK would correct its own clock by it, so the SDK gets the engine's. */
function tableTime(client: DynamoDBClient, clock: QuietClock): ReturnType<typeof watchTableClock> {
  const time = watchTableClock(client, clock);
  const engines = new WeakMap<Headers, string | undefined>();
  client.middlewareStack.add(
    (next) => async (args) => {
      const answer = await next(args);
      const { headers } = answer.response as Response;
      engines.set(headers, headers["date"]);
      headers["date"] = new Date(clock.wallMs()).toUTCString();
      return answer;
    },
    { step: "deserialize", priority: "low" },
  );
  const restore = ({ headers }: Response): void => void (headers["date"] = engines.get(headers));
  client.middlewareStack.add(
    (next) => async (args) => {
      try {
        const answer = await next(args);
        restore(answer.response as Response);
        return answer;
      } catch (error) {
        const { $response } = error as { readonly $response?: Response };
        if ($response) restore($response);
        throw error;
      }
    },
    { step: "deserialize", priority: "high" },
  );
  return time;
}

/** The engine's response, as the SDK returns it. */
interface Response {
  readonly headers: Headers;
}
type Headers = Record<string, string | undefined>;

/** The parts that both ways share: an engine that counts, and a table on it. */
async function counting({ endpoint, tableName }: MeterOptions) {
  const direct = engineClient(endpoint);
  await createTable(direct, tableName);
  direct.destroy();
  const proxy = await startFaultProxy(endpoint);
  const wire = wireOf(new QuietClock(), new Random(SEED));
  const clients: DynamoDBClient[] = [];
  const table = (): DynamoDBClient => {
    const client = tableClient(proxy.endpoint, wire);
    clients.push(client);
    return client;
  };
  const storeOn = (client: DynamoDBClient): LockStore =>
    createDynamoStore({
      calls: sdkCalls(client, wire.clock),
      tableName,
      policy: createPolicy(),
      clock: wire.clock,
      random: () => wire.random.unit(),
    });
  // Ids of the same millisecond are ordered by their random part, so that part too must be the same in every run.
  const bytes = (count: number): Uint8Array => Uint8Array.from({ length: count }, () => wire.random.whole(0, 255));
  const clientOf = (api: ServiceApi): LockClient =>
    createClient({ api, clock: wire.clock, random: () => wire.random.unit(), ids: new LeaseIds(wire.clock, bytes) });
  const tableRequests = (): number => Object.values(proxy.ledger.requests).reduce((total, requests) => total + requests, 0);
  const close = async (): Promise<void> => {
    for (const client of clients) client.destroy();
    await proxy.close();
  };
  return { proxy, wire, table, storeOn, clientOf, tableRequests, close };
}

/** Creates clients over HTTP. */
// Over 60 lines: a server and its meters start and stop together.
export async function meterOverHttp(options: MeterOptions): Promise<MeterOverHttp> {
  const { proxy, wire, table, storeOn, clientOf, tableRequests, close } = await counting(options);
  const { clock, random, travel } = wire;
  let requests = 0;
  let logBytes = 0;
  let clients = 0;

  const print = (line: object): void => void (logBytes += lineBytes(line));
  const sleepers = sleepersAt(proxy.endpoint, options.tableName, clock);
  const { byFunctionUrl = false } = options;
  // As the construct sets them (infra/function-url.ts).
  const mount = byFunctionUrl && { HOLDFAST_MOUNT: "function-url", HOLDFAST_SERVER_WAIT_MS: "0" };
  const environment = (): ReturnType<typeof compose> =>
    compose({ HOLDFAST_TABLE: options.tableName, ...mount }, { store: storeOn(table()), sleepers, clock, print });
  const idle = new Map<string, ReturnType<typeof compose>[]>();
  async function invoke(event: HttpEvent, invocation: Invocation | undefined): Promise<HttpResult> {
    const pool = byFunctionUrl ? "url" : dutyOf(event.routeKey);
    const free = idle.get(pool) ?? [];
    idle.set(pool, free);
    const handler = free.pop() ?? environment();
    const result = await handler(event, invocation);
    free.push(handler);
    if (!byFunctionUrl) logBytes += accessLineBytes(options.accessLogFormat, event.routeKey, result);
    return result;
  }
  const gateway = await startGateway({
    port: 0,
    clock,
    alias: byFunctionUrl ? aliasOf({}) : undefined,
    async handler(event, invocation) {
      clock.arrived();
      try {
        const { userId } = (event.requestContext as unknown as { authorizer: { iam: { userId: string } } }).authorizer.iam;
        const authorizer = { iam: { accountId: ACCOUNT, userId: `${userId}:session` } };
        const requestContext = { ...event.requestContext, requestId: REQUEST_ID, authorizer } as HttpEvent["requestContext"];
        return await invoke({ ...event, requestContext }, invocation);
      } finally {
        clock.sent();
      }
    },
  });
  const send: typeof fetch = async (...request) => {
    requests++;
    await travel(ONE_WAY_MS.toTheApi);
    clock.sent();
    const answer = await whole(fetch(...request)).finally(() => clock.arrived());
    await travel(ONE_WAY_MS.toTheApi);
    return answer;
  };
  return {
    clock,
    random,
    client: () => clientOf(httpApi({ url: gateway.url, fetch: send, headers: { "x-holdfast-principal": roleId(++clients) } })),
    counts: () => ({ requests, writeUnits: proxy.ledger.writeUnits, readUnits: proxy.ledger.readUnits, logBytes }),
    tableRequests,
    agent(tell) {
      const client = table();
      const clocks = tableClocks(clock, tableTime(client, clock));
      const onFailure = (error: unknown): never => {
        throw error;
      };
      return {
        store: storeOn(client),
        sleepers,
        tell,
        isRunning: async () => true,
        clocks,
        clock,
        log: (line) => print(printed(line, [])),
        onFailure,
      };
    },
    clear() {
      requests = 0;
      logBytes = 0;
      proxy.ledger.clear();
    },
    async close() {
      await gateway.close();
      await close();
    },
  };
}

/** The sleepers of the table, whose requests are in transit on the clock. */
function sleepersAt(endpoint: string, tableName: string, clock: QuietClock): SleeperStore {
  const store = createSleeperStore({ calls: engineCalls(endpoint), tableName, region: async () => "us-east-1" });
  const counted = async <T>(asked: Promise<T>): Promise<T> => {
    clock.sent();
    return asked.finally(() => clock.arrived());
  };
  return {
    put: (sleeper) => counted(store.put(sleeper)),
    list: (after) => counted(store.list(after)),
    read: (address, leaseId) => counted(store.read(address, leaseId)),
    delete: (sleeper) => counted(store.delete(sleeper)),
  };
}

/** Returns the response after its body has arrived. */
async function whole(answer: ReturnType<typeof fetch>): ReturnType<typeof fetch> {
  const { status, headers, ...rest } = await answer.then(async (response) => ({
    status: response.status,
    headers: response.headers,
    text: await response.text(),
  }));
  return new globalThis.Response(rest.text === "" ? null : rest.text, { status, headers });
}

/** Creates clients directly on the table. They don't log by default. */
export async function meterOnTable(options: MeterOptions): Promise<Meter> {
  const { proxy, wire, table, storeOn, clientOf, tableRequests, close } = await counting(options);
  const { clock, random } = wire;
  const caller = { principal: "direct", namespace: SHARED_NAMESPACE, requestId: "direct" };
  return {
    clock,
    random,
    client() {
      const client = table();
      const clocks = tableClocks(clock, tableTime(client, clock));
      return clientOf(lockService({ store: storeOn(client), log: () => undefined, clock }, caller, clocks));
    },
    counts: () => ({ requests: 0, writeUnits: proxy.ledger.writeUnits, readUnits: proxy.ledger.readUnits, logBytes: 0 }),
    tableRequests,
    clear: () => proxy.ledger.clear(),
    close,
  };
}
