/**
 * The shortest history found that breaks the same property. Faults and groups of clients are left out one by one, as long as that makes it no
 * longer. Then other seeds are tried with what is left.
 */
import type { Extent, History, Part } from "./history.js";

type Simulate = (seed: number, extent: Extent) => Promise<History>;

/** The seeds to try without a part before it counts as needed. Leaving it out changes the course of the history. */
const SEEDS_PER_PART = 4;
/** The seeds to try in the end. */
const SEEDS_AT_LAST = 40;

/** A history that breaks a property, and all that was left out of it. */
export interface Shrunk {
  readonly history: History;
  readonly without: readonly Part[];
}

/** Shrinks the history of `seed`. Returns undefined if it breaks nothing. `parts` are all that can be left out. */
export async function shrink(simulate: Simulate, seed: number, parts: readonly Part[]): Promise<Shrunk | undefined> {
  const whole = await simulate(seed, { untilViolated: true });
  const [broken] = whole.violations;
  if (!broken) return undefined;
  let shortest: Shrunk = { history: whole, without: [] };
  const tryOut = async (without: readonly Part[], { from, count }: { readonly from: number; readonly count: number }): Promise<void> => {
    for (let other = from; other < from + count; other++) {
      const history = await simulate(other, { untilViolated: true, without });
      const isAlike = history.violations[0]?.property === broken.property;
      if (isAlike && history.events <= shortest.history.events) shortest = { history, without };
    }
  };
  for (const part of parts) await tryOut([...shortest.without, part], { from: shortest.history.seed, count: SEEDS_PER_PART });
  await tryOut(shortest.without, { from: 1, count: SEEDS_AT_LAST });
  const { history, without } = shortest;
  return { without, history: await simulate(history.seed, { untilViolated: true, without, withTimeline: true }) };
}
