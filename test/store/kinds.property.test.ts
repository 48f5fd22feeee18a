/**
 * Readers, permits, levels of scopes and changes of mode through the store that guesses and through the core
 * alone: the same answers and the same records, step by step. And each predicate that keeps a guess from a
 * key that others hold is needed, and each part of what it writes.
 */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../lib/core/time.js";
import { createDynamoStore } from "../../lib/store/dynamo-store.js";
import { kindHistories, permitHistories, readerHistories } from "../core/kinds-history.js";
import { freshTable } from "../support/engine.js";
import { distort, kindsTwins } from "./kinds-twins.js";
import type { Play } from "./kinds-twins.js";
import { A, B, C, RULES, Scene } from "./scene.js";
import type { EngineTable } from "./twins.js";
import { weaken } from "./weaken.js";

/** So many histories at once, each of a key of its own: most of the time is spent in waiting for the engine. */
const AT_ONCE = 3;
const SEED = 20_270_402;
/** They take a while on an engine that is slow. */
const LONG_MS = 180_000;

const samePlayed = (play: Play, histories = kindHistories, told: (outcome: string) => void = () => undefined) =>
  fc.asyncProperty(fc.tuple(...Array.from({ length: AT_ONCE }, () => histories)), async (together) => {
    await Promise.all(together.map((history) => play(history, told)));
  });

/** What the histories come to, each at least once. */
const REACHED = {
  acquire: ["granted", "nested", "replayed", "locked", "limit-mismatch", "lease-over", "lease-reused", "forbidden"],
  mode: [
    ...["changed", "replayed", "locked", "upgrade-conflict", "token-mismatch", "limit-mismatch", "forbidden"],
    ...["lease-lost: expired", "lease-lost: broken", "lease-lost: released"],
  ],
  transfer: ["transferred", "locked", "lease-lost: expired"],
  renew: ["renewed", "forbidden", "lease-lost: expired", "lease-lost: broken", "lease-lost: taken"],
  release: ["released", "expired"],
  break: ["breaking", "broken", "other-hold"],
};

/** The predicates of the guesses without which another holder would be overlooked, or this one's lease taken for another. */
const PREDICATES = [
  ["size(h) = :zero", kindHistories],
  ["(attribute_not_exists(f) OR f < :now)", kindHistories],
  ["h.#me.p = :principal", kindHistories],
  ["h.#me.e > :earlier", kindHistories],
  ["attribute_not_exists(h.#me.b)", readerHistories],
  ["x <= :ttl", permitHistories],
] as const;

/** What a guess writes for the sake of kinds, and what it would be without it. */
const WRITTEN = [
  ["that the first grant's token is the floor", "ff = :now", "ff = if_not_exists(ff, :now)", kindHistories],
  ["the limit of the next caller", "lim = :limit", "lim = if_not_exists(lim, :limit)", permitHistories],
] as const;

async function isToldApart(histories: typeof kindHistories, weakened: (table: EngineTable) => () => number): Promise<void> {
  const table = await freshTable();
  const count = weakened(table);
  const { failed, errorInstance } = await fc.check(samePlayed(kindsTwins(table), histories), {
    seed: SEED,
    numRuns: 200,
    endOnFailure: true,
  });
  expect(count(), "writes that had it").toBeGreaterThan(0);
  expect(failed).toBe(true);
  // By what it says or keeps, and not by a request that the table could not take.
  expect((errorInstance as Error).name).toBe("AssertionError");
}

describe("the store that guesses, in every kind", () => {
  it("comes to the same as the core alone in 120 histories, and reaches every kind of outcome", { timeout: LONG_MS }, async () => {
    const told = new Map<string, number>();
    const count = (outcome: string): void => void told.set(outcome, (told.get(outcome) ?? 0) + 1);
    await fc.assert(samePlayed(kindsTwins(await freshTable()), kindHistories, count), { seed: SEED, numRuns: 120 / AT_ONCE });
    const wanted = Object.entries(REACHED).flatMap(([command, outcomes]) => outcomes.map((outcome) => `${command}: ${outcome}`));
    expect(
      wanted.filter((outcome) => !told.has(outcome)),
      JSON.stringify([...told]),
    ).toEqual([]);
  });

  it.each(PREDICATES)("control: is told apart from it without %s", { timeout: LONG_MS }, async (predicate, histories) => {
    await isToldApart(histories, ({ client }) => weaken(client, predicate));
  });

  it("forgets who waited to upgrade when the key is free; control: not if it doesn't write so", async () => {
    const left = async (table: EngineTable) => {
      const lock = new Scene(createDynamoStore({ ...table, rules: RULES, clock: systemClock, random: () => 0.5 }));
      for (const id of [A, B]) await lock.acquire(id, { mode: "shared" });
      const fencingToken = (await lock.read())?.holds[A]?.fencingToken ?? 0;
      await lock.apply({ type: "mode", key: lock.address.key, leaseId: A, principal: "P", mode: "exclusive", fencingToken });
      expect((await lock.read())?.upgrading?.leaseId).toBe(A);
      for (const id of [A, B]) await lock.release(id);
      expect((await lock.at(5).acquire(C)).ok).toBe(true);
      return (await lock.read())?.upgrading?.leaseId;
    };
    expect(await left(await freshTable())).toBeUndefined();
    const table = await freshTable();
    const distorted = distort(table.client, "if_not_exists(fl, :empty) REMOVE ug", "if_not_exists(fl, :empty)");
    expect(await left(table)).toBe(A);
    expect(distorted()).toBeGreaterThan(0);
  });

  it.each(WRITTEN)(
    "control: is told apart from it if it doesn't write %s",
    { timeout: LONG_MS },
    async (_, written, instead, histories) => {
      await isToldApart(histories, ({ client }) => distort(client, written, instead));
    },
  );
});
