/** Heartbeats: their times, the failures they survive, the check before a late heartbeat, and their end. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { refuse } from "../../../lib/core/errors.js";
import { LockLostError } from "../../../lib/testing.js";
import { createHarness, isConsistent } from "../harness.js";

const KEY = "ORDER_1231";
const LEASE_MS = 9000;
const EVERY_MS = LEASE_MS / 3;
const OPTIONS = { leaseMs: LEASE_MS } as const;

describe("heartbeats", () => {
  it.each([
    [0, 0.9],
    [0.5, 1],
    [1, 1.1],
  ])("renew every third of the lease, with jitter: a generator that says %d makes it %d of that", async (random, factor) => {
    const { clock, locks, wire } = createHarness({ random: () => random });
    const grantedAtMs = clock.monotonicMs();
    const lease = await locks.acquire(KEY, OPTIONS);
    await clock.advance(10 * LEASE_MS);
    const timesMs = [grantedAtMs, ...wire.of("renew").map(({ atMs }) => atMs)];
    const pausesMs = timesMs.slice(1).map((atMs, index) => atMs - timesMs[index]!);
    expect(pausesMs.length).toBeGreaterThanOrEqual(27);
    for (const pauseMs of pausesMs) expect(Math.abs(pauseMs - EVERY_MS * factor)).toBeLessThanOrEqual(1);
    expect(lease.state).toBe("held");
  });

  it("renew less often where the service says so: half of the lease, of a key whose record is large", async () => {
    const { clock, locks, rival, wire } = createHarness();
    const limit = 150;
    const meta = { note: "m".repeat(1000) };
    for (let order = 0; order < 26; order++) await rival.acquire(KEY, { limit, meta, leaseMs: 3_600_000, heartbeat: false });
    const grantedAtMs = clock.monotonicMs();
    const lease = await locks.acquire(KEY, { ...OPTIONS, limit });
    await clock.advance(4 * LEASE_MS);
    const [firstMs = 0] = wire.of("renew").map(({ atMs }) => atMs - grantedAtMs);
    expect(firstMs).toBeGreaterThan(0.45 * LEASE_MS);
    expect(firstMs).toBeLessThanOrEqual(0.5 * LEASE_MS);
    expect(wire.of("renew").length).toBeLessThanOrEqual(9);
    expect(lease.state).toBe("held");
  });

  it.each([1000, 3_600_000])("are on whatever the length of the lease: %d ms", async (leaseMs) => {
    const { clock, locks } = createHarness();
    const lease = await locks.acquire(KEY, { leaseMs });
    await clock.advance(10 * leaseMs);
    expect(lease.state).toBe("held");
  });

  it("keep the same token and ask for the same length", async () => {
    const { clock, locks, wire } = createHarness();
    const { fencingToken } = await locks.acquire(KEY, OPTIONS);
    await clock.advance(LEASE_MS);
    expect(wire.of("renew").map(({ request }) => request.leaseMs)).toEqual([LEASE_MS, LEASE_MS, LEASE_MS]);
    expect((await locks.inspect(KEY)).holders).toMatchObject([{ fencingToken }]);
  });

  it("never overlap, however slow the answers are", async () => {
    const { clock, locks, wire } = createHarness();
    let underWay = 0;
    let most = 0;
    wire.onSend = () => (most = Math.max(most, ++underWay));
    wire.always("renew", { replyMs: 1400 });
    const lease = await locks.acquire(KEY, OPTIONS);
    underWay = 0;
    clock.after(1, function count() {
      underWay = 0;
      clock.after(1400, count);
    });
    await clock.advance(5 * LEASE_MS);
    expect(most).toBeLessThanOrEqual(1);
    expect(lease.isHeld()).toBe(true);
  });

  it("may fail many times, as long as one lands before the deadline", async () => {
    const { clock, locks, wire } = createHarness();
    const lease = await locks.acquire(KEY, OPTIONS);
    for (let round = 0; round < 5; round++) {
      wire.next("renew", { lost: "reply" }, { lost: "request", silently: true }, { instead: refuse("unavailable") });
      await clock.advance(2 * EVERY_MS);
      expect(lease.isHeld()).toBe(true);
    }
    await clock.advance(LEASE_MS);
    expect(lease.state).toBe("held");
    expect(lease.signal.aborted).toBe(false);
  });

  it("survive an outage shorter than what was left of the lease", async () => {
    const { clock, locks, wire } = createHarness();
    const lease = await locks.acquire(KEY, OPTIONS);
    await clock.advance(EVERY_MS - 1);
    wire.always("renew", { lost: "request", silently: true });
    await clock.advance(4000);
    wire.always("renew", undefined);
    await clock.advance(2 * LEASE_MS);
    expect(lease.state).toBe("held");
  });
});

describe("a renewal that nobody answers", () => {
  it("makes the state unknown, then lost at the deadline and not a moment earlier", async () => {
    const { clock, locks, wire, events } = createHarness();
    const lease = await locks.acquire(KEY, OPTIONS);
    wire.always("renew", { lost: "reply" });
    await clock.advance(EVERY_MS + 1);
    expect(lease.state).toBe("unknown");
    expect(lease.isHeld()).toBe(true);
    expect(lease.signal.aborted).toBe(false);

    await clock.advance(lease.remainingMs() - 1);
    expect(lease.state).toBe("unknown");
    expect(isConsistent(lease)).toBe(true);
    await clock.advance(1);
    expect(lease.state).toBe("lost");
    expect(lease.signal.reason).toBeInstanceOf(LockLostError);
    const types = events.map(({ type }) => type);
    expect([types[0], types.at(-1)]).toEqual(["acquired", "lost"]);
    expect(new Set(types.slice(1, -1))).toEqual(new Set(["renew-failed"]));
  });

  it("is sent until shortly before the deadline: an outage that ends in time is survived", async () => {
    const { clock, locks, wire } = createHarness({ random: () => 1 });
    const lease = await locks.acquire(KEY, { leaseMs: 3000 });
    wire.always("renew", { lost: "request" });
    await clock.advance(2700);
    expect(lease.state).toBe("unknown");
    wire.always("renew", undefined);
    await clock.advance(3000);
    expect(lease.state).toBe("held");
  });

  it("and is then answered: held again", async () => {
    const { clock, locks, wire } = createHarness();
    const lease = await locks.acquire(KEY, OPTIONS);
    wire.next("renew", { lost: "reply" }, { lost: "reply" });
    await clock.advance(EVERY_MS + 1);
    expect(lease.state).toBe("unknown");
    await clock.advance(500);
    expect(lease.state).toBe("held");
  });

  it("called by hand: LockLostError at the deadline, in one piece with the state", async () => {
    const { clock, locks, wire } = createHarness();
    const lease = await locks.acquire(KEY, { ...OPTIONS, heartbeat: false });
    wire.always("renew", { lost: "request", silently: true });
    await expect(clock.settle(lease.renew())).rejects.toBeInstanceOf(LockLostError);
    expect(lease.state).toBe("lost");
  });

  it("because it was refused without losing the lease is told, and tried again at the next tick", async () => {
    const { clock, locks, wire, events } = createHarness();
    const lease = await locks.acquire(KEY, OPTIONS);
    wire.next("renew", { instead: refuse("forbidden") });
    await clock.advance(EVERY_MS + 1);
    expect(lease.state).toBe("unknown");
    expect(events.at(-1)).toMatchObject({ type: "renew-failed", key: KEY, error: { code: "forbidden" } });
    await clock.advance(EVERY_MS);
    expect(lease.state).toBe("held");
  });

  it.each(["taken", "broken", "expired", "never"] as const)("because the lease is lost (%s) ends it at once", async (reason) => {
    const { clock, locks, wire } = createHarness();
    const lease = await locks.acquire(KEY, OPTIONS);
    wire.next("renew", { instead: refuse("lease-lost", { reason }) });
    await clock.advance(EVERY_MS + 1);
    expect(lease.state).toBe("lost");
    expect(lease.signal.reason).toMatchObject({ name: "LockLostError", reason });
    await clock.advance(LEASE_MS);
    expect(wire.of("renew")).toHaveLength(1);
  });
});

describe("a tick that comes far too late", () => {
  it("asks whether the lease is still held before it renews", async () => {
    const { clock, locks, wire } = createHarness();
    const lease = await locks.acquire(KEY, { leaseMs: 60_000 });
    await lease.renew({ leaseMs: 600_000 });
    await clock.freeze(70_000);
    expect(wire.sent.slice(-2).map(({ operation }) => operation)).toEqual(["check", "renew"]);
    expect(lease.state).toBe("held");
  });

  it("renews straight away when it was only a little late", async () => {
    const { clock, locks, wire } = createHarness();
    await locks.acquire(KEY, OPTIONS);
    await clock.freeze(EVERY_MS + 500);
    expect(wire.sent.map(({ operation }) => operation)).toEqual(["acquire", "renew"]);
  });

  it("renews nothing when the answer is that the lease is gone", async () => {
    const { clock, locks, wire } = createHarness();
    const lease = await locks.acquire(KEY, { leaseMs: 60_000 });
    await lease.renew({ leaseMs: 600_000 });
    wire.next("check", { instead: refuse("lease-lost", { reason: "broken" }) });
    await clock.freeze(70_000);
    expect(wire.of("renew")).toHaveLength(1);
    expect(lease.signal.reason).toMatchObject({ reason: "broken" });
  });
});

describe("heartbeats end", () => {
  it.each(["release", "detach"] as const)("with %s", async (how) => {
    const { clock, locks, wire } = createHarness();
    const lease = await locks.acquire(KEY, OPTIONS);
    await clock.advance(EVERY_MS + 1);
    await lease[how]();
    await clock.advance(10 * LEASE_MS);
    expect(wire.of("renew")).toHaveLength(1);
  });

  it("with maxHoldMs: the signal fires, the key is given back", async () => {
    const { clock, locks, rival, wire, events } = createHarness();
    const lease = await locks.acquire(KEY, { ...OPTIONS, maxHoldMs: 20_000 });
    await clock.advance(19_999);
    expect(lease.state).toBe("held");
    await clock.advance(1);
    expect(lease.state).toBe("lost");
    expect(lease.signal.reason).toMatchObject({ name: "LockLostError", reason: "max-hold" });
    expect(wire.of("release")).toHaveLength(1);
    expect(await rival.tryAcquire(KEY)).not.toBeNull();
    expect(events.map(({ type }) => type)).toEqual(["acquired", "lost"]);
  });
});

describe("whatever happens to the messages and the clocks", () => {
  it("what a lease tells about itself agrees, and once it is over it stays over", async () => {
    const step = fc.oneof(
      fc.record({ do: fc.constant("advance" as const), ms: fc.integer({ min: 1, max: 4000 }) }),
      fc.record({ do: fc.constant("freeze" as const), ms: fc.integer({ min: 1, max: 12_000 }) }),
      fc.record({ do: fc.constant("jump" as const), ms: fc.integer({ min: -20_000, max: 4000 }) }),
      fc.record({ do: fc.constant("lose" as const), ms: fc.integer({ min: 1, max: 4 }) }),
      fc.record({ do: fc.constant("release" as const), ms: fc.constant(0) }),
    );
    let lost = 0;
    let kept = 0;
    const property = fc.asyncProperty(
      fc.array(step, { maxLength: 12 }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      async (steps, random) => {
        const { clock, locks, rival, wire } = createHarness({ random: () => random });
        const lease = await locks.acquire(KEY, OPTIONS);
        let over = false;
        for (const { do: what, ms } of steps) {
          if (what === "advance") await clock.advance(ms);
          if (what === "freeze") await clock.freeze(ms);
          if (what === "jump") clock.jumpWall(ms);
          if (what === "lose") wire.next("renew", ...Array.from({ length: ms }, () => ({ lost: "reply" }) as const));
          if (what === "release") await clock.settle(lease.release());
          expect(isConsistent(lease)).toBe(true);
          expect(over && lease.isHeld()).toBe(false);
          over ||= !lease.isHeld();
          if (!over) expect(await rival.tryAcquire(KEY)).toBeNull();
        }
        if (over) lost++;
        else kept++;
        await locks.close();
      },
    );
    await fc.assert(property, { numRuns: 150 });
    expect(Math.min(lost, kept)).toBeGreaterThan(10);
  });
});
