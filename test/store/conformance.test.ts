/** The stores there are, each through the whole suite. */
import { describe, expect, it } from "vitest";
import { systemClock } from "../../lib/core/time.js";
import { createDynamoStore } from "../../lib/store/dynamo-store.js";
import { createMemoryStore, createMemoryTable } from "../../lib/store/memory-store.js";
import { freshTable } from "../support/engine.js";
import { lockStoreConformance } from "./conformance.js";
import { fiftyAcquire } from "./contending.js";
import { RULES, Scene } from "./scene.js";
import { weaken } from "./weaken.js";

lockStoreConformance("memory-store", () => createMemoryStore({ rules: RULES }));

lockStoreConformance("dynamo-store", async () => {
  const { client, tableName } = await freshTable();
  return createDynamoStore({ client, tableName, rules: RULES, clock: systemClock, random: () => 0.5 });
});

describe("control: of fifty at once", () => {
  it("many are granted the key by a memory that writes without a condition", async () => {
    const table = createMemoryTable();
    const careless: typeof table = {
      ...table,
      replace(address, next) {
        table.remove(address);
        return table.replace(address, next, undefined);
      },
    };
    const outcomes = await fiftyAcquire(new Scene(createMemoryStore({ rules: RULES, table: careless })));
    expect(outcomes.filter((outcome) => outcome === "granted").length).toBeGreaterThan(1);
  });

  it("many replace the one before by a table that takes every guess for right", async () => {
    const { client, tableName } = await freshTable();
    weaken(client, "(attribute_not_exists(h) OR size(h) = :zero)", "(attribute_not_exists(f) OR f < :now)");
    const store = createDynamoStore({ client, tableName, rules: RULES, clock: systemClock, random: () => 0.5 });
    const lock = new Scene(store);
    await fiftyAcquire(lock);
    expect((await lock.read())?.version).toBeGreaterThan(lock.clocks.laterMs + 1);
  });
});
