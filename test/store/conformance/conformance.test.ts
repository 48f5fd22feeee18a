/** Runs the whole conformance suite for each store, in memory. The slow tier runs it on the engine. */
import { describe, expect, it } from "vitest";
import { createMemoryStore } from "../../support/memory-store.js";
import { tableInMemory } from "../../simulation/dynamo/table-in-memory.js";
import { lockStoreConformance } from "./conformance.js";
import { fiftyAcquire } from "./contending.js";
import { RunScene } from "../run-fixture.js";
import { fiftyStart } from "./running.js";
import { carelessStore, dynamoStoreOn, POLICY, Fixture } from "../fixture.js";
import { mutate } from "../mutate.js";

lockStoreConformance("memory-store", () => createMemoryStore({ policy: POLICY }));

lockStoreConformance("dynamo-store, on the table in memory", () => dynamoStoreOn(tableInMemory()));

describe("control: of fifty at once", () => {
  it("many are granted the key, and many run, by a memory that writes without a condition", async () => {
    const store = carelessStore();
    for (const outcomes of [await fiftyAcquire(new Fixture(store)), await fiftyStart(new RunScene(store))])
      expect(outcomes.filter((outcome) => outcome === "granted").length).toBeGreaterThan(1);
  });

  it("many replace the one before by a table that takes every guess for right", async () => {
    const { client, calls, tableName } = tableInMemory();
    mutate(client, "(attribute_not_exists(h) OR size(h) = :zero)", "(attribute_not_exists(f) OR f < :token)");
    const store = dynamoStoreOn({ calls, tableName });
    const lock = new Fixture(store);
    await fiftyAcquire(lock);
    expect((await lock.read())?.version).toBeGreaterThan(lock.clocks.latestMs + 1);
  });
  it("many run one after the other by a table that takes every guess for right", async () => {
    const { client, calls, tableName } = tableInMemory();
    mutate(client, "(attribute_not_exists(h) OR size(h) = :zero)", "(attribute_not_exists(f) OR f < :token)", "attribute_not_exists(rn)");
    const store = dynamoStoreOn({ calls, tableName });
    const run = new RunScene(store);
    await fiftyStart(run);
    expect((await run.read())?.version).toBeGreaterThan(run.clocks.latestMs + 1);
  });
});
