/** Conformance: readers and writers, together, exclusive, upgraded and downgraded. */
import { describe, expect, it } from "vitest";
import { LockTimeoutError } from "../../../lib/index.js";
import type { Fixture } from "./conformance.js";

const SHARED = { mode: "shared" } as const;

export function describeKindsModes(fixture: Fixture): void {
  describe("readers and writers", () => {
    it("the only reader becomes the writer, and a reader again: a larger token each time, the same lease", async () => {
      const name = fixture.fresh();
      const lease = await fixture.locks.acquire(name, SHARED);
      const tokens = [lease.fencingToken];
      await lease.upgrade();
      expect(lease.mode).toBe("exclusive");
      expect(await fixture.rival.tryAcquire(name, SHARED)).toBeNull();
      tokens.push(lease.fencingToken);
      await lease.downgrade();
      expect([lease.mode, lease.fenceFloor]).toEqual(["shared", tokens[1]]);
      tokens.push(lease.fencingToken);
      expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
      const beside = (await fixture.rival.tryAcquire(name, SHARED))!;
      await lease.renew();
      expect(lease.isHeld()).toBe(true);
      await beside.release();
      expect(await lease.release()).toBe("released");
    });

    it("an upgrade waits for the other readers, lets no new ones in meanwhile, and comes when they have gone", async () => {
      const name = fixture.fresh();
      const [lease, theirs] = [await fixture.locks.acquire(name, SHARED), await fixture.rival.acquire(name, SHARED)];
      await expect(fixture.backend.passing(lease.upgrade({ waitMs: 0 }))).rejects.toBeInstanceOf(LockTimeoutError);
      expect([lease.mode, lease.isHeld()]).toEqual(["shared", true]);
      expect(await fixture.rival.tryAcquire(name, SHARED)).toBeNull();
      const upgrading = lease.upgrade();
      await fixture.backend.passing(theirs.release());
      await fixture.backend.passing(upgrading);
      expect([lease.mode, lease.isHeld()]).toEqual(["exclusive", true]);
      await lease.release();
    });
  });
}
