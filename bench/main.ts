/**
 * `npm run bench`: the benchmarks of docs/performance.md, or the named ones. Each prints tables with the date and the
 * machine. No benchmark fails for being slow: the figures are for comparison.
 */
import { writeFile } from "node:fs/promises";
import { loadavg } from "node:os";
import { parseArgs } from "node:util";
import { buyers } from "./contest/buyers.js";
import { cycles } from "./contest/cycles.js";
import { growth } from "./cost/growth.js";
import { FIGURES, ON_PAGE, PAGE, PLOTS, readRun, record, writePlots } from "./page.js";
import { type Bench, type Report, type Run, machine, markdownOf } from "./report/report.js";
import { simulation } from "./simulation.js";
import { waiters } from "./contest/waiters.js";

// This project supports Node 20. The warnings that the AWS SDKs print don't help users of this program.
process.env["AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED"] ??= "true";
process.env["AWS_SDK_JS_SUPPRESS_MAINTENANCE_MODE_MESSAGE"] ??= "1";
// The older SDK opens a connection for each request otherwise.
process.env["AWS_NODEJS_CONNECTION_REUSE_ENABLED"] ??= "1";

interface Listed {
  readonly about: string;
  readonly bench: Bench;
}

// Loaded on demand: the CDK and esbuild are slow to load.
const BENCHES = new Map<string, Listed>([
  ["cycles", { about: "CPU and throughput of acquire and release, beside the bare AWS SDK and other libraries", bench: cycles }],
  ["waiters", { about: "16 waiters on a key: requests, order, time", bench: waiters }],
  ["buyers", { about: "1000 buyers of 30 pieces over two keys", bench: buyers }],
  [
    "takeover",
    { about: "time until the key of a dead holder is taken", bench: async (sizes) => (await import("./cost/takeover.js")).takeover(sizes) },
  ],
  [
    "leases",
    { about: "10,000 leases with heartbeats in one process", bench: async (sizes) => (await import("./contest/leases.js")).leases(sizes) },
  ],
  ["growth", { about: "requests and units as waiters, leases and keys become more", bench: growth }],
  ["crowd", { about: "up to 100,000 callers that wait in one process", bench: async (sizes) => (await import("./crowd.js")).crowd(sizes) }],
  ["crowds", { about: "crowds on a hot key, in virtual time", bench: async (sizes) => (await import("./crowds/crowds.js")).crowds(sizes) }],
  [
    "latency",
    {
      about: "the time between two holders at several latencies, in virtual time",
      bench: async () => (await import("./crowds/latency.js")).latency(),
    },
  ],
  ["memory", { about: "CPU and memory of the function", bench: async (sizes) => (await import("./cost/memory.js")).memory(sizes) }],
  [
    "weight",
    {
      about: "what a function pays: size, load, first lock; and the parts of the client (docs/decisions/015)",
      bench: async (sizes) => (await import("./size/weight.js")).weight(sizes),
    },
  ],
  [
    "rates",
    { about: "what a rate lets through, by its burst (docs/decisions/083)", bench: async () => (await import("./rates.js")).rates() },
  ],
  ["simulation", { about: "histories that the simulation plays a second", bench: simulation }],
  ["costs", { about: "the tables of docs/costs.md", bench: async () => (await import("./cost/costs.js")).costs() }],
  [
    "schemas",
    { about: "libraries for message schemas (docs/decisions/001)", bench: async () => (await import("./size/schemas.js")).schemas() },
  ],
]);

const OPTIONS = {
  quick: { type: "boolean", default: false },
  json: { type: "string" },
  plots: { type: "string" },
  from: { type: "string" },
  only: { type: "string" },
  record: { type: "boolean", default: false },
  help: { type: "boolean", short: "h", default: false },
} as const;

const HELP = `Usage: npm run bench -- [options] [benchmark…]

${[...BENCHES].map(([name, { about }]) => `  ${name.padEnd(14)}${about}`).join("\n")}

Without a name: those of ${PAGE}, in about ten minutes on an idle machine with two cores.

  --quick       a trial of the same code in about a minute; its figures mean nothing
  --json FILE   write the figures as JSON
  --plots DIR   write the plots as SVG
  --record      write the tables into ${PAGE}, the plots into ${PLOTS}, the figures into ${FIGURES}
  --only TEXT   of crowds, only the rows whose names contain this
  --from FILE   show, plot or record the figures of an earlier run, with the named benchmarks measured again`;

/** A wrong command line. */
class UsageError extends Error {}

async function main(args: readonly string[]): Promise<void> {
  const { values, names } = parsed(args);
  if (values.help || names.includes("help")) {
    console.log(HELP);
    return;
  }
  const earlier = values.from === undefined ? undefined : await readRun(values.from);
  // Stored after each benchmark, so that a run that is interrupted can go on from there.
  const store = async (done: Run): Promise<void> => {
    if (values.json !== undefined) await writeFile(values.json, `${JSON.stringify(done, null, 2)}\n`);
  };
  const isShown = earlier !== undefined && names.length === 0;
  const run = isShown ? earlier : await measure(names.length > 0 ? names : Object.keys(ON_PAGE), values, { earlier, store });
  if (isShown) for (const [name, report] of Object.entries(run.reports)) show(name, report, run);
  if (values.plots !== undefined) await writePlots(values.plots, run);
  if (values.record) await record(run);
}

function parsed(args: readonly string[]) {
  try {
    const { values, positionals } = parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true });
    const unknown = positionals.find((name) => name !== "help" && !BENCHES.has(name));
    if (unknown !== undefined) throw new UsageError(`there is no ${JSON.stringify(unknown)}, only ${[...BENCHES.keys()].join(" and ")}`);
    return { values, names: positionals };
  } catch (error) {
    throw error instanceof UsageError ? error : new UsageError((error as Error).message, { cause: error });
  }
}

interface Before {
  readonly earlier: Run | undefined;
  readonly store: (done: Run) => Promise<void>;
}

/** Measures. An earlier run keeps its figures of what isn't measured again. */
async function measure(
  names: readonly string[],
  { quick: isQuick, only = "" }: { readonly quick: boolean; readonly only?: string | undefined },
  { earlier, store }: Before,
): Promise<Run> {
  const beganMs = performance.now();
  const about = { machine: machine(), loadBefore: loadavg()[0] ?? 0, date: new Date().toISOString().slice(0, 10), isQuick };
  if (earlier && (earlier.machine !== about.machine || earlier.isQuick !== isQuick)) {
    throw new Error(`--from: its figures are of ${earlier.isQuick ? "a trial on " : ""}${earlier.machine}`);
  }
  let run: Run = { ...about, tookSec: earlier?.tookSec ?? 0, reports: earlier?.reports ?? {} };
  for (const name of names) {
    const report = await BENCHES.get(name)!.bench({ isQuick, only, untilMs: performance.now() + 1000 * (ON_PAGE[name] ?? Infinity) });
    const tookSec = (earlier?.tookSec ?? 0) + Math.round((performance.now() - beganMs) / 1000);
    run = { ...run, tookSec, reports: { ...run.reports, [name]: report } };
    show(name, report, run);
    await store(run);
  }
  return run;
}

function show(name: string, report: Report, { machine: where, date, isQuick }: Pick<Run, "machine" | "date" | "isQuick">): void {
  console.log(`\n${name}, ${date}, ${where}${isQuick ? ", A TRIAL: the figures mean nothing" : ""}\n\n${markdownOf(report)}`);
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  console.error(`bench: ${(error instanceof Error ? error.message : String(error)).split("\n", 1)[0]}`);
  process.exitCode = error instanceof UsageError ? 2 : 1;
}
