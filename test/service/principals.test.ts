/** Principals in the table: digests of the same length for every caller, which still distinguish callers. */
import { expect, it } from "vitest";
import { digestOfPrincipal } from "../../lib/service/caller.js";
import { ACQUIRE, COMPLETE_RUN, directService, RELEASE, START } from "../support/direct-service.js";
import { BOB } from "../support/http-event.js";

const WAIT = { prefer: "wait=0" };

it("of holders, offers, waiters and outcomes are in the record as digests alone", async () => {
  const { ask, newId, store } = directService();
  const ids = [newId(), newId(), newId()] as const;
  for (const leaseId of ids) await ask(ACQUIRE, { leaseId, headers: WAIT });
  await ask(RELEASE, { leaseId: ids[0] });
  const offered = await store.read({ namespace: "default", kind: "locks", key: "ORDER_1" });
  await ask(ACQUIRE, { leaseId: ids[1], headers: WAIT });
  const held = await store.read({ namespace: "default", kind: "locks", key: "ORDER_1" });
  const leaseId = newId();
  await ask(START, { leaseId });
  await ask(COMPLETE_RUN, { leaseId, body: { state: "succeeded" } });
  const ran = await store.read({ namespace: "default", kind: "runs", key: "ORDER_1" });
  const digest = digestOfPrincipal("111122223333/AROAALICE");
  expect(digest).toMatch(/^[\w-]{12}$/);
  expect([
    offered?.offers[0]?.principal,
    held?.holds[ids[1]]?.principal,
    held?.waiters[0]?.principal,
    ran?.run?.outcome?.principal,
  ]).toEqual([digest, digest, digest, digest]);
  expect(JSON.stringify([offered, held, ran])).not.toContain("AROAALICE");
  // Control: they still distinguish callers.
  for (const id of ids.slice(1)) expect((await ask(RELEASE, { leaseId: id, authorizer: BOB })).status).toBe(403);
  expect((await ask(COMPLETE_RUN, { leaseId, body: { state: "succeeded" }, authorizer: BOB })).status).toBe(403);
});
