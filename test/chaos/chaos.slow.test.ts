/** A short run of `npm run chaos`, and its controls: without the lock, or without the comparison of tokens, it must fail. */
import { describe, expect, it } from "vitest";
import { type ChaosReport, chaos } from "./chaos.js";

const SECOND_MS = 1000;
/** Processes start and end outside of the times given below. */
const LIMIT_MS = 180 * SECOND_MS;

/** The number of faults whose name begins so. */
function countOf({ faults }: ChaosReport, start: string): number {
  return Object.entries(faults).reduce((sum, [what, count]) => sum + (what.startsWith(start) ? count : 0), 0);
}

describe("real processes under faults", () => {
  it("break no property, and every key is granted again", { timeout: LIMIT_MS }, async ({ annotate }) => {
    const report = await chaos({ seed: 1, faultsMs: 20 * SECOND_MS, writes: 50, healedMs: 15 * SECOND_MS });
    for (const notice of report.notices) await annotate(notice);
    expect(report.violations).toEqual([]);
    const struck = ["engine: ", "service: ", "resource: ", "worker ", "service ", "engine "].map((start) => countOf(report, start));
    expect(Math.min(...struck)).toBeGreaterThan(0);
  });

  it("break no property in two Regions, of which one or the other is cut off", { timeout: LIMIT_MS }, async () => {
    const report = await chaos({ seed: 2, faultsMs: 20 * SECOND_MS, writes: 50, healedMs: 15 * SECOND_MS, inRegions: true });
    expect(report.violations).toEqual([]);
    expect(countOf(report, "Region cut off")).toBeGreaterThan(0);
  });

  it("control: without the lock, updates are lost", { timeout: LIMIT_MS }, async () => {
    const { violations } = await chaos({ seed: 1, faultsMs: 0, writes: 100, healedMs: 0, without: "lock" });
    expect(violations.map(({ what }) => what)).toContainEqual(expect.stringMatching(/^no order of the increments explains/));
  });

  it("control: without the comparison of tokens, late writes do harm", { timeout: LIMIT_MS }, async () => {
    const { violations } = await chaos({ seed: 39, faultsMs: 0, writes: 60, healedMs: 0, without: "token" });
    expect(violations).not.toEqual([]);
  });
});
