/** Conformance: acquiring. */
import { describe, expect, it } from "vitest";
import { type Lease } from "../../../lib/index.js";
import type { Fixture } from "./conformance.js";

export function describeAcquiring(fixture: Fixture): void {
  describe("acquires", () => {
    it("a free key at once, and tells what it got", async () => {
      const name = fixture.fresh();
      const lease = (await fixture.locks.tryAcquire(name, { leaseMs: 5000, meta: { job: 7 } }))!;
      expect(lease).toMatchObject({ key: name, owner: "checkout-7", mode: "exclusive", permits: 1, holdCount: 1, state: "held" });
      expect(lease.fencingToken).toBeGreaterThan(0);
      expect(lease.remainingMs()).toBeGreaterThan(1700);
      expect(lease.remainingMs()).toBeLessThanOrEqual(5000);
      expect(lease.signal.aborted).toBe(false);
      lease.assertHeld();
      expect(await lease.release()).toBe("released");
    });

    it("null while another holds the key, and the key again when it is free", async () => {
      const name = fixture.fresh();
      const theirs = await fixture.rival.acquire(name);
      expect(await fixture.locks.tryAcquire(name)).toBeNull();
      await theirs.release();
      const lease = await fixture.locks.tryAcquire(name);
      expect(lease?.isHeld()).toBe(true);
      await lease?.release();
    });

    it("with tokens that strictly increase: over release, hand-over and force, and never the same leaseId", async () => {
      const name = fixture.fresh();
      const leases: Lease[] = [];
      for (let round = 0; round < 3; round++) {
        const first = await fixture.locks.acquire(name);
        const second = await fixture.rival.attach(await first.detach());
        await fixture.locks.forceRelease(name, { reason: "conformance", fencingToken: second.fencingToken, drainMs: 0 });
        const third = await fixture.locks.acquire(name);
        await third.release();
        leases.push(first, second, third);
      }
      const tokens = leases.map(({ fencingToken }) => fencingToken);
      expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
      expect(new Set(leases.map(({ leaseId }) => leaseId)).size).toBe(leases.length);
    });

    it("one at a time, however many ask at once", async () => {
      const name = fixture.fresh();
      const asking = Array.from({ length: 8 }, (_, index) => (index % 2 ? fixture.locks : fixture.rival).tryAcquire(name));
      const granted = (await fixture.backend.passing(Promise.all(asking))).filter((lease) => lease !== null);
      expect(granted).toHaveLength(1);
      await granted[0]?.release();
    });
  });
}
