/**
 * Many held leases with heartbeats, and contenders on other keys, in real processes: first while all is well, then while
 * the engine is away for longer than a lease, and after that.
 */
import { setTimeout as delay } from "node:timers/promises";
import { createTable } from "../../infra/local/create-table.js";
import { engineClient } from "../../infra/local/engine-client.js";
import { startEngine } from "../../infra/local/engine.js";
import { createPolicy } from "../../lib/core/policy.js";
import type { ServiceOrder } from "../chaos/service.js";
import { startChild } from "../support/child.js";
import { startFaultProxy } from "../support/fault-proxy.js";
import type { Figures, HolderOrder } from "./holder.js";

/** The options of a run. */
export interface SoakOptions {
  readonly leases: number;
  readonly contenders: number;
  readonly leaseMs: number;
  /** The time before the outage, in ms. */
  readonly healthyMs: number;
  /** False: the control. @default true */
  readonly heartbeat?: boolean;
}

/** The memory of the processes at one time, in bytes. */
export interface Memory {
  readonly when: string;
  /** The two processes that hold the leases. */
  readonly holderRss: readonly number[];
  readonly holderHeap: readonly number[];
  readonly serviceRss: number;
}

/** The outcome of a run. */
export interface SoakReport {
  /** Before the outage: the leases that were held at its end, the losses in it, and the contenders' acquires. */
  readonly healthy: { readonly held: number; readonly lost: number; readonly acquiresMs: readonly number[]; readonly failed: number };
  readonly memory: readonly Memory[];
  /**
   * Leases whose holder was told of its loss in the outage, and those of them told too late: the process had a timer turn
   * after another could be granted the key, and before it was told.
   */
  readonly told: number;
  readonly toldLate: number;
  /** The leases that were held again at the end. */
  readonly recovered: number;
  /** The time from the engine's return until all leases were held again, in ms. Undefined if they never were. */
  readonly recoveredMs: number | undefined;
  /** Requests to the engine per second: before the outage, in it, in each heartbeat interval after it, and in the worst second of those. */
  readonly healthyRate: number;
  readonly rateInOutage: number;
  readonly ratesAfter: readonly number[];
  readonly worstSecond: number;
}

const TABLE_NAME = "soak";
/** The intervals of heartbeats that are watched after the outage. */
const INTERVALS_AFTER = 6;

/** Runs the processes, and returns their figures. @throws Error if one can't start. */
// Over 60 lines: the processes of a run, which start and end together, and its phases.
export async function soak({ leases, contenders, leaseMs, healthyMs, heartbeat = true }: SoakOptions): Promise<SoakReport> {
  const engine = await startEngine({});
  const direct = engineClient(engine.endpoint);
  await createTable(direct, TABLE_NAME);
  direct.destroy();
  let isAway = false;
  let sentInVain = 0;
  const proxy = await startFaultProxy(engine.endpoint, () => {
    if (!isAway) return undefined;
    sentInVain += 1;
    return { kind: "lose-request" };
  });
  const machineStartMs = Date.now() - monotonicMs();
  const serviceOrder: ServiceOrder = { endpoint: proxy.endpoint, tableName: TABLE_NAME, machineStartMs };
  const service = startChild("../chaos/service.ts", import.meta.url, serviceOrder);
  const { url } = (await service.reported("ready")) as unknown as { readonly url: string };
  const holders = [{ url }, { endpoint: proxy.endpoint, tableName: TABLE_NAME }].map((locks) => {
    const name = "url" in locks ? "http" : "table";
    const order: HolderOrder = { name, locks, leases: leases / 2, contenders: contenders / 2, leaseMs, heartbeat };
    return startChild("holder.ts", import.meta.url, order);
  });

  let reports = 0;
  const ask = async (): Promise<readonly Figures[]> => {
    reports += 1;
    return Promise.all(
      holders.map(async (holder) => {
        holder.signal("SIGUSR2");
        return (await holder.reported(`report ${reports}`)) as unknown as Figures;
      }),
    );
  };
  let serviceReports = 0;
  const memory: Memory[] = [];
  const acquiresMs: number[] = [];
  const measure = async (when: string): Promise<readonly Figures[]> => {
    const figures = await ask();
    service.signal("SIGUSR2");
    const { rssBytes } = await service.reported(`report ${++serviceReports}`);
    const [holderRss, holderHeap] = [figures.map((one) => one.rssBytes), figures.map((one) => one.heapBytes)];
    memory.push({ when, holderRss, holderHeap, serviceRss: rssBytes as number });
    acquiresMs.push(...figures.flatMap((one) => one.acquiresMs));
    return figures;
  };
  /** Counts the engine's requests per second during `ms`. */
  const rateIn = async (ms: number): Promise<number> => {
    const [before, beganMs] = [requests(), monotonicMs()];
    await delay(ms);
    return (1000 * (requests() - before)) / (monotonicMs() - beganMs);
  };
  const requests = (): number => Object.values(proxy.ledger.requests).reduce((sum, count) => sum + count, 0);

  try {
    await Promise.all(holders.map((holder) => holder.reported("holding")));
    await delay(leaseMs / 3);
    await measure("start");
    const halves = [await rateIn(healthyMs / 2)];
    await measure("middle");
    halves.push(await rateIn(healthyMs / 2));
    const before = await measure("end");
    const healthyRate = sum(halves) / 2;

    isAway = true;
    const awayAtMs = monotonicMs();
    const { marginMs } = createPolicy();
    const lastMs = leaseMs + marginMs(leaseMs);
    await delay(lastMs + leaseMs / 3);
    const during = await ask();
    isAway = false;
    const backAtMs = monotonicMs();
    const rateInOutage = (1000 * sentInVain) / (backAtMs - awayAtMs);
    const lossesBefore = sum(before.map(({ losses }) => losses.length));
    const losses = during.flatMap(({ losses: all }) => all).filter(({ toldAtMs }) => toldAtMs >= awayAtMs);

    const ratesAfter: number[] = [];
    let worstSecond = 0;
    let recoveredMs: number | undefined;
    let recovered = 0;
    for (let interval = 0; interval < INTERVALS_AFTER; interval++) {
      const seconds: number[] = [];
      const slices = Math.max(1, Math.round(leaseMs / 3000));
      for (let slice = 0; slice < slices; slice++) {
        seconds.push(await rateIn(leaseMs / 3 / slices));
        recovered = sum((await ask()).map(({ held }) => held));
        if (recovered === leases) recoveredMs ??= monotonicMs() - backAtMs;
      }
      ratesAfter.push(sum(seconds) / slices);
      worstSecond = Math.max(worstSecond, ...seconds);
    }
    const failed = sum(before.flatMap((one) => Object.values(one.failed)));
    return {
      healthy: { held: sum(before.map(({ held }) => held)), lost: lossesBefore, acquiresMs, failed },
      ...{ memory, recovered, recoveredMs, healthyRate, rateInOutage, ratesAfter, worstSecond },
      told: new Set(losses.map(({ key }) => key)).size,
      toldLate: losses.filter(({ turnBeforeMs }) => turnBeforeMs > awayAtMs + lastMs).length,
    };
  } finally {
    await Promise.all([...holders, service].map((child) => child.kill()));
    await proxy.close();
    await engine.stop();
  }
}

/** The machine's monotonic clock, which all processes share, in ms. */
function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
