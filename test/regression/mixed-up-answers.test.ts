/**
 * A proxy mixes two answers up, once. Regression: the client took the other caller's lease for its own, and released it while its holder
 * treated it as held.
 */
import { afterAll, beforeAll, expect, it } from "vitest";
import { createLockClient } from "../../lib/index.js";
import type { HttpService } from "../support/http-service.js";
import { serve } from "../support/http-service.js";

let service: HttpService;
beforeAll(async () => void (service = await serve()));
afterAll(() => service.close());

it("a client that gets another's lease asks again, and releases only its own", async () => {
  let taken: Response | undefined;
  const recording: typeof fetch = async (...request) => {
    const answer = await fetch(...request);
    taken ??= answer.clone();
    return answer;
  };
  const bob = createLockClient({ url: service.url, fetch: recording });
  const bobs = await bob.acquire("BOB_1");
  let isMixedUp = false;
  const mixing: typeof fetch = async (...request) => {
    const answer = await fetch(...request);
    if (isMixedUp || !taken) return answer;
    isMixedUp = true;
    return taken;
  };
  const alice = createLockClient({ url: service.url, fetch: mixing });
  const alices = await alice.acquire("ALICE_1");
  expect([isMixedUp, alices.key, alices.leaseId === bobs.leaseId]).toEqual([true, "ALICE_1", false]);
  expect(await alices.release()).toBe("released");
  expect(await alice.tryAcquire("BOB_1")).toBeNull();
  expect([bobs.isHeld(), await bobs.release()]).toEqual([true, "released"]);
  await Promise.all([alice, bob].map((locks) => locks.close()));
});
