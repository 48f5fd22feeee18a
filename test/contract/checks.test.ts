/** The client's checks of answers are those that the schemas make. To accept a change of them: `npx vitest run test/contract/checks -u` */
import { expect, it } from "vitest";
import * as answers from "../../lib/contract/checks.js";
import { madeChecks } from "./made-checks.js";

const LEASE = {
  ...{ key: "k", leaseId: "01a2ce8b-d400-7145-b733-952723412670", owner: "", mode: "exclusive", permits: 1, holdCount: 1, fencingToken: 7 },
  ...{ leaseMs: 3000, remainingMs: 2990, renewAfterMs: 1000, version: 4, serverTimeMs: 1, meta: { a: 1 } },
};

it("checks.ts is what the schemas make of it", async () => {
  await expect(await madeChecks()).toMatchFileSnapshot("../../lib/contract/checks.ts");
});

it("a lease is refused if a member is of another type, whatever it is instead", () => {
  expect(answers.isLease(LEASE)).toBe(true);
  for (const name of ["fencingToken", "leaseMs", "remainingMs", "renewAfterMs", "version", "serverTimeMs", "key", "mode"])
    for (const other of [undefined, null, "soon", "1000", -1, 1.5, Number.NaN, true, {}].filter(
      (value) => name !== "key" || typeof value !== "string",
    ))
      expect(answers.isLease({ ...LEASE, [name]: other }), `${name} ${JSON.stringify(other)}`).toBe(false);
  for (const other of [undefined, null, "", 1, [], {}]) expect(answers.isLease(other), JSON.stringify(other)).toBe(false);
});

it("what a newer service adds is accepted: members, and words on which no decision depends", () => {
  expect(answers.isLease({ ...LEASE, later: 1 })).toBe(true);
  const run = { key: "k", version: 1, state: "paused", attempt: 1, fencingToken: 7 };
  expect([answers.isRun(run), answers.isRun({ ...run, keptForMs: "forever" }), answers.isRun({ ...run, keptForMs: "long" })]).toEqual([
    true,
    true,
    false,
  ]);
  expect(answers.isWaiting({ state: "later", position: 1, retryAfterMs: 1, pollWithinMs: 1 })).toBe(false);
});
