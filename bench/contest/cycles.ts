/**
 * A cycle: a fresh key, which nobody else wants, is acquired and released. CPU of the contestant's process, and cycles a
 * second. The engine and the service are processes of their own, on the same cores, so judge by CPU first.
 */
import { type Contest, type Runner, startContest } from "./contest.js";
import { BASE_ID } from "./arena.js";
import { type Plot, type Report, type Sizes, rounds } from "../report/report.js";
import { markdownTable, median } from "../report/table.js";

const IN_FLIGHT = [1, 16] as const;
const SERVICE_ID = "service";
const ROUNDS = 5;
const TURN_MS = 500;
/** Enough for the code to be optimized. A slow contestant on a busy machine gets less. */
const WARM_UP_CYCLES = 6000;
const WARM_UP_MS = 4500;
const QUICK = { most: 2, turnMs: 150, warmUpMs: 150 } as const;

/** The figures of a contestant, round by round. */
export interface CycleFigures {
  readonly id: string;
  readonly title: string;
  readonly inFlight: number;
  readonly cpuMs: number[];
  readonly perSecond: number[];
  readonly serviceMs: number[];
}

/** Returns the table. @throws StartError if the engine or the service can't start. */
export async function cycles(sizes: Sizes): Promise<Report> {
  const { most, turnMs, warmUpMs } = sizes.isQuick ? QUICK : { most: ROUNDS, turnMs: TURN_MS, warmUpMs: WARM_UP_MS };
  const contest = await startContest(50, () => true);
  try {
    const lanes = contest.runners.flatMap((runner) => IN_FLIGHT.map((inFlight) => ({ runner, figures: figuresOf(runner, inFlight) })));
    for (const runner of contest.runners)
      await runner.ask("cycles", { inFlight: Math.max(...IN_FLIGHT), lastsMs: warmUpMs, most: WARM_UP_CYCLES });
    // Interleaved, so that other load on the machine affects all alike.
    const done = await rounds(sizes, most, async () => {
      for (const { runner, figures } of lanes) await turn(contest, runner, figures, turnMs);
    });
    return reportOf(
      lanes.map(({ figures }) => figures),
      [
        `Medians of ${done} rounds of ${turnMs} ms each, the contestants by turns. “×” compares with the bare SDK round by round.`,
        ...contest.notes,
      ],
    );
  } finally {
    await contest.stop();
  }
}

function figuresOf({ id, title }: Runner, inFlight: number): CycleFigures {
  return { id, title, inFlight, cpuMs: [], perSecond: [], serviceMs: [] };
}

async function turn(contest: Contest, runner: Runner, figures: CycleFigures, lastsMs: number): Promise<void> {
  const before = contest.serviceCpuMs();
  const { cycles: count, cpuMs, tookMs } = await runner.ask("cycles", { inFlight: figures.inFlight, lastsMs });
  figures.cpuMs.push(cpuMs / count);
  figures.perSecond.push((1000 * count) / tookMs);
  const after = contest.serviceCpuMs();
  if (runner.id === SERVICE_ID && before !== undefined && after !== undefined) figures.serviceMs.push((after - before) / count);
}

function reportOf(all: readonly CycleFigures[], notes: readonly string[]): Report {
  const baseOf = ({ inFlight }: CycleFigures): CycleFigures => all.find((other) => other.id === BASE_ID && other.inFlight === inFlight)!;
  const ratio = (figures: CycleFigures, of: "cpuMs" | "perSecond"): number =>
    median(figures[of].map((figure, round) => figure / baseOf(figures)[of][round]!));
  const cells = (id: string, inFlight: number): readonly string[] => {
    const figures = all.find((other) => other.id === id && other.inFlight === inFlight)!;
    const service = figures.serviceMs.length > 0 ? `, service ${median(figures.serviceMs).toFixed(2)}` : "";
    return [
      `${median(figures.cpuMs).toFixed(2)} ms${service}`,
      `${ratio(figures, "cpuMs").toFixed(2)}×`,
      median(figures.perSecond).toFixed(0),
      `${ratio(figures, "perSecond").toFixed(2)}×`,
    ];
  };
  const head = ["a cycle", ...IN_FLIGHT.toReversed().flatMap((inFlight) => [`CPU, ${inFlight} in flight`, "×", "cycles/s", "×"])];
  const titles = new Map(all.map(({ id, title }) => [id, title]));
  const rows = Array.from(titles, ([id, title]) => [title, ...IN_FLIGHT.toReversed().flatMap((inFlight) => cells(id, inFlight))]);
  return { tables: [markdownTable([head, ...rows])], notes, plots: [plotOf(all)], figures: all };
}

function plotOf(all: readonly CycleFigures[]): Plot {
  const points = all.map(({ title, inFlight, cpuMs }) => ({ group: title, series: `${inFlight} in flight`, y: median(cpuMs) }));
  return { name: "cycles", title: "CPU of the process for one acquire and release", kind: "bars", value: "ms of CPU a cycle", points };
}
