/**
 * `npm run model [-- --record | --variant NAME]`: checks lock.pml exhaustively with Spin, then each deliberate mistake, which must break
 * its property, and each situation, which must occur. `--record` writes results.md; `--variant` prints one mistake's story. Exits 1 on
 * an unexpected result, and 0 with a notice where Spin or gcc is missing.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { SITUATIONS, SLEEPERS_SITUATIONS, VARIANTS } from "./variants.js";

const MODEL = fileURLToPath(new URL("lock.pml", import.meta.url));
const RESULTS = fileURLToPath(new URL("results.md", import.meta.url));
/** A mistake is searched for in short histories first, so its story is short. The last depth is that of the whole search. */
const DEPTHS = [40, 60, 80, 1_000_000] as const;
const WHOLE = 1_000_000;
const MEMORY_MB = 4000;
/** Adds a sleeper and two agents to the model. */
const SLEEPER = "-DSLEEPER";

/** The result of one search. */
interface Search {
  readonly found: boolean;
  readonly isWhole: boolean;
  readonly states: number;
  readonly depth: number;
  readonly seconds: number;
  readonly story: string;
}

main();

function main(): void {
  const { values } = parseArgs({ options: { record: { type: "boolean", default: false }, variant: { type: "string" } } });
  const missing = ["spin", "gcc"].filter((tool) => spawnSync(tool, ["--version"]).error);
  if (missing.length > 0) {
    box(`NOT RUN: the model of the lock. There is no ${missing.join(" and no ")} on the path.`, "On Debian: apt-get install spin gcc");
    return;
  }
  const dir = mkdtempSync(join(tmpdir(), "holdfast-model-"));
  try {
    if (values.variant !== undefined) console.log(search(dir, flagsOf(values.variant), DEPTHS).story);
    else checkAll(dir, values.record);
  } finally {
    rmSync(dir, { recursive: true });
  }
}

function checkAll(dir: string, isRecorded: boolean): void {
  const rows = [proof(dir, "the protocol", []), proof(dir, "the protocol with a sleeper", [SLEEPER])];
  for (const { name, breaks } of VARIANTS) {
    const result = search(dir, flagsOf(name), DEPTHS);
    const broken = /^\s*([SL]\d+): /mu.exec(result.story)?.[1] ?? "nothing";
    rows.push(row(name, result.found && breaks.includes(broken), `breaks ${broken}`, result));
  }
  for (const [index, situation] of SITUATIONS.entries()) {
    const sleeps = index >= SITUATIONS.length - SLEEPERS_SITUATIONS.length;
    const result = search(dir, [`-DFIND=${index + 1}`, ...(sleeps ? [SLEEPER] : [])], DEPTHS);
    rows.push(row(situation, result.found, result.found ? "occurs" : "does not occur", result));
  }
  const bad = rows.filter(({ isGood }) => !isGood).length;
  console.log(`${VARIANTS.length} mistakes, ${SITUATIONS.length} situations, ${bad} unexpected results`);
  if (isRecorded) writeFileSync(RESULTS, recordOf(rows.map(({ cells }) => cells)));
  process.exitCode = bad > 0 ? 1 : 0;
}

/** Searches all states of the model without a mistake. */
function proof(dir: string, name: string, flags: readonly string[]): Row {
  const right = search(dir, flags, [WHOLE]);
  const isProved = !right.found && right.isWhole;
  if (!isProved) console.log(right.story);
  return row(name, isProved, isProved ? "no error, all states" : "an error, or not all states", right);
}

/** Builds the model with `flags`, and searches its states up to each depth until an error is found. */
function search(dir: string, flags: readonly string[], depths: readonly number[]): Search {
  const run = (command: string, args: readonly string[]): string => execFileSync(command, args, { cwd: dir, encoding: "utf8" });
  run("spin", ["-a", ...flags, MODEL]);
  // No partial-order reduction and no hashing of states to bits: every state is compared in full.
  run("gcc", ["-O1", "-w", "-DSAFETY", "-DNOREDUCE", `-DMEMLIM=${MEMORY_MB}`, "-o", "pan", "pan.c"]);
  const began = performance.now();
  for (const depth of depths) {
    const { stdout, status } = spawnSync("./pan", [`-m${depth}`, "-w24"], { cwd: dir, encoding: "utf8" });
    const errors = Number(/errors: (\d+)/u.exec(stdout)?.[1] ?? -1);
    if (errors === 0 && depth !== depths.at(-1)) continue;
    const isWhole = status === 0 && errors === 0 && !/too small|not completed|MEMLIM|out of memory/u.test(stdout);
    return {
      found: errors > 0,
      isWhole,
      states: Number(/(\d+) states, stored/u.exec(stdout)?.[1] ?? 0),
      depth: Number(/depth reached (\d+)/u.exec(stdout)?.[1] ?? 0),
      seconds: (performance.now() - began) / 1000,
      story: errors > 0 ? storyOf(dir, flags) : stdout,
    };
  }
  throw new Error("a search needs a depth");
}

/** Returns the steps that lead to the error, in words. */
function storyOf(dir: string, flags: readonly string[]): string {
  const { stdout } = spawnSync("spin", ["-t", "-k", "lock.pml.trail", ...flags, MODEL], { cwd: dir, encoding: "utf8" });
  return stdout.slice(0, Math.max(0, stdout.indexOf("#processes")));
}

function flagsOf(name: string): readonly string[] {
  const variant = VARIANTS.find((one) => one.name === name);
  if (!variant) throw new RangeError(`${name} is no mistake of test/model/variants.ts`);
  return [`-D${name.toUpperCase().replaceAll("-", "_")}`, ...(variant.sleeps ? [SLEEPER] : [])];
}

/** A row of the result, which is also printed. */
interface Row {
  readonly isGood: boolean;
  readonly cells: readonly string[];
}

function row(name: string, isGood: boolean, verdict: string, { states, depth, seconds }: Search): Row {
  const cells = [name, isGood ? verdict : `UNEXPECTED: ${verdict}`, `${states}`, `${depth}`, seconds.toFixed(1)];
  console.log(`${name.padEnd(50)} ${cells[1]}; ${states} states, depth ${depth}, ${seconds.toFixed(1)} s`);
  return { isGood, cells };
}

function recordOf(rows: readonly (readonly string[])[]): string {
  const version = spawnSync("spin", ["-V"], { encoding: "utf8" }).stdout.trim();
  const head = ["model", "result", "states", "depth", "time in s"];
  const widths = head.map((_title, column) => Math.max(...[head, ...rows].map((cells) => cells[column]?.length ?? 0)));
  const lines = [head, widths.map((width) => "-".repeat(width)), ...rows];
  const table = lines.map((cells) => `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(" | ")} |`).join("\n");
  const bounds =
    "3 leaseIds, 1 tombstone; in ticks: E 1, the other clock 2 off, drift 1, lease 3, offer 2, waiter 3, stall 0 or 2.\n" +
    "With a sleeper: 2 leaseIds, one of them asleep, and 2 agents; sleep 4, offer to it 4, sweep 1, no stall.";
  return `# Results of the model

Made by \`npm run model -- --record\` on ${new Date().toISOString().slice(0, 10)}, with ${version}.
Bounds: ${bounds}

${table}
`;
}

function box(...lines: readonly string[]): void {
  const width = Math.max(...lines.map(({ length }) => length));
  const edge = "*".repeat(width + 4);
  console.log(["", edge, ...lines.map((line) => `* ${line.padEnd(width)} *`), edge, ""].join("\n"));
}
