/** The figures of a scene: what each grant cost, and how long the crowd took. All of them are counts, or virtual time. */
import type { TableCounts } from "../../test/simulation/dynamo/served-table.js";
import { median } from "../report/table.js";

/** The figures. What a scene doesn't measure is missing. */
export interface Figures {
  /** Grants, or whatever the scene counts in their place. */
  readonly grants: number;
  readonly writes: number;
  readonly requests: number;
  readonly units: number;
  /** Requests that were throttled, in all. */
  readonly throttled: number;
  /** Calls that failed, in all. */
  readonly failed: number;
  /** The time of the scene against the ideal one. */
  readonly times?: number;
  /** The time between two holders, in ms. */
  readonly idleMs?: number;
  /** The share of the permits in use. */
  readonly used?: number;
  readonly perSecond?: number;
  /** The share of the callers that a later one overtook. */
  readonly overtaken?: number;
  readonly p50Ms?: number;
  readonly p99Ms?: number;
  readonly lastMs?: number;
  /** Waiters that gave up and are still in the queue. */
  readonly leftDead?: number;
  /** The time until the next caller gets the free key, in ms. */
  readonly nextMs?: number;
  /** Leases that were lost. */
  readonly lost?: number;
  /** Calls of the user's function that must run once. */
  readonly runs?: number;
}

/** The name of a figure. */
export type FigureName = keyof Figures;

/** The median of each figure. */
export function mediansOf(runs: readonly Figures[]): Figures {
  const [first] = runs;
  if (!first) throw new RangeError("the medians of nothing");
  return Object.fromEntries(
    Object.keys(first).map((name) => [name, median(runs.map((run) => run[name as FigureName] ?? 0))]),
  ) as unknown as Figures;
}

/** Returns the costs of each grant between two counts. */
export function costsOf(
  before: TableCounts,
  after: TableCounts,
  grants: number,
): Pick<Figures, "grants" | "writes" | "requests" | "units" | "throttled"> {
  const each = (name: keyof TableCounts): number => (after[name] - before[name]) / Math.max(1, grants);
  const writes = each("writes");
  return { grants, writes, requests: writes + each("reads"), units: each("writeUnits"), throttled: after.throttled - before.throttled };
}

/** The value below which this share of `values` is; 0 of none. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
}
