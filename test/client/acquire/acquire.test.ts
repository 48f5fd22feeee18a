/** Acquiring with simulated time: null, waiting, timing out, and no leftovers. */
import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import { LIMITS } from "../../../lib/core/limits.js";
import { refuse } from "../../../lib/core/errors.js";
import { leaseIdTimeMs } from "../../../lib/core/lease-id.js";
import { LockError, LockTimeoutError } from "../../../lib/index.js";
import type { LockClient, Operation } from "../../../lib/testing.js";
import { createHarness, isConsistent } from "../harness.js";

const KEY = "ORDER_1231";
const LEASE_MS = 3000;

describe("tryAcquire", () => {
  it("gives a lease that is held, with one request", async () => {
    const { locks, wire } = createHarness({ owner: "checkout-7" });
    const lease = await locks.tryAcquire(KEY, { leaseMs: LEASE_MS });
    expect(lease).toMatchObject({ key: KEY, owner: "checkout-7", mode: "exclusive", permits: 1, holdCount: 1, state: "held" });
    expect(isConsistent(lease!)).toBe(true);
    expect(wire.sent.map(({ operation }) => operation)).toEqual(["acquire"]);
  });
});

describe("acquire", () => {
  it("waits, and gets the key soon after its release", async () => {
    const { clock, locks, rival } = createHarness();
    const theirs = await rival.acquire(KEY);
    const waiting = locks.acquire(KEY);
    await clock.advance(5000);
    await theirs.release();
    const releasedAtMs = clock.monotonicMs();
    const lease = await clock.settle(waiting);
    expect(lease.isHeld()).toBe(true);
    expect(lease.fencingToken).toBeGreaterThan(theirs.fencingToken);
    expect(clock.monotonicMs() - releasedAtMs).toBeLessThanOrEqual(1000);
  });

  it("takes over from a holder that died, after its lease and its margin", async () => {
    const { clock, locks, rival } = createHarness();
    const began = clock.monotonicMs();
    await rival.acquire(KEY, { leaseMs: LEASE_MS, heartbeat: false });
    const lease = await clock.settle(locks.acquire(KEY));
    const marginMs = 2 * 500 + (2 * LEASE_MS) / 1000 + 1;
    expect(lease.isHeld()).toBe(true);
    expect(clock.monotonicMs() - began).toBeGreaterThanOrEqual(LEASE_MS + marginMs);
    expect(clock.monotonicMs() - began).toBeLessThanOrEqual(LEASE_MS + marginMs + 1000);
  });

  it("waits in the queue under one leaseId, and leaves it when its time is over", async () => {
    const { clock, locks, rival, wire } = createHarness();
    await rival.acquire(KEY);
    await expect(clock.settle(locks.acquire(KEY, { waitMs: 5000 }))).rejects.toBeInstanceOf(LockTimeoutError);
    const ids = wire.sent.filter(({ operation }) => operation !== "inspect").map(({ request }) => request.leaseId);
    expect(ids.length).toBeGreaterThan(5);
    expect(new Set(ids).size).toBe(1);
    expect(wire.of("release")).toHaveLength(1);
    expect(wire.of("inspect"), "for the error, which names the holders").toHaveLength(1);
    expect((await rival.inspect(KEY)).waiters).toEqual([]);
  });

  it("looks more often than it writes, and comes in time to keep its place", async () => {
    const { clock, locks, rival, wire } = createHarness();
    await rival.acquire(KEY);
    await expect(clock.settle(locks.acquire(KEY, { waitMs: 20_000 }))).rejects.toThrow();
    const timesMs = [...wire.of("acquire"), ...wire.of("check")].map(({ atMs }) => atMs).sort((a, b) => a - b);
    const pausesMs = timesMs.slice(1).map((atMs, index) => atMs - timesMs[index]!);
    expect(Math.max(...pausesMs)).toBeLessThanOrEqual(LIMITS.pollMaxMs);
    expect(wire.of("acquire").length).toBeLessThan(6);
    expect(wire.of("check").length).toBeGreaterThan(wire.of("acquire").length);
  });

  it("asks for a place in a full queue no sooner than the service says, and at its end", async () => {
    const { clock, locks, wire } = createHarness();
    wire.always("acquire", { instead: refuse("queue-full", { retryAfterMs: 3500 }) });
    const beganMs = clock.monotonicMs();
    await expect(clock.settle(locks.acquire(KEY, { waitMs: 10_000 }))).rejects.toBeInstanceOf(LockTimeoutError);
    const atMs = wire.of("acquire").map((sent) => sent.atMs - beganMs);
    expect(atMs).toHaveLength(4);
    expect(atMs.at(-1)).toBe(10_000);
    expect(atMs[1]).toBeGreaterThanOrEqual(3500);
  });

  it("says in each id when it began to wait outside a full queue; control: outside a held key each id is new", async () => {
    /** The times of the ids, in hundredths of a second since the wait began. */
    const idTimes = async (code: "queue-full" | "key-full", waitMs: number): Promise<readonly number[]> => {
      const { clock, locks, wire } = createHarness();
      wire.always("acquire", { instead: refuse(code, { retryAfterMs: 3500 }) });
      const beganMs = clock.wallMs();
      await expect(clock.settle(locks.acquire(KEY, { waitMs }), 2 * waitMs)).rejects.toBeInstanceOf(LockTimeoutError);
      return wire.of("acquire").map(({ request }) => Math.round((leaseIdTimeMs(request.leaseId!) - beganMs + 1) / 10));
    };
    expect(await idTimes("queue-full", 10_000)).toEqual([0, 0, 0, 0]);
    expect((await idTimes("key-full", 10_000)).at(-1)).toBe(1000);
    // The service takes no older id.
    expect((await idTimes("queue-full", 720_000)).at(-1)).toBe(12_000);
  });

  it("asks once with waitMs 0", async () => {
    const { clock, locks, rival, wire } = createHarness();
    await rival.acquire(KEY);
    await expect(clock.settle(locks.acquire(KEY, { waitMs: 0 }))).rejects.toBeInstanceOf(LockTimeoutError);
    expect(wire.sent).toHaveLength(1);
  });

  it("gives up or gives the lease, and never neither, at whatever moment the signal aborts", async () => {
    const outcomes = new Set<string>();
    for (let turns = 0; turns < 60; turns++) {
      const { clock, locks, rival, wire } = createHarness();
      const giveUp = new AbortController();
      wire.onSend = () => void inTurns(turns).then(() => giveUp.abort());
      const outcome = await clock.settle(locks.acquire(KEY, { signal: giveUp.signal }).catch((error: unknown) => error as Error));
      outcomes.add(outcome instanceof Error ? outcome.name : outcome.state);
      expect((await rival.tryAcquire(KEY)) === null).toBe(!(outcome instanceof Error));
    }
    expect(outcomes).toEqual(new Set(["AbortError", "held"]));
  });

  it("keeps its lease when the signal aborts after the grant", async () => {
    const { clock, locks } = createHarness();
    const giveUp = new AbortController();
    const lease = await locks.acquire(KEY, { signal: giveUp.signal, leaseMs: LEASE_MS });
    giveUp.abort();
    await clock.advance(2 * LEASE_MS);
    expect(lease.isHeld()).toBe(true);
  });

  it.each(["contended", "throttled", "clock-skew", "unavailable", "internal"] as const)(
    "sends the same request again after %s",
    async (code) => {
      const { clock, locks, wire } = createHarness();
      wire.next("acquire", { instead: refuse(code, { retryAfterMs: 300 }) });
      const lease = await clock.settle(locks.acquire(KEY));
      expect(lease.isHeld()).toBe(true);
      const [first, second] = wire.of("acquire");
      expect(second?.request.leaseId).toBe(first?.request.leaseId);
      expect(second!.atMs - first!.atMs).toBeGreaterThanOrEqual(300);
    },
  );

  it.each(["forbidden", "newer-format", "too-large"] as const)(
    "gives up at once after %s, with the service's word for it",
    async (code) => {
      const { locks, wire } = createHarness();
      wire.always("acquire", { instead: refuse(code) });
      const error: unknown = await locks.acquire(KEY).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(LockError);
      expect(error).toMatchObject({ code, definite: true });
      expect(wire.sent).toHaveLength(1);
    },
  );
});

describe("a client that was closed", () => {
  it("cancels an acquire that it was closed under", async () => {
    const { clock, locks, rival, wire } = createHarness();
    wire.next("acquire", { replyMs: 200 });
    const asked = expect(locks.acquire(KEY)).rejects.toMatchObject({ code: "closed" });
    await clock.advance(100);
    await clock.settle(locks.close());
    await asked;
    expect(await rival.tryAcquire(KEY)).not.toBeNull();
  });
});

/** Resolves after that many turns of the microtask queue. */
async function inTurns(turns: number): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await Promise.resolve();
}

describe("a signal", () => {
  /** A way to acquire a lock, the operation that grants it, and the operation that renews a lease that was granted too late. */
  type Way = readonly [
    how: string,
    ask: (locks: LockClient, signal: AbortSignal) => Promise<unknown>,
    granting: Operation,
    renewing: Operation,
  ];
  const WAYS: readonly Way[] = [
    ["acquire", (locks, signal) => locks.acquire(KEY, { ...SLOW, signal }), "acquire", "renew"],
    ["tryAcquire", (locks, signal) => locks.tryAcquire(KEY, { ...SLOW, signal }), "acquire", "renew"],
    ["acquireAll", (locks, signal) => locks.acquireAll([KEY], { ...SLOW, signal }), "acquireSet", "renewSet"],
    ["tryAcquireAll", (locks, signal) => locks.tryAcquireAll([KEY], { ...SLOW, signal }), "acquireSet", "renewSet"],
    [
      "runOnce",
      (locks, signal) => locks.runOnce(KEY, { ...SLOW, waitMs: 0, signal }, () => expect.unreachable("given up")),
      "start",
      "renew",
    ],
  ];
  const SLOW = { leaseMs: 3000 } as const;
  const reason = new Error("the request is gone");
  const ABORTED = { name: "AbortError", cause: reason };

  it.each(WAYS)("that was aborted before is an AbortError with its reason, and nothing is sent: %s", async (_how, ask) => {
    const { locks, wire } = createHarness();
    await expect(ask(locks, AbortSignal.abort(reason))).rejects.toMatchObject(ABORTED);
    expect(wire.sent).toEqual([]);
  });

  it.each(WAYS)("that aborts as the grant arrives is one as well, and nothing stays held: %s", async (_how, ask, granting, renewing) => {
    const { clock, locks, wire, rival } = createHarness();
    const giveUp = new AbortController();
    // The answer arrives when so much of the lease is over that it is renewed first. The signal aborts meanwhile.
    wire.next(granting, ...Array.from({ length: 4 }, () => ({ lost: "reply", silently: true }) as const));
    wire.onSend = ({ operation }) => operation === renewing && giveUp.abort(reason);
    await expect(clock.settle(ask(locks, giveUp.signal))).rejects.toMatchObject(ABORTED);
    expect(giveUp.signal.aborted).toBe(true);
    expect(await rival.tryAcquire(KEY)).not.toBeNull();
    expect(await rival.runs.get(KEY)).toBeNull();
  });

  it("may be that of any number of acquires: Node warns of no leak, and keeps no listener of those that are over", async () => {
    const warnings: Error[] = [];
    const note = (warning: Error): void => void warnings.push(warning);
    process.on("warning", note);
    const { locks, clock } = createHarness();
    const { signal } = new AbortController();
    const view = locks.scope("request-6e0c63257de34c92");
    const held = await clock.settle(Promise.all(Array.from({ length: 50 }, (_, index) => view.acquire(`k${index}`, { signal }))));
    const waiting = Promise.allSettled(Array.from({ length: 50 }, (_, index) => locks.acquire(`k${index}`, { signal, waitMs: 500 })));
    await clock.settle(waiting);
    await new Promise((resolve) => setImmediate(resolve));
    process.off("warning", note);
    expect(warnings).toEqual([]);
    expect(getEventListeners(signal, "abort")).toEqual([]);
    expect(held.every((lease) => lease.isHeld())).toBe(true);
  });
});
