/**
 * The use of AWS by a waiter that sleeps: its request, an hour of the agent's sweeps, and the wake after a release. Several wait, each for a key
 * of its own, so that the part of the sweep that has nobody asleep isn't counted as theirs.
 */
import { sessionOf } from "../../lib/client/calls/session.js";
import type { Lease } from "../../lib/index.js";
import { type Tell, sweep, wakeOffered } from "../../lib/service/agent.js";
import { SHARED_NAMESPACE } from "../../lib/service/caller.js";
import { type Counts, type MeterOptions, type MeterOverHttp, meterOverHttp } from "./meter.js";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const SLEEPERS = 20;
const SWEEPS = 60;

/** A part of what a waiter uses that sleeps. */
export interface AsleepRow {
  readonly title: string;
  readonly used: Counts;
  /** Invocations of the agent. */
  readonly invocations: number;
}

/** As long as a token of Step Functions is at least. */
const TOKEN = "AQCEAAAAKgAAAAMAAAAAAAAAA".padEnd(600, "x");

/** Counts what a waiter uses, on a table of its own. */
export async function asleepRows(place: Omit<MeterOptions, "tableName">): Promise<readonly AsleepRow[]> {
  const meter = await meterOverHttp({ ...place, tableName: `asleep-${process.pid}-${unique++}` });
  try {
    return await meter.clock.settle(count(meter));
  } finally {
    await meter.close();
  }
}

let unique = 0;

async function count(meter: MeterOverHttp): Promise<readonly AsleepRow[]> {
  const locks = meter.client();
  const waiter = sessionOf("locks", meter.client());
  const keys = Array.from({ length: SLEEPERS }, (_, order) => `checkout-service_ORDER_${1231 + order}`);
  const told: string[] = [];
  const tell: Tell = async ({ taskToken = "" }) => (told.push(taskToken), "told");
  const agent = meter.agent(tell);
  const hold = (key: string) => locks.acquire(key, { leaseMs: 2 * HOUR_MS, heartbeat: false });
  const alone: Lease[] = [];
  for (const key of keys) alone.push(await hold(`${key}_alone`));
  const leases: Lease[] = [];
  for (const key of keys) leases.push(await hold(key));

  const asks = await used(meter, async () => {
    for (const key of keys) {
      const params = { ...waiter.acquireParams(key, { leaseMs: 15 * MINUTE_MS }), leaseId: waiter.deps.ids.next() };
      const answer = await waiter.deps.api.acquire({ ...params, waitMs: 2 * HOUR_MS, wake: { taskToken: TOKEN } });
      if (!("asleep" in answer)) throw new Error("a request to sleep was answered otherwise");
    }
  });
  await sweep(agent);
  const hour = await used(meter, async () => {
    for (let minute = 0; minute < SWEEPS; minute++) await sweep(agent);
  });
  const usual = await used(meter, async () => {
    for (const lease of alone) await lease.release();
  });
  const release = await used(meter, async () => {
    for (const lease of leases) await lease.release();
  });
  const wakes = await used(meter, async () => {
    for (const key of keys) await wakeOffered({ namespace: SHARED_NAMESPACE, kind: "locks", key }, agent);
  });
  if (told.length !== SLEEPERS) throw new Error(`${told.length} of ${SLEEPERS} were told`);
  return [
    { title: "asks, and is woken", used: plus(asks, plus(wakes, minus(release, usual))), invocations: 1 },
    { title: "an hour asleep", used: hour, invocations: 0 },
  ];
}

/** Returns what each of the sleepers used in `work`. */
async function used(meter: MeterOverHttp, work: () => Promise<void>): Promise<Counts> {
  meter.clear();
  await work();
  const { requests, writeUnits, readUnits, logBytes } = meter.counts();
  const each = (counted: number): number => counted / SLEEPERS;
  return { requests: each(requests), writeUnits: each(writeUnits), readUnits: each(readUnits), logBytes: each(logBytes) };
}

function plus(one: Counts, other: Counts): Counts {
  return {
    requests: one.requests + other.requests,
    writeUnits: one.writeUnits + other.writeUnits,
    readUnits: one.readUnits + other.readUnits,
    logBytes: one.logBytes + other.logBytes,
  };
}

function minus(one: Counts, other: Counts): Counts {
  const { requests, writeUnits, readUnits, logBytes } = other;
  return plus(one, { requests: -requests, writeUnits: -writeUnits, readUnits: -readUnits, logBytes: -logBytes });
}
