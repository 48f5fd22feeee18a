/** The partner's API: three calls at a time, permits that come back, and a control without permits. */
import { describe, expect, it } from "vitest";
import { type Partner, partnerCalls, slowPartner } from "../../examples/family/partner-api.js";
import type { LockClient } from "../../lib/index.js";
import { createLockClient } from "../../lib/testing.js";
import { crash, LEASE_AND_MARGIN_MS } from "./family-crash.js";
import { gate } from "./gate.js";
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

/** Three callers with calls that the partner never answers, and further callers. */
async function threeInside() {
  const locks = createLockClient();
  const { clock, store } = locks;
  const silent: Partner = { ask: () => (entered.shift()!.open(), new Promise(() => undefined)) };
  const gates = [gate(), gate(), gate()];
  const entered = [...gates];
  const inside = gates.map(() => createLockClient({ store, clock }));
  for (const one of inside) void partnerCalls(one, silent)("anybody?").catch(() => undefined);
  await clock.settle(Promise.all(gates.map(({ opened }) => opened)));
  const ask = partnerCalls(
    locks,
    slowPartner(() => Promise.resolve()),
  );
  const isFull = async (): Promise<boolean> => {
    const lease = await locks.semaphore("PARTNER_API", { limit: 3 }).tryAcquire();
    await lease?.release();
    return lease === null;
  };
  return { locks, clock, inside, ask, isFull };
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

  it("gets back the permit of a caller that crashed, and only that one", async () => {
    const { locks, clock, inside, ask, isFull } = await threeInside();
    expect(await isFull()).toBe(true);
    await crash(inside[0]!);
    expect((await locks.inspect("PARTNER_API")).holders).toHaveLength(2);
    expect(await clock.settle(ask("now?"))).toBe("now?: yes");
  });

  it("control: of callers that live it gets none, however long they take", async () => {
    const { clock, isFull } = await threeInside();
    await clock.advance(2 * LEASE_AND_MARGIN_MS);
    expect(await isFull()).toBe(true);
  });
});
