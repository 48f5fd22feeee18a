/** A store's limits: many takes at once, resets and listings. What is decided: test/store/limit-differential. */
import { describe, expect, it } from "vitest";
import type { RateWithBurst } from "../../../lib/core/rate.js";
import type { LockStore } from "../../../lib/store/port.js";
import { freshNamespace, START_MS } from "../fixture.js";

const TEN: readonly RateWithBurst[] = [{ count: 10, perMs: 1000, burst: 10 }];
const MIXED: readonly (readonly RateWithBurst[])[] = [
  TEN,
  [...TEN, { count: 20, perMs: 5000, burst: 3 }],
  [1, 2, 3, 4].map((count) => ({ count, perMs: 1000 * count, burst: 4 })),
];
const at = (ms: number, apartMs = 0) => ({ earliestMs: START_MS + ms, latestMs: START_MS + ms + apartMs });

export function limits(store: () => LockStore): void {
  it("grants no more than fit, of many at once", async () => {
    const name = { namespace: freshNamespace(), key: "partner" };
    const answers = await Promise.all(
      Array.from({ length: 25 }, () => store().limits.take(name, { rates: TEN, cost: 1, waitMs: 0 }, () => at(0))),
    );
    expect(answers.filter(({ ok }) => ok)).toHaveLength(10);
  });

  it("gives every start to one, of many that wait", async () => {
    const name = { namespace: freshNamespace(), key: "partner" };
    const take = { rates: [{ count: 10, perMs: 1000, burst: 1 }], cost: 1, waitMs: 5000 };
    const answers = await Promise.all(Array.from({ length: 8 }, () => store().limits.take(name, take, () => at(0))));
    const starts = answers.map((answer) => (answer.ok ? answer.startInMs : NaN));
    expect(starts.sort((a, b) => a - b)).toEqual([0, 100, 200, 300, 400, 500, 600, 700]);
  });

  describe("after a shut", () => {
    const take = { rates: TEN, cost: 1, waitMs: 0 };

    it.each([
      ["a limit that nobody used", undefined],
      ["a limit in use", TEN],
      ["a limit of other rates that is full", MIXED[1]],
    ])("of %s, nothing starts for so long, and then a take of 1", async (_what, rates) => {
      const name = { namespace: freshNamespace(), key: "partner" };
      const { limits } = store();
      if (rates) await limits.take(name, { ...take, rates }, () => at(-60_000));
      expect(await limits.shut(name, { rates: TEN, forMs: 5000 }, () => at(0))).toEqual({ ok: true, startInMs: 5000, remaining: [0] });
      expect(await store().limits.take(name, take, () => at(4999))).toMatchObject({ code: "rate-limited", retryAfterMs: 1 });
      expect(await limits.take(name, { ...take, waitMs: 2000 }, () => at(3000))).toMatchObject({ ok: true, startInMs: 2000 });
      expect(await limits.take(name, take, () => at(5099))).toMatchObject({ code: "rate-limited" });
      expect(await limits.take(name, take, () => at(5100))).toMatchObject({ ok: true });
    });

    it("a shorter one shortens nothing, and one at other rates is refused", async () => {
      const name = { namespace: freshNamespace(), key: "partner" };
      const { limits } = store();
      await limits.shut(name, { rates: TEN, forMs: 5000 }, () => at(0));
      expect(await limits.shut(name, { rates: TEN, forMs: 1000 }, () => at(0))).toMatchObject({ ok: true, startInMs: 5000 });
      expect(await limits.shut(name, { rates: MIXED[1]!, forMs: 9000 }, () => at(0))).toMatchObject({ code: "limit-mismatch" });
      await limits.reset(name);
      expect(await limits.take(name, take, () => at(0))).toMatchObject({ ok: true });
    });
  });

  describe("after a reset", () => {
    it("every bucket is full, and the next take brings its own rates", async () => {
      const name = { namespace: freshNamespace(), key: "partner" };
      const { limits } = store();
      await limits.take(name, { rates: MIXED[2]!, cost: 4, waitMs: 0 }, () => at(0));
      const full = MIXED[2]!.map((rate) => ({ ...rate, fullAtUs: 0 }));
      expect(await limits.reset(name)).toEqual({ buckets: full });
      expect(await limits.read(name)).toEqual({ buckets: full });
      expect(await limits.take(name, { rates: TEN, cost: 10, waitMs: 0 }, () => at(0))).toMatchObject({ ok: true, startInMs: 0 });
    });

    it("who was refused before is granted what is there now", async () => {
      const name = { namespace: freshNamespace(), key: "partner" };
      const { limits } = store();
      const take = { rates: TEN, cost: 10, waitMs: 0 };
      await limits.take(name, take, () => at(0));
      expect(await limits.take(name, take, () => at(0))).toMatchObject({ code: "rate-limited" });
      await limits.reset(name);
      expect(await limits.take(name, take, () => at(0))).toMatchObject({ ok: true });
    });

    it("a name that nobody ever used is still none", async () => {
      const name = { namespace: freshNamespace(), key: "nobody" };
      expect(await store().limits.reset(name)).toBeUndefined();
      expect(await store().limits.read(name)).toBeUndefined();
    });
  });

  describe("lists", () => {
    it("those that are not full, in order, a page at a time", async () => {
      const namespace = freshNamespace();
      const keys = Array.from({ length: 12 }, (_, index) => `partner_${String(index).padStart(2, "0")}`);
      for (const [index, key] of keys.entries())
        await store().limits.take({ namespace, key }, { rates: TEN, cost: 1 + (index % 2), waitMs: 0 }, () => at(0));
      const query = { namespace, prefix: "partner_", max: 5 };
      const listed: string[] = [];
      for (let after: string | undefined = ""; after !== undefined;) {
        const page = await store().limits.list({ ...query, after, fullAfterMs: START_MS + 150 });
        expect(page.items.length).toBeLessThanOrEqual(5);
        listed.push(...page.items.map(({ key }) => key));
        after = page.next;
      }
      expect(listed).toEqual(keys.filter((_, index) => index % 2 === 1));
    });

    it("nothing of another namespace, and no lock", async () => {
      const namespace = freshNamespace();
      await store().limits.take({ namespace: `${namespace}x`, key: "a" }, { rates: TEN, cost: 1, waitMs: 0 }, () => at(0));
      expect(await store().limits.list({ namespace, prefix: "", after: "", max: 9, fullAfterMs: START_MS })).toEqual({ items: [] });
      expect(await store().list({ namespace: `${namespace}x`, kind: "locks", prefix: "", after: "", max: 9 })).toEqual({ items: [] });
    });
  });
}
