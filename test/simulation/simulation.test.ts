/** A few histories of the simulation: no violation, and the same history twice for each seed. `npm run sim` plays many. */
import { describe, expect, it } from "vitest";
import { loadSimulation } from "./bundle.js";
import { campaign } from "./campaign.js";
import { seedsFrom, TIMEOUT_MS } from "./must-fail.js";

const SEEDS = 6;

describe("the simulation", { timeout: TIMEOUT_MS }, () => {
  it("finds no property broken", async () => {
    const total = await campaign(await loadSimulation(undefined), seedsFrom(1, SEEDS));
    expect(total.failures).toEqual([]);
  });

  it("replays a seed exactly", async () => {
    const simulate = await loadSimulation(undefined);
    const [first, again, other] = [await simulate(7), await simulate(7), await simulate(6)];
    expect(again).toEqual(first);
    expect(other.digest).not.toBe(first.digest);
  });
});
