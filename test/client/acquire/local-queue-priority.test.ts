/**
 * Priorities among the callers of one process. Regressions: callers that named a default had a place of their own in the key's queue, and a
 * caller of priority 9 waited for eight local handoffs to callers of priority 0.
 */
import { expect, it } from "vitest";
import type { AcquireOptions } from "../../../lib/testing.js";
import { createHarness } from "../harness.js";

const KEY = "ORDER_1231";

/** Lets callers with these options come one after the other while the key is held, and returns the order in which they are served. */
async function served(options: readonly AcquireOptions[]): Promise<readonly number[]> {
  const { clock, locks } = createHarness();
  const held = await locks.acquire(KEY);
  const order: number[] = [];
  const all = options.map(async (one, index) => {
    await clock.advance(1);
    return locks.withLock(KEY, { waitMs: 600_000, ...one }, () => void order.push(index));
  });
  await clock.advance(1000);
  await held.release();
  await clock.settle(Promise.all(all));
  return order;
}

it("a default that is named is the default: its callers share one place", async () => {
  const { clock, locks, rival } = createHarness();
  await rival.acquire(KEY);
  const waits = [{}, { priority: 0 }, { permits: 1 }, { limit: 1, mode: "exclusive" as const }].map((options) =>
    locks.acquire(KEY, { waitMs: 5000, ...options }).catch(() => undefined),
  );
  await clock.advance(1000);
  expect((await rival.inspect(KEY)).waiters).toHaveLength(1);
  await clock.settle(Promise.all(waits));
});

it("the highest priority is served first, before any local handoff to a lower one", async () => {
  expect(await served([...Array<AcquireOptions>(8).fill({}), { priority: 9 }])).toEqual([8, 0, 1, 2, 3, 4, 5, 6, 7]);
  expect(await served([{}, { priority: 3 }, { priority: 9 }])).toEqual([2, 1, 0]);
});

it("control: callers of one priority are served in the order in which they came", async () => {
  expect(await served(Array<AcquireOptions>(4).fill({ priority: 5 }))).toEqual([0, 1, 2, 3]);
});
