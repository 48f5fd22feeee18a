/**
 * The same random histories through two stores: the table with its fast path, and the core alone in memory. Both must give
 * the same answers and keep the same records, step by step. And each predicate of the fast path is needed: without it the
 * two are told apart.
 */
import * as fc from "fast-check";
import { expect } from "vitest";
import { freshTable } from "../support/engine.js";
import type { MustFail } from "../support/witnesses.js";
import type { EngineTable, Play } from "./differential-pair.js";

/** Histories, and how many of them a full run plays. */
export interface Part<H> {
  readonly histories: fc.Arbitrary<H>;
  readonly runs: number;
}

/** A change to what the table is sent. */
export interface Mistake<H> {
  /** Completes "is told apart from the core alone …". */
  readonly when: string;
  /** Makes the table forget a predicate, or write something else. Returns how many requests that has changed. */
  readonly change: (table: EngineTable) => () => number;
  /** The histories that show it. */
  readonly histories: fc.Arbitrary<H>;
}

/** A kind of histories. */
export interface RowOf<H> {
  /** The subject of the tests' names. */
  readonly name: string;
  readonly seed: number;
  /** So many histories are played at once, each of its own key: most of the time is spent in waiting for the engine. */
  readonly atOnce: number;
  readonly play: (table: EngineTable) => Play<H>;
  readonly parts: readonly Part<H>[];
  /** Every outcome that a full run must reach, or its histories have not been where it is interesting. */
  readonly reached: readonly string[];
  /** The bound of a search for a mistake. */
  readonly searchRuns: number;
  readonly mistakes: readonly Mistake<H>[];
}

/** A kind of histories, ready to be played. */
export interface Row {
  readonly name: string;
  /** How many histories a full run plays. */
  readonly runs: number;
  /** Plays one of so many of them. Returns the outcomes that were not reached. @throws an assertion when the stores differ. */
  play(oneOf: number): Promise<readonly string[]>;
  readonly mistakes: readonly MustFail<string>[];
}

/** Forgets the type of the histories, so that kinds can stand in one list. */
export function row<H>({ name, seed, atOnce, play, parts, reached, searchRuns, mistakes }: RowOf<H>): Row {
  const samePlayed = (stores: Play<H>, histories: fc.Arbitrary<H>, told: (outcome: string) => void = () => undefined) =>
    fc.asyncProperty(fc.tuple(...Array.from({ length: atOnce }, () => histories)), async (together) => {
      await Promise.all(together.map((history) => stores(history, told)));
    });

  /** The path of the first history that tells the two apart; undefined when none does. */
  async function toldApart({ change, histories }: Mistake<H>, bounds: { path?: string; numRuns: number }): Promise<string | undefined> {
    const table = await freshTable();
    const changed = change(table);
    const { errorInstance, counterexamplePath } = await fc.check(samePlayed(play(table), histories), {
      seed,
      endOnFailure: true,
      ...bounds,
    });
    table.client.destroy();
    expect(changed(), "requests that were changed").toBeGreaterThan(0);
    // By an answer or a record, and not by a request that the table could not take.
    if (errorInstance !== null) expect((errorInstance as Error).name).toBe("AssertionError");
    return counterexamplePath ?? undefined;
  }

  return {
    name,
    runs: parts.reduce((sum, { runs }) => sum + runs, 0),
    async play(oneOf) {
      const told = new Set<string>();
      const table = await freshTable();
      const stores = play(table);
      for (const { histories, runs } of parts)
        await fc.assert(
          samePlayed(stores, histories, (outcome) => told.add(outcome)),
          // To shrink histories so long takes longer than a test may, and its time limit would hide what differed.
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
