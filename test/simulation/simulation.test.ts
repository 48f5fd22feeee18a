/** The simulation in the test run: nothing broken, enough seen, every bug found, every seed the same twice. */
import { describe, expect, it } from "vitest";
import { loadSimulation } from "./bundle.js";
import { campaign, unseen } from "./campaign.js";
import { KIND_BUGS } from "./kind-bugs.js";
import { mustFailWith, seedsFrom, TIMEOUT_MS } from "./must-fail.js";
import { QUEUE_BUGS } from "./queue-bugs.js";
import { RULE_BUGS } from "./rule-bugs.js";

const SEEDS = 120;

describe("the simulation", { timeout: TIMEOUT_MS }, () => {
  it("finds no property broken, and has seen what it must have seen", async () => {
    const total = await campaign(await loadSimulation(undefined), seedsFrom(1, SEEDS));
    expect(total.failures).toEqual([]);
    expect(unseen(total)).toEqual([]);
  });

  it("replays a seed exactly", async () => {
    const simulate = await loadSimulation(undefined);
    const [first, again, other] = [await simulate(7), await simulate(7), await simulate(8)];
    expect(again).toEqual(first);
    expect(other.digest).not.toBe(first.digest);
  });

  mustFailWith([...KIND_BUGS, ...QUEUE_BUGS, ...RULE_BUGS]);
});
