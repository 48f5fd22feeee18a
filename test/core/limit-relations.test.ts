/** A constant that breaks a safety assumption prevents the start, in the sources and in the deployed bundle. */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { bundleFunction } from "../../infra/bundle.js";
import { assertLimits } from "../../lib/core/limit-relations.js";
import { DEFAULTS, LIMITS } from "../../lib/core/limits.js";

describe("the relations between limits", () => {
  it("hold", () => {
    expect(() => assertLimits()).not.toThrow();
  });

  it.each<[rule: string, limits: Partial<Record<keyof typeof LIMITS, number>>, defaults: Partial<Record<keyof typeof DEFAULTS, number>>]>([
    ["the default lease is within its bounds", {}, { leaseMs: LIMITS.leaseMaxMs + 1 }],
    ["a client treats the shortest lease as held for most of it", { leaseMinMs: 90 }, {}],
    ["a hold that is all that a key has fits beside a full queue", { recordBytes: 16 * 1024 }, {}],
    ["an item outlives every late duplicate of its ids", { leaseIdReachMs: LIMITS.leaseIdReachMs + 600_000 }, {}],
    ["an offer outlasts the next visit", {}, { offerWindowMs: LIMITS.pollMaxMs }],
    ["whoever lives reports before an offer lapses", { keepAliveAfterMs: LIMITS.pollMaxMs }, {}],
    ["a waiter that polls in time is seen before it loses its place", {}, { waiterTtlMs: LIMITS.pollMaxMs }],
    ["the default retention is not below its minimum", {}, { retentionMs: 60_000 }],
    ["an outcome's body has room for its result", { resultBytes: LIMITS.outcomeBodyBytes }, {}],
    ["the guard is wider than the error it guards", {}, { clockGuardMs: DEFAULTS.clockErrorMs }],
  ])("are named when one does not: %s", (rule, limits, defaults) => {
    expect(() => assertLimits({ ...LIMITS, ...limits }, { ...DEFAULTS, ...defaults })).toThrow(rule);
  });

  it("are asserted by the bundle that is deployed", async () => {
    const directory = await mkdtemp(join(tmpdir(), "holdfast-relations-"));
    try {
      await bundleFunction(directory);
      expect(await readFile(join(directory, "index.mjs"), "utf8")).toContain("the guard is wider than the error it guards");
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  });
});
