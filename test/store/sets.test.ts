/** Sets through every store: all of the keys or none (S13), under concurrency. */
import { beforeAll, describe, expect, it } from "vitest";
import { DEFAULTS } from "../../lib/core/limits.js";
import type { LockStore } from "../../lib/store/port.js";
import { A, B, C, dynamoStoreOn, leaseId, leaseIn, LEASE_MS, MARGIN_MS } from "./fixture.js";
import { QueueScene } from "./queue-fixture.js";
import { setOutcome, SetScene } from "./sets-fixture.js";
import { freshTable } from "../support/engine.js";
import { STORES } from "./stores.js";

const ROUNDS = 12;
const KEYS = ["a", "b", "c"];
const ALL_25 = Array.from({ length: 25 }, (_, index) => `k${index}`);

/** A table without transactions: a set is held whole or not at all, but its parts are there for a moment. */
const IN_PARTS = {
  name: "dynamo-store, in parts",
  makeStore: async () => dynamoStoreOn(await freshTable(), Math.random, false),
  inParts: true,
};

describe.each([...STORES.map((one) => ({ ...one, inParts: false })), IN_PARTS])("$name, sets", ({ makeStore, inParts }) => {
  let store: LockStore;
  beforeAll(async () => {
    store = await makeStore();
  });

  it.each([{ keys: ["a"] }, { keys: KEYS }, { keys: ALL_25 }])(
    "are granted whole, each key with a token of its own record: $keys.length",
    async ({ keys }) => {
      const sets = new SetScene(store);
      const applied = await sets.acquire(A, keys);
      expect(setOutcome(keys, applied)).toBe("granted");
      expect(await sets.holders(keys)).toEqual(keys.map(() => [A]));
      const records = await sets.records(keys);
      expect(applied.map((one) => one && leaseIn(one.answer).fencingToken)).toEqual(records.map((record) => record?.fencingToken));
      expect(applied.flatMap((one) => one?.events.map(({ event }) => event))).toEqual(keys.map(() => "granted"));
    },
  );

  it("are refused whole by one key, and it is told which; the others are free", async () => {
    const sets = new SetScene(store);
    await sets.key("c").acquire(B);
    expect(setOutcome(KEYS, await sets.acquire(A, KEYS))).toBe("c locked");
    expect(await sets.holders(KEYS)).toEqual([[], [], [B]]);
  });

  it.skipIf(inParts)("write nothing and log nothing when they are refused", async () => {
    const sets = new SetScene(store);
    for (const key of ["a", "c"]) await sets.key(key).acquire(B);
    await sets.key("a").release(B);
    const before = await sets.records(KEYS);
    const applied = await sets.at(1).acquire(A, KEYS);
    expect(setOutcome(KEYS, applied)).toBe("c locked");
    expect(await sets.records(KEYS)).toEqual(before);
    expect(applied.flatMap((one) => one?.events ?? [])).toEqual([]);
    // Control: without that key the same set is granted.
    expect(setOutcome(["a", "b"], await sets.acquire(A, ["a", "b"]))).toBe("granted");
  });

  it("are told of every key that is in their way", async () => {
    const sets = new SetScene(store);
    for (const key of ["a", "c"]) await sets.key(key).acquire(B);
    expect(setOutcome(KEYS, await sets.acquire(A, KEYS))).toBe("a locked, c locked");
  });

  it("are refused whole by a key under which their id has ended", async () => {
    const sets = new SetScene(store);
    await sets.key("b").release(A);
    expect(setOutcome(KEYS, await sets.acquire(A, KEYS))).toBe("b lease-over");
    expect(await sets.holders(KEYS)).toEqual([[], [], []]);
  });

  it("are the same sets when they are asked for again, with the same tokens, and nothing changes", async () => {
    const sets = new SetScene(store);
    const first = await sets.acquire(A, KEYS);
    const before = await sets.records(KEYS);
    const again = await sets.at(500).acquire(A, KEYS);
    expect(setOutcome(KEYS, again)).toBe("replayed");
    expect(again.map((one) => one && leaseIn(one.answer).fencingToken)).toEqual(
      first.map((one) => one && leaseIn(one.answer).fencingToken),
    );
    expect(await sets.records(KEYS)).toEqual(before);
    expect(setOutcome(KEYS, await sets.acquire(A, KEYS, { requestHash: "others" }))).toBe("a lease-reused, b lease-reused, c lease-reused");
  });

  it("that lost a key are over, and the keys they still have stay theirs", async () => {
    const sets = new SetScene(store);
    await sets.acquire(A, KEYS);
    await sets.key("b").breakHold(undefined, 0);
    expect(setOutcome(KEYS, await sets.at(1).acquire(A, KEYS))).toBe("b lease-over");
    expect(await sets.holders(KEYS)).toEqual([[A], [], [A]]);
  });

  it("join readers, and nest in their own scope, where they may", async () => {
    const sets = new SetScene(store);
    await sets.key("a").acquire(B, { mode: "shared" });
    expect(setOutcome(KEYS, await sets.acquire(A, KEYS, { mode: "shared" }))).toBe("granted");
    await sets.key("d").acquire(B, { scope: "scope S" });
    const nested = await sets.acquire(C, ["d", "e"], { scope: "scope S" });
    expect(nested.map((one) => one && leaseIn(one.answer).holdCount)).toEqual([2, 1]);
    expect(setOutcome(["a", "f"], await sets.acquire(leaseId(9), ["a", "f"]))).toBe("a locked");
    expect(await sets.holders(["f"])).toEqual([[]]);
  });

  it.skipIf(inParts)(`that overlap: of each pair exactly one is granted, whole, in ${ROUNDS} races`, async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const sets = new SetScene(store);
      const one = ["a", "b", "c"];
      const other = ["c", "b", "d"];
      // Half of the races are for leases to take over.
      if (round % 2 === 1) {
        await sets.key("b").acquire(C);
        sets.at(LEASE_MS + MARGIN_MS);
      }
      const [first, second] = await Promise.all([sets.acquire(A, one), sets.acquire(B, other)]);
      const outcomes = [setOutcome(one, first), setOutcome(other, second)];
      expect(outcomes.filter((outcome) => outcome === "granted")).toHaveLength(1);
      expect(outcomes.find((outcome) => outcome !== "granted")).toMatch(/^[bc] locked(, [bc] locked)?$/);
      const winner = outcomes[0] === "granted" ? [[A], [A], [A], []] : [[], [B], [B], [B]];
      expect(await sets.holders(["a", "b", "c", "d"])).toEqual(winner);
    }
  });

  it("control: the same keys one by one may end half here and half there", async () => {
    const sets = new SetScene(store);
    // Each acquires its first key before either asks for its second.
    await Promise.all([sets.key("b").acquire(A), sets.key("c").acquire(B)]);
    await Promise.all([sets.key("c").acquire(A), sets.key("b").acquire(B)]);
    expect(await sets.holders(["b", "c"])).toEqual([[A], [B]]);
  });

  /** Regression: a refused set wrote nothing, so it never advanced a queue of dead waiters. */
  it("are granted two windows after the lease at the latest, where the holder of a key and all who waited for it died", async () => {
    const sets = new SetScene(store);
    const key = new QueueScene(store, sets.key("a").address);
    await key.acquire(leaseId(1));
    const dead = Array.from({ length: 20 }, (_, index) => leaseId(index + 2));
    for (const ms of [0, 8000]) for (const id of dead) await key.at(ms).queue(id);
    const overMs = LEASE_MS + MARGIN_MS;
    let ms = overMs;
    const ask = async (): Promise<string> => setOutcome(["a", "b"], await sets.at(ms).acquire(leaseId(99, ms), ["a", "b"]));
    while (ms < 4 * overMs && (await ask()) !== "granted") ms += 1000;
    expect(ms - overMs).toBeLessThanOrEqual(2 * DEFAULTS.offerWindowMs);
  });

  it.skipIf(inParts)("never keep out a lease of one key for longer than it takes, nor are kept half by it", async () => {
    for (let round = 0; round < 10; round++) {
      const sets = new SetScene(store);
      const [applied, single] = await Promise.all([sets.acquire(A, KEYS), sets.key("b").acquire(B)]);
      const isGranted = setOutcome(KEYS, applied) === "granted";
      expect(single.ok).toBe(!isGranted);
      expect(await sets.holders(KEYS)).toEqual(isGranted ? [[A], [A], [A]] : [[], [B], []]);
    }
  });
});
