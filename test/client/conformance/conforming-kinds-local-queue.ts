/** Conformance: the local queue. The callers of one process share one place in the queue, and the key passes between them by handoff. */
import { describe, expect, it } from "vitest";
import { type Lease, LockTimeoutError } from "../../../lib/index.js";
import type { Fixture } from "./conformance.js";

export function describeKindsLine(fixture: Fixture): void {
  describe("a line of callers", () => {
    it("is one waiter, and hands the key on in order, each with a token and an owner of its own", async () => {
      const name = fixture.fresh();
      const locks = fixture.backend.client();
      const held = await fixture.rival.acquire(name);
      const order: string[] = [];
      const tokens: number[] = [held.fencingToken];
      const work = (owner: string) =>
        locks.withLock(name, { owner, waitMs: 60_000 }, (lease: Lease) => {
          order.push(lease.owner);
          tokens.push(lease.fencingToken);
          expect(lease.isHeld()).toBe(true);
        });
      const all = Promise.all(["a", "b", "c", "d"].map(work));
      await fixture.untilInspected(name, ({ waiters }) => waiters.length === 1);
      await held.release();
      await fixture.backend.passing(all);
      expect(order).toEqual(["a", "b", "c", "d"]);
      expect(tokens).toEqual(tokens.toSorted((a, b) => a - b));
      expect(new Set(tokens).size).toBe(5);
      await locks.close();
      expect((await fixture.rival.inspect(name)).holders).toEqual([]);
    });

    it("gives way to another process after eight hand-overs", async () => {
      const name = fixture.fresh();
      const locks = fixture.backend.client();
      const first = await locks.acquire(name);
      const order: string[] = [];
      const own = Array.from({ length: 20 }, (_, index) => locks.withLock(name, { waitMs: 60_000 }, () => void order.push(`own ${index}`)));
      const others = fixture.rival.withLock(name, { waitMs: 60_000 }, () => void order.push("other"));
      await fixture.untilInspected(name, ({ waiters }) => waiters.length === 1);
      await first.release();
      await fixture.backend.passing(Promise.all([...own, others]));
      expect(order.filter((who) => who !== "other")).toEqual(own.map((_, index) => `own ${index}`));
      expect(order.indexOf("other")).toBeLessThanOrEqual(18);
      await locks.close();
    });

    it("is left by who gives up, and goes on without it", async () => {
      const name = fixture.fresh();
      const locks = fixture.backend.client();
      const held = await fixture.rival.acquire(name);
      const giveUp = new AbortController();
      const [aborted, impatient, patient] = [
        locks.acquire(name, { waitMs: 60_000, signal: giveUp.signal }),
        locks.acquire(name, { waitMs: 30 }),
        locks.acquire(name, { waitMs: 60_000 }),
      ];
      const failed = Promise.allSettled([aborted, impatient]);
      giveUp.abort(new Error("enough"));
      const [first, second] = await fixture.backend.passing(failed);
      expect(first).toMatchObject({ status: "rejected", reason: { name: "AbortError" } });
      expect(second).toMatchObject({ status: "rejected", reason: expect.any(LockTimeoutError) as Error });
      await held.release();
      const lease = await fixture.backend.passing(patient);
      expect(lease.isHeld()).toBe(true);
      await lease.release();
      expect(await fixture.rival.inspect(name)).toMatchObject({ holders: [], waiters: [] });
      await locks.close();
    });

    it("goes on when the next one gives up while the key is on its way to it", async () => {
      const name = fixture.fresh();
      const locks = fixture.backend.client();
      const first = await locks.acquire(name);
      const giveUp = new AbortController();
      const waiting = locks.acquire(name, { waitMs: 60_000, signal: giveUp.signal });
      const released = first.release();
      giveUp.abort(new Error("enough"));
      await expect(fixture.backend.passing(waiting)).rejects.toMatchObject({ name: "AbortError" });
      expect(await fixture.backend.passing(released)).toBe("released");
      const next = await fixture.backend.passing(locks.acquire(name, { waitMs: 60_000 }));
      expect(next.fencingToken).toBeGreaterThan(first.fencingToken);
      await next.release();
      expect(await fixture.rival.inspect(name)).toMatchObject({ holders: [], waiters: [] });
      await locks.close();
    });

    it("asks again when the hold of its own ended otherwise than by a release", async () => {
      const name = fixture.fresh();
      const locks = fixture.backend.client();
      const doomed = await locks.acquire(name);
      const waiting = locks.acquire(name, { waitMs: 60_000 });
      await fixture.rival.forceRelease(name, { reason: "stuck", fencingToken: doomed.fencingToken, drainMs: 0 });
      await expect(doomed.renew()).rejects.toMatchObject({ code: "lease-lost" });
      const lease = await fixture.backend.passing(waiting);
      expect(lease.fencingToken).toBeGreaterThan(doomed.fencingToken);
      await lease.release();
      await locks.close();
    });
  });
}
