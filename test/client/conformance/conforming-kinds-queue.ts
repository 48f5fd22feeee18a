/** Conformance: waiting in the queue, in order, by priority, and without a trace after a timeout. */
import { describe, expect, it } from "vitest";
import { type Lease, type LockClient, LockTimeoutError } from "../../../lib/index.js";
import type { Fixture } from "./conformance.js";

/** Defines the tests. */
// Over 60 lines: a list of tests, each of which is short.
export function describeKindsQueue(fixture: Fixture): void {
  /** Waits for the key in its own process. Resolves when it is in the queue. */
  async function queued(name: string, behind: number, options: Parameters<LockClient["acquire"]>[1] = {}) {
    const locks = fixture.backend.client();
    const lease = locks.acquire(name, { waitMs: 60_000, ...options });
    lease.catch(() => undefined);
    await fixture.untilInspected(name, ({ waiters }) => waiters.length === behind + 1);
    return { lease, close: () => locks.close() };
  }

  describe("the queue", () => {
    it("serves who came first, and nobody who comes later", async () => {
      const name = fixture.fresh();
      const held = await fixture.locks.acquire(name);
      const waiting = [await queued(name, 0), await queued(name, 1), await queued(name, 2)];
      expect(await held.release()).toBe("released");
      expect(await fixture.rival.tryAcquire(name)).toBeNull();
      let latest = held.fencingToken;
      for (const { lease, close } of waiting) {
        const { fencingToken, release }: Lease = await fixture.backend.passing(lease);
        expect(fencingToken).toBeGreaterThan(latest);
        expect(await fixture.rival.tryAcquire(name)).toBeNull();
        latest = fencingToken;
        await release.call(await lease);
        await close();
      }
      expect(await (await fixture.rival.tryAcquire(name))?.release()).toBe("released");
    });

    it("serves higher priorities before", async () => {
      const name = fixture.fresh();
      const held = await fixture.locks.acquire(name);
      const usual = await queued(name, 0);
      const urgent = await queued(name, 1, { priority: 9 });
      expect((await fixture.locks.inspect(name)).waiters.map(({ priority }) => priority)).toEqual([9, 0]);
      await held.release();
      await (await fixture.backend.passing(urgent.lease)).release();
      await (await fixture.backend.passing(usual.lease)).release();
      for (const { close } of [usual, urgent]) await close();
    });

    it("is left by who gives up: by its time, by a signal, or by the end of its client", async () => {
      const name = fixture.fresh();
      const held = await fixture.locks.acquire(name);
      await expect(fixture.backend.passing(fixture.rival.acquire(name, { waitMs: 50 }))).rejects.toBeInstanceOf(LockTimeoutError);
      const giveUp = new AbortController();
      const aborted = await queued(name, 0, { signal: giveUp.signal });
      const closed = await queued(name, 1);
      giveUp.abort(new Error("enough"));
      await expect(fixture.backend.passing(aborted.lease)).rejects.toMatchObject({ name: "AbortError" });
      await fixture.backend.passing(closed.close());
      await expect(closed.lease).rejects.toMatchObject({ code: "closed" });
      expect((await fixture.locks.inspect(name)).waiters).toEqual([]);
      await held.release();
      await aborted.close();
      expect(await (await fixture.rival.tryAcquire(name))?.release()).toBe("released");
    });

    it("lets readers in together, and never a later one before a writer that waits", async () => {
      const name = fixture.fresh();
      const reading = await fixture.locks.acquire(name, { mode: "shared" });
      const writer = await queued(name, 0);
      expect(await fixture.rival.tryAcquire(name, { mode: "shared" })).toBeNull();
      const readers = [await queued(name, 1, { mode: "shared" }), await queued(name, 2, { mode: "shared" })];
      await reading.release();
      const writing = await fixture.backend.passing(writer.lease);
      expect((await fixture.locks.inspect(name)).waiters).toHaveLength(2);
      await writing.release();
      const both = await fixture.backend.passing(Promise.all(readers.map(({ lease }) => lease)));
      expect(both.map((lease) => lease.isHeld())).toEqual([true, true]);
      for (const lease of both) await lease.release();
      for (const { close } of [writer, ...readers]) await close();
    });

    it("keeps who needs many permits from being passed by those who need few", async () => {
      const name = fixture.fresh();
      const held = await fixture.locks.acquire(name, { limit: 3, permits: 2 });
      const many = await queued(name, 0, { limit: 3, permits: 3 });
      expect(await fixture.rival.tryAcquire(name, { limit: 3 })).toBeNull();
      await held.release();
      const all = await fixture.backend.passing(many.lease);
      expect(all.permits).toBe(3);
      await all.release();
      await many.close();
    });
  });
}
