/** The partner's API: three calls at a time, permits that come back, and a control without permits. */
import { describe, expect, it } from "vitest";
import { partnerCalls, slowPartner } from "../../examples/family/partner-api.js";
import type { LockClient } from "../../lib/index.js";
import { createLockClient } from "../../lib/testing.js";
import { unlocked } from "./family-unlocked.js";

const CALLERS = Array.from({ length: 10 }, (_, caller) => `question ${caller}`);

/** Ten concurrent callers, each its own process. Returns their answers, and the largest number of concurrent calls. */
async function askAll(clientOf: (locks: LockClient) => LockClient) {
  const first = createLockClient();
  const { clock, store } = first;
  const partner = slowPartner(() => new Promise<void>((resolve) => void clock.after(100, resolve)));
  const callers = CALLERS.map((question) => partnerCalls(clientOf(createLockClient({ store, clock })), partner)(question));
  const answers = await clock.settle(Promise.all(callers));
  return { answers, most: partner.most, holders: (await first.inspect("PARTNER_API")).holders };
}

describe("a partner's API with three calls at a time", () => {
  it("answers ten callers, and never has more than three inside", async () => {
    const { answers, most, holders } = await askAll((locks) => locks);
    expect(answers).toEqual(CALLERS.map((question) => `${question}: yes`));
    expect({ most, holders }).toEqual({ most: 3, holders: [] });
  });

  it("control: without the semaphore it has all ten", async () => {
    expect((await askAll(unlocked)).most).toBe(10);
  });
});
