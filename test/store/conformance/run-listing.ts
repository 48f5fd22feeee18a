/** A store's listings of runs, the items beside them, and the separation of locks and runs in both. */
import { describe, expect, it } from "vitest";
import { LIMITS } from "../../../lib/core/limits.js";
import type { Kind } from "../../../lib/core/api/locks.js";
import type { LockStore } from "../../../lib/store/port.js";
import { pagesOf } from "./listing.js";
import { RunScene, small } from "../run-fixture.js";
import { A, B, freshNamespace, leaseIn, LEASE_MS, MARGIN_MS, Fixture } from "../fixture.js";

/** Lives of a run by the first letter of its key, and true if the run is known afterwards. */
const LIVES: readonly (readonly [letter: string, known: boolean, live: (run: RunScene) => Promise<unknown>])[] = [
  ["a", true, (run) => run.start(A)],
  ["b", true, async (run) => (await run.start(A), await run.complete(A))],
  ["c", true, async (run) => (await run.start(A), await run.complete(A, "failed"))],
  ["d", true, async (run) => (await run.start(A), await run.complete(A, "retry"))],
  ["e", true, async (run) => (await run.start(A), await run.at(LEASE_MS + MARGIN_MS).start(B), await run.release(B))],
  ["f", false, async (run) => (await run.start(A), await run.release(A))],
  ["g", false, (run) => run.release(A)],
  ["h", false, async (run) => (await run.start(A), await run.complete(A), await run.reset())],
];

const keysOf = async (store: LockStore, kind: Kind, namespace: string): Promise<readonly string[]> =>
  (await pagesOf(store, { namespace, kind, prefix: "", max: 10 })).flat();

export function listsRuns(store: () => LockStore): void {
  it.each([3, 100])("lists what is known to run or to have run, each once and in order, %i to a page", async (max) => {
    const namespace = freshNamespace();
    const keys = LIVES.flatMap(([letter, known, live]) => ["1", "2", "~", "Z"].map((end) => ({ key: letter + end, known, live })));
    await Promise.all(keys.map(({ key, live }) => live(new RunScene(store(), { namespace, key }))));
    const pages = await pagesOf(store(), { namespace, kind: "runs", prefix: "", max });
    for (const page of pages) expect(page.length).toBeLessThanOrEqual(max);
    const known = keys.filter((entry) => entry.known).map(({ key }) => key);
    expect(pages.flat()).toEqual(known.sort());
    const some = await pagesOf(store(), { namespace, kind: "runs", prefix: "d", max, after: "d1" });
    expect(some.flat()).toEqual(["d2", "dZ", "d~"]);
  });

  it("shows the records", async () => {
    const run = new RunScene(store());
    await run.start(A, { fingerprint: "f" });
    await run.save(A, small("1"));
    const { namespace } = run.address;
    const { items } = await store().list({ namespace, kind: "runs", prefix: "", after: "", max: 10 });
    expect(items).toEqual([{ key: "ORDER_1", record: await run.read() }]);
  });
}

export function keeps(store: () => LockStore): void {
  const payload = (digest: string, ttlAtSec = 1_900_000_000) => ({ digest, ttlAtSec });

  it.each([
    ["of a byte", "1"],
    ["of many kinds of characters", JSON.stringify("é \u0000 \ud83d\ude00 \ud800 ~/#")],
    ["as large as a result may be", JSON.stringify("x".repeat(LIMITS.resultBytes - 2))],
  ])("keeps a text %s, as it is", async (_, text) => {
    const { address } = new RunScene(store());
    expect(await store().readPayload(address, "digest_-1")).toBeUndefined();
    await store().keepPayload(address, payload("digest_-1"), text);
    expect(await store().readPayload(address, "digest_-1")).toBe(text);
  });

  it("keeps it the same when it is kept again, for longer or for shorter, with its text or without", async () => {
    const { address } = new RunScene(store());
    await store().keepPayload(address, payload("d"), '"text"');
    for (const ttlAtSec of [1_900_000_001, 1_900_000_001, 1]) {
      await store().keepPayload(address, payload("d", ttlAtSec), '"text"');
      await store().keepPayload(address, payload("d", ttlAtSec));
      expect(await store().readPayload(address, "d")).toBe('"text"');
    }
  });

  it("keeps nothing for longer that is not there", async () => {
    const { address } = new RunScene(store());
    await store().keepPayload(address, payload("d"));
    expect(await store().readPayload(address, "d")).toBeUndefined();
  });

  it("keeps the texts of a key, of two keys and of two namespaces apart", async () => {
    const here = new RunScene(store()).address;
    const addresses = [here, { ...here, key: "ORDER_2" }, { ...here, namespace: freshNamespace() }];
    const texts = addresses.flatMap((address, index) => ["d", "e"].map((digest) => ({ address, digest, text: `"${index}${digest}"` })));
    for (const { address, digest, text } of texts) await store().keepPayload(address, payload(digest), text);
    for (const { address, digest, text } of texts) expect(await store().readPayload(address, digest)).toBe(text);
  });
}

/** The tests that a lock and a run with the same key are separate. */
export function apart(store: () => LockStore): void {
  const both = (): readonly [Fixture, RunScene] => {
    const run = new RunScene(store());
    return [new Fixture(store(), { ...run.address, kind: "locks" }), run];
  };

  it("grants both to the same id, and neither by the other", async () => {
    const [lock, run] = both();
    expect(await lock.acquire(A)).toMatchObject({ how: "granted" });
    expect(await run.read()).toBeUndefined();
    expect(await run.start(A)).toMatchObject({ how: "granted", attempt: 1 });
    expect(await lock.acquire(B)).toMatchObject({ code: "locked" });
    expect(await run.start(B)).toMatchObject({ code: "run-in-progress" });
  });

  it("leaves the one as it is, whatever becomes of the other", async () => {
    const [lock, run] = both();
    leaseIn(await lock.acquire(A));
    await run.start(A);
    const [lockBefore, runBefore] = [await lock.read(), await run.read()];
    await run.save(A, small("1"));
    await run.complete(A);
    await run.reset();
    expect(await lock.read()).toEqual(lockBefore);
    await run.start(B);
    const runHeld = await run.read();
    expect(runHeld).not.toEqual(runBefore);
    await lock.renew(A);
    await lock.release(A);
    expect(await run.read()).toEqual(runHeld);
  });

  describe("in lists", () => {
    it("shows each among its own", async () => {
      const [lock, run] = both();
      const { namespace } = run.address;
      const listed = async (): Promise<readonly unknown[]> => [
        await keysOf(store(), "locks", namespace),
        await keysOf(store(), "runs", namespace),
      ];
      await run.start(A);
      expect(await listed()).toEqual([[], ["ORDER_1"]]);
      await lock.acquire(A);
      expect(await listed()).toEqual([["ORDER_1"], ["ORDER_1"]]);
      await run.release(A);
      expect(await listed()).toEqual([["ORDER_1"], []]);
    });

    it("shows no payload among either", async () => {
      const [, run] = both();
      await store().keepPayload(run.address, { digest: "d", ttlAtSec: 1_900_000_000 }, '"text"');
      for (const kind of ["locks", "runs"] as const) expect(await keysOf(store(), kind, run.address.namespace)).toEqual([]);
    });
  });
}
