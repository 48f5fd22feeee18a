/**
 * Contended keys in simulated time, without faults: the requests to the table and to the service that they cost. The counts are the same in
 * every run. Each process is a direct client of one table in memory, with its own recent-records cache.
 */
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { LeaseIds } from "../../lib/client/ask/lease-ids.js";
import { createClient } from "../../lib/client/client.js";
import type { LockClient } from "../../lib/client/calls/lock-client.js";
import { wrapped } from "../../lib/core/api/call.js";
import type { ServiceApi } from "../../lib/core/api/runs.js";
import { tableClocks } from "../../lib/service/clocks.js";
import { lockService } from "../../lib/service/service.js";
import { createDynamoStore } from "../../lib/store/dynamo/dynamo-store.js";
import { sdkCalls } from "../support/sdk-calls.js";
import { watchTableClock } from "../../lib/store/dynamo/table-clock.js";
import { TABLE } from "../../lib/store/dynamo/table.js";
import { NAMESPACE, POLICY } from "./backend.js";
import { DynamoTable } from "../../lib/testing/table/table.js";
import { TableClient } from "./dynamo/table-client.js";
import { drawFaults } from "./faults.js";
import { Random } from "./random.js";
import { Process, World } from "./world.js";

const START_MS = Date.UTC(2027, 0, 1);
const TABLE_NAME = "simulated";
const MOST_MS = 60 * 60_000;

/** The requests of one scenario. */
export interface Cost {
  /** Leases granted, or renewed in the scenario of heartbeats. */
  readonly grants: number;
  readonly writes: number;
  readonly reads: number;
  /** Requests that a client over HTTP would send to the service. */
  readonly calls: number;
  /** Simulated time. */
  readonly lastedMs: number;
}

/** A contended key. */
export interface Crowd {
  readonly processes: number;
  /** Callers in each process. */
  readonly callers: number;
  /** Leases that each caller takes, one after the other. */
  readonly rounds: number;
  readonly holdMs: number;
  /** The time between the arrivals of two processes, in ms, while one more holds the key. @default 0: all come at once, to a free key */
  readonly arrivalMs?: number;
}

/** Lets every caller take the key as often as it wants, and counts the requests. */
export async function contend({ processes, callers, rounds, holdMs, arrivalMs = 0 }: Crowd): Promise<Cost> {
  const { world, clientOf, cost } = scene();
  let grants = 0;
  let left = processes * callers;
  const use = async (client: LockClient, process: Process, forMs: number): Promise<void> => {
    const lease = await client.acquire("ORDER_1", { waitMs: MOST_MS });
    grants++;
    await new Promise<void>((resolve) => void process.after(forMs, resolve));
    await lease.release();
  };
  const caller = async (client: LockClient, process: Process): Promise<void> => {
    for (let round = 0; round < rounds; round++) await use(client, process, holdMs);
    left--;
  };
  if (arrivalMs > 0) {
    const process = new Process(world);
    void use(clientOf(process), process, processes * arrivalMs);
  }
  for (let index = 0; index < processes; index++) {
    const process = new Process(world);
    const client = clientOf(process);
    const come = (): void => {
      for (let order = 0; order < callers; order++) void caller(client, process);
    };
    if (arrivalMs > 0) process.after((index + 1) * arrivalMs, come);
    else come();
  }
  await world.run(START_MS + MOST_MS, () => left === 0);
  return cost(grants);
}

/** Lets processes that have seen nothing take one key, one after the other, each `pauseMs` after the one before. */
export async function takeTurns(processes: number, pauseMs: number): Promise<Cost> {
  const { world, clientOf, cost } = scene();
  let grants = 0;
  for (let index = 0; index < processes; index++) {
    void clientOf(new Process(world)).withLock("ORDER_1", () => Promise.resolve(void grants++));
    await world.run(world.nowMs + pauseMs);
  }
  return cost(grants);
}

/** Holds this many leases of different keys in one process for a minute, and counts the heartbeats. */
export async function hold(leases: number): Promise<Cost> {
  const { world, clientOf, cost } = scene();
  const client = clientOf(new Process(world));
  let held = 0;
  for (let index = 0; index < leases; index++) void client.acquire(`ORDER_${index}`).then(() => held++);
  await world.run(START_MS + MOST_MS, () => held === leases);
  const before = cost(0);
  await world.run(world.nowMs + 60_000);
  const after = cost(leases);
  return {
    ...after,
    writes: after.writes - before.writes,
    reads: after.reads - before.reads,
    calls: after.calls - before.calls,
    lastedMs: 60_000,
  };
}

/** An empty table, its clients, and the counts of their requests. */
function scene() {
  const world = new World(START_MS);
  const random = new Random(1);
  let [writes, reads, calls] = [0, 0, 0];
  const table = new DynamoTable({ tableName: TABLE_NAME, ...TABLE }, () => world.nowMs);
  const shared = {
    ...{ world, random, table, clockErrorMs: 0, inTransaction: new Set<string>() },
    faultProfile: { mix: drawFaults(random), isFoul: false },
    deciding: () => undefined,
    onMisuse: (what: string) => {
      throw new Error(what);
    },
    onTried: () => void writes++,
    onDone: () => undefined,
  };
  const get = table.get.bind(table);
  table.get = (input) => {
    reads++;
    return get(input);
  };

  function clientOf(process: Process): LockClient {
    const client = new TableClient(shared, process) as unknown as DynamoDBClient;
    const unit = (): number => random.unit();
    const store = createDynamoStore({ calls: sdkCalls(client), tableName: TABLE_NAME, policy: POLICY, clock: process, random: unit });
    const clocks = tableClocks(process, watchTableClock(client, process));
    const caller = { principal: `${NAMESPACE}/direct`, namespace: NAMESPACE, requestId: "direct" };
    const service = lockService({ store, log: () => undefined, clock: process, exposeCause: true }, caller, clocks);
    return createClient({
      api: counted(service),
      clock: process,
      random: unit,
      ids: new LeaseIds(process, (count) => random.bytes(count)),
    });
  }

  /** The operations; each call counts as a request to the service. */
  function counted(service: ServiceApi): ServiceApi {
    return wrapped(service, (next) => (...asked) => {
      calls++;
      return next(...asked);
    });
  }

  const cost = (grants: number): Cost => ({ grants, writes, reads, calls, lastedMs: world.nowMs - START_MS });
  return { world, clientOf, cost };
}
