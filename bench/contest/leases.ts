/**
 * 10,000 leases that one process holds: the time to get them, the heap of each, and the CPU of their heartbeats. The
 * client alone has no network and a service that answers at once, so it shows what the client itself takes, as does the
 * cycle below the table. Each row is a process of its own, on the same cores as the engine and the service.
 */
import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { BASE_ID } from "./arena.js";
import { bundleProgram } from "./bundled.js";
import { startContest } from "./contest.js";
import { ENTRIES } from "./contestants.js";
import type { Report, Sizes } from "../report/report.js";
import { markdownTable, median } from "../report/table.js";

const SIZE = { leases: 10_000, leaseMs: 30_000, cycles: 20_000 } as const;
const QUICK = { leases: 300, leaseMs: 3000, cycles: 1000 } as const;
const CYCLE_ROUNDS = 3;

/** The figures of a process that held its leases. */
export interface Hold {
  /** The leases that it got, and the time that took, in ms. It stops after 12 s. */
  readonly got: number;
  readonly gotMs: number;
  /** CPU of the process while it only sends heartbeats, as a share of a core. */
  readonly cpuShare: number;
  /** The number of timers that are set; undefined if it is not counted. */
  readonly timersSet?: number | undefined;
  /** The heap of one lease, in bytes. */
  readonly bytesEach: number;
  /** The number of leases that are held at the end. */
  readonly held: number;
}

/** The figures of a way to hold leases. */
export interface LeaseFigures extends Hold {
  readonly id: string;
}

/** Returns the table, and the CPU of a cycle below it. @throws StartError if the engine or the service can't start. */
export async function leases({ isQuick }: Sizes): Promise<Report> {
  const size = isQuick ? QUICK : SIZE;
  const contest = await startContest(0, () => false);
  const directory = await mkdtemp(join(tmpdir(), "holdfast-leases-"));
  try {
    const holder = await bundleProgram("lease-holder.ts", directory);
    const ways = [
      [BASE_ID, ENTRIES[BASE_ID]!.title, contest.endpoint],
      ["alone", "the client alone", ""],
      ["table", ENTRIES["table"]!.title, contest.endpoint],
      ["service", ENTRIES["service"]!.title, contest.url],
    ] as const;
    const figures: LeaseFigures[] = [];
    for (const [id, , address] of ways)
      figures.push({ id, ...(await run<Hold>(holder, id, address, `${size.leases}`, `${size.leaseMs}`)) });
    const head = [`${size.leases.toLocaleString("en")} leases`, "got", "heap a lease", "timers", "CPU of heartbeats", "held at the end"];
    const rows = figures.map((hold, at) => [ways[at]![1], ...cellsOf(hold)]);
    const micros: number[] = [];
    for (let round = 0; round < CYCLE_ROUNDS; round++)
      micros.push(await run<number>(holder, "cycle", "", `${size.cycles}`, `${size.leaseMs}`));
    return {
      tables: [markdownTable([head, ...rows])],
      notes: [
        `Leases of ${size.leaseMs / 1000} s, each with a heartbeat after a third of that.`,
        `An acquire and a release take the client alone ${median(micros).toFixed(0)} µs of CPU, the median of ${CYCLE_ROUNDS} rounds.`,
      ],
      figures,
    };
  } finally {
    await contest.stop();
    await rm(directory, { recursive: true, force: true });
  }
}

function cellsOf({ got, gotMs, cpuShare, timersSet, bytesEach, held }: Hold): readonly string[] {
  return [
    `${got.toLocaleString("en")} in ${(gotMs / 1000).toFixed(1)} s`,
    `${(bytesEach / 1024).toFixed(1)} KB`,
    timersSet?.toLocaleString("en") ?? "",
    `${(100 * cpuShare).toFixed(1)} % of a core`,
    held.toLocaleString("en"),
  ];
}

async function run<Figures>(holder: string, ...args: readonly string[]): Promise<Figures> {
  const { stdout } = await promisify(execFile)(process.execPath, ["--expose-gc", holder, ...args]);
  return JSON.parse(stdout) as Figures;
}
