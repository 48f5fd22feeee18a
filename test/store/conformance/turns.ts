/**
 * Grants from the queue: offers that lapse pass on, past waiters that are no longer alive. Also the order of waiters,
 * and waiters that are granted together.
 */
import { expect, it } from "vitest";
import { DEFAULTS, LIMITS } from "../../../lib/core/limits.js";
import type { LeaseId } from "../../../lib/core/lease-id.js";
import type { LockStore } from "../../../lib/store/port.js";
import { inLine, permits, QueueScene, READER, waiting } from "../queue-fixture.js";
import { A, B, C, D, leaseId, leaseIn, outcomeOf, START_MS } from "../fixture.js";

const { offerWindowMs: OFFER_MS, waiterTtlMs: TTL_MS } = DEFAULTS;

/** The tests of offers that lapse. */
// Over 60 lines: a list of tests, each of which is short.
export function lapses(store: () => LockStore): void {
  /** A has released the key at 10 ms: B has an offer, and the others wait. */
  const offered = async (...ids: readonly LeaseId[]): Promise<QueueScene> => {
    const lock = await inLine(store(), ...ids);
    await lock.at(10).release(A);
    return lock;
  };

  it("keeps the key for whose turn it is until the earlier clock says that the offer lapsed", async () => {
    const lock = await offered(B, C);
    expect(outcomeOf(await lock.at(10 + OFFER_MS - 1, 9_000).queue(C))).toBe("waiting");
    expect(await lock.standing()).toMatchObject({ offers: [B], waiters: [C] });
    const lease = leaseIn(await lock.at(10 + OFFER_MS).queue(C));
    expect(lease.fencingToken).toBe(START_MS + 10 + OFFER_MS);
    expect(await lock.standing()).toEqual({ holds: [C], offers: [], waiters: [] });
  });

  it("grants a late claim as long as nobody noticed, and queues one that came too late behind all others", async () => {
    const late = await offered(B, C);
    expect(await late.at(10 + 2 * OFFER_MS).queue(B)).toMatchObject({ how: "granted" });
    const lock = await offered(B, C, D);
    await lock.at(10 + LIMITS.keepAliveAfterMs).queue(D);
    await lock.queue(C);
    expect(await lock.at(10 + OFFER_MS).look(D)).toMatchObject({ retryAfterMs: 0 });
    await lock.queue(D);
    expect(await lock.standing()).toEqual({ holds: [], offers: [C], waiters: [D] });
    expect(await lock.queue(B)).toMatchObject({ position: 3 });
  });

  it("passes the turn on past all who are ahead of who noticed and were not heard of since, in one write", async () => {
    const ids = [11, 12, 13, 14, 15, 16].map((order) => leaseId(order));
    const lock = await offered(B, ...ids);
    const { version = 0 } = (await lock.read()) ?? {};
    // Of the six, the fourth and the sixth are alive.
    for (const id of [ids[3]!, ids[5]!]) expect(await lock.at(10 + LIMITS.keepAliveAfterMs).look(id)).toMatchObject({ retryAfterMs: 0 });
    for (const id of [ids[3]!, ids[5]!]) expect(outcomeOf(await lock.queue(id))).toBe("waiting");
    expect((await lock.read())?.version).toBe(version);
    expect(await lock.at(10 + OFFER_MS).look(ids[5]!)).toMatchObject({ retryAfterMs: 0 });
    expect(await lock.queue(ids[5]!)).toMatchObject({ position: 2 });
    expect(await lock.standing()).toEqual({ holds: [], offers: [ids[3]], waiters: [ids[5]] });
    expect((await lock.read())?.version).toBe(version + 1);
  });

  it("leaves who stands behind the one that noticed its place, heard of or not", async () => {
    const lock = await offered(B, C, D);
    expect(await lock.at(10 + OFFER_MS).queue(C)).toMatchObject({ how: "granted" });
    expect(await lock.standing()).toEqual({ holds: [C], offers: [], waiters: [D] });
  });

  it("skips at a release who has not been heard of for its whole time, by the earlier clock", async () => {
    for (const [ms, aheadMs, next] of [
      [TTL_MS, 9_000, B],
      [TTL_MS + 1, 0, C],
    ] as const) {
      const lock = new QueueScene(store());
      await lock.acquire(A, { leaseMs: 60_000 });
      await lock.at(1).queue(B);
      await lock.at(2).queue(C);
      await lock.at(9_000).queue(C);
      await lock.at(ms, aheadMs).release(A);
      expect((await lock.standing()).offers).toEqual([next]);
    }
  });

  it("frees the key when all who waited are dead", async () => {
    const lock = await inLine(store(), B, C);
    await lock.at(3 * TTL_MS).release(A);
    expect(await lock.standing()).toEqual({ holds: [], offers: [], waiters: [] });
    expect(await lock.at(3 * TTL_MS + 1).acquire(D)).toMatchObject({ how: "granted" });
  });
}

/** The tests of the order of waiters, and of waiters that are granted together. */
// Over 60 lines: a list of tests, each of which is short.
export function ordersTurns(store: () => LockStore): void {
  it("puts a higher priority first, and the first who came first within one", async () => {
    const lock = await inLine(store(), B);
    const ranks = [0, 5, 9, 5, 0];
    for (const [index, priority] of ranks.entries()) await lock.queue(leaseId(20 + index), { priority });
    expect((await lock.standing()).waiters).toEqual([leaseId(22), leaseId(21), leaseId(23), B, leaseId(20), leaseId(24)]);
    await lock.release(A);
    expect((await lock.standing()).offers).toEqual([leaseId(22)]);
    expect((await lock.read())?.offers[0]).toMatchObject({ priority: 9 });
    // An offer stays with its waiter, whoever enqueues later.
    await lock.queue(leaseId(30), { priority: 9 });
    expect(await lock.standing()).toMatchObject({
      offers: [leaseId(22)],
      waiters: [leaseId(30), leaseId(21), leaseId(23), B, leaseId(20), leaseId(24)],
    });
  });

  it("offers the key to all readers up to the first writer at once, and each claims for itself", async () => {
    const lock = await inLine(store());
    for (const [order, mode] of (["shared", "shared", "exclusive", "shared"] as const).entries())
      await lock.queue(leaseId(order + 5), { mode });
    await lock.at(9).release(A);
    expect(await lock.standing()).toEqual({ holds: [], offers: [leaseId(5), leaseId(6)], waiters: [leaseId(7), leaseId(8)] });
    expect(await lock.look(leaseId(6))).toEqual(waiting(2, 0));
    expect(await lock.look(leaseId(7))).toMatchObject({ position: 3 });
    const tokens = [];
    for (const id of [leaseId(6), leaseId(5)]) tokens.push(leaseIn(await lock.queue(id, READER)).fencingToken);
    expect(new Set(tokens).size).toBe(2);
    // No reader joins them while a writer waits.
    expect(await lock.acquire(leaseId(9), READER)).toMatchObject({ code: "locked" });
    await lock.release(leaseId(5));
    expect((await lock.standing()).offers).toEqual([]);
    await lock.release(leaseId(6));
    expect((await lock.standing()).offers).toEqual([leaseId(7)]);
  });

  it("lets readers in beside a writer that becomes a reader", async () => {
    const lock = new QueueScene(store());
    const { fencingToken } = leaseIn(await lock.acquire(A));
    for (const id of [B, C]) await lock.queue(id, READER);
    await lock.at(5).apply({ type: "mode", key: lock.address.key, leaseId: A, principal: "P", mode: "shared", fencingToken });
    expect(await lock.standing()).toEqual({ holds: [A], offers: [B, C], waiters: [] });
    for (const id of [B, C]) expect(await lock.queue(id, READER)).toMatchObject({ how: "granted" });
  });

  it("offers as many permits as fit, and leaves those that come back while others hold to the first who waits", async () => {
    const lock = new QueueScene(store());
    await lock.acquire(A, permits(3));
    for (const [order, count] of [1, 1, 2, 1].entries()) await lock.queue(leaseId(order + 5), permits(count));
    await lock.at(9).release(A);
    expect(await lock.standing()).toEqual({ holds: [], offers: [leaseId(5), leaseId(6)], waiters: [leaseId(7), leaseId(8)] });
    for (const id of [leaseId(5), leaseId(6)]) expect(await lock.queue(id, permits(1))).toMatchObject({ how: "granted" });
    expect(await lock.acquire(leaseId(9), permits(1))).toMatchObject({ code: "locked" });
    await lock.release(leaseId(5));
    expect(await lock.standing()).toEqual({ holds: [leaseId(6)], offers: [], waiters: [leaseId(7), leaseId(8)] });
    expect(await lock.look(leaseId(7))).toMatchObject({ state: "waiting", retryAfterMs: 0 });
    expect(leaseIn(await lock.queue(leaseId(7), permits(2))).permits).toBe(2);
  });

  it("lets who is in the queue and comes with the scope that holds past all others", async () => {
    const lock = new QueueScene(store());
    const scope = "0123456789abcdef";
    await lock.acquire(A, { scope });
    for (const id of [B, C]) await lock.queue(id);
    expect(await lock.queue(D, { scope })).toMatchObject({ how: "granted", lease: { holdCount: 2 } });
    await lock.release(A);
    expect(await lock.standing()).toEqual({ holds: [D], offers: [], waiters: [B, C] });
    await lock.release(D);
    expect((await lock.standing()).offers).toEqual([B]);
  });
}
