/**
 * 10,000 leases that one process holds: the time to get them, the heap of each, the timers, and the CPU of their
 * heartbeats. The second row has no network and a service that answers at once, so it shows what the client itself
 * takes, as does the cycle below the table. Each row is a process of its own, on the same cores as the engine and the
 * service.
 */
import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { build } from "esbuild";
import { createTable } from "../infra/local/create-table.js";
import { engineClient } from "../infra/local/engine-client.js";
import { startEngine } from "../infra/local/engine.js";
import { startService } from "./locks.js";
import { markdownTable, median } from "./table.js";

const LEASES = 10_000;
const CYCLE_ROUNDS = 7;

/** The figures of a process that held its leases. */
export interface Hold {
  /** The time until it held all of them, in ms. */
  readonly reachedMs: number;
  /** CPU of the process while it only sends heartbeats, as a share of a core. */
  readonly cpuShare: number;
  /** The number of timers that are set; undefined if it is not counted. */
  readonly timersSet?: number | undefined;
  /** The heap of one lease, in bytes. */
  readonly bytesEach: number;
  /** The number of leases that are held at the end. */
  readonly held: number;
}

/** Returns the table, and the CPU of a cycle below it. @throws StartError if the engine or the service can't start. */
export async function leases(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "holdfast-leases-"));
  const engine = await startEngine({});
  const table = engineClient(engine.endpoint);
  try {
    await createTable(table, "holdfast");
    const service = await startService(engine);
    try {
      const holder = await bundled(directory);
      const ways = [
        ["conditional updates through the bare AWS SDK", "sdk", engine.endpoint],
        ["the client alone: a service that answers at once", "alone", ""],
        ["holdfast on the table", "table", engine.endpoint],
        ["holdfast over HTTP", "http", `http://127.0.0.1:${service.port}`],
      ] as const;
      const rows: (readonly string[])[] = [];
      for (const [title, ...way] of ways) rows.push([title, ...cellsOf(await run<Hold>(holder, ...way, String(LEASES)))]);
      const head = [
        `${LEASES.toLocaleString("en")} leases`,
        "reached in",
        "heap a lease",
        "timers",
        "CPU of heartbeats",
        "held at the end",
      ];
      return `${markdownTable([head, ...rows])}\n\n${await cycle(holder)}`;
    } finally {
      await service.stop();
    }
  } finally {
    table.destroy();
    await engine.stop();
    await rm(directory, { recursive: true, force: true });
  }
}

function cellsOf({ reachedMs, cpuShare, timersSet, bytesEach, held }: Hold): readonly string[] {
  return [
    `${(reachedMs / 1000).toFixed(1)} s`,
    `${(bytesEach / 1024).toFixed(1)} KB`,
    timersSet?.toLocaleString("en") ?? "",
    `${(100 * cpuShare).toFixed(1)} % of a core`,
    held.toLocaleString("en"),
  ];
}

/** Returns a sentence on the client's own CPU for an acquire and a release. */
async function cycle(holder: string): Promise<string> {
  const rounds: number[] = [];
  for (let round = 0; round < CYCLE_ROUNDS; round++) rounds.push(await run<number>(holder, "cycle"));
  const [least, middle, most] = [Math.min(...rounds), median(rounds), Math.max(...rounds)].map((micros) => micros.toFixed(0));
  return `An acquire and a release take the client alone ${middle} µs of CPU (${least} to ${most}).`;
}

async function bundled(directory: string): Promise<string> {
  const outfile = join(directory, "lease-holder.cjs");
  const entry = join(import.meta.dirname, "lease-holder.ts");
  await build({ entryPoints: [entry], outfile, bundle: true, format: "cjs", platform: "node", target: "node20", logLevel: "error" });
  return outfile;
}

async function run<Figures>(holder: string, ...args: readonly string[]): Promise<Figures> {
  const { stdout } = await promisify(execFile)(process.execPath, ["--expose-gc", holder, ...args]);
  return JSON.parse(stdout) as Figures;
}
