/** Handles: a key with its options given once; and a hot resource in segments. */
import { describe, expect, it } from "vitest";
import type { LockClient, LockHandle } from "../../../lib/index.js";
import { refuse } from "../../../lib/core/errors.js";
import { createHarness } from "../harness.js";

const KEY = "STOCK_7";

describe("the defaults of a handle", () => {
  it.each<[kind: string, handle: (locks: LockClient) => Pick<LockHandle, "tryAcquire" | "acquire" | "withLock">]>([
    ["a mutex", (locks) => locks.mutex(KEY, { owner: "orders" })],
    ["a reader", (locks) => locks.readWrite(KEY, { owner: "orders" }).read],
    ["segments", (locks) => locks.segments(KEY, 1, { owner: "orders" })],
  ])("of %s are not undone by an option that is undefined", async (_kind, handle) => {
    const { locks } = createHarness({ owner: "nobody" });
    const given = { owner: undefined } as object;
    const taken = [await handle(locks).tryAcquire(given)];
    await taken[0]?.release();
    taken.push(await handle(locks).acquire(given));
    await taken[1]?.release();
    await handle(locks).withLock(given, (lease) => void taken.push(lease));
    expect(taken.map((lease) => lease?.owner)).toEqual(["orders", "orders", "orders"]);
  });

  it("of a semaphore hold as well: undefined makes no mutex of it; and a bare number is no options", async () => {
    const { locks } = createHarness();
    const stock = locks.semaphore(KEY, { limit: 2 });
    const undone = { limit: undefined } as object;
    expect(await Promise.all([stock.tryAcquire(undone), stock.tryAcquire(undone), stock.tryAcquire(undone)])).toEqual([
      expect.anything(),
      expect.anything(),
      null,
    ]);
    await expect(stock.acquire(5000 as never)).rejects.toMatchObject({ field: "options" });
  });
});

describe("a handle", () => {
  it("sends nothing until it is used", async () => {
    const { locks, wire, clock } = createHarness();
    locks.mutex(KEY);
    locks.semaphore(KEY, { limit: 2 });
    locks.readWrite(KEY);
    locks.segments(KEY, 4);
    await clock.advance(60_000);
    expect(wire.sent).toEqual([]);
  });

  it("asks with its defaults, which a call may change", async () => {
    const { locks, wire } = createHarness();
    const orders = locks.mutex(KEY, { leaseMs: 5000, owner: "orders" });
    expect(orders.key).toBe(KEY);
    await (await orders.acquire()).release();
    await (await orders.acquire({ leaseMs: 9000 })).release();
    await orders.withLock(({ owner }) => expect(owner).toBe("orders"));
    await orders.withLock({ owner: "once" }, ({ owner }) => expect(owner).toBe("once"));
    expect(wire.of("acquire").map(({ request }) => request.leaseMs)).toEqual([5000, 9000, 5000, 5000]);
  });

  it("asks once with tryAcquire, whatever waitMs its defaults say", async () => {
    const { locks, rival, wire } = createHarness();
    await rival.acquire(KEY);
    expect(await locks.mutex(KEY, { waitMs: 60_000 }).tryAcquire()).toBeNull();
    expect(wire.of("acquire")).toHaveLength(1);
  });

  it("refuses what its client would, by name", async () => {
    const { locks } = createHarness();
    await expect(locks.mutex("a b").tryAcquire()).rejects.toMatchObject({ field: "key" });
    await expect(locks.mutex(KEY, { leaseMs: 1 }).acquire()).rejects.toMatchObject({ field: "leaseMs" });
    await expect(locks.semaphore(KEY, { limit: 2 }).tryAcquire({ permits: 3 })).rejects.toMatchObject({ field: "permits" });
    await expect(locks.mutex(KEY, { lease: 5 } as object).acquire()).rejects.toMatchObject({ field: "lease" });
  });

  it.each<[options: unknown]>([[null], [7], ["x"]])("refuses the options %j, as its client does", async (options) => {
    const { locks } = createHarness();
    const refused = { name: "InvalidRequestError" };
    const mutex = locks.mutex(KEY);
    await expect(async () => mutex.tryAcquire(options as object)).rejects.toMatchObject(refused);
    await expect(async () => mutex.acquire(options as object)).rejects.toMatchObject(refused);
    await expect(async () => mutex.withLock(options as object, () => 1)).rejects.toMatchObject(refused);
    expect(() => locks.semaphore(KEY, options as never)).toThrow(expect.objectContaining(refused));
  });

  it("is of its client's view: of a scope it is reentrant, of a prefix it is within it", async () => {
    const { locks } = createHarness({ prefix: "billing:" });
    const mutex = locks.scope("request-0123456789").mutex(KEY);
    const [outer, inner] = [await mutex.acquire(), await mutex.tryAcquire()];
    expect([outer.key, inner?.holdCount]).toEqual([`billing:${KEY}`, 2]);
  });
});

describe("a mutex", () => {
  it("is of one holder, whatever its defaults say", async () => {
    const { locks, rival } = createHarness();
    const lease = await locks.mutex(KEY, { limit: 5, mode: "shared" }).acquire();
    expect([lease.mode, lease.permits]).toEqual(["exclusive", 1]);
    expect(await rival.tryAcquire(KEY)).toBeNull();
  });
});

describe("a read-write lock", () => {
  it("is one key: readers together, a writer alone", async () => {
    const { locks, rival } = createHarness();
    const readers = [await locks.readWrite(KEY).read.acquire(), await rival.readWrite(KEY).read.acquire()];
    expect(await locks.readWrite(KEY).write.tryAcquire()).toBeNull();
    for (const reader of readers) await reader.release();
    await locks.readWrite(KEY).write.withLock(({ mode }) => expect(mode).toBe("exclusive"));
  });
});

describe("segments", () => {
  it("are keys of their own, of which a part always falls to the same", async () => {
    const { locks } = createHarness();
    const stock = locks.segments(KEY, 4);
    expect(stock.keys).toEqual([0, 1, 2, 3].map((index) => `${KEY}:${index}`));
    const parts = Array.from({ length: 200 }, (_, index) => `customer-${index}`);
    const first = parts.map((part) => stock.at(part).key);
    expect(parts.map((part) => locks.segments(KEY, 4).at(part).key)).toEqual(first);
    expect(stock.at(7).key).toBe(stock.at("7").key);
    for (const name of stock.keys) expect(first.filter((one) => one === name).length).toBeGreaterThan(25);
    expect((await stock.at("customer-1").acquire()).key).toBe(first[1]);
  });

  it("are tried from a random one on: the next that is free, then null", async () => {
    const { locks, rival } = createHarness({ random: () => 0.5 });
    const stock = locks.segments(KEY, 4);
    const got: (string | undefined)[] = [];
    for (let tries = 0; tries < 5; tries++) got.push((await stock.tryAcquire())?.key);
    expect(got).toEqual([...[2, 3, 0, 1].map((index) => `${KEY}:${index}`), undefined]);
    expect(await rival.segments(KEY, 4).tryAcquire()).toBeNull();
  });

  it("are tried past one that is full: key-full if all of them are", async () => {
    const { locks, wire } = createHarness({ random: () => 0 });
    const stock = locks.segments(KEY, 2);
    const full = { instead: refuse("key-full") };
    wire.next("acquire", full);
    expect((await stock.tryAcquire())?.key).toBe(`${KEY}:1`);
    wire.always("acquire", full);
    await expect(stock.tryAcquire()).rejects.toMatchObject({ code: "key-full" });
    expect(wire.of("acquire")).toHaveLength(4);
  });

  /** Regression: a segment that the work itself holds was not passed over. */
  it("tried inside of work under one of them: the next", async () => {
    const { locks } = createHarness({ random: () => 0 });
    const stock = locks.segments(KEY, 2);
    expect(await stock.withLock(async () => (await stock.tryAcquire())?.key)).toBe(`${KEY}:1`);
  });

  it.each([
    [0, 0],
    [0.999, 3],
  ])("begin at a random one: a generator that says %d means %d", async (random, index) => {
    const { locks } = createHarness({ random: () => random });
    expect((await locks.segments(KEY, 4).acquire()).key).toBe(`${KEY}:${index}`);
  });

  it("work under one of them, each with the segments' defaults", async () => {
    const { locks, wire } = createHarness();
    const stock = locks.segments(KEY, 2, { leaseMs: 5000 });
    expect(await stock.withLock(({ key }) => key)).toBe(`${KEY}:1`);
    expect(await stock.withLock({ owner: "me" }, ({ owner }) => owner)).toBe("me");
    expect(wire.of("acquire").map(({ request }) => request.leaseMs)).toEqual([5000, 5000]);
  });

  it.each([0, -1, 1.5, 1001, Number.NaN])("are refused in a number of %d", (count) => {
    expect(() => createHarness().locks.segments(KEY, count)).toThrow(
      expect.objectContaining({ name: "InvalidRequestError", field: "segments" }),
    );
  });
});
