/**
 * A process that has seen nothing takes a key that another one used within the last second. Regression: its token came from the later end of
 * a clock that tells the second alone, so 17 of 20 first writes were refused by the token before.
 */
import { expect, it } from "vitest";
import { endBundling, loadBundle } from "../simulation/bundle.js";

it("a key that another process used a moment ago costs a new one two writes", async () => {
  const { takeTurns } = await loadBundle(undefined);
  await endBundling();
  const { grants, writes, lastedMs } = await takeTurns(20, 130);
  expect({ grants, lastedMs }).toEqual({ grants: 20, lastedMs: 2600 });
  // The first process also records the table's tenancy.
  expect(writes).toBe(2 * grants + 1);
});
