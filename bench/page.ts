/** docs/performance.md, and the crowds of docs/costs.md: what is generated there comes from a run, which is stored beside this file. */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { format, resolveConfig } from "prettier";
import { partsOf, readPage, withParts } from "../test/docs/generated.js";
import type { PlayedRow } from "./crowds/crowds.js";
import { unitsTable } from "./crowds/units.js";
import { type Report, type Run, markdownOf } from "./report/report.js";
import { targetsOf, targetsTable } from "./targets.js";

const ROOT = join(import.meta.dirname, "..");
/** The page, the one that has a table of the same run, the plots, and the run that they show, from the root of the repository. */
export const PAGE = "docs/performance.md";
export const COSTS = "docs/costs.md";
export const PLOTS = "docs/plots";
export const FIGURES = "bench/figures.json";

/** The benchmarks that the page shows, each with the time after which it repeats nothing, in s; 0: it repeats nothing, in virtual time. */
export const ON_PAGE: Readonly<Record<string, number>> = {
  cycles: 112,
  waiters: 75,
  buyers: 70,
  takeover: 10,
  leases: 75,
  growth: 65,
  crowd: 20,
  crowds: 0,
  memory: 25,
  weight: 12,
  simulation: 15,
};

/** The reports whose other tables are for other documents. */
const FIRST_TABLE_ONLY: readonly string[] = ["crowds", "memory", "weight"];

/** Returns the page with the figures of a run. @throws Error if the run lacks a benchmark */
export async function pageOf(run: Run, page = readPage(PAGE)): Promise<string> {
  const missing = Object.keys(ON_PAGE).filter((name) => !run.reports[name]);
  if (missing.length > 0) throw new Error(`${PAGE} also needs ${missing.join(" and ")}`);
  const parts = Object.keys(ON_PAGE).map((name) => [name, partOf(run.reports[name]!, FIRST_TABLE_ONLY.includes(name))] as const);
  const minutes = (run.tookSec / 60).toFixed(1);
  const trial = "**A trial in seconds: these figures show that the benchmarks run, and mean nothing else.** ";
  return withParts(page, {
    ...partsOf(page),
    machine: `${run.isQuick ? trial : ""}${run.date}, ${run.machine}, load ${run.loadBefore.toFixed(1)} before the run, which took ${minutes} minutes.`,
    targets: targetsTable(targetsOf(run)),
    ...Object.fromEntries(parts),
  });
}

function partOf(report: Report, isFirstTableOnly: boolean): string {
  const tables = report.tables.slice(0, isFirstTableOnly ? 1 : undefined);
  const images = (report.plots ?? []).map(({ name, title }) => `![${title}](plots/${name}.svg)`);
  return [markdownOf({ ...report, tables }), ...images].join("\n\n");
}

/** Returns docs/costs.md with the crowds of a run. */
export function costsPageOf({ reports }: Run, page = readPage(COSTS)): Promise<string> {
  return withParts(page, { ...partsOf(page), crowds: unitsTable(reports["crowds"]?.figures as PlayedRow[]) });
}

/** Writes the plots of a run. */
export async function writePlots(directory: string, { reports }: Run): Promise<void> {
  const { svgOf } = await import("./report/plots.js");
  await mkdir(directory, { recursive: true });
  for (const plot of Object.values(reports).flatMap(({ plots = [] }) => plots))
    await writeFile(join(directory, `${plot.name}.svg`), svgOf(plot));
}

/** Writes a run, its pages and its plots. @throws Error as {@link pageOf} */
export async function record(run: Run): Promise<void> {
  const [page, costs] = [await pageOf(run), await costsPageOf(run)];
  const figures = await format(JSON.stringify(run), { ...(await resolveConfig(join(ROOT, FIGURES))), parser: "json" });
  await writeFile(join(ROOT, FIGURES), figures);
  await writeFile(join(ROOT, PAGE), page);
  await writeFile(join(ROOT, COSTS), costs);
  await writePlots(join(ROOT, PLOTS), run);
}

/** Reads a stored run. */
export async function readRun(path: string): Promise<Run> {
  return JSON.parse(await readFile(path, "utf8")) as Run;
}
