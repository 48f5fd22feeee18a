/** The mistakes that the simulation must find, each within a limited number of seeds. */
import type { MustFail } from "../support/witnesses.js";
import type { Bug } from "./bug.js";
import { BUGS } from "./bugs.js";
import { loadSimulation } from "./bundle.js";
import { campaign } from "./campaign.js";
import type { History } from "./history.js";

/** The bound of a search. A bug that needs more seeds would be found only by luck in a full run. */
const SEEDS_PER_BUG = 500;
/** A history takes a quarter of a second, and many times that on a loaded machine. */
export const TIMEOUT_MS = 600_000;

/** Yields these seeds in order. */
export function* seedsFrom(first: number, count: number): Iterable<number> {
  for (let seed = first; seed < first + count; seed++) yield seed;
}

/** All mistakes. Their witness is a property and the seed of a history that breaks it first: `S5 in 12`. */
export const MISTAKES: readonly MustFail<string>[] = BUGS.map((bug) => ({
  name: bug.name,
  title: `must fail with ${bug.name}: ${bug.why}`,
  isShownBy: async (witness) => {
    const [property, , seed] = witness.split(" ");
    const { violations } = await (await untilViolated(bug))(Number(seed));
    return violations[0]?.property === property;
  },
  search: async () => {
    const simulated = await untilViolated(bug);
    const { failures } = await campaign(simulated, seedsFrom(1, SEEDS_PER_BUG), ({ violatingHistories }) => violatingHistories > 0);
    return failures[0] && `${failures[0].property} in ${failures[0].seed}`;
  },
}));

/** Simulates with the bug. Each history ends when the bug shows. */
async function untilViolated(bug: Bug): Promise<(seed: number) => Promise<History>> {
  const simulate = await loadSimulation(bug);
  return (seed) => simulate(seed, { untilViolated: true });
}
