/** A handler under a lock: held while it runs, released however it ends, and never reported as successful if the lock was lost. */
import { describe, expect, it } from "vitest";
import { type Lease, type LeaseSet, key } from "../../lib/index.js";
import type { LockHandlerOptions } from "../../lib/middy.js";
import { createHarness } from "../client/harness.js";
import { createGate, thrownBy } from "../support/run-gate.js";
import { problemOf, requestV2, SCHEDULED } from "./events.js";
import { invocation } from "../support/invocation.js";
import { type Work, LOCK_SHAPES } from "./shapes.js";

const KEY = "ORDER_1";
const LEASE_MS = 6000;
const KINDS = [
  ["an HTTP API's request", requestV2()],
  ["a schedule", SCHEDULED],
] as const;

describe.each(LOCK_SHAPES)("$name", ({ deploy }) => {
  /** A handler on its own service. */
  function deployed(work: Work<Lease | LeaseSet>, options: Partial<LockHandlerOptions<unknown, unknown>> = {}) {
    const harness = createHarness();
    return { ...harness, handler: deploy({ locks: harness.locks, key: () => KEY, ...options }, work) };
  }

  describe.each(KINDS)("for %s", (_kind, event) => {
    const isHttp = event !== SCHEDULED;

    it("holds the key while the handler runs, hands it the lease, and gives the key back", async () => {
      const { clock, rival, locks, handler } = deployed(async (lease) => {
        expect(await rival.tryAcquire(KEY)).toBeNull();
        return { statusCode: 200, body: String((lease as Lease).fencingToken) };
      });
      const { statusCode, body } = await clock.settle(handler(event, invocation(clock)));
      expect(statusCode).toBe(200);
      expect((await locks.inspect(KEY)).fencingToken).toBe(Number(body));
      expect((await locks.inspect(KEY)).holders).toEqual([]);
    });

    it.each([
      [60_000, undefined, isHttp ? 5_000 : 45_000],
      [60_000, 800, 800],
      [4_000, 20_000, 3_000],
      [900, undefined, 0],
    ])("with %d ms left and waitMs %s refuses a held key after %d ms, and does not run", async (leftMs, waitMs, expectedMs) => {
      const { clock, rival, handler } = deployed(async () => expect.unreachable("the key is held"), waitMs === undefined ? {} : { waitMs });
      await rival.acquire(KEY);
      const began = clock.monotonicMs();
      const outcome = await clock.settle(thrownBy(handler(event, invocation(clock, leftMs))));
      expect(clock.monotonicMs() - began).toBe(expectedMs);
      if (!isHttp) return expect(outcome).toMatchObject({ name: "LockTimeoutError", code: "wait-timeout" });
      const problem = problemOf(outcome);
      expect(problem).toMatchObject({ statusCode: 423, contentType: "application/problem+json", status: 423, code: "locked" });
      expect(problem).toMatchObject({ definite: true, retry: "later" });
      expect(Number(problem["retryAfter"])).toBeGreaterThanOrEqual(1);
      expect(Number(problem["retryAfter"])).toBe(Math.ceil((problem["retryAfterMs"] as number) / 1000));
    });

    it.each(["skip", "throw"] as const)("that is held, with whenHeld %s, is refused at once", async (whenHeld) => {
      const { clock, rival, handler } = deployed(async () => expect.unreachable("the key is held"), { whenHeld });
      await rival.acquire(KEY);
      const began = clock.monotonicMs();
      const outcome = await clock.settle(thrownBy(handler(event, invocation(clock))));
      expect(clock.monotonicMs()).toBe(began);
      if (isHttp) expect(problemOf(outcome)).toMatchObject({ statusCode: 423 });
      else if (whenHeld === "skip") expect(outcome).toBeUndefined();
      else expect(outcome).toMatchObject({ name: "LockTimeoutError" });
    });

    it.each(["throws", "returns"])("does not say that it succeeded when the key was lost while it was frozen, and then %s", async (how) => {
      const gate = createGate();
      const { clock, rival, handler } = deployed(
        async () => {
          await gate.pass();
          if (how === "throws") throw new Error("the connection is gone");
          return { statusCode: 200, body: "paid" };
        },
        { leaseMs: LEASE_MS },
      );
      const working = thrownBy(handler(event, invocation(clock)));
      await clock.advance(0);
      await gate.reached;
      await clock.freeze(3 * LEASE_MS);
      expect(await rival.tryAcquire(KEY)).not.toBeNull();
      gate.open();
      const outcome = await clock.settle(working);
      if (isHttp) expect(problemOf(outcome)).toMatchObject({ statusCode: 503, code: "lease-lost", definite: false, retryAfter: "1" });
      else expect(outcome).toMatchObject({ name: "LockLostError" });
    });

    it("takes the key's own loss for nobody else's: a LockLostError of the handler's making is thrown on", async () => {
      const theirs = createHarness();
      const { clock, handler } = deployed(async () => {
        const lease = await theirs.locks.acquire("another", { leaseMs: 1000, heartbeat: false });
        await theirs.clock.advance(5000);
        lease.assertHeld();
      });
      expect(await clock.settle(thrownBy(handler(event, invocation(clock))))).toMatchObject({ name: "LockLostError" });
    });

    it.each([400, 0])("with %d ms left does not run, and keeps nobody out", async (leftMs) => {
      const { clock, rival, handler } = deployed(async () => expect.unreachable("the invocation ends"));
      const outcome = await clock.settle(thrownBy(handler(event, invocation(clock, leftMs))));
      if (isHttp) expect(problemOf(outcome)).toMatchObject({ statusCode: 503, code: "unavailable", definite: true });
      else expect(outcome).toMatchObject({ name: "LockError", code: "invocation-ends" });
      expect(await rival.tryAcquire(KEY)).not.toBeNull();
    });

    it.each(["throw", "skip", "proceed"] as const)("whose locks can't be reached: %s", async (whenUnavailable) => {
      const { clock, wire, events, handler } = deployed(async (lease) => ({ statusCode: 200, body: typeof lease }), { whenUnavailable });
      wire.always("acquire", { lost: "request" });
      wire.always("release", { lost: "request" });
      const outcome = await clock.settle(thrownBy(handler(event, invocation(clock))));
      if (whenUnavailable === "proceed") expect(outcome).toEqual({ statusCode: 200, body: "undefined" });
      else if (isHttp) expect(problemOf(outcome)).toMatchObject({ statusCode: 503, code: "unavailable", definite: true });
      else if (whenUnavailable === "skip") expect(outcome).toBeUndefined();
      else expect(outcome).toMatchObject({ name: "LockUnavailableError" });
      const told = { throw: ["unavailable"], skip: [isHttp ? "unavailable" : "skipped"], proceed: ["proceeded"] }[whenUnavailable];
      expect(events.map(({ type }) => type)).toEqual(told);
    });
  });

  it("names neither the key nor its holder to who is refused", async () => {
    const { clock, rival, handler } = deployed(async () => expect.unreachable("the key is held"), { waitMs: 0 });
    const lease = await rival.acquire(KEY, { owner: "checkout-7" });
    const text = JSON.stringify(await clock.settle(handler(requestV2(), invocation(clock))));
    for (const secret of [KEY, "checkout-7", lease.leaseId]) expect(text).not.toContain(secret);
  });

  describe("with keys from the event", () => {
    const keysOf = (event: unknown): string[] =>
      (JSON.parse((event as { body: string }).body) as { orders: number[] }).orders.map((order) => key("ORDER", order));

    it.each<[orders: readonly number[], keys: unknown]>([
      [[], undefined],
      [[7], "ORDER_7"],
      [
        [7, 8, 7],
        ["ORDER_7", "ORDER_8"],
      ],
    ])("%j are locked as %j", async (orders, keys) => {
      const { clock, handler } = deployed(async (lease) => lease && ("keys" in lease ? [...lease.keys] : lease.key), { key: keysOf });
      expect(await clock.settle(handler(requestV2({ body: { orders } }), invocation(clock)))).toEqual(keys);
    });
  });

  it("runs outside of Lambda, where nobody knows how much time is left", async () => {
    const { clock, handler } = deployed(async (lease) => lease?.isHeld());
    expect(await clock.settle(handler(requestV2(), {}))).toBe(true);
  });
});
