/**
 * Every way to hold something is traced, in every view, over every transport; what is not traced is named here. No secret gets into an
 * attribute, a span's name or its status.
 */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type LockClient, locked, runBatch } from "../../lib/index.js";
import { traced } from "../../lib/otel.js";
import { createLockClient } from "../../lib/testing.js";
import { IN_REAL_TIME } from "../client/conformance/backends.js";
import { Exported, withContexts } from "./exporters.js";

withContexts();
let exported: Exported;
beforeEach(() => void (exported = new Exported()));
afterEach(() => exported.shutdown());

const SCOPE = "a-scope-that-nobody-guesses";
const INVOCATION = { getRemainingTimeInMillis: () => 60_000 };
/** The members that hold nothing. */
const UNTRACED = ["close", "forceRelease", "health", "inspect", "limits", "list", "runs", "use", "watch"];
/** The members whose results are traced clients and handles: they hold nothing themselves. */
const VIEWS = ["limiter", "forInvocation", "mutex", "readWrite", "scope", "segments", "semaphore"];

/** Each way to hold a key, and the names of its spans. */
const WAYS: Readonly<Record<string, readonly [hold: (locks: LockClient, key: string) => Promise<unknown>, ...spans: string[]]>> = {
  tryAcquire: [async (locks, key) => (await locks.tryAcquire(key))!.release(), "acquire", "lock"],
  acquire: [async (locks, key) => (await locks.acquire(key)).release(), "acquire", "lock"],
  withLock: [(locks, key) => locks.withLock(key, { leaseMs: 5000 }, () => "done"), "acquire", "lock"],
  tryAcquireAll: [async (locks, key) => (await locks.tryAcquireAll([key, `${key}b`]))!.release(), "acquire", "lock"],
  acquireAll: [async (locks, key) => (await locks.acquireAll([{ key, mode: "shared" }])).release(), "acquire", "lock"],
  withLocks: [(locks, key) => locks.withLocks([key, `${key}b`], () => "done"), "acquire", "lock"],
  runOnce: [(locks, key) => locks.runOnce(key, { payload: { key } }, () => "done"), "run"],
  elect: [
    async (locks, key) => {
      const end = new AbortController();
      await locks.elect(key, { signal: end.signal }, () => end.abort());
    },
    "lock",
  ],
  refresh: [
    (locks, key) => locks.refresh(key, { read: () => undefined, isFresh: () => true, renew: () => "new", save: async () => undefined }),
    "acquire",
    "lock",
  ],
  tick: [(locks, key) => locks.tick(key, { occurrence: new Date(0) }, () => "done"), "acquire", "lock", "run"],
  attach: [
    async (locks, key) => (await locks.attach(await (await locks.acquire(key)).detach())).release(),
    "acquire",
    "acquire",
    "lock",
    "lock",
  ],
  "limiter()": [
    (locks, key) => locks.limiter(key, { rates: [{ count: 1, perMs: 1000 }], concurrent: 1 }).run(() => "done"),
    ...["acquire", "lock", "take"],
  ],
  "limiter().take": [(locks, key) => locks.limiter(key, { rates: [{ count: 1, perMs: 1000 }] }).take(), "take"],
  "mutex()": [(locks, key) => locks.mutex(key).withLock(() => "done"), "acquire", "lock"],
  "semaphore()": [async (locks, key) => (await locks.semaphore(key, { limit: 2 }).acquire()).release(), "acquire", "lock"],
  "readWrite()": [async (locks, key) => (await locks.readWrite(key).read.tryAcquire())!.release(), "acquire", "lock"],
  "segments()": [async (locks, key) => (await locks.segments(key, 3).tryAcquire())!.release(), "acquire", "lock"],
  "segments().at()": [
    (locks, key) =>
      locks
        .segments(key, 3)
        .at("part")
        .withLock(() => "done"),
    "acquire",
    "lock",
  ],
  "scope()": [(locks, key) => locks.scope(SCOPE).withLock(key, () => "done"), "acquire", "lock"],
  "scope().tick": [(locks, key) => locks.scope(SCOPE).tick(key, { occurrence: new Date(0) }, () => "done"), ...["acquire", "lock", "run"]],
  "forInvocation()": [
    (locks, key) =>
      locks
        .forInvocation(INVOCATION)
        .scope(SCOPE)
        .mutex(key)
        .withLock(() => "done"),
    "acquire",
    "lock",
  ],
  "locked()": [(locks, key) => locked({ locks, key: () => key }, async () => "done")(), "acquire", "lock"],
  "runBatch()": [(locks, key) => runBatch(locks, { Records: [{ messageId: key, body: "" }] }, INVOCATION, {}, async () => "done"), "run"],
};

const names = (): readonly string[] => exported.spans.map(({ name }) => name.replace("holdfast.", "")).sort();

describe("the members of a client", () => {
  it("are traced, or lead to what is, or are named as holding nothing", () => {
    const plain = createLockClient();
    const locks = traced(plain);
    const members = Object.keys(plain) as (keyof typeof plain)[];
    const same = members.filter((member) => locks[member] === plain[member]);
    // The last three are the testing client's own.
    expect(same.sort()).toEqual([...UNTRACED, "clock", "faults", "store"].sort());
    const ways = Object.keys(WAYS).filter((way) => !way.includes("("));
    expect(members.filter((member) => !same.includes(member)).sort()).toEqual([...ways, ...VIEWS].sort());
    expect(locks[Symbol.asyncDispose]).toBe(plain[Symbol.asyncDispose]);
  });

  it.each(Object.entries(WAYS))("%s has its spans, and ends them", async (_way, [hold, ...spans]) => {
    const { tracerProvider, meterProvider } = exported;
    const plain = createLockClient();
    const locks = traced(plain, { tracerProvider, meterProvider });
    await plain.clock.settle(hold(locks, "ORDER-1"));
    expect(names()).toEqual(spans);
    expect((await exported.points("holdfast.lock.active")).every(({ sum }) => sum === 0)).toBe(true);
    await locks.close();
  });

  it("keep the names of the views' heartbeats", async () => {
    const { tracerProvider, meterProvider } = exported;
    const plain = createLockClient();
    const lease = await traced(plain, { tracerProvider, meterProvider }).scope(SCOPE).acquire("ORDER-1");
    await plain.clock.advance(35_000);
    await plain.clock.settle(lease.release());
    expect(exported.of("holdfast.lock")[0]!.events).toHaveLength(3);
  });
});

describe.each(IN_REAL_TIME)("%s", (name, open) => {
  it("has the same spans, with the transport, and no secret in any of them", async () => {
    const backend = await open();
    const { tracerProvider, meterProvider } = exported;
    const secrets: string[] = [SCOPE];
    const plain = backend.client({ prefix: "shop:", owner: "alice@example.com" });
    const locks = traced(plain, { tracerProvider, meterProvider, keyAttribute: (key) => key.slice(0, 3) });
    try {
      for (const [way, [hold, ...spans]] of Object.entries(WAYS)) {
        const before = exported.spans.length;
        // Elections pause for a renewal interval after a term, in real time.
        if (way === "elect") continue;
        await hold(locks, `ORDER-7-${way.replace(/\W/g, "-")}`);
        expect(
          exported.spans
            .slice(before)
            .map((span) => span.name.replace("holdfast.", ""))
            .sort(),
          way,
        ).toEqual(spans);
      }
      const lease = await locks.acquire("ORDER-7", { meta: { card: "4111-1111" } });
      secrets.push(lease.leaseId);
      await expect(locks.acquire("ORDER-7", { waitMs: 0 })).rejects.toThrow("ORDER-7");
      await expect(locks.withLock("ORDER-8", () => Promise.reject(new Error("ORDER-8 of alice")))).rejects.toThrow();
      const handle = await lease.detach();
      secrets.push(handle);
      await (await locks.attach(handle)).release();
    } finally {
      await plain.close();
      await backend.close();
    }
    const said = JSON.stringify([
      exported.spans.map((span) => [span.name, span.attributes, span.events, span.status, span.links]),
      await exported.metrics(),
    ]);
    expect(said).toContain('"holdfast.key.group":"ORD"');
    for (const secret of [...secrets, "ORDER-", "shop:", "alice", "4111-1111"]) expect(said).not.toContain(secret);
    // The control: with the key itself as its group, the scan finds it.
    const open_ = traced(createLockClient(), { tracerProvider, meterProvider, keyAttribute: (key) => key });
    await open_.withLock("ORDER-9", () => "done");
    expect(JSON.stringify(await exported.metrics())).toContain("ORDER-9");
    const transport = name === "over HTTP" ? "http" : "dynamodb";
    const ways = exported.spans.slice(0, -2).map(({ attributes }) => attributes["holdfast.transport"]);
    expect(new Set(ways)).toEqual(new Set([transport]));
  });
});
