/** The rows of the benchmark: a scene each, its naive counterpart, and the targets for its figures. */
import type { FigureName, Figures } from "./figures.js";
import { type Scene, blockedSet, clicks, coldTurns, givingUp, keeping, readers, refreshing, taking, turns } from "./scenes.js";

/** A bound of a figure. */
export interface Target {
  readonly figure: FigureName;
  readonly at: "most" | "least";
  readonly limit: number;
}

/** A scene with its targets. */
export interface Row {
  readonly name: string;
  readonly scene: Scene;
  /** The same crowd with the loop on the bare SDK. */
  readonly naive?: Scene;
  readonly targets: readonly Target[];
  /** True if one run is enough, and three would take minutes. */
  readonly isLong?: boolean;
  /** True if it is played within a second or two, in every run of the tests. */
  readonly isQuick?: boolean;
}

/** True if these figures reach the target. */
export function isMet({ figure, at, limit }: Target, figures: Figures): boolean {
  const value = figures[figure] ?? Number.NaN;
  return at === "most" ? value <= limit : value >= limit;
}

const most = (limits: Partial<Record<FigureName, number>>): readonly Target[] => bounds("most", limits);
const least = (limits: Partial<Record<FigureName, number>>): readonly Target[] => bounds("least", limits);

function bounds(at: Target["at"], limits: Partial<Record<FigureName, number>>): readonly Target[] {
  return Object.entries(limits).map(([figure, limit]) => ({ figure: figure as FigureName, at, limit }));
}

/** The end of the name of a row over HTTP. */
export const OVER_HTTP = ", over HTTP";
/** The factor by which the way over HTTP may miss a target of the direct one. */
const HTTP_TIMES = 1.5;

interface Queue {
  readonly callers: number;
  readonly rounds?: number;
  readonly holdMs?: number;
  readonly waitMs?: number;
}

/** A mutex that callers hold in turn, in each way, and the naive loop beside the first. */
function queue(size: Queue, limits: Partial<Record<FigureName, number>>, isQuick = false): readonly Row[] {
  const { callers, rounds = 1, holdMs = 20 } = size;
  const crowd = { ...size, rounds, holdMs };
  const name = `mutex, ${callers} ${callers === 1 ? "caller" : "callers"}${rounds > 1 ? ` × ${rounds}` : ""}, holds of ${holdMs} ms`;
  const overHttp = Object.fromEntries(Object.entries(limits).map(([figure, limit]) => [figure, limit * HTTP_TIMES]));
  return [
    {
      name,
      isQuick,
      scene: turns({ ...crowd, way: "direct" }),
      naive: turns({ ...crowd, way: "naive" }),
      targets: most({ failed: 0, ...limits }),
    },
    { name: `${name}${OVER_HTTP}`, isQuick, scene: turns({ ...crowd, way: "http" }), targets: most({ failed: 0, ...overHttp }) },
  ];
}

function semaphore(permits: number, callers: number, rounds: number, targets: readonly Target[], byLimiter = false): Row {
  const crowd = { permits, callers, rounds, holdMs: 50 };
  return {
    name: `${byLimiter ? "limiter.run, concurrent" : "semaphore of"} ${permits}, ${callers} callers × ${rounds}, holds of 50 ms`,
    scene: turns({ ...crowd, way: "direct", byLimiter }),
    naive: turns({ ...crowd, way: "naive" }),
    targets: [...most({ failed: 0 }), ...targets],
  };
}

const READERS = most({ failed: 0, p50Ms: 15, p99Ms: 1000, writes: 2.5 });
const ON_FOUR_KEYS = { permits: 20, keys: 4, callers: 64, rounds: 4, holdMs: 50 } as const;
const COLD = { rounds: 1, holdMs: 20, way: "cold" } as const;

/** Every row, in the order of the page. */
export const ROWS: readonly Row[] = [
  ...queue({ callers: 1, rounds: 5 }, { requests: 3 }, true),
  ...queue({ callers: 4, rounds: 5 }, { times: 1.4, idleMs: 25, requests: 9, units: 8 }, true),
  ...queue({ callers: 16, rounds: 5 }, { times: 1.4, idleMs: 25, requests: 9, units: 8 }),
  ...queue({ callers: 64 }, { times: 1.5, requests: 12, units: 15 }),
  ...queue({ callers: 100 }, { times: 1.5, requests: 12, units: 15 }),
  ...queue({ callers: 200, waitMs: 30_000 }, { lastMs: 13_000, writes: 6, units: 20, throttled: 0, overtaken: 0.1 }),
  ...queue({ callers: 1000, waitMs: 120_000 }, { times: 2.5, units: 30 })
    .slice(0, 1)
    .map((row) => ({ ...row, isLong: true })),
  ...queue({ callers: 16, holdMs: 500 }, { requests: 12 }).slice(0, 1),
  {
    name: "mutex, 16 new processes, holds of 20 ms",
    scene: turns({ ...COLD, callers: 16 }),
    targets: most({ failed: 0, times: 2.1, requests: 13.5 }),
    isQuick: true,
  },
  {
    name: "mutex, 64 new processes, holds of 20 ms",
    scene: turns({ ...COLD, callers: 64 }),
    targets: most({ failed: 0, times: 2.25, requests: 18 }),
  },
  {
    name: "mutex, a new process each 100 to 300 ms",
    scene: coldTurns({ callers: 20 }),
    targets: most({ failed: 0, writes: 2.05, requests: 3.05 }),
    isQuick: true,
  },
  semaphore(3, 16, 4, least({ used: 0.7 })),
  semaphore(20, 25, 8, least({ used: 0.5 })),
  semaphore(20, 64, 4, [...least({ perSecond: 80 }), ...most({ units: 12 })]),
  {
    name: "4 keys with a semaphore of 5 each, 64 callers × 4, holds of 50 ms",
    scene: turns({ ...ON_FOUR_KEYS, way: "direct" }),
    naive: turns({ ...ON_FOUR_KEYS, way: "naive" }),
    targets: most({ failed: 0, times: 1.5, units: 8, p99Ms: 400 }),
  },
  semaphore(20, 64, 2, [...least({ perSecond: 80 }), ...most({ units: 12 })], true),
  ...([16, 64] as const).flatMap((callers) =>
    (["timeout", "abort"] as const).map((how) => ({
      name: `${callers} waiters give up together, by ${how}`,
      scene: givingUp({ callers, how, way: "direct" }),
      targets: most({ failed: 0, writes: 1.4, leftDead: 0, nextMs: 20 }),
    })),
  ),
  ...([16, 64, 100] as const).map((callers) => ({
    name: `${callers} readers that come and go`,
    scene: readers({ callers, way: "direct" }),
    targets: READERS,
  })),
  { name: "64 readers that come and go, on 4 keys", scene: readers({ callers: 64, keys: 4, way: "direct" }), targets: READERS },
  ...([10, 150] as const).map((callers) => ({
    name: `refresh, ${callers} callers, the value is there after 300 ms`,
    scene: refreshing({ callers, way: "direct" }),
    isQuick: callers === 10,
    targets: most({ failed: 0, runs: 1, lastMs: 1000 }),
  })),
  {
    name: "takes of 16 clients at 80 % of 100/s",
    scene: taking({ callers: 16, perSecond: 100, share: 0.8, way: "direct" }),
    targets: most({ failed: 0, requests: 1.15 }),
    isQuick: true,
  },
  {
    name: "takes of 8 clients at 50 % of 700/s",
    scene: taking({ callers: 8, perSecond: 700, share: 0.5, way: "direct" }),
    targets: most({ failed: 0, requests: 1.15 }),
  },
  ...[0.8, 1.5, 3].map((times) => ({
    name: `tryAcquire of held keys at ${times} × an item's rate`,
    scene: clicks({ times, way: "direct" }),
    naive: clicks({ times, way: "naive" }),
    isLong: true,
    targets: most({ lost: 0, requests: 1.5 }),
  })),
  ...[1.5, 3].map((times) => ({
    name: `tryAcquire of a held key by new processes, at ${times} × an item's rate`,
    scene: clicks({ times, way: "cold", keys: 1, unitsOfItem: 1000, leaseMs: 1000, forMs: 3000 }),
    targets: most({ lost: 0, failed: 0 }),
    isLong: true,
  })),
  {
    name: "20 holders of a semaphore keep leases of 3 s",
    scene: keeping({ holders: 20, leaseMs: 3000, way: "direct" }),
    targets: most({ failed: 0, lost: 0 }),
    isQuick: true,
  },
  {
    name: "100 holders of a semaphore keep leases of 3 s",
    scene: keeping({ holders: 100, leaseMs: 3000, way: "direct" }),
    targets: most({ lost: 0 }),
  },
  {
    name: "a set of 2 keys, each with 2 ordinary callers",
    scene: blockedSet({ keys: 2, callers: 2, way: "direct" }),
    targets: most({ failed: 0, lastMs: 2000 }),
  },
];
