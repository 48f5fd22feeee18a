/**
 * A store's queue: a place for each waiter, in order, and the key for the first one when it is free. Offers that lapse
 * and waiters that are granted together are in turns.ts.
 */
import { expect, it } from "vitest";
import { DEFAULTS, LIMITS } from "../../../lib/core/limits.js";
import { SHORT_OWNER_BYTES } from "../../../lib/core/record-bytes.js";
import type { LockStore } from "../../../lib/store/port.js";
import { inLine, permits, QueueScene, turnMs, waiting } from "../queue-fixture.js";
import { A, B, C, D, leaseId, leaseIn, LEASE_MS, MARGIN_MS, outcomeOf, START_MS } from "../fixture.js";

const { offerWindowMs: OFFER_MS, waiterTtlMs: TTL_MS } = DEFAULTS;
/** The bytes that the bound counts for a waiter, without its owner. */
const WAITER_BYTES = Math.floor(LIMITS.queueBytes / LIMITS.waitersMax) - SHORT_OWNER_BYTES;

/** The tests of waiting. */
// Over 60 lines: a list of tests, each of which is short.
export function queues(store: () => LockStore): void {
  it("grants a free key at once to who would wait, and keeps no place", async () => {
    const lock = new QueueScene(store());
    expect(await lock.queue(A)).toMatchObject({ how: "granted" });
    expect(await lock.standing()).toEqual({ holds: [A], offers: [], waiters: [] });
  });

  it("queues in the order of arrival, says the place and when to come, and keeps what the turn needs", async () => {
    const lock = new QueueScene(store());
    const { version } = leaseIn(await lock.acquire(A));
    expect(await lock.at(1, 400).queue(B, { by: "Q", owner: "checkout-7" })).toEqual(waiting(1, turnMs(1)));
    expect(await lock.at(2).queue(C)).toEqual(waiting(2, turnMs(2)));
    const record = await lock.read();
    expect(record).toMatchObject({ version: version + 2, offers: [], tombstones: [] });
    expect(record?.waiters[0]).toEqual({
      leaseId: B,
      principal: "Q",
      owner: "checkout-7",
      mode: "exclusive",
      permits: 1,
      requestHash: "same",
      priority: 0,
      aliveUntilMs: START_MS + 401 + TTL_MS,
      ttlMs: TTL_MS,
    });
    expect(await lock.standing()).toEqual({ holds: [A], offers: [], waiters: [B, C] });
  });

  it("tells the same to who asks again or only looks, and writes nothing", async () => {
    const lock = await inLine(store(), B, C);
    const before = await lock.read();
    expect(await lock.at(3).queue(C)).toEqual(waiting(2, turnMs(2)));
    expect(await lock.look(C)).toEqual(waiting(2, turnMs(2)));
    expect(await lock.read()).toEqual(before);
  });

  it("refuses who will not wait, while others hold, are offered the key or wait; who is queued keeps its place", async () => {
    const lock = await inLine(store(), B, C);
    expect(await lock.at(5).acquire(D)).toMatchObject({ code: "locked", retryAfterMs: LEASE_MS + MARGIN_MS - 5 });
    expect(await lock.ask(C, {})).toEqual(waiting(2, turnMs(2)));
    await lock.release(A);
    expect(await lock.acquire(D)).toMatchObject({ code: "locked", holders: [], retryAfterMs: OFFER_MS });
    expect(await lock.standing()).toEqual({ holds: [], offers: [B], waiters: [C] });
  });

  it("refuses to tell, to move or to grant a place of another principal, or under other parameters", async () => {
    const lock = await inLine(store(), B, C);
    const before = await lock.read();
    for (const id of [B, C]) {
      expect(await lock.queue(id, { by: "Q" })).toMatchObject({ code: "forbidden" });
      expect(await lock.release(id, { by: "Q" })).toMatchObject({ code: "forbidden" });
      expect(await lock.look(id, "Q")).toMatchObject({ code: "forbidden" });
      expect(await lock.queue(id, { requestHash: "other" })).toMatchObject({ code: "lease-reused" });
    }
    expect(await lock.read()).toEqual(before);
    await lock.release(A);
    expect(await lock.queue(B, { by: "Q" })).toMatchObject({ code: "forbidden" });
    expect(await lock.queue(B, { requestHash: "other" })).toMatchObject({ code: "lease-reused" });
    expect(await lock.standing()).toEqual({ holds: [], offers: [B], waiters: [C] });
  });

  it("offers the key to the next in the write that releases it, and grants it by the claim, from then on", async () => {
    const lock = await inLine(store(), B, C);
    const { version = 0 } = (await lock.read()) ?? {};
    expect(await lock.at(100).release(A)).toEqual({ ok: true, state: "released" });
    const offered = await lock.read();
    expect(offered).toMatchObject({ version: version + 1, holds: {}, offers: [{ leaseId: B, offeredAtMs: START_MS + 100 }] });
    expect(await lock.look(B)).toEqual(waiting(1, 0));
    // The others poll in time to stay alive, in case B doesn't come.
    expect(await lock.look(C)).toEqual(waiting(2, turnMs(1, 100), LIMITS.keepAliveAfterMs));

    const lease = leaseIn(await lock.at(700, 50).queue(B));
    expect(lease).toMatchObject({ fencingToken: START_MS + 750, remainingMs: LEASE_MS, version: version + 2 });
    expect(await lock.standing()).toEqual({ holds: [B], offers: [], waiters: [C] });
    expect(await lock.look(C)).toEqual(waiting(1, turnMs(1, 100)));
  });

  it("gives a claim in the millisecond of the last grant a larger token", async () => {
    const lock = await inLine(store(), B);
    lock.at(0);
    await lock.release(A);
    expect(leaseIn(await lock.queue(B)).fencingToken).toBe(START_MS + 1);
  });

  it("says the same to an enqueue, a claim, a release and a leave that are sent again, and does each once", async () => {
    const lock = await inLine(store(), B, C);
    const twice = async <T>(send: () => Promise<T>): Promise<readonly [T, T]> => {
      const first = await send();
      const record = await lock.read();
      const again = await send();
      expect(await lock.read()).toEqual(record);
      return [first, again];
    };
    expect(await twice(() => lock.queue(D))).toEqual([waiting(3, turnMs(3)), waiting(3, turnMs(3))]);
    expect(await twice(() => lock.at(50).release(A))).toEqual(Array(2).fill({ ok: true, state: "released" }));
    const [claimed, again] = await twice(() => lock.at(60).queue(B));
    expect([outcomeOf(claimed), outcomeOf(again)]).toEqual(["granted", "replayed"]);
    expect(leaseIn(again)).toEqual(leaseIn(claimed));
    expect(await twice(() => lock.release(C))).toEqual(Array(2).fill({ ok: true, state: "never" }));
    expect(await lock.standing()).toEqual({ holds: [B], offers: [], waiters: [D] });
  });

  it("lets who leaves go for good: the others move up, and its turn is the next one's", async () => {
    const lock = await inLine(store(), B, C, D);
    expect(await lock.at(10).release(C)).toEqual({ ok: true, state: "never" });
    expect(await lock.look(D)).toEqual(waiting(2, turnMs(2)));
    expect(await lock.queue(C)).toMatchObject({ code: "lease-over" });
    await lock.at(20).release(A);
    expect(await lock.at(30).release(B)).toEqual({ ok: true, state: "never" });
    expect(await lock.standing()).toEqual({ holds: [], offers: [D], waiters: [] });
    expect((await lock.read())?.tombstones.map(({ leaseId: id, ending }) => [id, ending])).toEqual([
      [B, "cancelled"],
      [A, "released"],
      [C, "cancelled"],
    ]);
    await lock.at(40).release(D);
    expect(await lock.at(50).acquire(leaseId(9))).toMatchObject({ how: "granted" });
  });

  it("writes that a waiter was heard of at half of its time, for longer the farther back, and leaves the version", async () => {
    const lock = await inLine(store(), B, C);
    const before = await lock.read();
    const halfMs = 2 + TTL_MS / 2;
    expect(await lock.at(halfMs - 1).look(C)).toMatchObject({ retryAfterMs: turnMs(2) });
    expect(await lock.at(halfMs).look(C)).toMatchObject({ position: 2, retryAfterMs: 0 });
    expect(await lock.queue(C)).toEqual(waiting(2, turnMs(2)));
    const ttlMs = TTL_MS + DEFAULTS.waiterTtlStepMs;
    const heard = { ...before?.waiters[1], ttlMs, aliveUntilMs: START_MS + halfMs + ttlMs };
    expect(await lock.read()).toEqual({ ...before, touches: 1, waiters: [before?.waiters[0], heard] });
    expect(await lock.look(C)).toMatchObject({ retryAfterMs: turnMs(2) });
  });

  it("takes over from a dead holder when its margin is over, for who is first and no earlier", async () => {
    const lock = await inLine(store(), B, C);
    const overMs = LEASE_MS + MARGIN_MS;
    for (const id of [B, C]) await lock.at(LEASE_MS).queue(id);
    expect(outcomeOf(await lock.at(overMs - 1, 9_000).queue(B))).toBe("waiting");
    // Any waiter that notices the lapse advances the queue: here the second, and the first is offered the key.
    expect(await lock.at(overMs).queue(C)).toMatchObject({ position: 2 });
    expect(await lock.standing()).toEqual({ holds: [], offers: [B], waiters: [C] });
    expect((await lock.read())?.tombstones).toEqual([{ leaseId: A, ending: "taken" }]);
    expect(await lock.queue(B)).toMatchObject({ how: "granted" });
  });

  it("moves the queue on when an operator breaks the hold", async () => {
    const lock = await inLine(store(), B);
    expect(outcomeOf(await lock.at(9).breakHold(undefined, 0))).toBe("broken");
    expect(await lock.standing()).toEqual({ holds: [], offers: [B], waiters: [] });
    expect(await lock.at(10).queue(B)).toMatchObject({ how: "granted" });
  });

  it("takes no more than have a place, tells the next to come later, and has room again when one has gone", async () => {
    const lock = new QueueScene(store());
    await lock.acquire(A);
    for (let order = 1; order <= LIMITS.waitersMax; order++) await lock.queue(leaseId(order + 100));
    const before = await lock.read();
    const full = { code: "queue-full", definite: true, retry: "later", retryAfterMs: LIMITS.fullWaitMs };
    expect(await lock.queue(D)).toMatchObject(full);
    expect(await lock.read()).toEqual(before);
    expect(await lock.queue(leaseId(100 + LIMITS.waitersMax))).toMatchObject({
      position: LIMITS.waitersMax,
      retryAfterMs: turnMs(LIMITS.waitersMax),
    });
    await lock.release(leaseId(120));
    expect(await lock.queue(D)).toMatchObject({ position: LIMITS.waitersMax });
    expect(await lock.queue(C)).toMatchObject(full);
  });

  it("takes fewer when their owners are long, and who is short no more than fits either", async () => {
    const lock = new QueueScene(store());
    await lock.acquire(A);
    const long = { owner: "é".repeat(LIMITS.ownerChars) };
    let queued = 0;
    while (outcomeOf(await lock.queue(leaseId(100 + queued), long)) === "waiting") queued++;
    expect(queued).toBe(Math.floor(LIMITS.queueBytes / (WAITER_BYTES + 2 * LIMITS.ownerChars)));
    let short = 0;
    while (outcomeOf(await lock.queue(leaseId(300 + short))) === "waiting") short++;
    expect(queued * (WAITER_BYTES + 2 * LIMITS.ownerChars) + short * WAITER_BYTES).toBeLessThanOrEqual(LIMITS.queueBytes);
    expect(queued * (WAITER_BYTES + 2 * LIMITS.ownerChars) + (short + 1) * WAITER_BYTES).toBeGreaterThan(LIMITS.queueBytes);
  });

  it("is one queue of one limit: another limit is a mismatch, whether they hold, are offered the key or wait", async () => {
    const lock = await inLine(store(), B);
    expect(await lock.queue(C, permits(1))).toMatchObject({ code: "limit-mismatch" });
    await lock.release(A);
    expect(await lock.queue(C, permits(1))).toMatchObject({ code: "limit-mismatch" });
    expect(await lock.acquire(C, permits(1))).toMatchObject({ code: "limit-mismatch" });
    expect(await lock.standing()).toEqual({ holds: [], offers: [B], waiters: [] });
  });
}
