/**
 * Detaching when the service refuses the first new id. Regression: that refusal was final. The hold was given up, no
 * caller had a handle, and the key stayed held until its lease expired.
 */
import { describe, expect, it } from "vitest";
import { leaseIdTimeMs } from "../../lib/core/lease-id.js";
import { refuse } from "../../lib/core/errors.js";
import { createHarness } from "../client/harness.js";

const KEY = "ORDER_1231";
const AHEAD_MS = 9000;
const HOUR_MS = 3_600_000;

describe("detach()", () => {
  it("makes another id above the floor, when the floor of the key is ahead of this clock", async () => {
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

  it.each([HOUR_MS, -HOUR_MS])("makes another id by the service's clock, when the wall stepped by %d ms", async (stepMs) => {
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
  ])("frees the key at once when it finally fails, as %s", async (_why, refusal) => {
    const { clock, locks, rival, wire } = createHarness();
    const lease = await locks.acquire(KEY, { leaseMs: 10_000 });
    wire.always("transfer", { instead: refusal });
    await expect(clock.settle(lease.detach({ leaseMs: HOUR_MS }))).rejects.toMatchObject({ code: refusal.code });
    expect(lease.isHeld()).toBe(false);
    expect((await rival.inspect(KEY)).holders).toEqual([]);
    expect(await rival.tryAcquire(KEY)).not.toBeNull();
  });
});
