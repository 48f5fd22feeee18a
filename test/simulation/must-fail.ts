/** The mistakes that the simulation must find, each within a limited number of seeds. */
import type { MustFail } from "../support/witnesses.js";
import type { Bug } from "./bugs/bug.js";
import { loadSimulation } from "./bundle.js";
import type { History } from "./history.js";
import type { Property } from "./oracles/verdict.js";

/** The bound of a search, and what a full run plays. A bug that needs more seeds would be found only by luck in it. */
export const SEEDS_PER_BUG = 500;
/** A search of all seeds takes minutes for each mistake, and many times that on a loaded machine. */
export const TIMEOUT_MS = 3_600_000;

/** Yields these seeds in order. */
export function* seedsFrom(first: number, count: number): Iterable<number> {
  for (let seed = first; seed < first + count; seed++) yield seed;
}

export function mistakes(...bugs: readonly Bug[]): readonly MustFail<string>[] {
  return bugs.map((bug) => ({
    name: bug.name,
    title: `must fail with ${bug.name}: ${bug.why}`,
    isShownBy: async (witness) => {
      const { property, seed } = read(witness);
      return brokenIn(bug, await (await untilViolated(bug))(seed)) === property;
    },
    search: async () => {
      const simulated = await untilViolated(bug);
      for (const seed of seedsFrom(1, SEEDS_PER_BUG)) {
        const history = await simulated(seed);
        const property = brokenIn(bug, history);
        if (property) return `${property} in ${seed}, ${history.events} events`;
      }
      return undefined;
    },
  }));
}

function read(witness: string): { readonly property: string; readonly seed: number } {
  const [, property = "", seed] = /^(\S+) in (\d+)/.exec(witness) ?? [];
  return { property, seed: Number(seed) };
}

/** Simulates with the bug. Each history ends when the bug shows. */
async function untilViolated(bug: Bug): Promise<(seed: number) => Promise<History>> {
  const simulate = await loadSimulation(bug);
  return (seed) => simulate(seed, { untilViolated: bug.breaks ?? true });
}

/**
 * Returns the property that the bug must break, if the history broke it: by default the first that it broke. An internal error counts only
 * if it is the one to break, since an edit that no longer fits the code throws too.
 */
function brokenIn({ breaks }: Bug, { violations }: History): Property | undefined {
  return violations.find(({ property }) => (breaks === undefined ? property !== "internal" : property === breaks))?.property;
}
