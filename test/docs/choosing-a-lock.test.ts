/** "Choosing a kind of lock": its code is the examples', its figures are the code's, its costs are counted at the engine. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DEFAULTS, LIMITS } from "../../lib/core/limits.js";
import { renewAfterMs } from "../../lib/core/renewal.js";
import { createLockClient as createTableClient } from "../../lib/dynamodb.js";
import type { Lease, LeaseSet, LockClient } from "../../lib/index.js";
import { fencedWrite } from "../../lib/index.js";
import { createLockClient } from "../../lib/testing.js";
import { freshTable } from "../support/engine.js";
import type { FaultProxy } from "../support/fault-proxy.js";
import { startFaultProxy } from "../support/fault-proxy.js";
import { ROOT, sourcesIn } from "../tidy/tree.js";
import { isFaithful, quotesIn } from "./quotes.js";

const PATH = "docs/choosing-a-lock.md";
const PAGE = readFileSync(join(ROOT, PATH), "utf8");
/** The page as one line, regardless of wrapping. */
const TEXT = PAGE.replaceAll(/\s+/g, " ");
const TRACE = "a trace that nobody guesses";

describe("the page's code", () => {
  const quotes = quotesIn(PATH, PAGE);

  it("is all quoted", () => {
    expect(quotes).toHaveLength(PAGE.match(/```ts$/gm)!.length);
    expect(PAGE.match(/```\w*$/gm)!.length).toBe(2 * quotes.length);
  });

  it.each(quotes.map((quote) => ({ ...quote, first: quote.lines[0] })))("stands word for word in $file: $first", (quote) => {
    expect(isFaithful(quote)).toBe(true);
  });

  it("is run by a test", () => {
    const tests = sourcesIn("test/examples/").map(({ text }) => text);
    const isRun = (file: string): boolean => tests.some((text) => text.includes(`"../../${file.replace(/\.ts$/, ".js")}"`));
    expect(quotes.map(({ file }) => file).filter((file) => !isRun(file))).toEqual([]);
  });

  it("control: another word, another order, or no file is not faithful", () => {
    const [{ file, lines } = { file: "", lines: [] as readonly string[] }] = quotes;
    const changed = [
      { file, lines: lines.with(0, lines[0]!.replace("scope", "span")) },
      { file, lines: lines.toReversed() },
      { file: "", lines },
    ];
    expect(changed.map(isFaithful)).toEqual(changed.map(() => false));
    expect(isFaithful({ file, lines })).toBe(true);
  });

  it("names only calls that there are", async () => {
    const locks = createLockClient();
    const lease = await locks.acquire("key");
    for (const [name, on] of [
      ["locks", locks],
      ["lease", lease],
    ] as const) {
      const called = [...PAGE.matchAll(new RegExp(`\\b${name}\\.(\\w+)`, "g"))].map(([, member = ""]) => member);
      expect(called.length).toBeGreaterThan(4);
      expect(called.filter((member) => !(member in on))).toEqual([]);
    }
  });
});

describe("the page's figures", () => {
  it.each([
    ["a heartbeat's interval", `one write per heartbeat (every ${renewAfterMs(DEFAULTS.leaseMs) / 1000} s;`],
    ["how many readers there may be", `more than ${LIMITS.leasesMax} readers at once`],
    ["how many permits", `over ${LIMITS.leasesMax} at once`],
    ["how many keys a set may have", `a set of up to ${LIMITS.setKeys} keys`],
    ["how long a scope must be", `${LIMITS.scopeMinChars} characters or more that nobody guesses`],
  ])("say %s as the code has it", (_what, sentence) => {
    expect(TEXT).toContain(sentence);
  });

  it("say how many segments there may be", () => {
    const most = Number(/up to (\d+) segments/.exec(TEXT)?.[1]);
    const locks = createLockClient();
    expect(locks.segments("key", most).keys).toHaveLength(most);
    expect(() => locks.segments("key", most + 1)).toThrow("segments");
  });

  it("say how often a waiter looks", async () => {
    expect(TEXT).toContain("at least one every 3.5 s");
    expect(LIMITS.pollMaxMs).toBe(3500);
  });
});

const BESIDE = "beside others: 1 to acquire (2 if the process has not seen the key lately), 1 to release";

describe("what each kind costs, as the page says it", () => {
  let proxy: FaultProxy;
  let locks: LockClient;
  let elsewhere: LockClient;
  let another: () => LockClient;
  let cost: (act: () => Promise<unknown>) => Promise<readonly [writeUnits: number, reads: number]>;

  beforeAll(async () => {
    proxy = await startFaultProxy();
    const { place } = await freshTable(proxy.endpoint);
    locks = createTableClient(place);
    another = () => createTableClient(place);
    elsewhere = another();
    for (const one of [locks, elsewhere]) await one.withLock("clock", () => null); // A process reads the table's clock once.
    cost = async (act) => {
      proxy.ledger.clear();
      await act();
      return [proxy.ledger.writeUnits, proxy.ledger.requests["GetItem"] ?? 0];
    };
  });
  afterAll(async () => {
    await locks.close();
    await proxy.close();
  });

  it("1 to acquire, 1 to release; 1 for each heartbeat, and for each time that somebody asks in vain", async () => {
    expect(TEXT).toContain("| 1 to acquire, 1 to release |");
    expect(TEXT).toContain("and one per refused `tryAcquire`");
    let lease: Lease | undefined;
    expect(await cost(async () => (lease = await locks.acquire("mutex")))).toEqual([1, 0]);
    expect(await cost(() => lease!.renew({ leaseMs: 2 * DEFAULTS.leaseMs }))).toEqual([1, 0]);
    expect(await cost(() => locks.tryAcquire("mutex"))).toEqual([1, 0]);
    expect(await cost(() => lease!.release())).toEqual([1, 0]);
  });

  it.each<[what: string, sentence: string, beside: number, acquire: (locks: LockClient) => Promise<Lease>]>([
    ["a level", "a level within: 2 to acquire, 1 to release", 2, (on) => on.scope(TRACE).acquire("nested")],
    ["a reader", `a reader ${BESIDE}`, 1, (on) => on.readWrite("shared").read.acquire()],
    ["a permit", `a permit ${BESIDE}`, 1, (on) => on.semaphore("permits", { limit: 3 }).acquire()],
  ])("%s: %s", async (_what, sentence, beside, acquire) => {
    expect(TEXT).toContain(sentence);
    let [first, next]: (Lease | undefined)[] = [];
    expect(await cost(async () => (first = await acquire(locks)))).toEqual([1, 0]);
    expect(await cost(async () => (next = await acquire(locks)))).toEqual([beside, 0]);
    expect(await cost(() => next!.release())).toEqual([1, 0]);
    expect(await cost(() => first!.release())).toEqual([1, 0]);
  });

  it("2 for a reader in a process that has not seen the key", async () => {
    await using _first = await locks.readWrite("unseen").read.acquire();
    const [acquiring] = await cost(async () => void (await (await elsewhere.readWrite("unseen").read.acquire()).release()));
    expect(acquiring).toBe(3);
  });

  it("a change of mode 1, each time it asks", async () => {
    expect(TEXT).toContain("each attempt to change the mode 1");
    const lease = await locks.readWrite("changed").read.acquire();
    const other = await locks.readWrite("changed").read.acquire();
    expect(await cost(() => lease.upgrade({ waitMs: 0 }).catch(() => undefined))).toEqual([1, 0]);
    await other.release();
    expect(await cost(() => lease.upgrade())).toEqual([1, 0]);
    expect(await cost(() => lease.downgrade())).toEqual([1, 0]);
  });

  it("to queue 1, to be granted 1, and looks are reads", async () => {
    expect(TEXT).toContain("1 to queue, 1 to be granted; polls meanwhile are reads");
    const held = await locks.acquire("queued");
    const waiting: Promise<Lease>[] = [];
    const [toQueue, looks] = await cost(async () => {
      waiting.push(elsewhere.acquire("queued"));
      while ((await locks.inspect("queued")).waiters.length === 0);
    });
    // If the process hasn't seen the key, a first fast-path attempt that assumes a free key adds one request.
    expect([1, 2]).toContain(toQueue);
    expect(looks).toBeGreaterThan(0);
    const [toHandOver] = await cost(async () => {
      await held.release();
      await Promise.all(waiting);
    });
    // The first poll of the next waiter may be a claim that comes too early.
    expect([2, 3]).toContain(toHandOver);
    await (await waiting[0])?.release();
  });

  it("a set: of each key 2 to acquire and 1 to release, and 1 for its heartbeat", async () => {
    expect(TEXT).toContain("for each key 2 to acquire, as a transaction costs, and 1 to release");
    expect(TEXT).toContain("a set: 1 for each of its keys");
    let set: LeaseSet | undefined;
    expect(await cost(async () => (set = await locks.acquireAll(["a", "b", "c"])))).toEqual([6, 0]);
    expect(await cost(() => set!.renew({ leaseMs: 2 * DEFAULTS.leaseMs }))).toEqual([3, 0]);
    expect(await cost(() => set!.release())).toEqual([3, 0]);
  });

  it("a set that waits looks by reads", async () => {
    expect(TEXT).toContain("waiting polls by reads");
    await using _held = await locks.acquire("d");
    // Closed at the end, which waits for pending requests.
    await using waiting = another();
    await waiting.withLock("clock", () => null);
    proxy.ledger.clear();
    await expect(waiting.acquireAll(["d", "e"], { waitMs: 3000 })).rejects.toThrow(/still held|no answer in time/);
    const { GetItem = 0, TransactWriteItems = 0 } = proxy.ledger.requests;
    // One is the first request. On a busy machine a look may get no answer in time, and then the set is asked for again.
    expect(TransactWriteItems).toBeLessThanOrEqual(2);
    expect(GetItem).toBeGreaterThan(TransactWriteItems);
  });

  it("segments: as a mutex, and 1 for each held one that is passed", async () => {
    expect(TEXT).toContain("1 to acquire, 1 to release; 1 for each held segment that `tryAcquire` passes");
    const hot = locks.segments("hot", 3);
    const leases: (Lease | null)[] = [];
    const acquire = async (): Promise<void> => void leases.push(await hot.acquire());
    expect(await cost(acquire)).toEqual([1, 0]);
    expect(await cost(() => leases[0]!.release())).toEqual([1, 0]);
    for (const segment of hot.keys) leases.push(await locks.acquire(segment));
    expect(await cost(() => hot.tryAcquire())).toEqual([hot.keys.length, 0]);
  });

  it("a hand-over: 1 for each of the two, and a read where the process has not seen the key", async () => {
    expect(TEXT).toContain("1 for each of the two");
    expect(TEXT).toContain("Changing a hold that this process hasn't seen for 5 s costs one extra read.");
    const lease = await locks.acquire("handed");
    let handle = "";
    expect(await cost(async () => (handle = await lease.detach()))).toEqual([1, 0]);
    expect(await cost(() => elsewhere.attach(handle))).toEqual([1, 1]);
  });
});

describe("what the page says of each kind", () => {
  it("fair: who came first is served first, and nobody gets in between", async () => {
    const holder = createLockClient();
    const { clock, store } = holder;
    const lease = await holder.acquire("key");
    const first = createLockClient({ clock, store }).acquire("key", { waitMs: 60_000 });
    await clock.advance(10);
    const second = createLockClient({ clock, store }).acquire("key", { waitMs: 60_000 });
    await clock.advance(10_000);
    await lease.release();
    expect(await createLockClient({ clock, store }).tryAcquire("key")).toBeNull();
    const { fencingToken } = await clock.settle(first);
    await (await first).release();
    expect((await clock.settle(second)).fencingToken).toBeGreaterThan(fencingToken);
  });

  it("who stands by to lead asks as often as the page says", async () => {
    const everyMs = renewAfterMs(DEFAULTS.leaseMs);
    expect(TEXT).toContain(`each standby process 1 each ${everyMs / 2 / 1000} to ${everyMs / 1000} s`);
    const leader = createLockClient();
    const { clock, store } = leader;
    await leader.acquire("key");
    let asked = 0;
    void createLockClient({ clock, store, log: () => void asked++ }).elect("key", () => undefined);
    await clock.advance(100 * everyMs);
    expect(asked).toBeGreaterThanOrEqual(100);
    expect(asked).toBeLessThanOrEqual(200);
  });

  it("a key within itself is told so, unless it is in a scope", async () => {
    const locks = createLockClient();
    const within = (on: LockClient): Promise<unknown> => on.withLock("key", () => on.withLock("key", () => "in"));
    await expect(within(locks)).rejects.toMatchObject({ code: "self-deadlock" });
    expect(await within(locks.scope(TRACE))).toBe("in");
  });

  it("a limit that differs from the holders' is refused", async () => {
    const locks = createLockClient();
    await locks.semaphore("key", { limit: 3 }).acquire();
    await expect(locks.semaphore("key", { limit: 4 }).tryAcquire()).rejects.toMatchObject({ code: "limit-mismatch" });
  });

  it("a writer that waits keeps no reader out, a reader that waits to be the writer does", async () => {
    const locks = createLockClient();
    const { read, write } = locks.readWrite("key");
    const first = await read.acquire();
    expect(await write.tryAcquire()).toBeNull();
    const second = await read.acquire();
    await expect(first.upgrade({ waitMs: 0 })).rejects.toMatchObject({ code: "wait-timeout" });
    expect(await read.tryAcquire()).toBeNull();
    await second.release();
    await first.upgrade();
    expect(first.mode).toBe("exclusive");
  });

  it("the floor: of readers the first one's token, above the last writer's; of a writer its own; of permits the first one's", async () => {
    const locks = createLockClient();
    const { read, write } = locks.readWrite("key");
    const writer = await write.acquire();
    expect(writer.fenceFloor).toBe(writer.fencingToken);
    await writer.release();
    const readers = [await read.acquire(), await read.acquire()];
    expect(readers.map(({ fenceFloor }) => fenceFloor)).toEqual([readers[0]!.fencingToken, readers[0]!.fencingToken]);
    expect(readers[0]!.fenceFloor).toBeGreaterThan(writer.fencingToken);
    expect(new Set(readers.map(({ fencingToken }) => fencingToken)).size).toBe(2);
    const permit = await locks.semaphore("permits", { limit: 3 }).acquire();
    const next = await locks.semaphore("permits", { limit: 3 }).acquire();
    expect([permit.fenceFloor, next.fenceFloor]).toEqual([permit.fencingToken, permit.fencingToken]);
    expect(fencedWrite(next.fenceFloor).ExpressionAttributeValues).toEqual({ ":fence": permit.fencingToken });
  });
});
