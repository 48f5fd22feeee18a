/** The mistakes that the simulation must find, each within a limited number of seeds. */
import type { MustFail } from "../support/witnesses.js";
import type { Bug } from "./bugs/bug.js";
import { loadSimulation } from "./bundle.js";
import type { History } from "./history.js";
import type { Property } from "./oracles/verdict.js";

/** The bound of a search, and what a full run plays. A bug that needs more seeds would be found only by luck in it. */
export const SEEDS_PER_BUG = 500;
/** Says of a witness that a scene shows the mistake, without the world before it. */
const SCENE = "in a scene";
/** A search of all seeds takes minutes for each mistake, and many times that on a loaded machine. */
export const TIMEOUT_MS = 3_600_000;

/** Yields these seeds in order. */
export function* seedsFrom(first: number, count: number): Iterable<number> {
  for (let seed = first; seed < first + count; seed++) yield seed;
}

export function mistakes(...bugs: readonly Bug[]): readonly MustFail<string>[] {
  const shownByHistories = bugs.filter(({ noticedBy }) => noticedBy === undefined);
  return shownByHistories.map((bug) => ({
    name: bug.name,
    title: `must fail with ${bug.name}: ${bug.why}`,
    isShownBy: async (witness) => {
      const { property, seed, isOfScene } = read(witness);
      return brokenIn(bug, await (await untilViolated(bug))(seed, isOfScene)) === property;
    },
    search: async () => {
      const simulated = await untilViolated(bug);
      for (const seed of seedsFrom(1, SEEDS_PER_BUG)) {
        const history = await simulated(seed);
        const property = brokenIn(bug, history);
        if (!property) continue;
        const isOfScene = brokenIn(bug, await simulated(seed, true)) === property;
        return `${property} in ${seed}, ${isOfScene ? SCENE : `${history.events} events`}`;
      }
      return undefined;
    },
  }));
}

function read(witness: string): { readonly property: string; readonly seed: number; readonly isOfScene: boolean } {
  const [, property = "", seed, shown] = /^(\S+) in (\d+), (.*)$/.exec(witness) ?? [];
  return { property, seed: Number(seed), isOfScene: shown === SCENE };
}

/** Simulates with the bug. Each history ends when the bug shows. */
async function untilViolated(bug: Bug): Promise<(seed: number, scenesAlone?: boolean) => Promise<History>> {
  const simulate = await loadSimulation(bug);
  return (seed, scenesAlone = false) =>
    simulate(seed, { untilViolated: bug.breaks ?? true, scenesAlone, inRegions: bug.inRegions === true });
}

/**
 * Returns the property that the bug must break, if the history broke it: by default the first that it broke. An internal error counts only
 * if it is the one to break, since an edit that no longer fits the code throws too.
 */
function brokenIn({ breaks }: Bug, { violations }: History): Property | undefined {
  return violations.find(({ property }) => (breaks === undefined ? property !== "internal" : property === breaks))?.property;
}
