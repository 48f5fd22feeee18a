/** A store's conditions: a wait is one change, members stay out of the queue, and a notify brings them into it. */
import { expect, it } from "vitest";
import { DEFAULTS, LIMITS } from "../../../lib/core/limits.js";
import type { LockStore } from "../../../lib/store/port.js";
import { permits, QueueScene, waiting } from "../queue-fixture.js";
import { A, B, C, D, leaseId, LEASE_MS, START_MS } from "../fixture.js";

const { waiterTtlMs: TTL_MS, offerWindowMs: WINDOW_MS } = DEFAULTS;
const [E, F] = [leaseId(5), leaseId(6)];
const LONG = { leaseMs: 100 * LEASE_MS };

/** The tests of conditions. */
// Over 60 lines: a list of tests, each of which is short.
export function waitsForConditions(store: () => LockStore): void {
  /** A key on which B waits for a condition, and then D. */
  const two = async (): Promise<QueueScene> => {
    const lock = new QueueScene(store());
    await lock.acquire(A);
    await lock.at(1).wait(A, B);
    await lock.at(2).acquire(C);
    await lock.at(3).wait(C, D);
    return lock.at(4);
  };

  it("frees the key and keeps the member, in one change", async () => {
    const lock = new QueueScene(store());
    await lock.acquire(A);
    await lock.queue(C);
    const before = await lock.read();
    expect(await lock.at(1).wait(A, B, "ready")).toEqual({ ...waiting(1 + 1, LIMITS.pollStepMs), condition: "ready" });
    const after = await lock.read();
    expect(after?.version).toBe((before?.version ?? 0) + 1);
    expect(after?.waitSet).toMatchObject([{ leaseId: B, condition: "ready", aliveUntilMs: START_MS + 1 + TTL_MS }]);
    expect(await lock.standing()).toEqual({ holds: [], offers: [C], waiters: [] });
  });

  it("grants the free key to any caller but a member, which waits on", async () => {
    const lock = await two();
    const before = await lock.read();
    expect(await lock.queue(B)).toMatchObject({ state: "waiting", condition: "c" });
    expect(await lock.ask(B, {})).toMatchObject({ state: "waiting", condition: "c" });
    expect(await lock.read()).toEqual(before);
    expect(await lock.acquire(E)).toMatchObject({ how: "granted" });
    expect((await lock.read())?.waitSet).toHaveLength(2);
    expect(await lock.queue(D)).toMatchObject({ state: "waiting", condition: "c" });
    expect(await lock.standing()).toEqual({ holds: [E], offers: [], waiters: [] });
  });

  it("keeps a member alive by a write that leaves the version alone", async () => {
    const lock = await two();
    const before = await lock.read();
    expect(await lock.at(TTL_MS / 2 + 3).look(D)).toMatchObject({ retryAfterMs: 0 });
    await lock.queue(D);
    const after = await lock.read();
    expect(after?.version).toBe(before?.version);
    expect(after?.waitSet?.[1]).toMatchObject({ leaseId: D, aliveUntilMs: START_MS + TTL_MS / 2 + 3 + TTL_MS + DEFAULTS.waiterTtlStepMs });
    await lock.acquire(E, LONG);
    expect(await lock.at(TTL_MS + 3).notify(E)).toMatchObject({ notified: 1 });
    expect(await lock.standing()).toEqual({ holds: [E], offers: [], waiters: [D] });
  });

  it("wakes the first, once for a repeated notify, and all; a release offers the key", async () => {
    const lock = await two();
    await lock.acquire(E);
    expect(await lock.notify(E, { sequence: 1 })).toEqual({ ok: true, how: "notified", notified: 1 });
    expect(await lock.notify(E, { sequence: 1 })).toEqual({ ok: true, how: "replayed", notified: 1 });
    expect(await lock.standing()).toEqual({ holds: [E], offers: [], waiters: [B] });
    await lock.renew(E);
    expect(await lock.notify(E, { sequence: 2, all: true })).toMatchObject({ notified: 1 });
    await lock.release(E);
    expect(await lock.standing()).toEqual({ holds: [], offers: [B], waiters: [D] });
    expect(await lock.at(5).queue(B)).toMatchObject({ how: "granted" });
    await lock.release(B);
    expect(await lock.at(6).queue(D)).toMatchObject({ how: "granted" });
    expect(await lock.read()).not.toHaveProperty("waitSet");
  });

  it("passes on the notify of a waiter that does not claim, or that cancels", async () => {
    const lock = await two();
    await lock.acquire(E);
    await lock.wait(E, F);
    await lock.at(5).acquire(leaseId(7));
    await lock.notify(leaseId(7));
    await lock.release(leaseId(7));
    expect(await lock.at(5 + WINDOW_MS).queue(D)).toMatchObject({ state: "waiting", retryAfterMs: 0 });
    expect(await lock.standing()).toEqual({ holds: [], offers: [D], waiters: [] });
    expect(await lock.release(D)).toMatchObject({ state: "never" });
    expect(await lock.standing()).toEqual({ holds: [], offers: [F], waiters: [] });
  });

  it("keeps the limit of the key while a member waits", async () => {
    const lock = await two();
    expect(await lock.acquire(E, permits(1))).toMatchObject({ code: "limit-mismatch" });
    for (const id of [B, D]) await lock.release(id);
    expect(await lock.acquire(E, permits(1))).toMatchObject({ how: "granted" });
  });

  it("refuses another principal's wait, notify and place", async () => {
    const lock = await two();
    await lock.acquire(E);
    expect(await lock.wait(E, F, "c", { by: "Q" })).toMatchObject({ code: "forbidden" });
    expect(await lock.notify(E, { by: "Q" })).toMatchObject({ code: "forbidden" });
    expect(await lock.queue(B, { by: "Q" })).toMatchObject({ code: "forbidden" });
    expect(await lock.release(B, { by: "Q" })).toMatchObject({ code: "forbidden" });
    expect(await lock.queue(B, { requestHash: "other" })).toMatchObject({ code: "lease-reused" });
    expect((await lock.read())?.waitSet).toHaveLength(2);
  });

  it("loses no notify to keep-alives and other notifies at the same time", async () => {
    const lock = await two();
    await lock.acquire(E, LONG);
    lock.at(TTL_MS / 2 + 4);
    const [, , ...told] = await Promise.all([lock.queue(B), lock.queue(D), lock.notify(E), lock.notify(E)]);
    expect(told).toEqual(told.map(() => ({ ok: true, how: "notified", notified: 1 })));
    const record = await lock.read();
    expect(record?.waiters.map(({ leaseId: id }) => id)).toEqual([B, D]);
    expect(record).not.toHaveProperty("waitSet");
  });
}
