/** Two versions on one table under load, forward and back; and versions that can't do that, which must be found. */
import { describe, expect, it } from "vitest";
import { rollForwardAndBack } from "./rolling.js";
import { FORGETFUL, MISTAKES, NEXT } from "./versions.js";

const STAGE_MS = 4000;
const CONTROL_STAGE_MS = 1500;
/** The changes within which a mistake must show: it depends on which requests meet which version. */
const CHANGES = 4;
/** Processes start and end outside of the stages. */
const LIMIT_MS = 300_000;

describe("an upgrade under load, and the way back", () => {
  it("loses no lease, grants no key twice, keeps each queue's order and the newer fields", { timeout: LIMIT_MS }, async ({ annotate }) => {
    const { violations, counts } = await rollForwardAndBack({ next: NEXT, stageMs: STAGE_MS });
    await annotate(JSON.stringify(counts));
    expect(violations).toEqual([]);
    for (const what of ["granted", "wrote", "lines served", "runs done once", "runs taken over", "visits of PERMITS", "visits of BOOK"])
      expect(counts[what], what).toBeGreaterThan(0);
    for (const side of ["old", "next"]) expect(counts[`requests to the ${side} version`]).toBeGreaterThan(500);
  });

  it.each(MISTAKES)("control: a next version is found in which $next.name", { timeout: LIMIT_MS }, async ({ next, finds }) => {
    const found: string[] = [];
    for (let change = 0; change < CHANGES && !found.some((violation) => finds.test(violation)); change++)
      found.push(...(await rollForwardAndBack({ next, stageMs: CONTROL_STAGE_MS })).violations);
    expect(found).toContainEqual(expect.stringMatching(finds));
  });

  it("control: an old version is found that drops newer fields", { timeout: LIMIT_MS }, async () => {
    const { violations } = await rollForwardAndBack({ old: FORGETFUL, next: NEXT, stageMs: CONTROL_STAGE_MS });
    expect(violations).toContainEqual(expect.stringMatching(/dropped attributes of the hold/));
  });
});
