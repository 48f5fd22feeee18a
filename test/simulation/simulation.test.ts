/** The simulation in the test run: no violation, and the same history twice for each seed. */
import { describe, expect, it } from "vitest";
import { isThorough, sized } from "../support/tier.js";
import { loadSimulation } from "./bundle.js";
import { campaign, unseen } from "./campaign.js";
import { seedsFrom, TIMEOUT_MS } from "./must-fail.js";

const SEEDS = { quick: 6, slow: 200 };

describe("the simulation", { timeout: TIMEOUT_MS }, () => {
  it("finds no property broken, and has seen what it must have seen", async () => {
    const total = await campaign(await loadSimulation(undefined), seedsFrom(1, sized(SEEDS)));
    expect(total.failures).toEqual([]);
    if (isThorough()) expect(unseen(total)).toEqual([]);
  });

  it("replays a seed exactly", async () => {
    const simulate = await loadSimulation(undefined);
    const [first, again, other] = [await simulate(7), await simulate(7), await simulate(6)];
    expect(again).toEqual(first);
    expect(other.digest).not.toBe(first.digest);
  });
});
