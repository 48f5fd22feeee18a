/** Upgrades and downgrades with lost, late or repeated messages: never two writers, and no accidental upgrade. */
import { describe, expect, it } from "vitest";
import type { ServiceApi } from "../../../lib/core/api/runs.js";
import { LockError, LockLostError } from "../../../lib/index.js";
import { type Harness, createHarness } from "../harness.js";

const KEY = "PAGE_1";
const LEASE_MS = 9000;
const SHARED = { mode: "shared", leaseMs: LEASE_MS } as const;

/** Sends the `index`th change of mode once more. */
function duplicate({ wire }: Harness, index: number): ReturnType<ServiceApi["changeMode"]> {
  return wire.api.changeMode(wire.of("changeMode")[index]!.request as Parameters<ServiceApi["changeMode"]>[0]);
}

describe("an upgrade", () => {
  it("whose answer was lost is asked for again with the same token: one new token, no conflict with itself", async () => {
    const harness = createHarness();
    const lease = await harness.locks.acquire(KEY, SHARED);
    const before = lease.fencingToken;
    harness.wire.next("changeMode", { lost: "reply" }, { lost: "reply", silently: true });
    await harness.clock.settle(lease.upgrade());
    expect([lease.mode, lease.state]).toEqual(["exclusive", "held"]);
    expect(harness.wire.of("changeMode").map(({ request }) => (request as { fencingToken?: number }).fencingToken)).toEqual(
      Array.from({ length: 3 }, () => before),
    );
    expect((await harness.rival.inspect(KEY)).holders).toMatchObject([{ mode: "exclusive", fencingToken: lease.fencingToken }]);
  });

  it("that comes once more after the downgrade makes no writer", async () => {
    const harness = createHarness();
    const lease = await harness.locks.acquire(KEY, SHARED);
    await lease.upgrade();
    await lease.downgrade();
    const { fencingToken } = lease;
    expect(await duplicate(harness, 0)).toMatchObject({ ok: false, code: "token-mismatch" });
    expect(await harness.rival.tryAcquire(KEY, SHARED)).not.toBeNull();
    await lease.renew();
    expect([lease.mode, lease.fencingToken]).toEqual(["shared", fencingToken]);
  });

  it("that comes once more while nothing followed it changes nothing: the control", async () => {
    const harness = createHarness();
    const lease = await harness.locks.acquire(KEY, SHARED);
    await lease.upgrade();
    expect(await duplicate(harness, 0)).toMatchObject({ ok: true, how: "replayed", lease: { fencingToken: lease.fencingToken } });
  });

  it("is not undone by a heartbeat's answer that was under way", async () => {
    const harness = createHarness();
    const lease = await harness.locks.acquire(KEY, SHARED);
    harness.wire.next("renew", { replyMs: 1000 });
    await harness.clock.advance(LEASE_MS / 3 + 100);
    await lease.upgrade();
    const { fencingToken } = lease;
    await harness.clock.advance(1000);
    expect([lease.mode, lease.fencingToken, lease.state]).toEqual(["exclusive", fencingToken, "held"]);
  });

  it("may wait for longer than the lease: heartbeats go on, and so does its place", async () => {
    const harness = createHarness();
    const [lease, theirs] = [await harness.locks.acquire(KEY, SHARED), await harness.rival.acquire(KEY, SHARED)];
    const upgrading = lease.upgrade({ waitMs: 60_000 });
    await harness.clock.advance(3 * LEASE_MS);
    expect(lease.state).toBe("held");
    await expect(theirs.upgrade()).rejects.toMatchObject({ code: "upgrade-conflict" });
    expect(await harness.rival.tryAcquire(KEY, SHARED)).toBeNull();
    await harness.clock.settle(theirs.release());
    await harness.clock.settle(upgrading);
    expect(lease.mode).toBe("exclusive");
  });

  it("ends with the lease: LockLostError when it is broken meanwhile, or was before", async () => {
    const harness = createHarness();
    const [lease] = [await harness.locks.acquire(KEY, SHARED), await harness.rival.acquire(KEY, SHARED)];
    const upgrading = expect(lease.upgrade()).rejects.toBeInstanceOf(LockLostError);
    await harness.clock.advance(500);
    await harness.clock.settle(harness.rival.forceRelease(KEY, { reason: "test", fencingToken: lease.fencingToken, drainMs: 0 }));
    await harness.clock.settle(upgrading);
    expect([lease.state, lease.signal.aborted]).toEqual(["lost", true]);
    await expect(lease.upgrade()).rejects.toBeInstanceOf(LockLostError);
  });

  it("that nobody answers does not outlive the lease, and nobody thinks to be the writer", async () => {
    const harness = createHarness();
    const lease = await harness.locks.acquire(KEY, { ...SHARED, heartbeat: false });
    harness.wire.always("changeMode", { lost: "request", silently: true });
    await expect(harness.clock.settle(lease.upgrade())).rejects.toBeInstanceOf(LockError);
    expect([lease.mode, lease.isHeld()]).toEqual(["shared", false]);
  });

  it("refuses options that it doesn't have", async () => {
    const harness = createHarness();
    const lease = await harness.locks.acquire(KEY, SHARED);
    await expect(lease.upgrade({ waitMs: -1 })).rejects.toMatchObject({ name: "InvalidRequestError", field: "waitMs" });
    await expect(lease.upgrade({ leaseMs: 5000 } as object)).rejects.toMatchObject({ field: "leaseMs" });
  });
});

describe("a downgrade", () => {
  it("whose answer was lost is asked for again: one new token", async () => {
    const harness = createHarness();
    const lease = await harness.locks.acquire(KEY, { leaseMs: LEASE_MS });
    harness.wire.next("changeMode", { lost: "reply" });
    await harness.clock.settle(lease.downgrade());
    expect(lease.mode).toBe("shared");
    expect((await harness.rival.inspect(KEY)).holders).toMatchObject([{ mode: "shared", fencingToken: lease.fencingToken }]);
  });

  it("that comes once more after the next upgrade lets nobody in", async () => {
    const harness = createHarness();
    const lease = await harness.locks.acquire(KEY, { leaseMs: LEASE_MS });
    await lease.downgrade();
    await lease.upgrade();
    expect(await duplicate(harness, 0)).toMatchObject({ ok: false, code: "token-mismatch" });
    expect(await harness.rival.tryAcquire(KEY, SHARED)).toBeNull();
    await lease.renew();
    expect(lease.mode).toBe("exclusive");
  });
});
