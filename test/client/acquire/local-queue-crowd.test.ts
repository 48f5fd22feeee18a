/**
 * Many callers in one process that want one key. Regression: every arrival copied the local queue and every timeout
 * searched it, so 8,000 callers stopped the event loop for seconds, and leases of other keys were lost.
 */
import { describe, expect, it } from "vitest";
import { refuse } from "../../../lib/core/errors.js";
import type { Clock } from "../../../lib/core/time.js";
import { type VirtualClock, LockTimeoutError } from "../../../lib/testing.js";
import { sized } from "../../support/tier.js";
import { createHarness } from "../harness.js";

const KEY = "ORDER_1231";
/** Callers that may be settled in one turn of the event loop. */
const PORTION = 100;
const OTHERS = 20;

/** A harness whose client clock counts its reads and the runs of its timers. */
function countedHarness() {
  const counts = { reads: 0, turns: 0 };
  const counted = (clock: VirtualClock): Clock => {
    const read = (ms: number): number => {
      counts.reads++;
      return ms;
    };
    const inTurn = (task: () => void) => (): void => {
      counts.turns++;
      task();
    };
    return {
      wallMs: () => read(clock.wallMs()),
      monotonicMs: () => read(clock.monotonicMs()),
      after: (delayMs, task) => clock.after(delayMs, inTurn(task)),
      inBackground: (delayMs, task) => clock.inBackground(delayMs, inTurn(task)),
    };
  };
  return { ...createHarness({ clientClock: counted }), counts };
}

/** Runs `size` callers that want the key. Returns their errors, and the largest number of callers settled in one turn. */
async function crowd(
  size: number,
  ask: (harness: ReturnType<typeof countedHarness>, index: number) => Promise<unknown>,
  harness = countedHarness(),
) {
  const { counts } = harness;
  const [errors, perTurn] = [new Set<unknown>(), new Map<number, number>()];
  const all = Array.from({ length: size }, (_, index) =>
    ask(harness, index).catch((error: unknown) => {
      errors.add((error as Error).constructor);
      perTurn.set(counts.turns, (perTurn.get(counts.turns) ?? 0) + 1);
    }),
  );
  return { ...harness, all, errors, mostInOneTurn: () => [...perTurn.values()].reduce((most, count) => Math.max(most, count), 0) };
}

describe("a crowd whose time is over", () => {
  it("costs each caller the same few looks at the clock, however many they are", async () => {
    const readsEach: number[] = [];
    for (const size of [200, 2000]) {
      const harness = countedHarness();
      await harness.rival.acquire(KEY);
      const { all } = await crowd(size, ({ locks }) => locks.acquire(KEY, { waitMs: 1500 }), harness);
      await harness.clock.advance(2000);
      await Promise.all(all);
      readsEach.push(harness.counts.reads / size);
    }
    const [few = 0, many = 0] = readsEach;
    expect(many).toBeLessThanOrEqual(few);
    expect(many).toBeLessThan(30);
  });

  it(
    "of 100,000 (5,000 in the quick tier) is told in portions, leaves nothing behind, and costs no other lease its heartbeat",
    { timeout: 120_000 },
    async () => {
      const harness = countedHarness();
      const { clock, locks, rival, wire } = harness;
      await rival.acquire(KEY);
      const others = await Promise.all(Array.from({ length: OTHERS }, (_, index) => locks.acquire(`other:${index}`, { leaseMs: 3000 })));
      const size = sized({ quick: 5_000, slow: 100_000 });
      const { all, errors, mostInOneTurn } = await crowd(size, () => locks.acquire(KEY, { waitMs: 1500 }), harness);
      await clock.advance(1000);
      expect((await rival.inspect(KEY)).waiters).toHaveLength(1);
      await clock.advance(5000);
      await Promise.all(all);
      expect(errors).toEqual(new Set([LockTimeoutError]));
      expect(mostInOneTurn()).toBeLessThanOrEqual(PORTION);
      expect((await rival.inspect(KEY)).waiters).toEqual([]);
      expect(others.every((lease) => lease.state === "held")).toBe(true);
      // One place in the queue, and its polls: the crowd costs the service as much as one caller.
      // All have one place, whose polls follow the pace of the queue: there are as many for 5,000 callers as for 100,000.
      expect([...wire.of("acquire"), ...wire.of("check")].filter(({ request }) => request.key === KEY).length).toBeLessThan(20);
    },
  );
});

describe("a crowd of requests, each with an owner, a meta and an invocation of its own", () => {
  const SIZE = 40;

  it("takes one place in the key's queue, and each gets the lease that it asked for", async () => {
    const { clock, locks, rival, store, wire } = createHarness();
    const held = await rival.acquire(KEY);
    const seen: unknown[] = [];
    const all = Array.from({ length: SIZE }, (_, request) => {
      const view = locks.forInvocation({ getRemainingTimeInMillis: () => 60_000 + request });
      const options = { owner: `owner-${request}`, meta: { request }, leaseMs: 10_000 + request, waitMs: 30_000 };
      return view.withLock(KEY, options, async (lease) => {
        const record = await store.read({ namespace: "test", kind: "locks", key: KEY });
        const [hold] = Object.values(record?.holds ?? {});
        seen.push([hold?.owner, hold?.meta, hold?.leaseMs, lease.isHeld()]);
      });
    });
    await clock.advance(100);
    expect((await rival.inspect(KEY)).waiters).toHaveLength(1);
    await held.release();
    await clock.settle(Promise.all(all));
    expect(seen).toEqual(Array.from({ length: SIZE }, (_, request) => [`owner-${request}`, { request }, 10_000 + request, true]));
    // A handoff is one transfer: no renewal gives the hold what the next caller asked for.
    expect(wire.of("renew")).toEqual([]);
  });

  it("doesn't show a caller that left as the holder", async () => {
    const { clock, locks, rival } = createHarness();
    const held = await rival.acquire(KEY);
    const left = locks.acquire(KEY, { owner: "left", waitMs: 1000 }).catch((error: unknown) => error);
    const next = locks.acquire(KEY, { owner: "next", waitMs: 30_000 });
    await clock.advance(2000);
    expect(await left).toBeInstanceOf(LockTimeoutError);
    await held.release();
    const lease = await clock.settle(next);
    expect(lease.owner).toBe("next");
    expect((await rival.inspect(KEY)).holders.map(({ owner }) => owner)).toEqual(["next"]);
  });

  it("doesn't give the next caller the meta of the one before", async () => {
    const { clock, locks, store } = createHarness();
    const first = await clock.settle(locks.acquire(KEY, { meta: { step: 1 }, waitMs: 5000 }));
    const next = locks.acquire(KEY, { waitMs: 5000 });
    await clock.advance(10);
    await clock.settle(first.release());
    await clock.settle(next);
    const record = await store.read({ namespace: "test", kind: "locks", key: KEY });
    expect(Object.values(record?.holds ?? {}).map(({ meta }) => meta)).toEqual([{}]);
  });
});

describe("a crowd that is refused", () => {
  it("is told the service's word in portions, and whoever comes meanwhile is asked for anew", async () => {
    const harness = countedHarness();
    harness.wire.next("acquire", { replyMs: 50, instead: refuse("forbidden") });
    const { all, mostInOneTurn } = await crowd(1000, ({ locks }) => locks.acquire(KEY, { waitMs: 5000 }), harness);
    await harness.clock.advance(50);
    const late = harness.locks.acquire(KEY, { waitMs: 5000 });
    await harness.clock.settle(Promise.all(all));
    expect(mostInOneTurn()).toBeLessThanOrEqual(PORTION);
    expect((await harness.clock.settle(late)).state).toBe("held");
  });
});
