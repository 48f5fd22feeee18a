/** The simulation in the test run: nothing broken, enough seen, every bug found, every seed the same twice. */
import { describe, expect, it } from "vitest";
import { BUGS } from "./bugs.js";
import { loadSimulation } from "./bundle.js";
import { campaign, unseen } from "./campaign.js";

const SEEDS = 120;
/** A history takes a tenth of a second and more; on a loaded machine, several times that. */
const TIMEOUT_MS = 240_000;
/** A bug that is not found by then would need luck in a full run too. */
const SEEDS_PER_BUG = 500;

function* seedsFrom(first: number, count: number): Iterable<number> {
  for (let seed = first; seed < first + count; seed++) yield seed;
}

describe("the simulation", { timeout: TIMEOUT_MS }, () => {
  it("finds no property broken, and has seen what it must have seen", async () => {
    const total = await campaign(await loadSimulation(undefined), seedsFrom(1, SEEDS));
    expect(total.failures).toEqual([]);
    expect(unseen(total)).toEqual([]);
  });

  it("replays a seed exactly", async () => {
    const simulate = await loadSimulation(undefined);
    const [first, again, other] = [await simulate(7), await simulate(7), await simulate(8)];
    expect(again).toEqual(first);
    expect(other.digest).not.toBe(first.digest);
  });

  it.each(BUGS.map(({ name, why }) => ({ name, why })))("must fail with $name: $why", async ({ name }) => {
    const bug = BUGS.find((known) => known.name === name);
    const total = await campaign(
      await loadSimulation(bug),
      seedsFrom(1, SEEDS_PER_BUG),
      ({ violatingHistories }) => violatingHistories > 0,
    );
    expect(total.failures).not.toEqual([]);
  });
});
