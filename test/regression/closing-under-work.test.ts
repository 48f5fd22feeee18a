/**
 * Work that continues after its client gave up the hold. Regressions: closing a client released the locks of running
 * work, and `withLock` reported success; and a closed client's views went on granting.
 */
import { describe, expect, it } from "vitest";
import type { Lease } from "../../lib/testing.js";
import { LockLostError } from "../../lib/testing.js";
import { createHarness } from "../client/harness.js";

const KEY = "ORDER_1231";
const LEASE_MS = 3000;
const WORK_MS = 5000;
const ENDLESS = { getRemainingTimeInMillis: () => 900_000 };

describe("closing a client while work runs under its lock", () => {
  /** Closes the client in the middle of the work. Returns the outcome of `withLock`, and its lease. */
  async function closedUnder(end: () => unknown) {
    const { clock, locks, rival, events } = createHarness();
    let lease: Lease | undefined;
    const working = locks.withLock(KEY, { leaseMs: LEASE_MS }, async (mine) => {
      lease = mine;
      await new Promise<void>((resolve) => clock.after(WORK_MS, resolve));
      return end();
    });
    const outcome = working.catch((error: unknown) => error);
    await clock.advance(1000);
    await clock.settle(locks.close());
    // From here on the key belongs to another client, while the work still runs.
    expect(await rival.tryAcquire(KEY)).not.toBeNull();
    return { outcome: await clock.settle(outcome), lease, events };
  }

  it("makes withLock throw LockLostError with the reason closed, though the work returned", async () => {
    const { outcome } = await closedUnder(() => "done");
    expect(outcome).toBeInstanceOf(LockLostError);
    expect(outcome).toMatchObject({ code: "lease-lost", reason: "closed" });
  });

  it("makes it so too when the work threw: what it threw is the cause", async () => {
    const cause = new Error("out of stock");
    const { outcome } = await closedUnder(() => Promise.reject(cause));
    expect(outcome).toMatchObject({ name: "LockLostError", reason: "closed", cause });
  });

  it("leaves the lease released, with closed as its signal's reason, and tells of no loss", async () => {
    const { lease, events } = await closedUnder(() => "done");
    expect(lease?.state).toBe("released");
    expect(lease?.signal.reason).toMatchObject({ name: "LockLostError", reason: "closed" });
    expect(events.map(({ type }) => type)).toEqual(["acquired", "released"]);
  });
});

describe("work that gave its own lock up", () => {
  it.each<[how: string, end: (lease: Lease) => Promise<unknown>]>([
    ["released it", (lease) => lease.release()],
    ["detached it", (lease) => lease.detach()],
  ])("and %s before it returned has its value returned", async (_how, end) => {
    const { clock, locks } = createHarness();
    const working = locks.withLock(KEY, async (lease) => {
      await end(lease);
      return "done";
    });
    expect(await clock.settle(working)).toBe("done");
  });

  it("keeps its value when the client is closed after the release", async () => {
    const { clock, locks } = createHarness();
    const working = locks.withLock(KEY, async (lease) => {
      await lease.release();
      await locks.close();
      return "done";
    });
    expect(await clock.settle(working)).toBe("done");
  });
});

describe("closing a client that has views of it for an invocation", () => {
  it("ends the leases of every view, for others at once", async () => {
    const { clock, locks, rival } = createHarness();
    const lease = await locks.forInvocation(ENDLESS).acquire(KEY, { leaseMs: 60_000 });
    await clock.settle(locks.close());
    expect(lease.isHeld()).toBe(false);
    expect(lease.state).toBe("released");
    expect(lease.signal.reason).toMatchObject({ reason: "closed" });
    expect(await rival.tryAcquire(KEY)).not.toBeNull();
  });

  it("gives up the acquires of every view that still wait, and leaves nothing of them behind", async () => {
    const { clock, locks, rival } = createHarness();
    const theirs = await rival.acquire(KEY);
    const waiting = expect(locks.forInvocation(ENDLESS).acquire(KEY, { waitMs: 60_000 })).rejects.toMatchObject({ code: "closed" });
    await clock.advance(100);
    await clock.settle(locks.close());
    await waiting;
    await theirs.release();
    expect((await rival.inspect(KEY)).holders).toEqual([]);
  });

  it("closes the views: they grant nothing after it", async () => {
    const { clock, locks } = createHarness();
    const view = locks.forInvocation(ENDLESS);
    await clock.settle(locks.close());
    await expect(view.acquire(KEY)).rejects.toMatchObject({ code: "closed" });
    await expect(view.tryAcquire(KEY)).rejects.toMatchObject({ code: "closed" });
    await expect(locks.forInvocation(ENDLESS).tryAcquire(KEY)).rejects.toMatchObject({ code: "closed" });
  });

  it("is not what closing a view does: the client and its other views go on", async () => {
    const { clock, locks } = createHarness();
    const [outer, view, other] = [await locks.acquire("outer"), locks.forInvocation(ENDLESS), locks.forInvocation(ENDLESS)];
    const sibling = await other.acquire("sibling");
    await view.acquire("inner");
    await clock.settle(view.close());
    expect([outer.state, sibling.state]).toEqual(["held", "held"]);
    expect(await locks.tryAcquire("inner")).not.toBeNull();
    expect(await other.tryAcquire("more")).not.toBeNull();
  });
});
