/** Spans and metrics of a traced client: their tree, names, outcomes and times, on a clock that the test turns. */
import { SpanStatusCode } from "@opentelemetry/api";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { FinalError, LockError, LockLostError, locked } from "../../lib/index.js";
import { endReason, errorType } from "../../lib/otel/instruments.js";
import { type TracedOptions, traced } from "../../lib/otel.js";
import { type LockClientEvent, type TestLockClient, createLockClient } from "../../lib/testing.js";
import { Exported, withContexts } from "./exporters.js";

const KEY = "ORDER:1231";
const GROUP = { "holdfast.key.group": "ORDER" };
const LOCK = { ...GROUP, "holdfast.mode": "exclusive" };
const MEMORY = { "holdfast.transport": "memory" };
const SECOND_MS = 1000;

withContexts();
let exported: Exported;
beforeEach(() => void (exported = new Exported()));
afterEach(() => exported.shutdown());

/** A traced client, and another of the same service that is not traced. */
function clients({ prefix, ...options }: TracedOptions & { prefix?: string; onEvent?: (event: LockClientEvent) => void } = {}) {
  const plain = createLockClient({ prefix, ...("onEvent" in options && { onEvent: options.onEvent }) });
  const { clock, store } = plain;
  const { tracerProvider, meterProvider } = exported;
  const locks = traced(plain, { keyAttribute: (key) => key.split(":")[0], tracerProvider, meterProvider });
  return { locks, plain, clock, rival: createLockClient({ clock, store, prefix, owner: "rival" }) };
}

const untilAborted = (signal: AbortSignal): Promise<void> => new Promise((done) => void signal.addEventListener("abort", () => done()));
const errorOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (error: unknown) => error,
  );
/** Cuts the client off until its lease is lost. */
async function cutOff({ clock, faults }: TestLockClient, forMs: number): Promise<void> {
  for (let lost = 0; lost < 500; lost++) faults.loseNextRequest();
  await clock.advance(forMs);
}

describe("the spans of a lock", () => {
  it("are an acquire and a hold beside it, below which the work runs", async () => {
    const { locks } = clients();
    const token = await exported.below("request", () =>
      locks.withLock(KEY, (lease) => exported.below("charge the card", async () => lease.fencingToken)),
    );
    expect(exported.paths).toEqual([
      "request",
      "request > holdfast.acquire",
      "request > holdfast.lock",
      "request > holdfast.lock > charge the card",
    ]);
    const [acquire, lock] = [exported.of("holdfast.acquire")[0]!, exported.of("holdfast.lock")[0]!];
    expect(acquire.attributes).toEqual({ ...LOCK, ...MEMORY, "holdfast.acquire.outcome": "acquired" });
    expect(lock.attributes).toEqual({ ...LOCK, ...MEMORY, "holdfast.fencing_token": token });
    expect([acquire.status.code, lock.status.code]).toEqual([SpanStatusCode.UNSET, SpanStatusCode.UNSET]);
  });

  it("last until the release, of a lease that acquire returned", async () => {
    const { locks, clock } = clients();
    const lease = await locks.acquire(KEY, { mode: "shared" });
    await clock.advance(5 * SECOND_MS);
    expect(exported.paths).toEqual(["holdfast.acquire"]);
    await clock.settle(lease.release());
    expect(exported.paths).toEqual(["holdfast.acquire", "holdfast.lock"]);
    expect(exported.of("holdfast.lock")[0]!.attributes).toMatchObject({ "holdfast.mode": "shared" });
  });

  it("have the error of the work by its name alone, and the caller gets the error itself", async () => {
    const { locks } = clients();
    const error = new RangeError(`${KEY} is not payable`);
    expect(await errorOf(locks.withLock(KEY, () => Promise.reject(error)))).toBe(error);
    const [lock] = exported.of("holdfast.lock");
    expect(lock).toMatchObject({ status: { code: SpanStatusCode.ERROR }, attributes: { "error.type": "RangeError" }, events: [] });
    expect(exported.of("holdfast.acquire")[0]!.status.code).toBe(SpanStatusCode.UNSET);
  });

  it("have one type for all errors with names of their own, and for codes that no version knows: each is a series", async () => {
    const { locks } = clients();
    const named = (name: string): Error => Object.assign(new Error("declined"), { name });
    const thrown = [named("Declined 1231"), named("Declined 1232"), named("")];
    for (const error of thrown) await errorOf(locks.withLock(KEY, () => Promise.reject(error)));
    for (const [index, error] of thrown.entries()) await errorOf(locks.runOnce(`run:${index}`, () => Promise.reject(error)));
    const types = exported.spans.flatMap(({ attributes }) => attributes["error.type"] ?? []);
    expect(types).toEqual(Array.from({ length: 2 * thrown.length }, () => "_OTHER"));
    const unknown = new LockError("?", { code: "code-1231", definite: true, retry: "never" });
    expect(["text", undefined, null, {}, unknown].map(errorType)).toEqual(["_OTHER", "_OTHER", "_OTHER", "_OTHER", "_OTHER"]);
    expect([new FinalError("x"), new TypeError("x")].map(errorType)).toEqual(["FinalError", "TypeError"]);
    expect(endReason(new LockLostError("x", "reason-1231" as never))).toBe("_OTHER");
    expect((await exported.points("holdfast.run.duration")).length).toBe(1);
  });

  it("tell that a key was held: of a try as an outcome, of a wait as an error", async () => {
    const { locks, rival, clock } = clients();
    await rival.acquire(KEY);
    expect(await locks.tryAcquire(KEY)).toBeNull();
    await clock.settle(errorOf(locks.acquire(KEY, { waitMs: 5 * SECOND_MS })));
    const [tried, waited] = exported.of("holdfast.acquire");
    expect(tried).toMatchObject({ status: { code: SpanStatusCode.UNSET }, attributes: { "holdfast.acquire.outcome": "held" } });
    const outcome = { "holdfast.acquire.outcome": "timeout", "error.type": "wait-timeout" };
    expect(waited).toMatchObject({ status: { code: SpanStatusCode.ERROR }, attributes: outcome });
    expect(exported.of("holdfast.lock")).toEqual([]);
  });

  it.each(["skip", "proceed"] as const)(
    "end as unavailable when the locks can't be reached, to %s; the work has no span of ours",
    async (whenUnavailable) => {
      const { locks, plain, clock } = clients();
      for (let lost = 0; lost < 500; lost++) plain.faults.loseNextRequest();
      const work = (held: unknown): Promise<string> => exported.below("work", async () => String(held));
      const calls = exported.below("request", () =>
        Promise.all([
          locks.withLock(KEY, { waitMs: SECOND_MS, whenUnavailable }, work),
          locks.withLocks([KEY, "ORDER:2"], { waitMs: SECOND_MS, whenUnavailable }, work),
          locks.runOnce(KEY, { waitMs: SECOND_MS, whenUnavailable }, work),
        ]),
      );
      const [lock, set, run] = await clock.settle(calls, 600_000);
      const went = whenUnavailable === "proceed";
      expect([lock, set, run?.value]).toEqual(went ? ["undefined", "undefined", "undefined"] : [undefined, undefined, undefined]);
      expect(exported.of("holdfast.acquire").map(({ attributes }) => attributes["holdfast.acquire.outcome"])).toEqual([
        "unavailable",
        "unavailable",
      ]);
      expect(exported.of("holdfast.run").map(({ attributes }) => attributes["holdfast.run.outcome"])).toEqual(["unavailable"]);
      expect(exported.of("holdfast.lock")).toEqual([]);
      expect(exported.paths.filter((path) => path.endsWith("work"))).toHaveLength(went ? 3 : 0);
    },
  );

  it("tell that the caller gave up, which is no error", async () => {
    const { locks, rival, clock } = clients();
    await rival.acquire(KEY);
    const abort = new AbortController();
    const asked = errorOf(locks.withLock(KEY, { signal: abort.signal }, () => "never"));
    await clock.advance(SECOND_MS);
    abort.abort();
    await clock.settle(asked);
    const aborted = { "holdfast.acquire.outcome": "aborted", "error.type": "AbortError" };
    expect(exported.of("holdfast.acquire")[0]).toMatchObject({ status: { code: SpanStatusCode.UNSET }, attributes: aborted });
  });

  it("tell of a loss when it happens, and last for the work", async () => {
    const { locks, clock } = clients();
    const work = errorOf(
      exported.below("request", () =>
        locks.withLock(KEY, async ({ signal }) => {
          await untilAborted(signal);
          expect(await exported.points("holdfast.locks.lost")).toMatchObject([{ sum: 1 }]);
          expect(exported.of("holdfast.lock")).toEqual([]);
          await exported.below("roll back", async () => undefined);
        }),
      ),
    );
    await clock.advance(SECOND_MS);
    await cutOff(locks, 40 * SECOND_MS);
    expect(await clock.settle(work)).toBeInstanceOf(LockLostError);
    const [lock] = exported.of("holdfast.lock");
    expect(lock!.status.code).toBe(SpanStatusCode.ERROR);
    expect(lock!.attributes).toMatchObject({ "holdfast.lost.reason": "deadline" });
    expect(lock!.events).toMatchObject([{ name: "lost", attributes: { "holdfast.lost.reason": "deadline" } }]);
    expect(exported.paths).toContain("request > holdfast.lock > roll back");
    const lost = { ...LOCK, "holdfast.lost.reason": "deadline" };
    expect(await exported.points("holdfast.locks.lost")).toEqual([{ attributes: { ...lost, "holdfast.kind": "lock" }, sum: 1 }]);
    const [held] = await exported.points("holdfast.hold.duration");
    expect(held).toMatchObject({ attributes: lost, count: 1 });
    expect(held!.sum).toBeGreaterThan(20);
    expect(held!.sum).toBeLessThan(30);
  });

  it("tell of a hold that an operator broke", async () => {
    const { locks, rival, clock } = clients();
    const lease = await locks.acquire(KEY);
    await rival.forceRelease(KEY, { reason: "stuck", fencingToken: lease.fencingToken, drainMs: 0 });
    await clock.advance(30 * SECOND_MS);
    expect(exported.of("holdfast.lock")[0]!.attributes).toMatchObject({ "holdfast.lost.reason": "broken" });
  });

  it("have an event for each heartbeat", async () => {
    const { locks, clock } = clients();
    const lease = await locks.acquire(KEY, { leaseMs: 30 * SECOND_MS });
    await clock.advance(35 * SECOND_MS);
    await clock.settle(lease.release());
    expect(exported.of("holdfast.lock")[0]!.events.map(({ name }) => name)).toEqual(["renewed", "renewed", "renewed"]);
    expect(await exported.points("holdfast.renew.duration")).toEqual([
      { attributes: { ...LOCK, "holdfast.kind": "lock" }, sum: 0, count: 3 },
    ]);
  });
});

describe("the spans of a run", () => {
  const run = (n: number) => exported.of("holdfast.run")[n]!;

  it("are one of each call; its work runs below it, and a replay is told", async () => {
    const { locks } = clients();
    const call = () => locks.runOnce(KEY, () => exported.below("charge the card", async () => 7));
    expect(await call()).toEqual({ value: 7, replayed: false, attempt: 1 });
    expect(await call()).toEqual({ value: 7, replayed: true, attempt: 1 });
    expect(exported.paths).toEqual(["holdfast.run", "holdfast.run", "holdfast.run > charge the card"]);
    const executed = { "holdfast.run.outcome": "executed", "holdfast.run.attempt": 1, "holdfast.run.takeover": false };
    expect(run(0).attributes).toEqual({ ...GROUP, ...MEMORY, ...executed });
    expect(run(1).attributes).toEqual({ ...GROUP, ...MEMORY, "holdfast.run.outcome": "replayed", "holdfast.run.attempt": 1 });
    expect(await exported.points("holdfast.run.duration")).toMatchObject([
      { attributes: { ...GROUP, "holdfast.run.outcome": "executed" }, count: 1 },
      { attributes: { ...GROUP, "holdfast.run.outcome": "replayed" }, count: 1 },
    ]);
  });

  it("have the error of work that failed, now and when it is replayed", async () => {
    const { locks } = clients();
    const call = () => errorOf(locks.runOnce(KEY, () => Promise.reject(new FinalError(`${KEY} was declined`))));
    await call();
    await call();
    const failed = { "holdfast.run.outcome": "failed" };
    expect(run(0)).toMatchObject({ status: { code: SpanStatusCode.ERROR }, attributes: { ...failed, "error.type": "FinalError" } });
    expect(run(1)).toMatchObject({ status: { code: SpanStatusCode.ERROR }, attributes: { ...failed, "error.type": "run-failed" } });
  });

  it("tell of a loss, and of the attempt that takes over", async () => {
    const { locks, clock, rival } = clients();
    const { tracerProvider, meterProvider } = exported;
    const dies = errorOf(locks.runOnce(KEY, (own) => untilAborted(own.signal)));
    await clock.advance(SECOND_MS);
    await cutOff(locks, 60 * SECOND_MS);
    await clock.settle(traced(rival, { tracerProvider, meterProvider }).runOnce(KEY, () => "done"));
    await clock.settle(dies);
    const [lost, takeover] = [1, 2].map((n) => exported.of("holdfast.run").find((span) => span.attributes["holdfast.run.attempt"] === n)!);
    expect(lost!.events.map(({ name }) => name)).toContain("lost");
    expect(lost!.attributes).toMatchObject({ "holdfast.run.outcome": "failed", "holdfast.lost.reason": "deadline" });
    expect(takeover!.attributes).toMatchObject({ "holdfast.run.attempt": 2, "holdfast.run.takeover": true });
    const kinds = (await exported.points("holdfast.locks.lost")).map(({ attributes }) => attributes["holdfast.kind"]);
    expect(kinds).toEqual(["run"]);
  });
});

describe("the metrics", () => {
  it("are in seconds, by outcome, of waits and of holds", async () => {
    const { locks, clock, rival } = clients();
    const blocking = await rival.acquire(KEY, { heartbeat: false, leaseMs: 60 * SECOND_MS });
    const waiting = locks.acquire(KEY, { waitMs: 120 * SECOND_MS });
    await clock.advance(4 * SECOND_MS);
    expect(await exported.points("holdfast.waiter.active")).toEqual([{ attributes: LOCK, sum: 1 }]);
    await clock.settle(blocking.release());
    const lease = await clock.settle(waiting);
    expect(await exported.points("holdfast.waiter.active")).toEqual([{ attributes: LOCK, sum: 0 }]);
    expect(await exported.points("holdfast.lock.active")).toEqual([{ attributes: LOCK, sum: 1 }]);
    await clock.advance(7 * SECOND_MS);
    await clock.settle(lease.release());
    expect(await exported.points("holdfast.lock.active")).toEqual([{ attributes: LOCK, sum: 0 }]);
    expect(await exported.points("holdfast.hold.duration")).toEqual([{ attributes: LOCK, sum: 7, count: 1 }]);
    const [acquired] = await exported.points("holdfast.acquire.duration");
    expect(acquired).toMatchObject({ attributes: { ...LOCK, "holdfast.acquire.outcome": "acquired" }, count: 1 });
    expect(acquired!.sum).toBeGreaterThanOrEqual(4);
    expect(acquired!.sum).toBeLessThan(10);
  });

  it("have the type of a failure, of heartbeats too", async () => {
    const { locks, clock } = clients();
    await locks.acquire(KEY);
    await cutOff(locks, 60 * SECOND_MS);
    await clock.settle(errorOf(locks.acquire(KEY, { waitMs: SECOND_MS })));
    expect(await exported.points("holdfast.renew.duration")).toMatchObject([{ attributes: { ...LOCK, "error.type": "lease-lost" } }]);
    expect(await exported.points("holdfast.acquire.duration")).toMatchObject([
      { attributes: { "holdfast.acquire.outcome": "acquired" } },
      { attributes: { "holdfast.acquire.outcome": "failed", "error.type": "unavailable" }, sum: 1 },
    ]);
  });

  it("have the names and units that the documentation has", async () => {
    const { locks, clock } = clients();
    await clock.settle(locks.runOnce(KEY, () => "done"));
    await locks.acquire(KEY);
    await cutOff(locks, 60 * SECOND_MS);
    const units = Object.fromEntries((await exported.metrics()).map(({ name, unit }) => [name, unit]));
    expect(units).toEqual({
      "holdfast.acquire.duration": "s",
      "holdfast.hold.duration": "s",
      "holdfast.renew.duration": "s",
      "holdfast.run.duration": "s",
      "holdfast.lock.active": "{lock}",
      "holdfast.waiter.active": "{waiter}",
      "holdfast.locks.lost": "{lock}",
    });
  });
});

describe("without an SDK, and with faulty options", () => {
  it("does what the client does", async () => {
    const plain = createLockClient();
    const locks = traced(plain);
    expect(await locks.withLock(KEY, ({ key }) => key)).toBe(KEY);
    expect(await locks.runOnce(KEY, () => 7)).toEqual({ value: 7, replayed: false, attempt: 1 });
    const lease = await locks.acquire(KEY);
    expect(await plain.tryAcquire(KEY)).toBeNull();
    await lease.release();
    await locks.close();
  });

  it.each([
    [
      "throws",
      () => {
        throw new Error("no such group");
      },
    ],
    ["returns no text", () => 7 as never],
    ["returns nothing", () => undefined],
  ])("leaves the group out if keyAttribute %s", async (_what, keyAttribute) => {
    const { tracerProvider, meterProvider } = exported;
    await traced(createLockClient(), { keyAttribute, tracerProvider, meterProvider }).withLock(KEY, () => "done");
    for (const { attributes } of exported.spans) expect(Object.keys(attributes)).not.toContain("holdfast.key.group");
  });

  it.each([
    [{ keyAttributes: () => "k" }, "keyAttributes: is not an option of traced"],
    [{ keyAttribute: "k" }, "keyAttribute: must be a function"],
    [{ tracerProvider: "global" }, "tracerProvider: must be an object"],
  ])("refuses the options %j", (options, message) => {
    expect(() => traced(createLockClient(), options as never)).toThrow(message);
  });

  it.each([undefined, null, {}, { withLock: () => undefined }])("refuses %j as a client", (client) => {
    expect(() => traced(client as never)).toThrow("client: must be a client");
  });

  it("refuses what the client refuses, in its words", async () => {
    const { locks, plain } = clients();
    const wrong: readonly ((client: TestLockClient) => Promise<unknown>)[] = [
      (client) => client.withLock(KEY, undefined as never),
      (client) =>
        client.withLock(KEY, {}, function* () {
          yield 1;
        } as never),
      (client) => client.withLocks([KEY], "work" as never),
      (client) => client.runOnce(KEY, 7 as never),
      (client) => client.elect(KEY, undefined as never),
      (client) => client.acquire(undefined as never),
      (client) => client.acquire(KEY, null as never),
      (client) => client.acquire(KEY, { wait: 3 } as never),
      (client) => client.acquireAll(undefined as never),
      (client) => client.tryAcquireAll([undefined as never]),
      (client) => client.attach(undefined as never),
    ];
    for (const call of wrong) expect(String(await errorOf(call(locks)))).toBe(String(await errorOf(call(plain))));
  });
});

describe("beside what else uses the client", () => {
  it("tells of a wait for oneself across the traced client and the other", async () => {
    const told: LockClientEvent[] = [];
    const { locks, plain } = clients({ onEvent: (event) => told.push(event) });
    expect(await locks.withLock(KEY, () => plain.tryAcquire(KEY))).toBeNull();
    expect(await plain.withLock(KEY, () => locks.tryAcquire(KEY))).toBeNull();
    expect(told.filter(({ type }) => type === "self-wait")).toHaveLength(2);
  });

  it("tells the client's listener of a call that went on without its lock", async () => {
    const told: LockClientEvent[] = [];
    const { locks, clock } = clients({ prefix: "shop:", onEvent: (event) => told.push(event) });
    for (let lost = 0; lost < 500; lost++) locks.faults.loseNextRequest();
    const proceeds = locked({ locks, key: () => KEY, waitMs: 0, whenUnavailable: "proceed" }, async () => "done");
    expect(await clock.settle(proceeds())).toBe("done");
    expect(told).toMatchObject([{ type: "proceeded", key: `shop:${KEY}` }]);
  });
});

describe("a client that is wrapped twice", () => {
  it("has one span of each acquire and each hold, whichever of the two is used", async () => {
    const { locks, plain } = clients();
    const { tracerProvider, meterProvider } = exported;
    const again = traced(locks, { tracerProvider, meterProvider });
    const beside = traced(plain, { tracerProvider, meterProvider });
    for (const one of [again, traced(again.scope("a-scope-that-nobody-guesses")), beside])
      await one.withLock(KEY, () => exported.below("work", async () => 1));
    const paths = ["holdfast.acquire", "holdfast.lock", "holdfast.lock > work"];
    expect(exported.paths).toEqual(paths.flatMap((path) => [path, path, path]));
    expect(await exported.points("holdfast.hold.duration")).toMatchObject([{ count: 3 }]);
  });

  it("has the heartbeats of both", async () => {
    const { locks, plain, clock } = clients();
    const { tracerProvider, meterProvider } = exported;
    const [first, second] = [locks, traced(plain, { tracerProvider, meterProvider })];
    const leases = [await first.acquire("a"), await second.acquire("b")];
    await clock.advance(10 * SECOND_MS);
    expect((await exported.points("holdfast.renew.duration")).reduce((sum, { count = 0 }) => sum + count, 0)).toBe(2);
    for (const lease of leases) await clock.settle(lease.release());
  });
});
