/** The mistakes that the simulation must find, each within so many seeds. */
import type { MustFail } from "../support/witnesses.js";
import type { Bug } from "./bugs.js";
import { BUGS } from "./bugs.js";
import { loadSimulation } from "./bundle.js";
import { campaign } from "./campaign.js";
import type { History } from "./history.js";

/** A bug that is not found by then would need luck in a full run too. */
const SEEDS_PER_BUG = 500;
/** A history takes a quarter of a second; on a loaded machine, many times that. */
export const TIMEOUT_MS = 600_000;

/** These seeds, in order. */
export function* seedsFrom(first: number, count: number): Iterable<number> {
  for (let seed = first; seed < first + count; seed++) yield seed;
}

/** All of them, with the seed of a history as their witness. */
export const MISTAKES: readonly MustFail<number>[] = BUGS.map((bug) => ({
  name: bug.name,
  title: `must fail with ${bug.name}: ${bug.why}`,
  isShownBy: async (seed) => (await (await untilViolated(bug))(seed)).violations.length > 0,
  search: async () => {
    const simulated = await untilViolated(bug);
    const { failures } = await campaign(simulated, seedsFrom(1, SEEDS_PER_BUG), ({ violatingHistories }) => violatingHistories > 0);
    return failures[0]?.seed;
  },
}));

/** Simulates with the bug, each history as far as it shows. */
async function untilViolated(bug: Bug): Promise<(seed: number) => Promise<History>> {
  const simulate = await loadSimulation(bug);
  return (seed) => simulate(seed, { untilViolated: true });
}
