/**
 * docs/performance.md shows the run in bench/figures.json: its tables, plots and verdicts. `npm run bench -- --record`
 * writes all of them. No test asserts what was measured.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { COSTS, FIGURES, ON_PAGE, PAGE, PLOTS, costsPageOf, pageOf, readRun } from "../../bench/page.js";
import { svgOf } from "../../bench/report/plots.js";
import { type Target, isMet, targetsOf, targetsTable } from "../../bench/targets.js";
import { ROOT } from "../tidy/tree.js";
import { readPage } from "./generated.js";

const RUN_MAX_SEC = 8 * 60;
const REASON = "\n**Where it falls short.** ";

const text = readPage(PAGE);
const run = await readRun(join(ROOT, FIGURES));

/** The sections with a target that isn't met, and without a reason. */
function unexplained(page: string, targets: readonly Target[]): readonly string[] {
  const sections = page.split("\n## ");
  const missed = new Set(targets.filter((target) => !isMet(target)).map(({ section }) => section));
  return [...missed].filter((name) => !sections.some((section) => section.startsWith(`${name}\n`) && section.includes(REASON)));
}

describe("the page of the performance", () => {
  it("is the one that its figures make", async () => {
    expect(await pageOf(run)).toBe(text);
  });

  it("and the crowds of the costs are those of the same figures", async () => {
    expect(await costsPageOf(run)).toBe(readPage(COSTS));
  });

  it("has the plots that its figures make", () => {
    const plots = Object.values(run.reports).flatMap(({ plots: all = [] }) => all);
    expect(plots.map(({ name }) => name)).toEqual(["cycles", "waiters", "growth-requests", "growth-units", "crowds"]);
    for (const plot of plots) expect(readFileSync(join(ROOT, PLOTS, `${plot.name}.svg`), "utf8")).toBe(svgOf(plot));
  });

  it("says of a trial that it is one", async () => {
    for (const isQuick of [true, false]) expect((await pageOf({ ...run, isQuick })).includes("**A trial in seconds")).toBe(isQuick);
  });

  it("gives a reason in each section whose targets aren't all met", () => {
    expect(unexplained(text, targetsOf(run))).toEqual([]);
  });

  it("is measured in less than 8 minutes", () => {
    expect(Object.values(ON_PAGE).reduce((total, seconds) => total + seconds)).toBeLessThan(RUN_MAX_SEC);
  });
});

it.each([
  ["most", 0.5, 0.5, "met"],
  ["most", 0.5, 0.61, "**missed** by 22 %"],
  ["least", 35, 7, "**missed** by 80 %"],
  ["least", 0.9, 1, "met"],
  ["most", 0, 3, "**missed**"],
  ["most", 1, undefined, "–"],
] as const)("a target of at %s %d with the figure %d is told as %s", (at, limit, figure, verdict) => {
  const [row = ""] = targetsTable([{ section: "Growth", title: "a", at, limit, unit: "", figure }])
    .split("\n")
    .slice(-1);
  expect(row.split("|").at(-2)?.trim()).toBe(verdict);
});
