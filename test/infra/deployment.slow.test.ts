/**
 * The functions as synthesized, not as in the sources: their bundle behind the gateway, every route at its function in
 * the stack, tested for conformance with the whole API.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { conformance } from "../e2e/conformance.js";
import { withHeaders } from "../e2e/target.js";
import { filterPattern } from "../support/filter-pattern.js";
import { type Deployment, deployHere, engineVariables } from "./deployment.js";
import { runApp } from "./synthesize.js";

let deployment: Deployment;

beforeAll(async () => {
  const { status, stderr, directory } = runApp({});
  expect(status, stderr).toBe(0);
  deployment = await deployHere(directory, await engineVariables());
});

afterAll(() => deployment.close());

conformance("the synthesized functions", async () => ({
  url: deployment.url,
  fetch,
  asAnother: withHeaders({ "x-holdfast-principal": "another" }),
}));

describe("what was asked above", () => {
  it("was answered by three functions, holders' calls by theirs", () => {
    expect([...deployment.answered.keys()].map((id) => id.replace(/[0-9A-F]{8}$/, "")).sort()).toEqual([
      "LocksAcquire",
      "LocksAdmin",
      "LocksHold",
    ]);
  });

  it("is in the log, where the metric of grants counts it, and no line has a leaseId", () => {
    const lines = deployment.log.map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>);
    const granted = lines.filter(({ event }) => event === "granted");
    expect(granted.length).toBeGreaterThan(50);
    const isCounted = filterPattern(deployment.counted.get("Granted") ?? "");
    expect(lines.filter(isCounted)).toEqual(granted);
    expect(deployment.log.filter((line) => /[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-/.test(line))).toEqual([]);
  });
});
