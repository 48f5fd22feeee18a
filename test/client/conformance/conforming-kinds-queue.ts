/** Conformance: waiting in the queue, in order, by priority, and without a trace after a timeout. */
import { describe, expect, it } from "vitest";
import { type LockClient, LockTimeoutError } from "../../../lib/index.js";
import type { Fixture } from "./conformance.js";

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
  });
}
