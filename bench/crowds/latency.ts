/** The time between two holders of a key at several latencies of the table, beside a loop on the bare SDK. In virtual time. */
import type { TableBehaviour } from "../../lib/testing/like-dynamodb.js";
import type { Report } from "../report/report.js";
import { markdownTable } from "../report/table.js";
import { type Figures, mediansOf } from "./figures.js";
import { turns } from "./scenes.js";

const SEEDS = [1, 2, 3, 4, 5, 6, 7];
const CROWD = { callers: 16, rounds: 5, holdMs: 20 } as const;

/** The latencies, each with the mean time of a request. */
const LATENCIES: readonly (readonly [what: string, requestMs: number, behaviour: Partial<TableBehaviour>])[] = [
  ["4 to 8 ms", 6, {}],
  ["4 ms more on each side", 14, { latencyMs: [12, 16] }],
  ["4 ms more on each side on average, exponentially", 14, { loadMs: 4 }],
  ["8 ms more on each side on average, exponentially", 22, { loadMs: 8 }],
];

/** Returns the table. */
export async function latency(): Promise<Report> {
  const rows: string[][] = [];
  for (const [what, requestMs, behaviour] of LATENCIES) {
    const [ours, naive] = [await medians("direct", behaviour), await medians("naive", behaviour)];
    const times = (CROWD.holdMs + ours.idleMs!) / (CROWD.holdMs + naive.idleMs!);
    rows.push([what, `${requestMs} ms`, ...columnsOf(ours), ...columnsOf(naive), times.toFixed(2)]);
  }
  const columns = ["between two holders", "requests", "units"];
  const head = ["a request", "mean", ...columns, ...columns.map((column) => `naive: ${column}`), "time of all, × naive"];
  return { tables: [markdownTable([head, ...rows])] };
}

async function medians(way: "direct" | "naive", behaviour: Partial<TableBehaviour>): Promise<Figures> {
  const runs: Figures[] = [];
  for (const seed of SEEDS) runs.push(await turns({ ...CROWD, way, behaviour })(seed));
  return mediansOf(runs);
}

function columnsOf({ idleMs, requests, units }: Figures): readonly string[] {
  return [`${idleMs!.toFixed(1)} ms`, requests.toFixed(1), units.toFixed(1)];
}
