/** A few histories of the simulation: no violation, and the same history twice for each seed. `npm run sim` plays many. */
import { beforeAll, describe, expect, it } from "vitest";
import { loadSimulation } from "./bundle.js";
import { campaign } from "./campaign.js";
import type { simulate as Simulate } from "./history.js";
import { seedsFrom, TIMEOUT_MS } from "./must-fail.js";

/** The first of some seeds whose histories are short: one on the memory store, and the others on the table. */
const FIRST = 20;
const SEEDS = 3;

describe("the simulation", { timeout: TIMEOUT_MS }, () => {
  let simulate: typeof Simulate;
  beforeAll(async () => void (simulate = await loadSimulation(undefined)));

  it("finds no property broken", async () => {
    expect((await campaign(simulate, seedsFrom(FIRST, SEEDS))).failures).toEqual([]);
  });

  it("replays a seed exactly", async () => {
    const [first, again, other] = [await simulate(FIRST + 1), await simulate(FIRST + 1), await simulate(FIRST)];
    expect(again).toEqual(first);
    expect(other.digest).not.toBe(first.digest);
  });
});
