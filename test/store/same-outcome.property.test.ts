/**
 * What a guess leaves is what the core would have decided: the same history through the store that
 * guesses and through the core alone comes to the same answers and the same records, step by step. And
 * each predicate of a guess is needed: without it the two are told apart.
 */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { freshTable } from "../support/engine.js";
import { commandsOf, histories } from "./histories.js";
import type { History } from "./histories.js";
import { twins } from "./twins.js";
import type { EngineTable, Play } from "./twins.js";
import { weaken } from "./weaken.js";

/** So many histories at once, each of a key of its own: most of the time is spent in waiting for the engine. */
const AT_ONCE = 3;
const SEED = 20_270_101;
/** They take a while on an engine that is slow. */
const LONG_MS = 180_000;

const lockTwins = (table: EngineTable): Play<History> => twins(table, { kind: "locks", commandsOf });
const samePlayed = (play: Play<History>, told: (outcome: string) => void = () => undefined) =>
  fc.asyncProperty(fc.tuple(...Array.from({ length: AT_ONCE }, () => histories)), async (together) => {
    await Promise.all(together.map((history) => play(history, told)));
  });

/** What the histories come to, each at least once, or they have not been where it is interesting. */
const REACHED = {
  acquire: ["granted", "replayed", "locked", "forbidden", "lease-over", "lease-reused", "lease-id-time"],
  renew: [
    "renewed",
    "forbidden",
    ...["expired", "taken", "broken", "released", "transferred", "never"].map((reason) => `lease-lost: ${reason}`),
  ],
  release: ["released", "expired", "lost", "transferred", "never", "unknown", "forbidden"],
  transfer: ["transferred", "replayed", "forbidden", "lease-over", "lease-id-time", "lease-lost: expired", "lease-lost: broken"],
  break: ["breaking", "broken", "other-hold", "not-found"],
};

/** The predicates of the guesses, as they stand in the conditions. */
const PREDICATES = [
  "size(h) = :zero",
  "(attribute_not_exists(f) OR f < :now)",
  "NOT (r0.i = :me)",
  "NOT (r7.i = :me)",
  "(attribute_not_exists(fl) OR fl < :me)",
  "h.#me.p = :principal",
  "h.#me.e > :earlier",
  "attribute_not_exists(h.#me.b)",
  "h.#me.e <= :expires",
  "h.#me.g <= :margin",
  "x <= :ttl",
  "h.#me.l = :length",
  "fl <= r7.i",
  "x >= :touched",
];

describe("the store that guesses", () => {
  it("comes to the same as the core alone in 300 histories, and reaches every kind of outcome", { timeout: LONG_MS }, async () => {
    const told = new Map<string, number>();
    const count = (outcome: string): void => void told.set(outcome, (told.get(outcome) ?? 0) + 1);
    await fc.assert(samePlayed(lockTwins(await freshTable()), count), { seed: SEED, numRuns: 300 / AT_ONCE });
    const wanted = Object.entries(REACHED).flatMap(([command, outcomes]) => outcomes.map((outcome) => `${command}: ${outcome}`));
    expect(
      wanted.filter((outcome) => !told.has(outcome)),
      JSON.stringify([...told]),
    ).toEqual([]);
  });

  it.each(PREDICATES)("control: is told apart from it without %s", { timeout: LONG_MS }, async (predicate) => {
    const table = await freshTable();
    const weakened = weaken(table.client, predicate);
    const { failed, errorInstance } = await fc.check(samePlayed(lockTwins(table)), { seed: SEED, numRuns: 300, endOnFailure: true });
    expect(weakened(), "conditions that had it").toBeGreaterThan(0);
    expect(failed).toBe(true);
    // By what it says or keeps, and not by a request that the table could not take.
    expect((errorInstance as Error).name).toBe("AssertionError");
  });
});
