/** Locks among real processes under faults (arena.ts): workers count up what the locks guard, and a judge reads what they did. */
import { play } from "./arena.js";
import { type Verdict, judge } from "./judge.js";
import type { Guarded, ResourceOrder } from "./resource.js";
import type { Line, WorkerOrder } from "./worker.js";

/** The options of a run. */
export interface ChaosOptions {
  readonly seed: number;
  /** The time with faults, in ms. */
  readonly faultsMs: number;
  /** Faults continue until the resource has accepted this many writes, however slow the machine is. @default 0 */
  readonly writes?: number;
  /** The time without faults after it, in which every key must be granted again, in ms. 0 skips the check. */
  readonly healedMs: number;
  /** The control: workers that take no lock, or a resource that compares no tokens. */
  readonly without?: "lock" | "token" | undefined;
  /** True for a table in two Regions, which are cut off too. @default false */
  readonly inRegions?: boolean | undefined;
}

/** The outcome of a run. */
export interface ChaosReport extends Verdict {
  /** The number of faults of each kind. */
  readonly faults: Readonly<Record<string, number>>;
  /** Parts of the machine that this run could not attack, and why. */
  readonly notices: readonly string[];
  readonly resource: Readonly<Record<string, Guarded>>;
}

const KEYS = Array.from({ length: 8 }, (_, order) => `ORDER_${order}`);
const WORKERS = 6;

/** Runs workers under faults, and judges what they did. @throws Error if a process can't start. */
export async function chaos({ seed, faultsMs, writes = 0, healedMs, without, inRegions = false }: ChaosOptions): Promise<ChaosReport> {
  const resourceOrder: ResourceOrder = { comparesTokens: without !== "token" };
  const { faults, notices, crashes, healedAt, data, lines } = await play(
    {
      ...{ workers: WORKERS, workerScript: "worker.ts", resourceScript: "resource.ts", resourceOrder },
      orderOf: (common): WorkerOrder => ({ ...common, keys: KEYS, takesLock: without !== "lock" }),
    },
    { seed, faultsMs, isEnough: (sofar) => written(sofar as Resource) >= writes, healedMs, inRegions },
  );
  const resource = data as Resource;
  const verdict = judge(
    lines.map((line) => JSON.parse(line) as Line),
    resource,
    KEYS,
    healedMs > 0 ? healedAt : undefined,
  );
  const crashed = crashes.map((what) => ({ key: "", what }));
  return { ...verdict, violations: [...verdict.violations, ...crashed], faults, notices, resource };
}

type Resource = ChaosReport["resource"];

function written(resource: Resource): number {
  return Object.values(resource).reduce((sum, { log }) => sum + log.length, 0);
}
