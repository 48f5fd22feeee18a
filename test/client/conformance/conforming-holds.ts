/** Conformance: holding a lock and working under it. */
import { describe, expect, it } from "vitest";
import { LockLostError } from "../../../lib/index.js";
import type { Fixture } from "./conformance.js";

export function describeHolding(fixture: Fixture): void {
  describe("holds", () => {
    it("what is renewed by hand: never shorter, the same token", async () => {
      const lease = await fixture.locks.acquire(fixture.fresh(), { leaseMs: 20_000, heartbeat: false });
      const { fencingToken } = lease;
      await lease.renew({ leaseMs: 2000 });
      expect(lease.remainingMs()).toBeGreaterThan(10_000);
      await lease.renew({ leaseMs: 60_000, meta: { step: 2 } });
      expect(lease.remainingMs()).toBeGreaterThan(50_000);
      expect(lease.fencingToken).toBe(fencingToken);
      await lease.release();
    });

    it("nothing after its release, which is safe to repeat and true each time", async () => {
      const lease = await fixture.locks.acquire(fixture.fresh());
      expect(await lease.release()).toBe("released");
      expect(await lease.release()).toBe("released");
      expect([lease.state, lease.isHeld(), lease.remainingMs()]).toEqual(["released", false, 0]);
      expect(lease.signal.reason).toBeInstanceOf(LockLostError);
      expect(() => lease.assertHeld()).toThrow(LockLostError);
      await expect(lease.renew()).rejects.toBeInstanceOf(LockLostError);
      await expect(lease.detach()).rejects.toBeInstanceOf(LockLostError);
    });
  });

  describe("withLock", () => {
    it("throws LockLostError when the hold was broken by force while the work ran", async () => {
      const name = fixture.fresh();
      const working = fixture.locks.withLock(name, async ({ fencingToken }) => {
        await fixture.rival.forceRelease(name, { reason: "conformance", fencingToken, drainMs: 0 });
        return "done";
      });
      await expect(working).rejects.toBeInstanceOf(LockLostError);
    });
  });

  describe("hands over", () => {
    it("a lease by a handle that survives JSON, to another client, with a larger token", async () => {
      const name = fixture.fresh();
      const lease = await fixture.locks.acquire(name, { leaseMs: 5000 });
      const { handle } = JSON.parse(JSON.stringify({ handle: await lease.detach() })) as { handle: string };
      expect([lease.isHeld(), lease.signal.aborted]).toEqual([false, true]);
      expect(await fixture.rival.tryAcquire(name)).toBeNull();

      const attached = await fixture.rival.attach(handle);
      expect(attached).toMatchObject({ key: name, state: "held" });
      expect(attached.fencingToken).toBeGreaterThan(lease.fencingToken);
      expect(attached.remainingMs()).toBeGreaterThan(1600);
      await attached.renew();
      expect(await lease.release()).toBe("transferred");
      expect(attached.isHeld()).toBe(true);
      expect(await attached.release()).toBe("released");
    });
  });
}
