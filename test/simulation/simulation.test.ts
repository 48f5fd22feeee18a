/** A few histories of the simulation: no violation, and the same history twice for each seed. `npm run sim` plays many. */
import { beforeAll, describe, expect, it } from "vitest";
import { isThorough } from "../support/tier.js";
import { loadSimulation } from "./bundle.js";
import { campaign } from "./campaign.js";
import type { History, simulate as Simulate } from "./history.js";
import { TIMEOUT_MS } from "./must-fail.js";

/** Seeds with short histories, one for each kind of scene that not every history has: two ways, sleepers; in the slow tier limits and ways that are compared too. */
const SEEDS = isThorough() ? [6, 8, 12, 49] : [12, 49];

describe("the simulation", { timeout: TIMEOUT_MS }, () => {
  let simulate: typeof Simulate;
  const played = new Map<number, History>();
  beforeAll(async () => {
    simulate = await loadSimulation(undefined);
    for (const seed of SEEDS) played.set(seed, await simulate(seed));
  }, TIMEOUT_MS);

  it("finds no property broken", async () => {
    expect((await campaign(async (seed) => played.get(seed)!, SEEDS)).failures).toEqual([]);
  });

  it("replays a seed exactly", async () => {
    expect(await simulate(49)).toEqual(played.get(49));
    expect(played.get(12)?.digest).not.toBe(played.get(49)?.digest);
  });
});
