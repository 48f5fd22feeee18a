/** Conformance: leases that wait for a condition, and are notified, time out, give up, or are refused. */
import { describe, expect, it } from "vitest";
import { type Lease, type LockClient, LockLostError, LockTimeoutError } from "../../../lib/index.js";
import type { Fixture } from "./conformance.js";

export function describeKindsConditions(fixture: Fixture): void {
  /** A lease of `locks` that waits for `ready`. */
  async function waiter(name: string, options: Parameters<Lease["wait"]>[1] = {}, locks: LockClient = fixture.locks) {
    const lease = await fixture.backend.passing(locks.acquire(name));
    const before = (await fixture.locks.inspect(name)).waitSet?.length ?? 0;
    const waited = lease.wait("ready", { waitMs: 60_000, ...options });
    waited.catch(() => undefined);
    if (options.waitMs === undefined) await fixture.untilInspected(name, ({ waitSet = [] }) => waitSet.length === before + 1);
    return { lease, waited };
  }

  describe("a condition", () => {
    it("frees the key, and gives it back after a notify, with a new leaseId and a larger token", async () => {
      const name = fixture.fresh();
      const { lease, waited } = await waiter(name);
      const { leaseId, fencingToken } = lease;
      expect([lease.isHeld(), lease.state, lease.remainingMs(), lease.signal.aborted]).toEqual([false, "waiting", 0, false]);
      expect(() => lease.assertHeld()).toThrow(LockLostError);
      const changing = (await fixture.rival.tryAcquire(name))!;
      expect(await changing.notify("ready")).toBe(1);
      expect(lease.isHeld()).toBe(false);
      await changing.release();
      await fixture.backend.passing(waited);
      expect([lease.isHeld(), lease.state, lease.signal.aborted]).toEqual([true, "held", false]);
      expect(lease.leaseId).not.toBe(leaseId);
      expect(lease.fencingToken).toBeGreaterThan(Math.max(fencingToken, changing.fencingToken));
      expect(await fixture.rival.tryAcquire(name)).toBeNull();
      await lease.renew();
      expect(await lease.release()).toBe("released");
    });

    it("is waited for within withLock, again and again", async () => {
      const name = fixture.fresh();
      let stock = 0;
      const taken = fixture.locks.withLock(name, { waitMs: 60_000 }, async (lease) => {
        while (stock < 2) await lease.wait("ready", { waitMs: 60_000 });
        return stock;
      });
      const filled = (async () => {
        while (stock < 2) {
          await fixture.rival.withLock(name, async (lease) => void (stock += await lease.notifyAll("ready")));
          await new Promise((resolve) => setImmediate(resolve));
        }
      })();
      expect(await fixture.backend.passing(Promise.all([taken, filled]))).toEqual([2, undefined]);
      expect((await fixture.locks.inspect(name)).holders).toEqual([]);
    });

    it("that is not notified in time throws once the lease holds again", async () => {
      const name = fixture.fresh();
      const { lease, waited } = await waiter(name, { waitMs: 300 });
      const { fencingToken } = lease;
      await expect(fixture.backend.passing(waited)).rejects.toBeInstanceOf(LockTimeoutError);
      expect([lease.isHeld(), lease.state]).toEqual([true, "held"]);
      expect(lease.fencingToken).toBeGreaterThan(fencingToken);
      expect((await fixture.locks.inspect(name)).waitSet).toBeUndefined();
      await lease.release();
    });

    it("given up by a signal holds nothing, and leaves no member", async () => {
      const name = fixture.fresh();
      const giveUp = new AbortController();
      const { lease, waited } = await waiter(name, { signal: giveUp.signal });
      giveUp.abort(new Error("enough"));
      await expect(fixture.backend.passing(waited)).rejects.toMatchObject({ name: "AbortError" });
      expect([lease.isHeld(), lease.state, lease.signal.aborted]).toEqual([false, "released", true]);
      expect((await fixture.locks.inspect(name)).waitSet).toBeUndefined();
      expect(await (await fixture.rival.tryAcquire(name))?.release()).toBe("released");
    });

    it("is not waited for with a signal that has aborted: the lease holds on", async () => {
      const lease = await fixture.locks.acquire(fixture.fresh());
      await expect(lease.wait("ready", { signal: AbortSignal.abort() })).rejects.toMatchObject({ name: "AbortError" });
      expect(lease.isHeld()).toBe(true);
      await lease.release();
    });

    it("ends with its lease, and with its client", async () => {
      const name = fixture.fresh();
      const released = await waiter(name);
      await released.lease.release();
      await expect(fixture.backend.passing(released.waited)).rejects.toThrow();
      const locks = fixture.backend.client();
      const closed = await waiter(name, {}, locks);
      await fixture.backend.passing(locks.close());
      await expect(closed.waited).rejects.toThrow();
      expect((await fixture.locks.inspect(name)).waitSet).toBeUndefined();
      expect(closed.lease.isHeld()).toBe(false);
    });

    it("keeps the scope, the length, the owner and the meta of the lease", async () => {
      const name = fixture.fresh();
      const inScope = fixture.locks.scope(fixture.freshScope());
      const lease = await inScope.acquire(name, { leaseMs: 20_000, owner: "packer-1", meta: { step: 2 } });
      const waited = lease.wait("ready", { waitMs: 60_000 });
      await fixture.untilInspected(name, ({ waitSet = [] }) => waitSet.length === 1);
      expect((await fixture.locks.inspect(name)).waitSet).toMatchObject([{ owner: "packer-1", condition: "ready" }]);
      await fixture.rival.withLock(name, (changing) => changing.notify("ready"));
      await fixture.backend.passing(waited);
      expect(lease.owner).toBe("packer-1");
      const inner = (await inScope.tryAcquire(name))!;
      expect(inner.holdCount).toBe(2);
      await inner.release();
      await lease.release();
    });
  });
}
