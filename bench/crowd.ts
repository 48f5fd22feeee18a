/**
 * A crowd in one process: callers wait for one key until they time out, while leases of other keys are renewed. The
 * benchmark measures the longest time for which the event loop was blocked, and the heap that each caller takes.
 */
import { type IntervalHistogram, monitorEventLoopDelay } from "node:perf_hooks";
import { setImmediate as nextTurn } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { createClient } from "../lib/client/client.js";
import type { LockClient } from "../lib/client/calls/lock-client.js";
import { systemRuntime } from "../lib/client/runtime.js";
import { createPolicy } from "../lib/core/policy.js";
import { systemClock } from "../lib/core/time.js";
import { oneClock } from "../lib/service/clocks.js";
import { lockService } from "../lib/service/service.js";
import { createStoreInMemory } from "../lib/testing/served-table.js";
import type { Report, Sizes } from "./report/report.js";
import { markdownTable } from "./report/table.js";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

const SIZES = [1000, 10_000, 100_000] as const;
/** Callers that arrive in one turn of the event loop. */
const ARRIVALS_A_TURN = 200;
const WAIT_MS = 5000;
const OTHERS = 20;
const CALLER = { principal: "bench", namespace: "default", requestId: "bench" };

/** The costs of a crowd to its process. */
export interface CrowdFigures {
  readonly size: number;
  readonly longestBlockMs: number;
  readonly bytesEach: number;
  readonly lostLeases: number;
}

/** Returns the table of a crowd's costs to its process. */
export async function crowd({ isQuick }: Sizes): Promise<Report> {
  const figures: CrowdFigures[] = [];
  for (const size of isQuick ? SIZES.slice(0, 2) : SIZES) figures.push(await measure(size));
  const rows = figures.map(({ size, longestBlockMs, bytesEach, lostLeases }) => [
    ...[size.toLocaleString("en"), `${Math.round(longestBlockMs)} ms`, `${(bytesEach / 1024).toFixed(1)} KB`, `${lostLeases}`],
  ]);
  const head = ["callers that wait", "longest block of the event loop", "heap a caller", `leases of other keys lost, of ${OTHERS}`];
  return { tables: [markdownTable([head, ...rows])], figures };
}

async function measure(size: number): Promise<CrowdFigures> {
  const locks = clientInMemory();
  const rival = await locks.scope("the-rival-of-the-crowd").acquire("ORDER_1231", { leaseMs: 60_000 });
  const others = await Promise.all(Array.from({ length: OTHERS }, (_, index) => locks.acquire(`other:${index}`, { leaseMs: 3000 })));
  const before = heapBytes();
  const arrival = loopDelay();
  const waiting: Promise<unknown>[] = [];
  for (let arrived = 0; arrived < size; arrived++) {
    waiting.push(locks.acquire("ORDER_1231", { waitMs: WAIT_MS }).catch(() => undefined));
    if (arrived % ARRIVALS_A_TURN === 0) await nextTurn();
  }
  // A full collection blocks the event loop, so it comes between two measurements.
  arrival.disable();
  const bytesEach = (heapBytes() - before) / size;
  const rest = loopDelay();
  await Promise.all(waiting);
  rest.disable();
  const lostLeases = others.filter((lease) => !lease.isHeld()).length;
  await rival.release();
  await locks.close();
  return { size, longestBlockMs: Math.max(arrival.max, rest.max) / 1e6, bytesEach, lostLeases };
}

function loopDelay(): IntervalHistogram {
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  return delay;
}

/** The bytes in use after a full garbage collection. */
function heapBytes(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

/** A client with the service and the store in this process, on the machine's clock. */
function clientInMemory(): LockClient {
  const store = createStoreInMemory({ policy: createPolicy(), clock: systemClock });
  const deps = { store, log: () => undefined, clock: systemClock };
  const service = () => lockService(deps, CALLER, oneClock(systemClock));
  const operations = Object.keys(service()) as (keyof ReturnType<typeof service>)[];
  const api = Object.fromEntries(
    operations.map((operation) => [operation, (request: never, options: never) => service()[operation](request, options)]),
  );
  return createClient(systemRuntime(api as unknown as ReturnType<typeof service>));
}
