/** Regression: a waiter that polled in time was skipped, since a keep-alive doesn't change the version. */
import { describe, expect, it } from "vitest";
import { DEFAULTS, LIMITS } from "../../lib/core/limits.js";
import { engineClient } from "../../infra/local/engine-client.js";
import { sdkCalls } from "../support/sdk-calls.js";
import type { LockStore } from "../../lib/store/port.js";
import { createMemoryStore, createMemoryTable } from "../support/memory-store.js";
import { QueueScene, READER } from "./queue-fixture.js";
import { A, B, C, D, dynamoStoreOn, leaseId, LEASE_MS, MARGIN_MS, POLICY, START_MS } from "./fixture.js";
import { freshTable } from "../support/engine.js";
import { createGate } from "../support/run-gate.js";
import { BACKENDS } from "./backends.js";

describe.each(BACKENDS)("in %s", (_name, processes) => {
  it.each(["another process", "the same process"])(
    "a lapsed turn passes to it, noticed in %s that looked before it spoke",
    async (where) => {
      const [one, other] = await processes();
      const here = new QueueScene(one);
      await here.acquire(A);
      for (const id of [B, C, D]) await here.at(1).queue(id);
      await here.at(10).release(A); // B has the offer, and B is dead.
      const there = where === "the same process" ? here : new QueueScene(other, here.address);
      await there.read();
      if (here === there) await here.at(10 + LIMITS.keepAliveAfterMs).queue(D);
      expect(await here.at(10 + LIMITS.keepAliveAfterMs + 100).queue(C)).toMatchObject({ state: "waiting" });
      await there.at(10 + DEFAULTS.offerWindowMs).queue(D);
      expect(await here.standing()).toEqual({ holds: [], offers: [C], waiters: [D] });
    },
  );

  it("control: one that said nothing is passed over", async () => {
    const [one] = await processes();
    const here = new QueueScene(one);
    await here.acquire(A);
    for (const id of [B, C, D]) await here.at(1).queue(id);
    await here.at(10).release(A);
    await here.at(10 + DEFAULTS.offerWindowMs).queue(D);
    expect(await here.standing()).toEqual({ holds: [D], offers: [], waiters: [] });
  });
});

describe.each(BACKENDS)("a waiter that came forward, in %s", (_name, processes) => {
  const LAST = LIMITS.waitersMax - 1;
  const others = Array.from({ length: LAST }, (_, order) => leaseId(100 + order));

  /** A key that A holds, and a waiter at the last place with a keep-alive of that place. Then all waiters before it leave. */
  async function cameForward(): Promise<QueueScene> {
    const [store] = await processes();
    const key = new QueueScene(store);
    await key.acquire(A, { leaseMs: 600_000 });
    for (const id of others) await key.queue(id);
    await key.queue(D);
    await key.at(DEFAULTS.waiterTtlMs / 2).queue(D);
    for (const id of others) await key.release(id);
    return key;
  }
  const placeOfD = async (key: QueueScene) => (await key.read())?.waiters.find((waiter) => waiter.leaseId === D);

  it("writes its keep-alive when half of its time is over, which takes no time away from it", async () => {
    const key = await cameForward();
    const { aliveUntilMs = 0 } = (await placeOfD(key)) ?? {};
    const nowMs = DEFAULTS.waiterTtlMs / 2 + 25_000;
    expect(await key.at(nowMs).queue(D)).toMatchObject({ state: "waiting", position: 1 });
    const after = await placeOfD(key);
    expect(after?.aliveUntilMs).toBe(aliveUntilMs + 1);
    // It was last seen just now: an offer is dated by this.
    expect((after?.aliveUntilMs ?? 0) - (after?.ttlMs ?? 0)).toBe(START_MS + nowMs);
    await key.at(nowMs + 1).release(A);
    expect((await key.read())?.offers[0]).toMatchObject({ leaseId: D, offeredAtMs: START_MS + nowMs + 1 });
  });

  it("writes one while another's offer is unclaimed, and gets the next", async () => {
    const key = await cameForward();
    const { aliveUntilMs } = (await placeOfD(key)) ?? {};
    const dies = leaseId(300);
    await key.queue(dies, { priority: 9 });
    await key.at(20_000).release(A);
    expect(await key.standing()).toEqual({ holds: [], offers: [dies], waiters: [D] });
    const nowMs = 20_000 + LIMITS.keepAliveAfterMs;
    expect(await key.at(nowMs).queue(D)).toMatchObject({ state: "waiting" });
    expect((await placeOfD(key))?.aliveUntilMs).toBe((aliveUntilMs ?? 0) + 1);
    await key.at(20_000 + DEFAULTS.offerWindowMs).acquire(leaseId(301));
    expect(await key.standing()).toEqual({ holds: [], offers: [D], waiters: [] });
  });

  it("polls often, and writes seldom", async () => {
    const key = await cameForward();
    const { touches = 0 } = (await key.read()) ?? {};
    for (let ms = 10_000; ms < 60_000; ms += 1000) await key.at(ms).queue(D);
    expect(((await key.read())?.touches ?? 0) - touches).toBeLessThanOrEqual(4);
  });
});

describe.each(BACKENDS)("a record that only waits, in %s", (_name, processes) => {
  const { retentionMs } = POLICY;
  const collectedAtMs = async (key: QueueScene) => 1000 * ((await key.read())?.ttlAtSec ?? 0) - START_MS;

  it("outlives a member of the wait set that polls for longer than the retention", async () => {
    const [one] = await processes();
    const key = new QueueScene(one);
    await key.acquire(A);
    await key.wait(A, B);
    const before = await key.read();
    const soonMs = retentionMs / 2;
    await key.at(soonMs).queue(B);
    expect(await collectedAtMs(key)).toBe(1000 * Math.ceil((LEASE_MS + MARGIN_MS + retentionMs) / 1000));
    const laterMs = soonMs + LEASE_MS + MARGIN_MS + 1000;
    await key.at(laterMs).queue(B);
    expect(await collectedAtMs(key)).toBe(1000 * Math.ceil((laterMs + retentionMs) / 1000));
    expect((await key.read())?.version).toBe(before?.version);
  });

  it("keeps a longer life that it got meanwhile", async () => {
    const [one] = await processes();
    const key = new QueueScene(one);
    await key.acquire(A);
    await key.wait(A, B);
    await key.at(retentionMs).acquire(leaseId(9, retentionMs), { leaseMs: LIMITS.leaseMaxMs });
    const longMs = await collectedAtMs(key);
    await key.queue(B);
    expect(await collectedAtMs(key)).toBe(longMs);
    expect((await key.read())?.touches).toBe(1);
  });
});

describe.each(BACKENDS)("a holder's heartbeat in %s", (_name, processes) => {
  it("takes dead waiters out of the queue, by another process's clock and without having seen them", async () => {
    const [one, other] = await processes();
    const there = new QueueScene(other);
    await there.acquire(A, { leaseMs: 60_000 });
    const here = new QueueScene(one, there.address);
    await here.at(1).renew(A, { leaseMs: 60_000 });
    for (const id of [B, C]) await there.at(2).queue(id);
    await here.at(DEFAULTS.waiterTtlMs).renew(A, { leaseMs: 60_000 });
    expect(await here.standing()).toEqual({ holds: [A], offers: [], waiters: [B, C] });
    await here.at(DEFAULTS.waiterTtlMs + 2).renew(A, { leaseMs: 60_000 });
    expect(await here.standing()).toEqual({ holds: [A], offers: [], waiters: [] });
  });
});

describe.each(BACKENDS)("a release that stalls after it read its clocks, in %s", (_name, processes) => {
  const [READ_MS, SEEN_MS] = [7000, 9000];

  /** Offers the key to B. */
  async function offered(before: (here: QueueScene) => unknown, meanwhile: (there: QueueScene) => unknown): Promise<QueueScene> {
    const [one, other] = await processes();
    const here = new QueueScene(one);
    const there = new QueueScene(other, here.address);
    await here.acquire(A);
    await before(here);
    await meanwhile(there.at(SEEN_MS));
    await here.at(READ_MS).release(A);
    expect(await here.standing()).toEqual({ holds: [], offers: [B], waiters: [] });
    return there;
  }

  it.each<[how: string, ...Parameters<typeof offered>]>([
    ["was added to the queue", () => undefined, (there) => there.queue(B)],
    ["was added as a reader", () => undefined, (there) => there.queue(B, READER)],
    ["sent a keep-alive", (here) => here.queue(B), (there) => there.queue(B)],
  ])("keeps the key for a waiter that %s meanwhile, until its next poll", async (_how, before, meanwhile) => {
    const there = await offered(before, meanwhile);
    await there.at(SEEN_MS + DEFAULTS.offerWindowMs - 1).acquire(C);
    expect(await there.standing()).toEqual({ holds: [], offers: [B], waiters: [] });
    await there.at(SEEN_MS + DEFAULTS.offerWindowMs).acquire(C);
    expect(await there.standing()).toEqual({ holds: [C], offers: [], waiters: [] });
  });

  it("control: a waiter that was not seen meanwhile has its turn from the time that the release read", async () => {
    const there = await offered(
      (here) => here.at(READ_MS).queue(B),
      () => undefined,
    );
    await there.at(READ_MS + DEFAULTS.offerWindowMs).acquire(C);
    expect(await there.standing()).toEqual({ holds: [C], offers: [], waiters: [] });
  });
});

describe("a keep-alive whose write stalls", () => {
  /** A store whose keep-alives wait at the gate, and another one on the same records. */
  const STALLING: readonly (readonly [
    name: string,
    backend: (pass: () => Promise<void>) => Promise<readonly [stalls: LockStore, beside: LockStore]>,
  ])[] = [
    [
      "memory",
      async (pass) => {
        const table = createMemoryTable();
        const slow = {
          ...table,
          touchWaiter: (...args: Parameters<typeof table.touchWaiter>) => pass().then(() => table.touchWaiter(...args)),
        };
        return [createMemoryStore({ policy: POLICY, table: slow }), createMemoryStore({ policy: POLICY, table })];
      },
    ],
    [
      "the table",
      async (pass) => {
        const { calls, tableName, endpoint } = await freshTable();
        const slow = engineClient(endpoint);
        slow.middlewareStack.add(
          (next) => async (args) => {
            const { UpdateExpression = "" } = args.input as { readonly UpdateExpression?: string };
            if (UpdateExpression.includes("qv =")) await pass();
            return next(args);
          },
          { step: "initialize" },
        );
        const store = (by: typeof calls): LockStore => dynamoStoreOn({ calls: by, tableName }, () => 0);
        return [store(sdkCalls(slow)), store(calls)];
      },
    ],
  ];

  it.each(STALLING)("in %s does not take a later one back", async (_name, backend) => {
    const { open, reached, pass } = createGate();
    const [stalls, beside] = await backend(pass);
    const key = new QueueScene(beside);
    await key.acquire(A);
    await key.queue(B);
    const halfMs = DEFAULTS.waiterTtlMs / 2;
    const late = new QueueScene(stalls, key.address).at(halfMs).queue(B);
    await reached;
    await key.at(halfMs + 3000).queue(B);
    const untilMs = (await key.read())?.waiters[0]?.aliveUntilMs;
    open();
    expect(await late).toMatchObject({ state: "waiting" });
    expect((await key.read())?.waiters[0]?.aliveUntilMs).toBe(untilMs);
    expect(untilMs).toBe(START_MS + halfMs + 3000 + DEFAULTS.waiterTtlMs);
  });
});
