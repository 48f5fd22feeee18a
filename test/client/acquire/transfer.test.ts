/** Transfers of a hold with lost, late and repeated messages: one hold at any time, and never a hold without an owner. */
import { describe, expect, it } from "vitest";
import { refuse } from "../../../lib/core/errors.js";
import { leaseIdTimeMs } from "../../../lib/core/lease-id.js";
import { LockLostError, LockUnavailableError } from "../../../lib/testing.js";
import { createHarness } from "../harness.js";

const KEY = "ORDER_1231";
const LEASE_MS = 3000;
const AHEAD_MS = 9000;
const HOUR_MS = 3_600_000;

describe("a hold that is handed over", () => {
  it.each(["request", "reply"] as const)("with messages lost on both sides (%s): one hand-over, one token", async (lost) => {
    const { clock, locks, wire } = createHarness();
    const lease = await locks.acquire(KEY, { leaseMs: LEASE_MS });
    wire.next("transfer", { lost });
    const handle = await clock.settle(lease.detach());
    wire.next("transfer", { lost });
    const attached = await clock.settle(locks.attach(handle));
    expect(attached.isHeld()).toBe(true);
    expect(attached.fencingToken).toBeGreaterThan(lease.fencingToken);
    expect((await locks.inspect(KEY)).holders).toMatchObject([{ fencingToken: attached.fencingToken }]);
    expect(new Set(wire.of("transfer").map(({ request }) => request.leaseId)).size).toBe(2);
  });

  it("with too little left by the time the answer came is renewed before anyone gets it", async () => {
    const { clock, locks, rival, wire } = createHarness();
    const handle = await (await rival.acquire(KEY)).detach({ leaseMs: 60_000 });
    wire.always("transfer", { lost: "reply" });
    const asked = locks.attach(handle, { leaseMs: LEASE_MS });
    await clock.advance(2300);
    wire.always("transfer", undefined);
    const lease = await clock.settle(asked);
    expect(lease.remainingMs()).toBeGreaterThan(LEASE_MS / 3);
  });
});

describe("a hold whose new id the service refuses", () => {
  it("is detached under another one above the floor, when the floor of the key is ahead of this clock", async () => {
    const { clock, locks, rival, wire } = createHarness();
    // Ids from a machine whose clock is ahead, within the allowed error; one more than a key's tombstones.
    clock.jumpWall(AHEAD_MS);
    for (let lease = 0; lease < 9; lease++) {
      await (await clock.settle(locks.acquire(KEY))).release();
      await clock.advance(2);
    }
    clock.jumpWall(-AHEAD_MS);

    const lease = await clock.settle(locks.acquire(KEY));
    const handle = await clock.settle(lease.detach());
    expect(wire.of("transfer").length).toBeGreaterThan(1);
    const attached = await clock.settle(rival.attach(handle));
    expect(attached.fencingToken).toBeGreaterThan(lease.fencingToken);
    await attached.release();
    expect(await rival.tryAcquire(KEY)).not.toBeNull();
  });

  it.each([HOUR_MS, -HOUR_MS])("is detached under another one by the service's clock, when the wall stepped by %d ms", async (stepMs) => {
    const { clock, locks, rival, wire } = createHarness();
    const lease = await locks.acquire(KEY, { leaseMs: 2 * HOUR_MS });
    clock.jumpWall(stepMs);
    const handle = await clock.settle(lease.detach());
    expect(wire.of("transfer")).toHaveLength(2);
    const [, , toLeaseId = ""] = handle.split("/");
    expect(Math.abs(leaseIdTimeMs(toLeaseId) - clock.monotonicMs())).toBeLessThan(1000);
    expect((await rival.attach(handle)).isHeld()).toBe(true);
  });

  it.each([
    ["no id is taken", refuse("lease-id-time", {})],
    ["every id is over", refuse("lease-over", { leaseIdAboveMs: 1 })],
    ["the table can't be reached", refuse("unavailable", { definite: true })],
    ["it is forbidden", refuse("forbidden")],
  ])("is free at once if the detach fails at last, as %s", async (_why, refusal) => {
    const { clock, locks, rival, wire } = createHarness();
    const lease = await locks.acquire(KEY, { leaseMs: 10_000 });
    wire.always("transfer", { instead: refusal });
    await expect(clock.settle(lease.detach({ leaseMs: HOUR_MS }))).rejects.toMatchObject({ code: refusal.code });
    expect(lease.isHeld()).toBe(false);
    expect((await rival.inspect(KEY)).holders).toEqual([]);
    expect(await rival.tryAcquire(KEY)).not.toBeNull();
  });
});

describe("a hold that nobody could detach", () => {
  it("is given back: better free at once than after its lease", async () => {
    const { clock, locks, rival, wire } = createHarness();
    const lease = await locks.acquire(KEY);
    wire.always("transfer", { lost: "reply" });
    await expect(clock.settle(lease.detach({ leaseMs: 60_000 }))).rejects.toBeInstanceOf(LockUnavailableError);
    expect(await rival.tryAcquire(KEY)).not.toBeNull();
  });
});

describe("a handle that nobody could attach", () => {
  it("because it had run out: LockLostError", async () => {
    const { clock, locks, rival } = createHarness();
    const handle = await (await rival.acquire(KEY)).detach({ leaseMs: LEASE_MS });
    await clock.advance(LEASE_MS + 1);
    await expect(clock.settle(locks.attach(handle))).rejects.toBeInstanceOf(LockLostError);
  });

  it("because no answer came: what may have been attached is cancelled", async () => {
    const { clock, locks, rival, wire } = createHarness();
    const handle = await (await rival.acquire(KEY)).detach({ leaseMs: LEASE_MS });
    wire.always("transfer", { lost: "reply" });
    await expect(clock.settle(locks.attach(handle))).rejects.toBeInstanceOf(LockUnavailableError);
    expect(wire.of("release").length).toBeGreaterThan(0);
    expect(await rival.tryAcquire(KEY)).not.toBeNull();
  });
});
