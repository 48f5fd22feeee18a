/** The simulation with enough histories for every situation: no violation, and each situation was reached. */
import { describe, expect, it } from "vitest";
import { loadSimulation } from "./bundle.js";
import { campaign, unseen } from "./campaign.js";
import { seedsFrom, TIMEOUT_MS } from "./must-fail.js";

const SEEDS = 200;

describe("the simulation", { timeout: TIMEOUT_MS }, () => {
  it("finds no property broken, and has seen what it must have seen", async () => {
    const total = await campaign(await loadSimulation(undefined), seedsFrom(1, SEEDS));
    expect(total.failures).toEqual([]);
    expect(unseen(total)).toEqual([]);
  });
});
