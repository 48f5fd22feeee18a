/** Waiters whose leaseIds end alike, so that they have the same mark in the item's list (lib/store/dynamo/lists.ts). */
import { expect, it } from "vitest";
import { markOf } from "../../lib/store/dynamo/lists.js";
import { tableInMemory } from "../simulation/dynamo/table-in-memory.js";
import { A, B, dynamoStoreOn, outcomeOf } from "./fixture.js";
import { QueueScene } from "./queue-fixture.js";

/** A later id than B that ends as B does. */
const TWIN = B.replace(/..(?=.-.{12}$)/, "ff");

it("have places of their own, and each leaves or claims its own", async () => {
  expect([TWIN > B, markOf(TWIN)]).toEqual([true, markOf(B)]);
  const lock = new QueueScene(dynamoStoreOn(tableInMemory()));
  await lock.acquire(A);
  for (const leaseId of [B, TWIN]) expect(outcomeOf(await lock.queue(leaseId))).toBe("waiting");
  expect((await lock.standing()).waiters).toEqual([B, TWIN]);
  await lock.release(TWIN);
  expect((await lock.standing()).waiters).toEqual([B]);
  await lock.release(A);
  expect(outcomeOf(await lock.queue(B))).toBe("granted");
});
