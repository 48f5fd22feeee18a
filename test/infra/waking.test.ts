/** The agent's rights where nothing is named that it may wake. The recorded templates have the agent with everything (templates.test.ts). */
import { expect, it } from "vitest";
import { all, statementsOf } from "./resources.js";
import { synthesizeOwn } from "./synthesize.js";

it("an agent completes no callback of a function that isn't named, and asks about no execution", () => {
  const roles = all(
    synthesizeOwn(() => ({ wake: true })),
    "AWS::IAM::Role",
  );
  const statements = roles.filter(([id]) => id.startsWith("LocksAgent")).flatMap(([, role]) => statementsOf(role));
  expect(statements.length).toBeGreaterThan(3);
  expect(JSON.stringify(statements)).not.toMatch(/lambda:|Describe(?!Stream)/);
});
