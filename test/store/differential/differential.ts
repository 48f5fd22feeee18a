/**
 * The same random histories through two stores: the table with its forms, and the core alone in memory. Both must give the same
 * answers and store the same records, step by step. Each predicate of a form is needed: without it the two stores differ.
 */
import * as fc from "fast-check";
import { expect } from "vitest";
import { tableOfTier } from "../../support/tier.js";
import type { MustFail } from "../../support/witnesses.js";
import type { EngineTable, Play } from "./differential-pair.js";

/** Histories, and the number of them in a full run. */
export interface Part<H> {
  readonly histories: fc.Arbitrary<H>;
  readonly runs: number;
}

/** A change to the requests that the table gets. */
export interface Mistake<H> {
  /** Completes "is told apart from the core alone …". */
  readonly when: string;
  /** Makes the table ignore a predicate, or write something else. Returns a function for the number of changed requests. */
  readonly change: (table: EngineTable) => () => number;
  /** The histories that show the mistake. */
  readonly histories: fc.Arbitrary<H>;
}

/** A kind of histories. */
export interface RowOf<H> {
  /** The subject of the tests' names. */
  readonly name: string;
  readonly seed: number;
  /** The number of histories that are played at once, each on its own key. Most of the time is spent waiting for the engine. */
  readonly atOnce: number;
  readonly play: (table: EngineTable) => Play<H>;
  readonly parts: readonly Part<H>[];
  /** Every outcome that a full run must reach. Otherwise the histories have missed the relevant cases. */
  readonly reached: readonly string[];
  /** The bound of a search for a mistake. */
  readonly searchRuns: number;
  readonly mistakes: readonly Mistake<H>[];
}

/** A kind of histories, ready to be played. */
export interface Row {
  readonly name: string;
  /** The number of histories in a full run. */
  readonly runs: number;
  /** Plays one in `oneOf` of the histories. Returns the outcomes that were not reached. @throws an assertion if the stores differ. */
  play(oneOf: number): Promise<readonly string[]>;
  readonly mistakes: readonly MustFail<string>[];
}

/** Hides the type of the histories, so that kinds fit in one list. */
export function row<H>({ name, seed, atOnce, play, parts, reached, searchRuns, mistakes }: RowOf<H>): Row {
  const samePlayed = (stores: Play<H>, histories: fc.Arbitrary<H>, told: (outcome: string) => void = () => undefined) =>
    fc.asyncProperty(fc.tuple(...Array.from({ length: atOnce }, () => histories)), async (together) => {
      await Promise.all(together.map((history) => stores(history, told)));
    });

  /** Returns the path of the first history in which the stores differ; undefined if there is none. */
  async function toldApart({ change, histories }: Mistake<H>, bounds: { path?: string; numRuns: number }): Promise<string | undefined> {
    const table = await tableOfTier();
    const changed = change(table);
    const { errorInstance, counterexamplePath } = await fc.check(samePlayed(play(table), histories), {
      seed,
      endOnFailure: true,
      ...bounds,
    });
    table.client.destroy();
    expect(changed(), "requests that were changed").toBeGreaterThan(0);
    // They must differ in an answer or a record. A request that the table could not process doesn't count.
    if (errorInstance !== null) expect((errorInstance as Error).name).toBe("AssertionError");
    return counterexamplePath ?? undefined;
  }

  return {
    name,
    runs: parts.reduce((sum, { runs }) => sum + runs, 0),
    async play(oneOf) {
      const told = new Set<string>();
      const table = await tableOfTier();
      const stores = play(table);
      for (const { histories, runs } of parts)
        await fc.assert(
          samePlayed(stores, histories, (outcome) => told.add(outcome)),
          // Shrinking such long histories takes longer than a test may, and the time limit would hide the difference.
          { seed, numRuns: Math.ceil(runs / atOnce / oneOf), endOnFailure: true },
        );
      table.client.destroy();
      return reached.filter((outcome) => !told.has(outcome));
    },
    mistakes: mistakes.map((mistake) => ({
      name: `${name} ${mistake.when}`,
      title: `control: ${name} is told apart from the core alone ${mistake.when}`,
      isShownBy: async (path) => (await toldApart(mistake, { path, numRuns: 1 })) !== undefined,
      search: () => toldApart(mistake, { numRuns: searchRuns }),
    })),
  };
}
