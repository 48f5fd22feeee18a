/**
 * The latency of a lock: pairs of acquire and release on uncontended keys, over three ways to reach the records. The
 * engine and the service are separate processes, so they share the machine's cores with the benchmark.
 */
import { fileURLToPath } from "node:url";
import { createTable } from "../infra/local/create-table.js";
import { engineClient } from "../infra/local/engine-client.js";
import { startProcess } from "../infra/local/engine-process.js";
import type { Engine } from "../infra/local/engine.js";
import { startEngine } from "../infra/local/engine.js";
import type { LockClient } from "../lib/client/lock-client.js";
import { createClient } from "../lib/client/client.js";
import { systemRuntime } from "../lib/client/runtime.js";
import { createPolicy } from "../lib/core/policy.js";
import { systemClock } from "../lib/core/time.js";
import { createLockClient as createTableClient } from "../lib/dynamodb.js";
import { createLockClient as createHttpClient, key } from "../lib/index.js";
import { tableClocks } from "../lib/service/clocks.js";
import { lockService } from "../lib/service/service.js";
import { createMemoryStore } from "../lib/store/memory-store.js";
import { markdownTable, median, milliseconds } from "./table.js";

/** The ways alternate, so that other load on the machine affects all of them alike. */
const ROUNDS = 3;
const ROUND_MS = 1500;
const WARM_UP_MS = 500;
const IN_FLIGHT = [1, 16];
/** The keys for each level of concurrency. The first pair on a key creates its item; the others find it. */
const KEYS = 50;
const TABLE_NAME = "holdfast";
const SERVICE = fileURLToPath(new URL("../infra/local/start.ts", import.meta.url));
const SERVICE_START_MS = 30_000;

/** A way to reach the records, and the figures of its pairs. */
interface Way {
  readonly title: string;
  readonly client: LockClient;
}

/** Returns the table. @throws StartError if the engine or the service can't start. */
export async function locks(): Promise<string> {
  const engine = await startEngine({});
  const table = engineClient(engine.endpoint);
  try {
    await createTable(table, TABLE_NAME);
    const service = await startService(engine);
    try {
      return await compare([
        { title: "in memory", client: memoryClient() },
        { title: "straight on the table", client: createTableClient({ tableName: TABLE_NAME, client: table }) },
        { title: "over HTTP", client: createHttpClient({ url: `http://127.0.0.1:${service.port}` }) },
      ]);
    } finally {
      await service.stop();
    }
  } finally {
    table.destroy();
    await engine.stop();
  }
}

async function compare(ways: readonly Way[]): Promise<string> {
  const figures = ways.flatMap(({ title, client }) =>
    IN_FLIGHT.map((inFlight) => ({ title, client, inFlight, latenciesMs: [] as number[] })),
  );
  for (const { client, inFlight } of figures) await pairs(client, inFlight, WARM_UP_MS);
  for (let round = 0; round < ROUNDS; round++) {
    for (const { client, inFlight, latenciesMs } of figures) for (const ms of await pairs(client, inFlight, ROUND_MS)) latenciesMs.push(ms);
  }
  await Promise.all(ways.map(({ client }) => client.close()));

  const perSecond = ({ latenciesMs }: { readonly latenciesMs: readonly number[] }): number =>
    latenciesMs.length / ((ROUNDS * ROUND_MS) / 1000);
  const rows = figures.map((figure) => {
    const direct = figures.find(({ title, inFlight }) => title === "straight on the table" && inFlight === figure.inFlight) ?? figure;
    const ratio = perSecond(figure) / perSecond(direct);
    return [
      figure.title,
      String(figure.inFlight),
      perSecond(figure).toFixed(0),
      milliseconds(median(figure.latenciesMs)),
      `${ratio.toPrecision(2)}×`,
    ];
  });
  return markdownTable([["acquire + release", "in flight", "pairs/s", "median", "pairs/s, against the table"], ...rows]);
}

/** Runs pairs for `lastsMs` and returns the time of each. @throws Error if a key was held, although no other client uses it. */
async function pairs(client: LockClient, inFlight: number, lastsMs: number): Promise<readonly number[]> {
  const latenciesMs: number[] = [];
  const endMs = performance.now() + lastsMs;
  const fly = async (flight: number): Promise<void> => {
    for (let count = 0; performance.now() < endMs; count++) {
      const beganMs = performance.now();
      const lease = await client.tryAcquire(key("BENCH", flight, count % KEYS));
      if (!lease) throw new Error(`BENCH_${flight}_${count % KEYS} is held`);
      await lease.release();
      latenciesMs.push(performance.now() - beganMs);
    }
  };
  await Promise.all(Array.from({ length: inFlight }, (_, flight) => fly(flight)));
  return latenciesMs;
}

/** The whole client and service, on records in memory. */
function memoryClient(): LockClient {
  const store = createMemoryStore({ policy: createPolicy() });
  const caller = { principal: "bench", namespace: "bench", requestId: "bench" };
  return createClient(
    systemRuntime(
      lockService(
        { store, log: () => undefined, clock: systemClock },
        caller,
        tableClocks(systemClock, () => ({ lowMs: systemClock.wallMs(), highMs: systemClock.wallMs() })),
      ),
    ),
  );
}

/** Starts the service as `npm start` does: behind the local gateway, on the same engine. */
export function startService({ endpoint }: Engine): ReturnType<typeof startProcess> {
  return startProcess({
    name: "of the lock service",
    command: "env",
    args: (port) => [
      `PORT=${port}`,
      `DYNAMODB_ENDPOINT=${endpoint}`,
      "HOLDFAST_TABLE=",
      "HOLDFAST_ENGINE=",
      process.execPath,
      ...process.execArgv,
      SERVICE,
    ],
    startMs: SERVICE_START_MS,
  });
}
