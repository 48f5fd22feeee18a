/**
 * A process that has seen nothing takes a key that another one used within the last second. Regression: its token came from the later end of
 * a clock that tells the second alone, so 17 of 20 first writes were refused by the token before.
 */
import { expect, it } from "vitest";
import { coldTurns } from "../../../bench/crowds/scenes.js";

it("a key that another process used a moment ago costs a new one two writes", async () => {
  const { grants, writes, failed } = await coldTurns({ callers: 20 })(1);
  // The first process also records the table's tenancy.
  expect({ writes: writes * grants, failed }).toEqual({ writes: 2 * grants + 1, failed: 0 });
});
