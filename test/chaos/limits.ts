/** Limits among real processes under faults (arena.ts): 16 of them call a partner, which counts by its own clock what comes. */
import type { LimiterOptions } from "../../lib/client/calls/limiter.js";
import { CLOCKS_APART_MS } from "../../lib/core/rate.js";
import { play } from "./arena.js";
import { type Limited, type LimitVerdict, judgeLimit } from "./limit-judge.js";
import type { LimitLine, LimitWorkerOrder } from "./limit-worker.js";
import type { Came } from "./partner.js";

/** The options of a run. */
export interface LimitChaosOptions {
  readonly seed: number;
  /** The time with faults, in ms. */
  readonly faultsMs: number;
  /** It goes on until this many calls have come, however slow the machine is. @default 0 */
  readonly calls?: number;
  /** True: no faults. @default false */
  readonly isCalm?: boolean;
  /** The controls: a limiter for each process, or none. */
  readonly without?: "limiter" | "sharing" | undefined;
}

/** The outcome of a run. */
export interface LimitChaosReport {
  readonly limits: Readonly<Record<string, LimitVerdict>>;
  /** Broken properties, each with its limit. */
  readonly violations: readonly string[];
  /** The events that the workers told, and the faults, each with its number. */
  readonly counts: Readonly<Record<string, number>>;
  readonly faults: Readonly<Record<string, number>>;
  readonly notices: readonly string[];
}

/** The clocks of a gateway and of its functions agree, as all are of one machine: to the rounding of milliseconds. */
const ONE_MACHINE_MS = 50;

interface Partner extends Limited {
  /** The workers that call it, by their indices. Those with odd ones are straight on the table. */
  readonly workers: readonly number[];
  readonly workMs: number;
}

/** The partners: called over HTTP; by both ways; and by both ways with permits. A table tells its time to the second only. */
const PARTNERS: Readonly<Record<string, Partner>> = {
  PARTNER_HTTP: {
    rates: [
      { count: 10, perMs: 1000, burst: 5 },
      { count: 400, perMs: 60_000, burst: 60 },
    ],
    ...{ slackMs: ONE_MACHINE_MS, workers: [0, 4, 8, 12], workMs: 100 },
  },
  PARTNER_BOTH: {
    rates: [{ count: 5, perMs: 1000, burst: 20 }],
    ...{ slackMs: ONE_MACHINE_MS + CLOCKS_APART_MS, workers: [1, 5, 9, 13, 2, 6], workMs: 100 },
  },
  PARTNER_PERMITS: {
    rates: [{ count: 5, perMs: 1000, burst: 5 }],
    concurrent: 3,
    ...{ slackMs: ONE_MACHINE_MS + CLOCKS_APART_MS, workers: [3, 7, 11, 15, 10, 14], workMs: 1200 },
  },
};
const WORKERS = 16;

/** Runs workers under faults, and judges what came to the partners. @throws Error if a process can't start. */
export async function limitChaos(options: LimitChaosOptions): Promise<LimitChaosReport> {
  const { seed, faultsMs, calls = 0, isCalm = false, without } = options;
  const remains = await play(
    {
      ...{ workers: WORKERS, workerScript: "limit-worker.ts", resourceScript: "partner.ts", resourceOrder: {} },
      ...{ isResourceBehindProxy: false, clocksJump: false },
      orderOf(common, index): LimitWorkerOrder {
        const [key, { rates, concurrent, workMs }] = Object.entries(PARTNERS).find(([, { workers }]) => workers.includes(index))!;
        const limit: LimiterOptions = { rates, ...(concurrent !== undefined && { concurrent }) };
        const limiter = without === "limiter" ? undefined : without === "sharing" ? `${key}_${index}` : key;
        return { ...common, key, limit, workMs, limiter };
      },
    },
    { seed, faultsMs, isEnough: (sofar) => (sofar as readonly Came[]).length >= calls, healedMs: 0, isCalm },
  );
  const came = remains.data as readonly Came[];
  const judged = Object.entries(PARTNERS).map(
    ([key, partner]) =>
      [
        key,
        judgeLimit(
          came.filter((one) => one.key === key),
          partner,
        ),
      ] as const,
  );
  const counts: Record<string, number> = {};
  for (const { event } of remains.lines.map((line) => JSON.parse(line) as LimitLine)) counts[event] = (counts[event] ?? 0) + 1;
  return {
    limits: Object.fromEntries(judged),
    violations: [...judged.flatMap(([key, { violations }]) => violations.map((what) => `${key}: ${what}`)), ...remains.crashes],
    ...{ counts, faults: remains.faults, notices: remains.notices },
  };
}
