/** docs/performance.md: its generated parts come from a run, without measuring again. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { readPage, withParts } from "../test/docs/generated.js";
import type { Report, Run } from "./report.js";
import { markdownOf } from "./report.js";

/** The page, from the root of the repository. */
export const PAGE = "docs/performance.md";

/** Its plots. */
export const PLOTS = "docs/plots";

/** The benchmarks that the page shows. */
export const ON_PAGE = ["cycles", "waiters", "buyers", "growth", "crowd", "memory"] as const;

/** Returns the page with the figures of a run. @throws Error if the run lacks a benchmark, or was only a trial */
export async function pageOf(run: Run, page: string): Promise<string> {
  const missing = ON_PAGE.filter((name) => !run.reports[name]);
  if (missing.length > 0) throw new Error(`${PAGE} also needs ${missing.join(" and ")}`);
  if (run.isQuick) throw new Error(`${PAGE} needs a run without --quick`);
  const parts = ON_PAGE.map((name) => {
    const report = run.reports[name]!;
    return [name, name === "memory" ? ofTheStart(report) : withPlots(report)] as const;
  });
  const minutes = (run.tookSec / 60).toFixed(1);
  return withParts(page, {
    machine: `${run.date}, ${run.machine}, load ${run.loadBefore.toFixed(1)} before the run. It took ${minutes} minutes.`,
    ...Object.fromEntries(parts),
  });
}

/** The first table. The others of this report are for docs/costs.md. */
function ofTheStart({ tables }: Report): string {
  return markdownOf({ tables: tables.slice(0, 1) });
}

function withPlots(report: Report): string {
  const images = (report.plots ?? []).map(({ name, title }) => `![${title}](plots/${name}.svg)`);
  return [markdownOf(report), ...images].join("\n\n");
}

/** Writes the figures of a run into the page. @throws Error as {@link pageOf} */
export async function record(run: Run): Promise<void> {
  await writeFile(join(import.meta.dirname, "..", PAGE), await pageOf(run, readPage(PAGE)));
}
