/** Conformance: sets of keys, acquired as a whole or not at all. */
import { describe, expect, it } from "vitest";
import { LockLostError, LockTimeoutError } from "../../../lib/index.js";
import type { Fixture } from "./conformance.js";

export function describeKindsSets(fixture: Fixture): void {
  const freshNames = (count: number): string[] => Array.from({ length: count }, () => fixture.fresh());
  const isFree = async (name: string): Promise<boolean> => (await fixture.rival.inspect(name)).holders.length === 0;

  describe("a set", () => {
    it("is granted whole, with a token for each key, and renewed and released whole", async () => {
      const names = freshNames(3);
      const set = (await fixture.locks.tryAcquireAll(names, { leaseMs: 5000 }))!;
      expect([set.keys, set.state, set.signal.aborted]).toEqual([names, "held", false]);
      expect(Object.keys(set.fencingTokens).sort()).toEqual([...names].sort());
      for (const name of names) {
        expect(await fixture.rival.tryAcquire(name)).toBeNull();
        expect((await fixture.rival.inspect(name)).holders).toMatchObject([{ owner: "checkout-7", fencingToken: set.fencingTokens[name] }]);
      }
      await set.renew({ leaseMs: 20_000 });
      expect(set.remainingMs()).toBeGreaterThan(15_000);
      set.assertHeld();
      for (const _time of [1, 2]) expect(await set.release()).toEqual(Object.fromEntries(names.map((name) => [name, "released"])));
      expect([set.isHeld(), set.remainingMs(), set.state]).toEqual([false, 0, "released"]);
      expect(set.signal.reason).toBeInstanceOf(LockLostError);
      for (const name of names) expect(await isFree(name)).toBe(true);
    });

    it("tells the token and the state of keys that are names of inherited members: __proto__, constructor", async () => {
      const names = ["__proto__", "constructor"];
      const set = await fixture.locks.acquireAll(names);
      expect(Object.keys(set.fencingTokens).sort()).toEqual(names);
      expect(Object.entries(await set.release()).sort()).toEqual(names.map((name) => [name, "released"]));
    });

    it("is null while another holds one of its keys, and the other keys stay free", async () => {
      const names = freshNames(3);
      const theirs = await fixture.rival.acquire(names[1]!);
      expect(await fixture.locks.tryAcquireAll(names)).toBeNull();
      expect([await isFree(names[0]!), await isFree(names[2]!)]).toEqual([true, true]);
      await theirs.release();
      const set = await fixture.locks.tryAcquireAll(names);
      expect(set?.isHeld()).toBe(true);
      await set?.release();
    });

    it("gives up in time, naming a key that was in its way, or when it is aborted; nothing is left behind", async () => {
      const names = freshNames(2);
      const theirs = await fixture.rival.acquire(names[1]!);
      const late = fixture.backend.passing(fixture.locks.acquireAll(names, { waitMs: 150 }));
      await expect(late).rejects.toBeInstanceOf(LockTimeoutError);
      await expect(late).rejects.toThrow(names[1]);
      const giveUp = new AbortController();
      const failed = expect(fixture.locks.acquireAll(names, { signal: giveUp.signal })).rejects.toMatchObject({ name: "AbortError" });
      giveUp.abort();
      await fixture.backend.passing(failed);
      await theirs.release();
      for (const name of names) expect(await isFree(name)).toBe(true);
    });

    it("never deadlocks: sets that overlap in a ring all get their turn", async () => {
      const ring = freshNames(3);
      const pairs = ring.map((name, index) => [name, ring[(index + 1) % ring.length]!]);
      let inside = 0;
      const work = pairs.map((names, index) =>
        (index % 2 ? fixture.locks : fixture.rival).withLocks(names, () => {
          inside++;
        }),
      );
      await fixture.backend.passing(Promise.all(work));
      expect(inside).toBe(pairs.length);
    });

    it("runs work, releases and returns; and throws LockLostError when one key was lost meanwhile", async () => {
      const names = freshNames(2);
      expect(await fixture.locks.withLocks(names, async (set) => [set.isHeld(), await fixture.rival.tryAcquire(names[0]!)])).toEqual([
        true,
        null,
      ]);
      const error = new Error("out of stock");
      await expect(fixture.locks.withLocks(names, { leaseMs: 5000 }, () => Promise.reject(error))).rejects.toBe(error);
      const robbed = fixture.locks.withLocks(names, async ({ fencingTokens }) => {
        await fixture.rival.forceRelease(names[0]!, { reason: "kinds", fencingToken: fencingTokens[names[0]!]!, drainMs: 0 });
        return "done";
      });
      await expect(robbed).rejects.toBeInstanceOf(LockLostError);
      for (const name of names) expect(await isFree(name)).toBe(true);
    });

    it("ends with its block, and with its client", async () => {
      const names = freshNames(2);
      {
        await using set = await fixture.locks.acquireAll(names);
        expect(set.isHeld()).toBe(true);
      }
      expect(await isFree(names[0]!)).toBe(true);
      const closing = fixture.backend.client({ prefix: `${names[0]!}:` });
      const set = await closing.acquireAll(["a", "b"]);
      expect(Object.keys(set.fencingTokens).sort(), "as their caller calls them").toEqual(["a", "b"]);
      await closing.close();
      expect([set.state, await isFree(`${names[0]!}:a`)]).toEqual(["released", true]);
    });

    it("is of 1 to 25 keys, each meant once, and of nothing else", async () => {
      const [name] = freshNames(1);
      const many = Array.from({ length: 26 }, (_, index) => `${name!}:${index}`);
      const wrong: readonly (readonly [keys: unknown, options: object, field: string])[] = [
        [[], {}, "keys"],
        [many, {}, "keys"],
        [name, {}, "keys"],
        [[undefined], {}, "key"],
        [["a b"], {}, "key"],
        [[name], { mode: "shared" }, "mode"],
        [[name], { limit: 2 }, "limit"],
        [[name], { leaseMs: 1 }, "leaseMs"],
      ];
      for (const [keys, options, field] of wrong)
        await expect(fixture.locks.tryAcquireAll(keys as string[], options)).rejects.toMatchObject({ name: "InvalidRequestError", field });
      const set = (await fixture.locks.tryAcquireAll([...many.slice(0, 25), many[0]!]))!;
      expect(set.keys).toHaveLength(25);
      await set.release();
    });
  });
}
