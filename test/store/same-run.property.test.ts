/**
 * The same of runs as same-outcome.property.test.ts says of locks: what a guess leaves is what the core
 * would have decided, and each predicate of a guess is needed.
 */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { freshTable } from "../support/engine.js";
import { runCommandsOf, runHistories } from "./run-histories.js";
import type { RunHistory } from "./run-histories.js";
import { twins } from "./twins.js";
import type { EngineTable, Play } from "./twins.js";
import { weaken } from "./weaken.js";

/** So many histories at once, each of a key of its own: most of the time is spent in waiting for the engine. */
const AT_ONCE = 4;
const SEED = 20_270_101;
/** They take a while on an engine that is slow. */
const LONG_MS = 180_000;

const runTwins = (table: EngineTable): Play<RunHistory> => twins(table, { kind: "runs", commandsOf: runCommandsOf });
const samePlayed = (play: Play<RunHistory>, told: (outcome: string) => void = () => undefined) =>
  fc.asyncProperty(fc.tuple(...Array.from({ length: AT_ONCE }, () => runHistories)), async (together) => {
    await Promise.all(together.map((history) => play(history, told)));
  });

const lost = (...reasons: readonly string[]): readonly string[] => reasons.map((reason) => `lease-lost: ${reason}`);

/** What the histories come to, each at least once, or they have not been where it is interesting. */
const REACHED: Readonly<Record<string, readonly string[]>> = {
  start: [
    ...["granted", "replayed", "succeeded", "failed", "run-in-progress", "fingerprint-mismatch", "attempts-exhausted"],
    ...["forbidden", "lease-over", "lease-reused", "lease-id-time"],
  ],
  renew: ["renewed", "forbidden", "unavailable", ...lost("expired", "taken", "broken", "released", "never")],
  conclude: [
    "recorded",
    "replayed",
    "outcome-differs",
    "forbidden",
    "unavailable",
    ...lost("expired", "taken", "broken", "released", "never"),
  ],
  release: ["released", "expired", "lost", "never", "unknown", "forbidden"],
  reset: ["reset", "run-in-progress", "not-found"],
};

/** The predicates of the guesses, as they stand in the conditions, and which guess has no use without them. */
const PREDICATES = [
  // A start.
  "size(h) = :zero",
  "(attribute_not_exists(f) OR f < :now)",
  "NOT (r0.i = :me)",
  "NOT (r7.i = :me)",
  "(attribute_not_exists(fl) OR fl < :me)",
  "attribute_not_exists(rn)",
  // A heartbeat.
  "h.#me.e <= :expires",
  "h.#me.g <= :margin",
  "h.#me.l = :length",
  "x >= :ttl",
  "attribute_not_exists(h.#me.b)",
  // An outcome.
  "fl <= r7.i",
  "h.#me.a >= :lately",
  // Both.
  "h.#me.p = :principal",
  "h.#me.e > :earlier",
];

describe("the store that guesses about runs", () => {
  it("comes to the same as the core alone in 300 histories, and reaches every kind of outcome", { timeout: LONG_MS }, async () => {
    const told = new Map<string, number>();
    const count = (outcome: string): void => void told.set(outcome, (told.get(outcome) ?? 0) + 1);
    await fc.assert(samePlayed(runTwins(await freshTable()), count), { seed: SEED, numRuns: 300 / AT_ONCE });
    const wanted = Object.entries(REACHED).flatMap(([command, outcomes]) => outcomes.map((outcome) => `${command}: ${outcome}`));
    expect(
      wanted.filter((outcome) => !told.has(outcome)),
      JSON.stringify([...told]),
    ).toEqual([]);
  });

  it.each(PREDICATES)("control: is told apart from it without %s", { timeout: LONG_MS }, async (predicate) => {
    const table = await freshTable();
    const weakened = weaken(table.client, predicate);
    const { failed, errorInstance } = await fc.check(samePlayed(runTwins(table)), { seed: SEED, numRuns: 300, endOnFailure: true });
    expect(weakened(), "conditions that had it").toBeGreaterThan(0);
    expect(failed).toBe(true);
    // By what it says or keeps, and not by a request that the table could not take.
    expect((errorInstance as Error).name).toBe("AssertionError");
  });
});
