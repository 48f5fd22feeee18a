/** The targets of docs/performance.md, and how far a run is from them. */
import { readPage } from "../test/docs/generated.js";
import type { SaleFigures } from "./contest/buyers.js";
import { BASE_ID } from "./contest/arena.js";
import type { CrowdFigures } from "./crowd.js";
import type { CycleFigures } from "./contest/cycles.js";
import type { GrowthPoint } from "./cost/growth.js";
import type { LeaseFigures } from "./contest/leases.js";
import type { FunctionFigures } from "./cost/memory.js";
import type { Run } from "./report/report.js";
import type { SimulationFigures } from "./simulation.js";
import { markdownTable, median } from "./report/table.js";
import type { TakeoverFigures } from "./cost/takeover.js";
import type { QueueFigures } from "./contest/waiters.js";
import { BYTES_MAX } from "./size/limits.js";
import type { Weight, WeightFigures } from "./size/weight.js";

/** A target, and the figure that a run has for it. */
export interface Target {
  /** The heading of its section on the page. */
  readonly section: string;
  readonly title: string;
  readonly at: "most" | "least";
  readonly limit: number;
  readonly unit: string;
  /** Undefined if it was not measured. */
  readonly figure: number | undefined;
}

/** The histories of the simulation a second, on the same machine, before it was made faster. */
const HISTORIES_BEFORE = 7;

/** True if the figure is as good as the target. */
export function isMet({ at, limit, figure }: Target): boolean {
  return figure !== undefined && (at === "most" ? figure <= limit : figure >= limit);
}

/** Returns all targets, with the figures of a run. */
export function targetsOf(run: Run): readonly Target[] {
  const figures = (name: string): unknown => run.reports[name]!.figures;
  return [
    ...ofCycles(figures("cycles") as CycleFigures[]),
    ...ofWaiters(figures("waiters") as QueueFigures[]),
    ...ofBuyers(figures("buyers") as SaleFigures[]),
    ...ofTakeover(figures("takeover") as TakeoverFigures[]),
    ...ofLeases(figures("leases") as LeaseFigures[]),
    ...ofGrowth(figures("growth") as GrowthPoint[], figures("crowd") as CrowdFigures[]),
    ...ofFunction(figures("memory") as FunctionFigures),
    ...ofWeight(figures("weight") as WeightFigures),
    ...inSection("Costs", [atMost("a million uncontended locks over HTTP, by docs/costs.md", 4.2, "$", costUsd())]),
    ...inSection("The simulation", [
      atLeast("histories a second", 5 * HISTORIES_BEFORE, "", (figures("simulation") as SimulationFigures).perSecond),
    ]),
  ];
}

/** Returns the targets as a table in markdown. */
export function targetsTable(targets: readonly Target[]): string {
  const rows = targets.map((target) => [
    `[${target.section}](#${target.section.toLowerCase().replaceAll(" ", "-")})`,
    target.title,
    `at ${target.at} ${withUnit(target.limit, target.unit)}`,
    target.figure === undefined ? "not measured" : withUnit(target.figure, target.unit),
    verdict(target),
  ]);
  return markdownTable([["", "", "target", "figure", ""], ...rows]);
}

type Row = Omit<Target, "section">;

function inSection(section: string, rows: readonly Row[]): readonly Target[] {
  return rows.map((row) => ({ section, ...row }));
}

function atMost(title: string, limit: number, unit: string, figure: number | undefined): Row {
  return { title, at: "most", limit, unit, figure };
}

function atLeast(title: string, limit: number, unit: string, figure: number | undefined): Row {
  return { title, at: "least", limit, unit, figure };
}

function withUnit(figure: number, unit: string): string {
  const text = figure.toLocaleString("en", { maximumFractionDigits: Math.abs(figure) < 10 ? 2 : 0 });
  return unit === "$" ? `$${figure.toFixed(2)}` : `${text}${unit}`;
}

function verdict(target: Target): string {
  const { limit, figure } = target;
  if (figure === undefined) return "–";
  if (isMet(target)) return "met";
  return limit === 0 ? "**missed**" : `**missed** by ${Math.ceil((100 * Math.abs(figure - limit)) / limit)} %`;
}

function ofCycles(all: readonly CycleFigures[]): readonly Target[] {
  const found = (id: string, inFlight: number) => all.find((one) => one.id === id && one.inFlight === inFlight)!;
  // By rounds, because the contestants of a round ran under the same load.
  const ratio = (id: string, base: string, inFlight: number, of: "cpuMs" | "perSecond"): number =>
    median(found(id, inFlight)[of].map((figure, round) => figure / found(base, inFlight)[of][round]!));
  const { serviceMs } = found("service", 16);
  return inSection("A cycle", [
    atMost("CPU straight on the table, against the bare SDK", 0.5, " ×", ratio("table", BASE_ID, 16, "cpuMs")),
    atMost("CPU of the client over HTTP, against the bare SDK", 0.6, " ×", ratio("service", BASE_ID, 16, "cpuMs")),
    atMost("CPU of the service", 1, " ms", serviceMs.length > 0 ? median(serviceMs) : undefined),
    ...[1, 16].flatMap((inFlight) => [
      atLeast(
        `cycles a second on the table, ${inFlight} in flight, against the bare SDK`,
        1,
        " ×",
        ratio("table", BASE_ID, inFlight, "perSecond"),
      ),
      atLeast(`the same, against raw HTTP with the same updates`, 0.9, " ×", ratio("table", "replay", inFlight, "perSecond")),
      atLeast(
        `cycles a second over HTTP, ${inFlight} in flight, against the bare SDK`,
        0.5,
        " ×",
        ratio("service", BASE_ID, inFlight, "perSecond"),
      ),
    ]),
  ]);
}

function ofWaiters(all: readonly QueueFigures[]): readonly Target[] {
  const found = (id: string, processes: number) => all.find((one) => one.id === id && one.processes === processes);
  const figure = (id: string, processes: number, of: keyof QueueFigures["drained"][number]): number | undefined => {
    const drained = found(id, processes)?.drained;
    return drained && median(drained.map((one) => one[of]));
  };
  const ratio = (id: string, processes: number): number | undefined => {
    const [own, base] = [figure(id, processes, "drainMs"), figure(BASE_ID, processes, "drainMs")];
    return own !== undefined && base !== undefined ? own / base : undefined;
  };
  const ways = [
    ["table", "on the table"],
    ["service", "over HTTP"],
  ] as const;
  return inSection(
    "Waiters",
    ways.flatMap(([id, way]) =>
      ([1, 16] as const).flatMap((processes) => {
        const where = `16 waiters ${way}, ${processes === 1 ? "one process" : "16 processes"}`;
        return [
          atMost(`requests a grant, ${where}`, processes === 1 ? 1.3 : 6, "", figure(id, processes, "requestsEach")),
          atMost(`overtaken, ${where}`, 0, "", figure(id, processes, "overtaken")),
          atMost(`time to drain, ${where}, against the bare SDK`, processes === 1 ? 1 : 2, " ×", ratio(id, processes)),
        ];
      }),
    ),
  );
}

function ofBuyers(all: readonly SaleFigures[]): readonly Target[] {
  const tookMs = (id: string): number | undefined => {
    const found = all.find((one) => one.id === id);
    return found && found.tookMs.length > 0 ? median(found.tookMs) : undefined;
  };
  const redlockMs = tookMs("redlock");
  const ratio = (id: string): number | undefined => {
    const ownMs = tookMs(id);
    return ownMs !== undefined && redlockMs !== undefined ? ownMs / redlockMs : undefined;
  };
  return inSection("A flash sale", [
    atMost("time on the table, against redlock on Redis", 1, " ×", ratio("table")),
    atMost("time over HTTP, against redlock on Redis", 1.5, " ×", ratio("service")),
  ]);
}

function ofTakeover(all: readonly TakeoverFigures[]): readonly Target[] {
  const rows = all.map(({ title, lateMs }) =>
    atMost(`from the end of lease and margin until the takeover, ${title.replaceAll("*", "")}`, 250, " ms", median(lateMs)),
  );
  return inSection("A takeover", rows);
}

function ofLeases(all: readonly LeaseFigures[]): readonly Target[] {
  const of = (id: string): LeaseFigures => all.find((one) => one.id === id)!;
  const cpuOf = (id: string): number => of(id).cpuShare / of(id).got;
  const ways = [
    ["table", "on the table", 0.4],
    ["service", "over HTTP", 0.1],
  ] as const;
  return inSection(
    "Leases with heartbeats",
    ways.flatMap(([id, way, share]) => [
      atMost(`time to get 10,000 leases ${way}`, 8, " s", of(id).gotMs / 1000),
      atMost(`CPU of their heartbeats ${way}, against the bare SDK`, share, " ×", cpuOf(id) / cpuOf(BASE_ID)),
      atMost(`heap of one lease ${way}`, 2, " KB", of(id).bytesEach / 1024),
    ]),
  );
}

function ofGrowth(points: readonly GrowthPoint[], crowds: readonly CrowdFigures[]): readonly Target[] {
  // A list writes nothing, and grows with the keys that it lists.
  const series = [...new Set(points.filter(({ writeUnits }) => writeUnits > 0).map((point) => point.of))];
  const rows = series.flatMap((of) => {
    const own = points.filter((point) => point.of === of);
    const [first, last] = [own[0]!, own.at(-1)!];
    const sizes = `from ${first.size.toLocaleString("en")} to ${last.size.toLocaleString("en")}`;
    return [
      atMost(`requests for ${of}, ${sizes}: growth`, 1, " ×", last.requests / first.requests),
      atMost(`write units for the same: growth`, 1, " ×", last.writeUnits / first.writeUnits),
    ];
  });
  const [least, most] = [crowds[0]!, crowds.at(-1)!];
  const sizes = `${least.size.toLocaleString("en")} to ${most.size.toLocaleString("en")}`;
  return inSection("Growth", [
    ...rows,
    atMost(`heap of one waiter in a process, from ${sizes}: growth`, 1, " ×", most.bytesEach / least.bytesEach),
  ]);
}

function ofFunction({ holdfast, sdk }: FunctionFigures): readonly Target[] {
  return inSection("A function", [
    atMost("CPU to load, against a function with the bare SDK", 0.4, " ×", holdfast.importMs / sdk.importMs),
    atMost("CPU of the first request, against the same", 0.4, " ×", holdfast.firstMs / sdk.firstMs),
    atMost("CPU of later requests, against the same", 1, " ×", holdfast.laterMs / sdk.laterMs),
    atMost("bundle", BYTES_MAX.service / 1000, " KB", holdfast.bundleBytes / 1000),
    atMost("peak memory", 80, " MB", holdfast.peakMb),
  ]);
}

function ofWeight({ httpBytes, functions }: WeightFigures): readonly Target[] {
  const [bare, table, middy] = [BASE_ID, "table", "middy"].map((id) => functions[id]!) as [Weight, Weight, Weight];
  return inSection("What your function pays", [
    atMost("bundle of holdfast/dynamodb", 150, " KB", table.bytes / 1000),
    atMost("CPU to load it, against the bare SDK", 0.5, " ×", table.importMs / bare.importMs),
    atMost("bundle of a handler with holdfast/middy and holdfast/sigv4", BYTES_MAX.handler / 1000, " KB", middy.bytes / 1000),
    atMost("client over HTTP, gzipped", BYTES_MAX.client / 1000, " KB", httpBytes / 1000),
  ]);
}

function costUsd(): number | undefined {
  const row = /^\| nobody else wants it .*\$([\d.]+) +\| \$[\d.]+ +\| \$[\d.]+ +\|$/m.exec(readPage("docs/costs.md"));
  return row ? Number(row[1]) : undefined;
}
