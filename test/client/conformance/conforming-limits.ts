/** Conformance: limits, by every way. */
import { describe, expect, it, vi } from "vitest";
import { InvalidRequestError, limitAll, LimitExceededError, LockTimeoutError } from "../../../lib/index.js";
import type { Limiter, Rate } from "../../../lib/index.js";
import type { Fixture } from "./conformance.js";

/** Three in ten minutes: nothing flows in while a test runs. */
const SLOW: Rate = { count: 3, perMs: 600_000, burst: 3 };

/** Expects this to be left. A client straight on the table knows its time to the second, so it may see a unit flow in a second late. */
const remaining = (limiter: Limiter, left: readonly number[]): Promise<void> =>
  vi.waitFor(async () => expect(await limiter.remaining()).toEqual(left), 5000);

export function describeLimits(fixture: Fixture): void {
  describe("limits", () => {
    it("how much starts in a time, for all clients of the name", async () => {
      const name = fixture.fresh();
      const [ours, theirs] = [fixture.locks, fixture.rival].map((locks) => locks.limiter(name, { rates: [SLOW] }));
      await remaining(ours!, [3]);
      expect((await ours!.take()).remaining).toEqual([2]);
      expect((await theirs!.take({ cost: 2, waitMs: 5000 })).remaining).toEqual([0]);
      await remaining(ours!, [0]);
      const refused = await ours!.take().catch((error: unknown) => error);
      expect(refused).toBeInstanceOf(LimitExceededError);
      expect(refused).toMatchObject({ code: "rate-limited", definite: true, retry: "later" });
      // Straight on the table, the clocks of two clients differ by up to a second.
      expect((refused as LimitExceededError).retryAfterMs).toBeGreaterThan(190_000);
      expect((refused as LimitExceededError).retryAfterMs).toBeLessThanOrEqual(201_000);
    });

    it("with a start in the future for a take that waits, each later than the one before", async () => {
      const limiter = fixture.locks.limiter(fixture.fresh(), { rates: [{ count: 10, perMs: 1000, burst: 1 }] });
      await limiter.take();
      const waited = await fixture.backend.passing(Promise.all([1, 2, 3].map(() => limiter.take({ waitMs: 60_000 }))));
      const waits = waited.map(({ waitedMs }) => waitedMs).sort((a, b) => a - b);
      expect(waits[2]! - waits[0]!).toBeGreaterThan(100);
    });

    it("and how much runs at once: work holds a permit, and starts when it may", async () => {
      const name = fixture.fresh();
      const options = { rates: [{ ...SLOW, count: 2, burst: 2 }], concurrent: 1 };
      const [limiter, rival] = [fixture.locks, fixture.rival].map((locks) => locks.limiter(name, options)) as [Limiter, Limiter];
      const course: string[] = [];
      const work = (name: string) => async (lease: { readonly key: string } | undefined) => {
        course.push(`${name} under ${lease?.key === limiter.name}`);
        await expect(rival.run(() => course.push("never"))).rejects.toThrow(LockTimeoutError);
        return name;
      };
      expect(await limiter.run(work("first"))).toBe("first");
      // The clock of this take may be before that of the first, by up to a second on the table: it may start a moment later.
      expect(await limiter.run({ cost: 1, waitMs: 5000 }, work("second"))).toBe("second");
      await expect(limiter.run(work("third"))).rejects.toThrow(LimitExceededError);
      expect(course).toEqual(["first under true", "second under true"]);
    });

    it("without a lease if any number may run at once", async () => {
      const limiter = fixture.locks.limiter(fixture.fresh(), { rates: [SLOW] });
      expect(await limiter.run((lease) => lease)).toBeUndefined();
    });

    it("at several levels, the most specific first: its refusal charges nothing of the others", async () => {
      const [mine, total] = [fixture.fresh(), fixture.fresh()].map((name) => fixture.locks.limiter(name, { rates: [SLOW] }));
      await limitAll([mine!, total!], { cost: 3 });
      await expect(limitAll([mine!, total!])).rejects.toThrow(LimitExceededError);
      const fresh = fixture.locks.limiter(fixture.fresh(), { rates: [SLOW] });
      await expect(limitAll([fresh, total!])).rejects.toThrow(LimitExceededError);
      await remaining(fresh, [2]);
      await remaining(total!, [0]);
      // A cost that one of them never allows charges none.
      const narrow = fixture.locks.limiter(fixture.fresh(), { rates: [{ ...SLOW, burst: 1 }] });
      await expect(limitAll([fresh, narrow], { cost: 2 })).rejects.toThrow(
        "cost: 2 given; it takes at most the smallest burst of the rates: a whole number from 1 to 1",
      );
      await remaining(fresh, [2]);
    });

    it("listed by prefix while they are not full, a page at a time", async () => {
      const within = `${fixture.fresh()}:`;
      const client = fixture.backend.client({ prefix: within });
      const rates = [{ ...SLOW, burst: 3 }];
      for (const name of ["b", "a"]) await client.limiter(name, { rates }).take({ cost: 2 });
      const first = await client.limits.list({ max: 1 });
      expect(first).toMatchObject({ items: [{ key: `${within}a`, rates }], cursor: expect.any(String) });
      // The clock of this reading may be before that of the take, by less than a unit.
      expect([0, 1]).toContain(first.items[0]?.remaining[0]);
      expect(first.items[0]!.fullInMs).toBeGreaterThan(390_000);
      expect((await client.limits.list({ cursor: first.cursor })).items).toMatchObject([{ key: `${within}b` }]);
      expect((await fixture.locks.limits.list({ prefix: `${within}c` })).items).toEqual([]);
      await expect(client.limits.list({ max: 1000 })).rejects.toThrow(InvalidRequestError);
      await client.close();
    });

    it("nothing that is invalid", async () => {
      const limiter = fixture.locks.limiter(fixture.fresh(), { rates: [SLOW] });
      await expect(limiter.take({ cost: 4 })).rejects.toThrow(InvalidRequestError);
      await expect(limiter.take({ waitMs: 86_400_001 })).rejects.toThrow(InvalidRequestError);
      for (const rates of [[], [{ count: 0, perMs: 1000 }], [{ count: 1, perMs: 999 }], [{ count: 1 }], Array<Rate>(5).fill(SLOW)])
        expect(() => fixture.locks.limiter("partner", { rates: rates as Rate[] }), JSON.stringify(rates)).toThrow(InvalidRequestError);
    });
  });
}
