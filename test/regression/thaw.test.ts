/**
 * A freeze in which the monotonic clock and all timers stopped, while the wall clock went on past the lease, as in a
 * sandbox. Regression: the signal fired only when the timer had counted its whole time, up to a lease after the thaw.
 * Work that relied on the signal alone went on without the lock.
 */
import { describe, expect, it } from "vitest";
import { createHarness } from "../client/harness.js";

const KEY = "ORDER_1231";

/** The longest time after a thaw for which a client may treat the lease as held without asking. */
const NOTICED_MS = 1000;

describe.each([true, false])("the signal of a lease (heartbeat: %s)", (heartbeat) => {
  it.each([
    { leaseMs: 30_000, beforeMs: 1000, frozenMs: 60_000 },
    { leaseMs: 3_600_000, beforeMs: 600_000, frozenMs: 3_600_000 },
    { leaseMs: 86_400_000, beforeMs: 0, frozenMs: 86_400_000 },
  ])("fires within a second of the thaw: $leaseMs ms, frozen for $frozenMs ms", async ({ leaseMs, beforeMs, frozenMs }) => {
    const { clock, locks } = createHarness();
    const lease = await locks.acquire(KEY, { leaseMs, heartbeat });
    await clock.advance(beforeMs);
    let firedAtMs: number | undefined;
    lease.signal.addEventListener("abort", () => (firedAtMs = clock.monotonicMs()));
    const thawedAtMs = clock.monotonicMs();
    // Only the wall clock: neither the monotonic clock nor a timer counted this time.
    clock.jumpWall(frozenMs);
    await clock.advance(NOTICED_MS);
    expect((firedAtMs ?? Number.POSITIVE_INFINITY) - thawedAtMs).toBeLessThanOrEqual(NOTICED_MS);
    expect(lease.signal.reason).toMatchObject({ name: "LockLostError", reason: "deadline" });
    expect(lease.state).toBe("lost");
  });

  it("doesn't fire when the freeze left some of the lease", async () => {
    const { clock, locks } = createHarness();
    const lease = await locks.acquire(KEY, { leaseMs: 30_000, heartbeat });
    clock.jumpWall(20_000);
    await clock.advance(NOTICED_MS);
    expect(lease.signal.aborted).toBe(false);
  });
});
