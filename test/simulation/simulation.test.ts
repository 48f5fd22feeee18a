/** The simulation in the test run: no violation, and the same history twice for each seed. */
import { describe, expect, it } from "vitest";
import { loadSimulation } from "./bundle.js";
import { campaign } from "./campaign.js";
import { seedsFrom, TIMEOUT_MS } from "./must-fail.js";

/** Few histories. `simulation.slow.test.ts` simulates many. */
const SEEDS = 40;

describe("the simulation", { timeout: TIMEOUT_MS }, () => {
  it("finds no property broken", async () => {
    const { failures } = await campaign(await loadSimulation(undefined), seedsFrom(1, SEEDS));
    expect(failures).toEqual([]);
  });

  it("replays a seed exactly", async () => {
    const simulate = await loadSimulation(undefined);
    const [first, again, other] = [await simulate(7), await simulate(7), await simulate(8)];
    expect(again).toEqual(first);
    expect(other.digest).not.toBe(first.digest);
  });
});
