/** Requests in one process that wait for the same record share its reads; their first answer is always fresh. */
import { expect, it } from "vitest";
import type { LockRecord } from "../../lib/core/record.js";
import { watch } from "../../lib/service/watch.js";
import type { Address } from "../../lib/store/port.js";
import { VirtualClock } from "../../lib/testing.js";

const ADDRESS: Address = { namespace: "test", kind: "runs", key: "refund:42" };
const WAITERS = 200;
const WAIT_MS = 2000;
const LOOK_MS = 5;

/** A store that counts its reads, each of which takes time. */
function counted(clock: VirtualClock) {
  const counts = { reads: 0, fails: false };
  const store = {
    async read(): Promise<LockRecord | undefined> {
      counts.reads++;
      await new Promise<void>((resolve) => void clock.after(LOOK_MS, resolve));
      if (counts.fails) throw new Error("the table is away");
      return undefined;
    },
  };
  return { counts, store };
}

/** The reads of a single waiter, and of two hundred who start together and wait for `address`. */
async function readsOf(waiters: number, address: (index: number) => Address): Promise<number> {
  const clock = new VirtualClock();
  const { counts, store } = counted(clock);
  const waiting = Array.from({ length: waiters }, (_, index) =>
    watch({ store, clock, serverWaitMs: WAIT_MS }, address(index), WAIT_MS, () => false),
  );
  await clock.settle(Promise.all(waiting));
  return counts.reads;
}

it("two hundred who wait cost what one does, beside the first look of each", async () => {
  const alone = await readsOf(1, () => ADDRESS);
  expect(alone).toBeGreaterThan(5);
  expect(await readsOf(WAITERS, () => ADDRESS)).toBe(WAITERS + alone - 1);
});

it("control: of records of their own, as many times as much", async () => {
  const alone = await readsOf(1, () => ADDRESS);
  expect(await readsOf(WAITERS, (index) => ({ ...ADDRESS, key: `refund:${index}` }))).toBe(WAITERS * alone);
});

it("a look that fails fails for all who share it, and is made anew by the next", async () => {
  const clock = new VirtualClock();
  const { counts, store } = counted(clock);
  const ask = () => watch({ store, clock, serverWaitMs: WAIT_MS }, ADDRESS, WAIT_MS, () => false);
  const waiting = [ask(), ask()].map((one) => one.catch(() => "failed"));
  await clock.advance(LOOK_MS + 1);
  counts.fails = true;
  expect(await clock.settle(Promise.all(waiting))).toEqual(["failed", "failed"]);
  counts.fails = false;
  expect(await clock.settle(ask())).toBeUndefined();
});
