/** Waits and notifies with lost, late or repeated messages: no notify is lost, and none counts twice. */
import { describe, expect, it } from "vitest";
import { refuse } from "../../../lib/core/errors.js";
import { LockTimeoutError } from "../../../lib/index.js";
import { createHarness } from "../harness.js";

const KEY = "STOCK_1";

describe("a wait", () => {
  it("whose answer was lost is sent again with the same new leaseId, and there is one member", async () => {
    const { clock, locks, rival, wire } = createHarness();
    const lease = await locks.acquire(KEY);
    wire.next("waitForCondition", { lost: "reply" }, { lost: "reply", silently: true });
    const waited = lease.wait("filled", { waitMs: 600_000 });
    await clock.advance(10_000);
    const ids = wire.of("waitForCondition").map(({ request }) => (request as { to?: { leaseId: string } }).to?.leaseId);
    expect([ids.length, new Set(ids).size]).toEqual([3, 1]);
    expect((await rival.inspect(KEY)).waitSet).toHaveLength(1);
    await rival.withLock(KEY, async (filling) => expect(await filling.notifyAll("filled")).toBe(1));
    await clock.settle(waited);
    expect(lease.isHeld()).toBe(true);
  });

  it("is not held from before the request is sent", async () => {
    const { clock, locks, wire } = createHarness();
    const lease = await locks.acquire(KEY);
    let held: boolean | undefined;
    wire.onSend = ({ operation }) => {
      if (operation === "waitForCondition") held = lease.isHeld();
    };
    lease.wait("filled").catch(() => undefined);
    await clock.advance(100);
    expect(held).toBe(false);
  });

  it("that is never answered holds nothing", async () => {
    const { clock, locks, rival, wire } = createHarness();
    const lease = await locks.acquire(KEY);
    wire.always("waitForCondition", { lost: "reply" });
    await expect(clock.settle(lease.wait("filled"))).rejects.toMatchObject({ name: "LockUnavailableError" });
    expect([lease.isHeld(), lease.signal.aborted]).toEqual([false, true]);
    const inspected = await rival.inspect(KEY);
    expect([inspected.holders, inspected.waitSet]).toEqual([[], undefined]);
  });

  it("that certainly did not happen leaves the lease as it was, with its heartbeats", async () => {
    const { clock, locks } = createHarness();
    const lease = await locks.acquire(KEY, { mode: "shared", leaseMs: 6000 });
    await expect(lease.wait("filled")).rejects.toMatchObject({ code: "not-exclusive" });
    await clock.advance(20_000);
    expect(lease.isHeld()).toBe(true);
  });

  it("that times out as the notify comes returns as notified: the notify is not lost", async () => {
    const { clock, locks, rival, wire } = createHarness();
    const lease = await locks.acquire(KEY);
    const waited = lease.wait("filled", { waitMs: 5000 });
    await clock.advance(1000);
    // The waiter gets the key, and doesn't learn of it before its time is over.
    wire.always("acquire", { lost: "reply", silently: true });
    wire.always("check", { lost: "reply", silently: true });
    wire.always("release", { lost: "request", silently: true });
    const filling = (await rival.tryAcquire(KEY))!;
    wire.always("check", undefined);
    expect(await filling.notify("filled")).toBe(1);
    await filling.release();
    await clock.advance(4500);
    wire.always("acquire", undefined);
    wire.always("release", undefined);
    const outcome = await clock.settle(waited).catch((error: unknown) => error);
    expect(outcome instanceof LockTimeoutError).toBe(false);
    expect(await rival.tryAcquire(KEY)).toBeNull();
  });

  it("whose record a newer version wrote ends with that, and not as notified", async () => {
    const { clock, locks, wire } = createHarness();
    const lease = await locks.acquire(KEY);
    const waited = expect(lease.wait("filled", { waitMs: 600_000 })).rejects.toMatchObject({ name: "LockError", code: "newer-format" });
    await clock.advance(500);
    wire.next("check", { instead: refuse("newer-format") });
    await clock.settle(waited);
    expect(lease.isHeld()).toBe(false);
  });

  it("that ends in an outage after it was woken passes its notify on", async () => {
    const { clock, locks, rival, wire } = createHarness();
    const first = await locks.acquire(KEY);
    const timed = first.wait("filled", { waitMs: 3000 });
    timed.catch(() => undefined);
    await clock.advance(500);
    const second = await clock.settle(rival.acquire(KEY));
    const passedOn = second.wait("filled", { waitMs: 600_000 });
    await clock.advance(500);
    const third = (await rival.tryAcquire(KEY))!;
    for (const operation of ["check", "acquire"] as const) wire.always(operation, { lost: "request", silently: true });
    expect(await third.notify("filled")).toBe(1);
    await clock.advance(2500);
    for (const operation of ["check", "acquire"] as const) wire.always(operation, undefined);
    await third.release();
    const outcomes = await clock.settle(Promise.allSettled([timed, passedOn.then(() => second.release())]));
    expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "fulfilled"]);
    expect((await rival.inspect(KEY)).waitSet).toBeUndefined();
  });
});

describe("a notify", () => {
  it("whose answer was lost is sent again, and wakes one", async () => {
    const { clock, locks, rival, wire } = createHarness();
    for (const _waiter of [1, 2]) {
      const lease = await clock.settle(rival.acquire(KEY));
      lease.wait("filled", { waitMs: 600_000 }).catch(() => undefined);
      await clock.advance(300);
    }
    const lease = await clock.settle(locks.acquire(KEY));
    wire.next("notify", { lost: "reply" }, { lost: "reply" });
    expect(await clock.settle(lease.notify("filled"))).toBe(1);
    expect(wire.of("notify")).toHaveLength(3);
    const { waiters, waitSet } = await rival.inspect(KEY);
    expect([waiters.length, waitSet?.length]).toEqual([1, 1]);
  });

  it("is sent after the one before it, so that both count", async () => {
    const { clock, locks, rival, wire } = createHarness();
    for (const _waiter of [1, 2, 3]) {
      const lease = await clock.settle(rival.acquire(KEY));
      lease.wait("filled", { waitMs: 600_000 }).catch(() => undefined);
      await clock.advance(300);
    }
    const lease = await clock.settle(locks.acquire(KEY));
    wire.next("notify", { requestMs: 500 });
    expect(await clock.settle(Promise.all([lease.notify("filled"), lease.notify("filled")]))).toEqual([1, 1]);
    expect((await rival.inspect(KEY)).waiters).toHaveLength(2);
  });
});

describe("a heartbeat that was under way", () => {
  it("when the wait began says nothing about the next hold", async () => {
    const { clock, locks, rival, wire } = createHarness();
    const lease = await locks.acquire(KEY, { leaseMs: 9000 });
    wire.next("renew", { requestMs: 2000 });
    await clock.advance(3100);
    const waited = lease.wait("filled", { waitMs: 600_000 });
    await clock.advance(300);
    await rival.withLock(KEY, (filling) => filling.notify("filled"));
    await clock.settle(waited);
    await clock.advance(30_000);
    expect([lease.isHeld(), lease.state]).toEqual([true, "held"]);
    expect(await rival.tryAcquire(KEY)).toBeNull();
  });
});
