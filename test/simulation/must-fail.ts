/** That the simulation finds a mistake, of each of these: in a test run, within so many seeds. */
import { expect, it } from "vitest";
import type { Bug } from "./bugs.js";
import { loadSimulation } from "./bundle.js";
import { campaign } from "./campaign.js";

/** A bug that is not found by then would need luck in a full run too. */
const SEEDS_PER_BUG = 500;
/** A history takes a quarter of a second; on a loaded machine, several times that. */
export const TIMEOUT_MS = 240_000;

/** These seeds, in order. */
export function* seedsFrom(first: number, count: number): Iterable<number> {
  for (let seed = first; seed < first + count; seed++) yield seed;
}

/** The tests of these bugs. */
export function mustFailWith(bugs: readonly Bug[]): void {
  it.each(bugs.map((bug) => ({ name: bug.name, why: bug.why, bug })))("must fail with $name: $why", async ({ bug }) => {
    const simulate = await loadSimulation(bug);
    const total = await campaign(simulate, seedsFrom(1, SEEDS_PER_BUG), ({ violatingHistories }) => violatingHistories > 0);
    expect(total.failures).not.toEqual([]);
  });
}
