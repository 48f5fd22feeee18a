/** Conformance: reentrancy by scope. Two clients are two processes of one request. */
import { describe, expect, it } from "vitest";
import { LockLostError } from "../../../lib/index.js";
import type { Fixture } from "./conformance.js";

export function describeKindsScopes(fixture: Fixture): void {
  describe("a scope", () => {
    it("lets the inner acquire in at once, in the same process and in another: the same token, a level more", async () => {
      const [name, id] = [fixture.fresh(), fixture.freshScope()];
      const outer = await fixture.locks.scope(id).acquire(name);
      const inner = (await fixture.locks.scope(id).tryAcquire(name))!;
      const remote = await fixture.rival.scope(id).acquire(name, { waitMs: 0 });
      expect([outer.holdCount, inner.holdCount, remote.holdCount]).toEqual([1, 2, 3]);
      expect([inner.fencingToken, remote.fencingToken]).toEqual([outer.fencingToken, outer.fencingToken]);
      expect(new Set([outer.leaseId, inner.leaseId, remote.leaseId]).size).toBe(3);
      for (const lease of [inner, remote, outer]) expect(await lease.release()).toBe("released");
    });

    it("frees a level with each release, and the key with the last, in whatever order", async () => {
      const [name, id] = [fixture.fresh(), fixture.freshScope()];
      const outer = await fixture.locks.scope(id).acquire(name);
      const inner = await fixture.rival.scope(id).acquire(name);
      await inner.release();
      await inner.release();
      await outer.renew();
      expect([outer.isHeld(), outer.holdCount]).toEqual([true, 1]);
      expect(await fixture.rival.tryAcquire(name)).toBeNull();

      const second = await fixture.rival.scope(id).acquire(name);
      await outer.release();
      expect(await fixture.locks.tryAcquire(name)).toBeNull();
      await second.renew();
      expect(second.holdCount).toBe(1);
      await second.release();
      const next = (await fixture.locks.tryAcquire(name))!;
      expect(next.fencingToken).toBeGreaterThan(outer.fencingToken);
      await next.release();
    });

    it("gives each level its own length: a short inner one that ran out takes nothing of the outer", async () => {
      const [name, id] = [fixture.fresh(), fixture.freshScope()];
      const outer = await fixture.locks.scope(id).acquire(name, { leaseMs: 30_000 });
      const inner = await fixture.rival.scope(id).acquire(name, { leaseMs: 1000, heartbeat: false });
      expect(outer.remainingMs()).toBeGreaterThan(20_000);
      expect(inner.remainingMs()).toBeLessThanOrEqual(1000);
      const over = new Promise((resolve) => inner.signal.addEventListener("abort", () => resolve(undefined), { once: true }));
      await fixture.backend.passing(over);
      await expect(inner.renew()).rejects.toBeInstanceOf(LockLostError);
      await outer.renew();
      expect(outer.isHeld()).toBe(true);
      expect(await fixture.rival.tryAcquire(name)).toBeNull();
      await outer.release();
    });

    it("is a view of its client: closed by itself it gives back its own leases, and with the client all of them", async () => {
      const client = fixture.backend.client();
      const [mine, viewed, kept] = [fixture.fresh(), fixture.fresh(), fixture.fresh()];
      const view = client.scope(fixture.freshScope());
      const [plain, nested] = [await client.acquire(mine), await view.acquire(viewed)];
      await view.close();
      expect([plain.state, nested.state]).toEqual(["held", "released"]);
      const late = await client.scope(fixture.freshScope()).acquire(kept);
      await client.close();
      expect([plain.state, late.state]).toEqual(["released", "released"]);
      for (const name of [mine, viewed, kept]) expect((await fixture.locks.inspect(name)).holders).toEqual([]);
    });
  });
}
