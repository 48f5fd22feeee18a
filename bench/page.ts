/** docs/performance.md: its generated parts come from a run, without measuring again. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { readPage, withParts } from "../test/docs/generated.js";
import type { Run } from "./report.js";
import { markdownOf } from "./report.js";

/** The page, from the root of the repository. */
export const PAGE = "docs/performance.md";

/** The benchmarks that the page shows. */
export const ON_PAGE = ["cycles", "waiters", "buyers", "growth", "crowd", "memory"] as const;

/** Returns the page with the figures of a run. @throws Error if the run lacks a benchmark, or was only a trial */
export async function pageOf(run: Run, page: string): Promise<string> {
  const missing = ON_PAGE.filter((name) => !run.reports[name]);
  if (missing.length > 0) throw new Error(`${PAGE} also needs ${missing.join(" and ")}`);
  if (run.isQuick) throw new Error(`${PAGE} needs a run without --quick`);
  const parts = ON_PAGE.map((name) => {
    const report = run.reports[name]!;
    // The rest of this report is for docs/costs.md.
    return [name, markdownOf(name === "memory" ? { tables: report.tables.slice(0, 1) } : report)] as const;
  });
  const minutes = (run.tookSec / 60).toFixed(1);
  return withParts(page, {
    machine: `${run.date}, ${run.machine}, load ${run.loadBefore.toFixed(1)} before the run. It took ${minutes} minutes.`,
    ...Object.fromEntries(parts),
  });
}

/** Writes the figures of a run into the page. @throws Error as {@link pageOf} */
export async function record(run: Run): Promise<void> {
  await writeFile(join(import.meta.dirname, "..", PAGE), await pageOf(run, readPage(PAGE)));
}
