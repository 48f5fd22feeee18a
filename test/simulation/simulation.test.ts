/** A few histories of the simulation: no violation, and the same history twice for each seed. `npm run sim` plays many. */
import { beforeAll, describe, expect, it } from "vitest";
import { loadSimulation } from "./bundle.js";
import { campaign } from "./campaign.js";
import type { simulate as Simulate } from "./history.js";
import { TIMEOUT_MS } from "./must-fail.js";

/** Seeds with short histories, one for each kind of scene that not every history has: limits, ways that are compared, two ways, sleepers. */
const SEEDS = [6, 8, 12, 49];

describe("the simulation", { timeout: TIMEOUT_MS }, () => {
  let simulate: typeof Simulate;
  beforeAll(async () => void (simulate = await loadSimulation(undefined)));

  it("finds no property broken", async () => {
    expect((await campaign(simulate, SEEDS)).failures).toEqual([]);
  });

  it("replays a seed exactly", async () => {
    const [first, again, other] = [await simulate(49), await simulate(49), await simulate(8)];
    expect(again).toEqual(first);
    expect(other.digest).not.toBe(first.digest);
  });
});
