/** A client with a prefix takes as a key what it returned as one, and a key of `key()` fits wherever a key is taken. */
import { describe, expect, it } from "vitest";
import { type Lease, type LockClient, key } from "../../lib/index.js";
import { type Harness, createHarness } from "./harness.js";

const PREFIX = "billing:";
const NAME = "invoice_7";
const KEY = PREFIX + NAME;
const AT_3 = new Date("2027-01-01T03:00:00Z");
const RATES = { rates: [{ count: 2, perMs: 60_000, burst: 2 }] };
const REASON = { reason: "a test" };
const noWork = (): void => undefined;

/** Each call that takes a key, or a prefix of keys. */
const CALLS: readonly (readonly [name: string, call: (locks: LockClient, key: string) => Promise<unknown>])[] = [
  ["tryAcquire", (locks, key) => locks.tryAcquire(key)],
  ["acquire", (locks, key) => locks.acquire(key)],
  ["withLock", (locks, key) => locks.withLock(key, noWork)],
  ["runOnce", (locks, key) => locks.runOnce(key, noWork)],
  ["runs.get", (locks, key) => locks.runs.get(key)],
  ["runs.list", (locks, prefix) => locks.runs.list({ prefix })],
  ["runs.reset", (locks, key) => locks.runs.reset(key, REASON)],
  ["tryAcquireAll", (locks, key) => locks.tryAcquireAll([key])],
  ["acquireAll", (locks, key) => locks.acquireAll([{ key, mode: "shared" }])],
  ["withLocks", (locks, key) => locks.withLocks([key], noWork)],
  ["mutex", (locks, key) => locks.mutex(key).acquire()],
  ["semaphore", (locks, key) => locks.semaphore(key, { limit: 2 }).tryAcquire()],
  ["readWrite", (locks, key) => locks.readWrite(key).read.withLock(noWork)],
  ["segments", (locks, key) => locks.segments(key, 1).acquire()],
  ["scope", (locks, key) => locks.scope("0123456789abcdef").tryAcquire(key)],
  ["inspect", (locks, key) => locks.inspect(key)],
  ["watch", (locks, key) => locks.watch(key)[Symbol.asyncIterator]().next()],
  ["elect", (locks, key) => locks.elect(key, () => Promise.reject(new Error("enough"))).catch(noWork)],
  ["refresh", (locks, key) => locks.refresh(key, { read: noWork, isFresh: () => false, renew: noWork, save: async () => undefined })],
  ["limiter.take", (locks, key) => locks.limiter(key, RATES).take()],
  ["limiter.remaining", (locks, key) => locks.limiter(key, RATES).remaining()],
  ["limits.reset", (locks, key) => locks.limits.reset(key, REASON)],
  ["limits.list", (locks, prefix) => locks.limits.list({ prefix })],
  ["list", (locks, prefix) => locks.list({ prefix })],
  ["forceRelease", (locks, key) => locks.forceRelease(key, { ...REASON, fencingToken: 1 })],
];

/** Returns the keys and prefixes in the requests of a call, each once. */
async function requested({ clock, wire, locks }: Harness, call: (locks: LockClient) => Promise<unknown>): Promise<readonly unknown[]> {
  await clock.settle(
    call(locks).catch((error: unknown) => expect(error).toMatchObject({ code: expect.stringMatching(/not-found|other-hold/) })),
  );
  const keysOf = ({ request }: (typeof wire.sent)[number]): readonly unknown[] => {
    const { key, prefix, locks = [{ key: key ?? prefix }] } = request as { key?: string; prefix?: string; locks?: { key: string }[] };
    return locks.map((lock) => lock.key);
  };
  return [...new Set(wire.sent.flatMap(keysOf).filter((key) => key !== undefined))];
}

describe("a client with a prefix", () => {
  it.each(CALLS)("asks for the same with a key that begins with it: %s", async (what, call) => {
    for (const name of [NAME, KEY])
      expect(await requested(createHarness({ prefix: PREFIX }), (locks) => call(locks, name))).toEqual([
        what === "segments" ? `${KEY}:0` : KEY,
      ]);
  });

  it.each<[what: string, key: (harness: Harness, lease: Lease) => Promise<string | undefined>]>([
    ["lock in a list", async ({ locks }) => (await locks.list()).items[0]?.key],
    ["lock that is inspected", async ({ locks }) => (await locks.inspect(NAME)).key],
    ["run in a list", async ({ locks }) => (await locks.runs.list()).items[0]?.key],
    ["run that is read", async ({ locks }) => (await locks.runs.get(NAME))?.key],
    ["limit in a list", async ({ locks }) => (await locks.limits.list()).items[0]?.key],
    ["limiter", async ({ locks }) => locks.limiter(NAME, RATES).name],
    [
      "set",
      async ({ locks }, lease) => {
        await lease.release();
        return (await locks.acquireAll([NAME])).keys[0];
      },
    ],
    ["lease", async (_harness, lease) => lease.key],
    ["event", async ({ events }) => events.find(({ type }) => type === "acquired")?.key],
    ["handle", async ({ locks }) => locks.mutex(NAME).key],
  ])("takes the key of a %s in every call", async (_what, keyOf) => {
    const harness = createHarness({ prefix: PREFIX });
    const { clock, locks, rival } = harness;
    const lease = await locks.acquire(NAME);
    await locks.runOnce(NAME, () => "done");
    await locks.limiter(NAME, RATES).take();
    const key = (await clock.settle(keyOf(harness, lease))) ?? "";
    expect((await locks.inspect(key)).holders).toHaveLength(1);
    expect(await locks.tryAcquire(key)).toBeNull();
    expect(await rival.tryAcquire(KEY)).toBeNull();
    expect(await locks.runs.get(key)).toMatchObject({ state: "succeeded" });
    expect(await locks.limiter(key, RATES).remaining()).toEqual([1]);
  });
});

describe("the longest key that key() returns", () => {
  const [LONGEST, OTHER] = ["a", "b"].map((end) => key("x".repeat(300) + end)) as [string, string];

  it.each(
    [
      ["no prefix", ""],
      ["a prefix", PREFIX],
      ["the longest prefix", "p".repeat(100)],
    ].flatMap(([what, prefix]) =>
      CALLS.filter(([name]) => !name.endsWith("list")).map(([name, call]) => [name, what, prefix, call] as const),
    ),
  )("fits: %s with %s", async (_name, _what, prefix, call) => {
    const keys: unknown[] = [];
    for (const longest of [LONGEST, OTHER]) keys.push(...(await requested(createHarness({ prefix }), (locks) => call(locks, longest))));
    expect(new Set(keys).size).toBe(2);
    for (const key of keys) expect(key).toMatch(new RegExp(`^${prefix}.{1,${200 - prefix!.length}}$`));
  });

  it.each(["", PREFIX])("fits in tick with the prefix %j", async (prefix) => {
    const harness = createHarness({ prefix });
    const ran: string[] = [];
    for (const name of [LONGEST, OTHER, LONGEST])
      await harness.clock.settle(harness.locks.tick(name, { occurrence: AT_3 }, () => void ran.push(name)));
    expect(ran).toEqual([LONGEST, OTHER]);
  });

  it("fits in segments, which are as many keys", () => {
    const { keys } = createHarness().locks.segments(LONGEST, 1000);
    expect(new Set(keys).size).toBe(1000);
    expect(Math.max(...keys.map(({ length }) => length))).toBe(200);
  });
});
