/** Conformance: semaphores. */
import { describe, expect, it } from "vitest";
import type { Fixture } from "./conformance.js";

export function describeKindsPermits(fixture: Fixture): void {
  describe("a semaphore", () => {
    it("has a crashed holder's permits back by itself, and takes none from who lives", async () => {
      const name = fixture.fresh();
      const living = await fixture.locks.acquire(name, { limit: 3 });
      const crashed = await fixture.rival.acquire(name, { limit: 3, permits: 2, leaseMs: 1000, heartbeat: false });
      expect(await fixture.locks.tryAcquire(name, { limit: 3, permits: 2 })).toBeNull();
      const lease = await fixture.backend.passing(fixture.locks.acquire(name, { limit: 3, permits: 2, waitMs: 10_000 }));
      expect([crashed.state, living.state]).toEqual(["lost", "held"]);
      await living.renew();
      expect(await fixture.rival.tryAcquire(name, { limit: 3 })).toBeNull();
      expect(await crashed.release()).toBe("lost");
      for (const one of [lease, living]) await one.release();
    });

    it("has one limit at a time: another is an error and no null, until the key is free", async () => {
      const name = fixture.fresh();
      const lease = await fixture.locks.acquire(name, { limit: 2 });
      for (const options of [{ limit: 3 }, {}, { mode: "shared" }] as const)
        await expect(fixture.rival.tryAcquire(name, options)).rejects.toMatchObject({
          code: "limit-mismatch",
          definite: true,
          retry: "never",
        });
      await lease.release();
      const next = (await fixture.rival.tryAcquire(name, { limit: 3 }))!;
      expect((await fixture.locks.inspect(name)).limit).toBe(3);
      await next.release();
    });

    it("refuses what no key could give, before anything is sent", async () => {
      const name = fixture.fresh();
      for (const [options, field] of [
        [{ limit: 2, permits: 3 }, "permits"],
        [{ permits: 2 }, "permits"],
        [{ limit: 0 }, "limit"],
        [{ limit: 1001 }, "limit"],
        [{ limit: 2, permits: 1.5 }, "permits"],
        [{ limit: 2, mode: "shared" }, "limit"],
        [{ mode: "read" as "shared" }, "mode"],
      ] as const) {
        await expect(fixture.locks.tryAcquire(name, options)).rejects.toMatchObject({ name: "InvalidRequestError", field });
        await expect(fixture.locks.acquire(name, options)).rejects.toMatchObject({ name: "InvalidRequestError", field });
      }
      expect((await fixture.locks.inspect(name)).holders).toEqual([]);
    });
  });
}
