/** Waiters that sleep: offers to them, and claims for them by an agent's poll. */
import { expect, it } from "vitest";
import { DEFAULTS } from "../../../lib/core/limits.js";
import type { LockStore } from "../../../lib/store/port.js";
import { A, B, C, D, LEASE_MS, leaseIn, MARGIN_MS, START_MS } from "../fixture.js";
import { permits, QueueScene, READER } from "../queue-fixture.js";

const SLEEPS = { sleepMs: 3_600_000 };

/** The tests of waiters that sleep. */
export function sleeps(store: () => LockStore): void {
  it("offers the key to a sleeper at a release, and grants it to a poll for it", async () => {
    const lock = new QueueScene(store());
    await lock.acquire(A, { leaseMs: 600_000 });
    expect(await lock.at(1).queue(B, SLEEPS)).toMatchObject({ state: "waiting", asleep: true, position: 1 });
    await lock.at(2).queue(C);
    // Long after a poller would have lost its place.
    await lock.at(60_000).release(A);
    expect((await lock.read())?.offers).toMatchObject([{ leaseId: B, asleep: true, offeredAtMs: START_MS + 60_000 }]);
    expect(leaseIn(await lock.at(60_000 + DEFAULTS.wakeWindowMs - 1).acquire(B)).fencingToken).toBe(lock.clocks.latestMs);
    expect(await lock.standing()).toEqual({ holds: [B], offers: [], waiters: [C] });
  });

  it("grants a free key to no request to sleep, and passes an offer on that no agent claims", async () => {
    const lock = new QueueScene(store());
    expect(await lock.queue(A, SLEEPS)).toMatchObject({ state: "waiting", asleep: true });
    expect(await lock.queue(A, SLEEPS)).toMatchObject({ state: "waiting", asleep: true });
    expect(await lock.at(1).queue(B)).toMatchObject({ state: "waiting", position: 2 });
    // A store may append a waiter without a look at the offers, so the second request is the first to notice.
    await lock.at(DEFAULTS.wakeWindowMs).queue(C);
    expect(leaseIn(await lock.queue(C)).fencingToken).toBe(lock.clocks.latestMs);
  });

  it("takes over for a sleeper alone", async () => {
    const lock = new QueueScene(store());
    await lock.acquire(A);
    await lock.queue(B, SLEEPS);
    expect(leaseIn(await lock.at(LEASE_MS + MARGIN_MS).ask(B, {})).leaseId).toBe(B);
  });

  it("claims a permit and a share beside others, and leaves the offers to others as they are", async () => {
    for (const kind of [permits(1), READER]) {
      const lock = new QueueScene(store());
      await lock.acquire(A, kind);
      for (const id of [B, C]) expect(await lock.queue(id, { ...kind, ...SLEEPS })).toMatchObject({ asleep: true });
      expect(await lock.standing()).toEqual({ holds: [A], offers: [B, C], waiters: [] });
      expect(await lock.at(1).acquire(C, kind)).toMatchObject({ how: "granted" });
      await lock.release(A);
      expect(await lock.standing()).toEqual({ holds: [C], offers: [B], waiters: [] });
      expect((await lock.read())?.offers).toMatchObject([{ asleep: true }]);
      expect(await lock.at(2).acquire(B, kind)).toMatchObject({ how: "granted" });
    }
  });

  it("cancels a sleeper, and passes the key on", async () => {
    const lock = new QueueScene(store());
    await lock.acquire(A);
    for (const id of [B, C]) await lock.queue(id, SLEEPS);
    await lock.queue(D);
    await lock.release(B);
    await lock.at(1).release(A);
    expect((await lock.standing()).offers).toEqual([C]);
    await lock.release(C);
    expect((await lock.standing()).offers).toEqual([D]);
  });
}
