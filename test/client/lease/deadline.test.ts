/** The lease deadline: it is measured on two clocks from the send, and once it has passed, the lease is never treated as held again. */
import { describe, expect, it } from "vitest";
import { type Lease, type LockClient, type Operation, LockLostError } from "../../../lib/testing.js";
import { createHarness, isConsistent } from "../harness.js";

const KEY = "ORDER_1231";
const LEASE_MS = 9000;
/** 1 % of the lease, at least 50 ms. */
const MARGIN_MS = 90;
const FIXED = { leaseMs: LEASE_MS, heartbeat: false } as const;

describe("the deadline", () => {
  it("is the remaining time from the send, less the client's margin", async () => {
    const { clock, locks } = createHarness();
    const lease = await locks.acquire(KEY, FIXED);
    expect(lease.remainingMs()).toBe(LEASE_MS - MARGIN_MS);
    await clock.advance(LEASE_MS - MARGIN_MS - 1);
    expect(lease.isHeld()).toBe(true);
    expect(lease.remainingMs()).toBe(1);
    await clock.advance(1);
    expect(lease.isHeld()).toBe(false);
    expect(lease.remainingMs()).toBe(0);
  });

  it.each([
    { requestMs: 300, replyMs: 700 },
    { requestMs: 0, replyMs: 1400 },
    { requestMs: 1400, replyMs: 0 },
  ])("counts from the send, not from the receipt: $requestMs ms there and $replyMs ms back shorten it", async (fate) => {
    const { clock, locks, wire } = createHarness();
    wire.next("acquire", fate);
    const sentAtMs = clock.monotonicMs();
    const lease = await clock.settle(locks.acquire(KEY, FIXED));
    expect(clock.monotonicMs() - sentAtMs).toBe(fate.requestMs + fate.replyMs);
    expect(clock.monotonicMs() + lease.remainingMs()).toBe(sentAtMs + LEASE_MS - MARGIN_MS);
  });

  it("counts from the attempt that was answered, not from the first", async () => {
    const { clock, locks, wire } = createHarness();
    wire.next("acquire", { lost: "request", silently: true });
    const lease = await clock.settle(locks.acquire(KEY, FIXED));
    const [first, second] = wire.of("acquire");
    expect(second!.atMs).toBeGreaterThan(first!.atMs);
    expect(clock.monotonicMs() + lease.remainingMs()).toBe(second!.atMs + LEASE_MS - MARGIN_MS);
  });

  it("of an acquire that was answered again counts what is left of the first grant", async () => {
    const { clock, locks, wire } = createHarness();
    wire.next("acquire", { lost: "reply", silently: true });
    const lease = await clock.settle(locks.acquire(KEY, FIXED));
    expect(clock.monotonicMs() + lease.remainingMs()).toBe(wire.of("acquire")[0]!.atMs + LEASE_MS - MARGIN_MS);
  });

  it("of a slow renewal counts from its send too", async () => {
    const { clock, locks, wire } = createHarness();
    const lease = await locks.acquire(KEY, FIXED);
    await clock.advance(3000);
    wire.next("renew", { requestMs: 100, replyMs: 1200 });
    await clock.settle(lease.renew());
    expect(clock.monotonicMs() + lease.remainingMs()).toBe(wire.of("renew")[0]!.atMs + LEASE_MS - MARGIN_MS);
  });

  it("is never moved back by an answer that was overtaken by a later one", async () => {
    const { clock, locks, wire } = createHarness();
    const lease = await locks.acquire(KEY, FIXED);
    wire.next("renew", { replyMs: 1000 }, { requestMs: 500 });
    const both = Promise.all([lease.renew({ leaseMs: 6000 }), lease.renew({ leaseMs: 12_000 })]);
    await clock.advance(600);
    const deadlineMs = clock.monotonicMs() + lease.remainingMs();
    await clock.settle(both);
    expect(clock.monotonicMs() + lease.remainingMs()).toBe(deadlineMs);
    expect(lease.remainingMs()).toBeGreaterThan(10_000);
  });

  it("is earlier than the moment at which anybody else is granted the key", async () => {
    const { clock, locks, rival } = createHarness();
    const lease = await locks.acquire(KEY, FIXED);
    let lostAtMs = 0;
    lease.signal.addEventListener("abort", () => (lostAtMs = clock.monotonicMs()));
    await clock.settle(rival.acquire(KEY));
    expect(lostAtMs).toBeGreaterThan(0);
    expect(lostAtMs).toBeLessThan(clock.monotonicMs());
  });
});

describe("a lease without heartbeats", () => {
  it("ends at its deadline: the signal fires by itself, with the reason", async () => {
    const { clock, locks, wire } = createHarness();
    const lease = await locks.acquire(KEY, FIXED);
    await clock.advance(LEASE_MS - MARGIN_MS - 1);
    expect(lease.signal.aborted).toBe(false);
    await clock.advance(1);
    expect(lease.signal.aborted).toBe(true);
    expect(lease.signal.reason).toBeInstanceOf(LockLostError);
    expect(lease.signal.reason).toMatchObject({ code: "lease-lost", reason: "deadline", definite: true, retry: "new-lease" });
    expect(lease.state).toBe("lost");
    expect(wire.of("renew")).toEqual([]);
  });

  it.each([1001, 5001, 12_345, 86_399_999])(
    "ends once and quietly at whatever fraction of a millisecond %d ms come to",
    async (leaseMs) => {
      const { clock, locks } = createHarness();
      const lease = await locks.acquire(KEY, { leaseMs, heartbeat: false });
      await clock.advance(leaseMs);
      expect(lease.signal.aborted).toBe(true);
    },
  );
});

describe("a process that was frozen past its lease", () => {
  it("holds nothing at its first call, and its signal has fired after the first turn of the timers", async () => {
    const { clock, locks, rival } = createHarness();
    const lease = await locks.acquire(KEY, { leaseMs: LEASE_MS });
    const woken: unknown[] = [];
    clock.after(1, () => woken.push(lease.isHeld(), lease.remainingMs(), lease.isHeld(), lease.state));
    await clock.freeze(LEASE_MS);
    expect(woken).toEqual([false, 0, false, "lost"]);
    expect(lease.signal.aborted).toBe(true);
    expect(() => lease.assertHeld()).toThrow(LockLostError);
    await expect(lease.renew()).rejects.toBeInstanceOf(LockLostError);
    expect(await clock.settle(rival.acquire(KEY))).toMatchObject({ state: "held" });
  });

  it("fires its signal without anybody asking, and renews nothing", async () => {
    const { clock, locks, wire } = createHarness();
    const lease = await locks.acquire(KEY, { leaseMs: LEASE_MS });
    await clock.freeze(LEASE_MS);
    expect(lease.signal.reason).toMatchObject({ reason: "deadline" });
    await clock.advance(10 * LEASE_MS);
    expect(wire.of("renew")).toEqual([]);
  });

  it("while a renewal was under way does not believe its answer", async () => {
    const { clock, locks, wire } = createHarness();
    const lease = await locks.acquire(KEY, { leaseMs: LEASE_MS });
    wire.next("renew", { requestMs: 50, replyMs: 50 });
    await clock.advance(3060);
    expect(wire.of("renew")).toHaveLength(1);
    // The response alone would allow until 11,910 ms; the previous deadline was at 8,910 ms.
    await clock.freeze(7000);
    expect(lease.isHeld()).toBe(false);
    expect(lease.state).toBe("lost");
  });
});

describe("a wall clock that jumps", () => {
  it("forward past the lease ends the belief: a frozen sandbox looks like that", async () => {
    const { clock, locks } = createHarness();
    const lease = await locks.acquire(KEY, { leaseMs: LEASE_MS });
    clock.jumpWall(LEASE_MS);
    expect(lease.isHeld()).toBe(false);
    clock.jumpWall(-LEASE_MS);
    expect(lease.isHeld()).toBe(false);
    expect(lease.signal.aborted).toBe(true);
  });

  it.each([true, false])(
    "forward, as after a thaw, fires the signals of those that it ended within a second (heartbeat: %s)",
    async (heartbeat) => {
      const { clock, locks, wire } = createHarness();
      const lease = await locks.acquire(KEY, { leaseMs: 3_600_000, heartbeat });
      const longer = await locks.acquire("longer", { leaseMs: 7_200_000, heartbeat });
      clock.jumpWall(3_600_000);
      await clock.advance(1000);
      expect(lease.signal.reason).toMatchObject({ name: "LockLostError", reason: "deadline" });
      expect([lease.state, longer.signal.aborted]).toEqual(["lost", false]);
      expect(wire.sent.filter(({ request }) => request.key === KEY)).toHaveLength(1);
    },
  );

  it("back prolongs nothing: the monotonic clock decides", async () => {
    const { clock, locks } = createHarness();
    const lease = await locks.acquire(KEY, FIXED);
    clock.jumpWall(-3_600_000);
    expect(lease.remainingMs()).toBe(LEASE_MS - MARGIN_MS);
    await clock.advance(LEASE_MS - MARGIN_MS);
    expect(lease.isHeld()).toBe(false);
  });

  it("back while heartbeats go on: still held, still renewed", async () => {
    const { clock, locks } = createHarness();
    const lease = await locks.acquire(KEY, { leaseMs: LEASE_MS });
    clock.jumpWall(-3_600_000);
    await clock.advance(5 * LEASE_MS);
    expect(lease.state).toBe("held");
  });
});

describe("belief ends, and the signal fires, before the request is sent", () => {
  const ENDS: readonly (readonly [string, Operation, (locks: LockClient, lease: Lease) => Promise<unknown>])[] = [
    ["released", "release", (_, lease) => lease.release()],
    ["transferred", "transfer", (_, lease) => lease.detach()],
    ["closed", "release", (locks) => locks.close()],
    ["released", "release", async (_, lease) => lease[Symbol.asyncDispose]()],
  ];

  it.each(ENDS)("that makes it %s (a %s)", async (how, operation, end) => {
    const { clock, locks, wire } = createHarness();
    const lease = await locks.acquire(KEY, { leaseMs: LEASE_MS });
    const seen: unknown[] = [];
    wire.onSend = (sent) => sent.operation === operation && seen.push(lease.isHeld(), lease.signal.aborted, isConsistent(lease));
    await clock.settle(end(locks, lease));
    expect(seen).toEqual([false, true, true]);
    expect(lease.signal.reason).toMatchObject({ reason: how });
    expect(lease.state).toBe("released");
  });

  it("also when it is never answered", async () => {
    const { clock, locks, wire } = createHarness();
    const lease = await locks.acquire(KEY, { leaseMs: LEASE_MS });
    wire.always("release", { lost: "request", silently: true });
    const releasing = lease.release().catch((error: unknown) => error);
    expect(lease.isHeld()).toBe(false);
    expect(lease.signal.aborted).toBe(true);
    expect(await clock.settle(releasing)).toMatchObject({ code: "unavailable", definite: false });
    expect(lease.state).toBe("released");
  });
});
