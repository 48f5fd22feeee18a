/** whenUnavailable: every wrapper may skip its work, or do it without the lock, in an outage; and never when a key is held. */
import { describe, expect, it } from "vitest";
import { refuse } from "../../../lib/core/errors.js";
import { LIMITS } from "../../../lib/core/limits.js";
import { type LockClient, type WhenUnavailable, currentRun, locked, runOnce } from "../../../lib/index.js";
import { invocation } from "../../support/invocation.js";
import { type Harness, createHarness } from "../harness.js";
import type { Fate } from "../wire.js";

type When = WhenUnavailable["whenUnavailable"];
type Work = (under: object | undefined) => string;
type Wrapper = (locks: LockClient, options: WhenUnavailable & { readonly waitMs?: number }, work: Work) => Promise<unknown>;

const WRAPPERS: readonly (readonly [name: string, wrapper: Wrapper, keys: string])[] = [
  ["withLock", (locks, options, work) => locks.withLock("k", options, work), "shop:k"],
  ["withLocks", (locks, options, work) => locks.withLocks(["a", "b"], options, work), "shop:a shop:b"],
  ["a mutex's withLock", (locks, options, work) => locks.mutex("k").withLock(options, work), "shop:k"],
  ["withLock of a view", (locks, options, work) => locks.scope("0123456789abcdef").withLock("k", options, work), "shop:k"],
  ["the client's runOnce", async (locks, options, work) => (await locks.runOnce("k", options, work))?.value, "shop:k"],
  ["locked", (locks, options, work) => locked({ ...options, locks, key: () => "k" }, async () => work(undefined))(), "shop:k"],
  [
    "locked with two keys",
    (locks, options, work) => locked({ ...options, locks, key: () => ["a", "b"] }, async () => work(undefined))(),
    "shop:a shop:b",
  ],
  ["runOnce", (locks, options, work) => runOnce({ ...options, locks, key: () => "k" }, async () => work(currentRun()))(), "shop:k"],
];

const GRANTING = ["acquire", "acquireSet", "start"] as const;

function outage(): Harness {
  const harness = createHarness({ prefix: "shop:" });
  for (const operation of GRANTING) harness.wire.always(operation, { instead: refuse("unavailable") });
  return harness;
}

describe.each(WRAPPERS)("%s, when its locks can't be reached", (_name, wrapper, keys) => {
  async function tried(when: When, { clock, locks, events }: Harness = outage(), waitMs = 2000) {
    const seen: unknown[] = [];
    const work: Work = (under) => {
      seen.push(under);
      return "done";
    };
    const options = { waitMs, ...(when !== undefined && { whenUnavailable: when }) };
    const outcome = await clock.settle(wrapper(locks, options, work).catch((error: unknown) => error));
    const told = events.filter(({ type }) => type === "skipped" || type === "proceeded");
    return { outcome, seen, told };
  }

  describe("in an invocation that ends", () => {
    /** The outcome with `leftMs` left, while others hold the keys and each answer takes `replyMs`. */
    async function ending(leftMs: number, fate: Fate) {
      const harness = createHarness({ prefix: "shop:" });
      const { clock, locks, rival, wire } = harness;
      for (const key of ["k", "a", "b"]) await rival.acquire(`shop:${key}`, { leaseMs: 600_000 });
      void rival.runOnce("shop:k", () => new Promise(() => undefined));
      await clock.advance(0);
      for (const operation of GRANTING) wire.always(operation, fate);
      return tried("proceed", { ...harness, locks: locks.forInvocation(invocation(clock, leftMs)) }, 45_000);
    }

    it.each([
      [450, 300],
      [900, 800],
      [1300, 1200],
      [2500, 2400],
    ])("with %d ms left, an answer after %d ms is no outage, and the work is not done", async (leftMs, replyMs) => {
      const { outcome, seen, told } = await ending(leftMs, { replyMs });
      expect([outcome, seen, told]).toEqual([expect.objectContaining({ name: "LockError", code: "invocation-ends" }), [], []]);
    });

    it("control: a service that fails at once is one, and so is a silence as long as any", async () => {
      expect((await ending(900, { instead: refuse("unavailable") })).seen).toHaveLength(1);
      expect((await ending(30_000, { lost: "request", silently: true })).seen).toHaveLength(1);
    });
  });

  it.each<When>(["throw", undefined])("%s: throws LockUnavailableError, and the work is not done", async (when) => {
    const { outcome, seen, told } = await tried(when);
    expect([outcome, seen, told]).toEqual([expect.objectContaining({ name: "LockUnavailableError", code: "unavailable" }), [], []]);
  });

  it.each<When>(["throw", "skip", "proceed"])(
    "%s: a key that others keep changing is no outage, and the work is not done",
    async (when) => {
      const harness = createHarness({ prefix: "shop:" });
      for (const operation of GRANTING) harness.wire.always(operation, { instead: refuse("contended", { retryAfterMs: 500 }) });
      const { outcome, seen, told } = await tried(when, harness);
      expect([outcome, seen, told]).toEqual([expect.objectContaining({ name: "LockTimeoutError" }), [], []]);
    },
  );

  it.each<When>(["skip", "proceed"])("%s: nor is it one where the end of the call cuts off the last request", async (when) => {
    const harness = createHarness({ prefix: "shop:" });
    const fate = { instead: refuse("contended", { retryAfterMs: 500 }), replyMs: 1400 };
    for (const operation of GRANTING) harness.wire.always(operation, fate);
    const { outcome, seen, told } = await tried(when, harness, 0);
    expect([outcome, seen, told]).toEqual([expect.objectContaining({ name: expect.stringMatching(/^Lock(?:Timeout)?Error$/) }), [], []]);
  });

  it("skip: the work is not done, the result is undefined, and the listener is told", async () => {
    const { outcome, seen, told } = await tried("skip");
    expect([outcome, seen, told.map(({ type, key }) => [type, key])]).toEqual([undefined, [], [["skipped", keys]]]);
    expect(told[0]?.error).toMatchObject({ code: "unavailable" });
  });

  it("proceed: the work is done once, without a lease, and the listener is told", async () => {
    const { outcome, seen, told } = await tried("proceed");
    expect([outcome, seen, told.map(({ type, key }) => [type, key])]).toEqual(["done", [undefined], [["proceeded", keys]]]);
  });

  const NO_OUTAGES = ["not-configured", "newer-format", "older-format", "unreadable-record", "clock-unknown"] as const;
  const WITHOUT = NO_OUTAGES.flatMap((code) => [["skip", code] as const, ["proceed", code] as const]);
  it.each(WITHOUT)("%s: %s is no outage, and the work is not done", async (when, code) => {
    const harness = outage();
    for (const operation of GRANTING) harness.wire.always(operation, { instead: refuse(code) });
    const { outcome, seen, told } = await tried(when, harness);
    expect([outcome, seen, told]).toEqual([expect.objectContaining({ name: "LockError", code }), [], []]);
  });

  it.each<When>(["skip", "proceed"])("%s: a key that is held is no outage", async (when) => {
    const harness = createHarness({ prefix: "shop:" });
    for (const key of ["shop:k", "shop:a"]) await harness.rival.acquire(key, { leaseMs: 60_000 });
    void harness.rival.runOnce("shop:k", { leaseMs: 60_000 }, () => new Promise<never>(() => undefined));
    await harness.clock.advance(0);
    const { outcome, seen, told } = await tried(when, harness);
    expect([outcome, seen, told]).toEqual([expect.objectContaining({ name: "LockTimeoutError" }), [], []]);
  });

  it.each<When>(["throw", "skip", "proceed"])(
    "%s: changes nothing while they can be reached, also not for the work's own outage",
    async (when) => {
      expect((await tried(when, createHarness({ prefix: "shop:" }))).outcome).toBe("done");
      const { clock, locks, events } = createHarness({ prefix: "shop:" });
      let times = 0;
      const failing = wrapper(locks, { whenUnavailable: when }, () => {
        times++;
        throw new TypeError("the work's");
      });
      await expect(clock.settle(failing)).rejects.toThrow("the work's");
      expect([times, events.filter(({ type }) => type === "proceeded" || type === "skipped")]).toEqual([1, []]);
    },
  );

  it("refuses an unknown value before anything is sent", async () => {
    const { locks, wire } = createHarness();
    const asked = async (): Promise<unknown> => wrapper(locks, { whenUnavailable: "maybe" as When }, () => "done");
    await expect(asked()).rejects.toMatchObject({ name: "InvalidRequestError", field: "whenUnavailable" });
    expect(wire.sent).toEqual([]);
  });
});

describe.each(WRAPPERS)("%s, after an outage that its client met", (_name, wrapper) => {
  const options = { waitMs: 2000, whenUnavailable: "proceed" } as const;
  const asked = ({ wire }: Harness): number => wire.sent.length;
  async function met() {
    const harness = outage();
    const call = (waitMs = 2000) => wrapper(harness.locks, { ...options, waitMs }, (under) => (under ? "with" : "without"));
    await harness.clock.settle(call());
    return { harness, call, from: asked(harness) };
  }

  it("does without asking for 3 s; then one call at a time asks, and the others don't wait for it", async () => {
    const { harness, call, from } = await met();
    await harness.clock.advance(2999);
    expect(await call()).toBe("without");
    expect(asked(harness)).toBe(from);
    await harness.clock.advance(1);
    const probe = call();
    expect(await call()).toBe("without");
    await harness.clock.settle(probe);
    expect(asked(harness)).toBeGreaterThan(from);
  });

  it("asks as before once a call was answered; control: a call that would wait longer asks at once", async () => {
    const { harness, call, from } = await met();
    for (const operation of GRANTING) harness.wire.always(operation, undefined);
    expect(await call()).toBe("without");
    expect(asked(harness)).toBe(from);
    await harness.clock.settle(call(9000));
    expect(asked(harness)).toBeGreaterThan(from);
    const between = asked(harness);
    await harness.clock.settle(call());
    expect(asked(harness)).toBeGreaterThan(between);
  });
});

describe("whenUnavailable", () => {
  it("is of wrappers alone", async () => {
    const { locks } = createHarness();
    const options: object = { whenUnavailable: "skip" };
    await expect(locks.acquire("k", options)).rejects.toMatchObject({ field: "whenUnavailable" });
    await expect(locks.tryAcquire("k", options)).rejects.toMatchObject({ field: "whenUnavailable" });
    await expect(locks.acquireAll(["k"], options)).rejects.toMatchObject({ field: "whenUnavailable" });
  });

  it.each<[what: string, failedAfterMs: number, name: string]>([
    ["after the service had held it", 3_400, "LockTimeoutError"],
    ["at once: control", 0, "LockUnavailableError"],
  ])(
    "of a run that is in progress goes by the time since the service was heard of. The last request fails %s",
    async (_, requestMs, name) => {
      const { clock, locks, rival, wire } = createHarness();
      void rival.runOnce("k", { leaseMs: 60_000 }, () => new Promise<never>(() => undefined));
      await clock.advance(0);
      wire.next("start", {}, ...Array.from({ length: 99 }, () => ({ requestMs, instead: refuse("unavailable") })));
      const waits = locks.runOnce("k", { waitMs: LIMITS.serverWaitMs + 4_000 }, () => "done");
      await expect(clock.settle(waits)).rejects.toMatchObject({ name });
    },
  );

  it("of a run that proceeds, the attempt is 0", async () => {
    const { clock, locks } = outage();
    const result = await clock.settle(locks.runOnce("k", { waitMs: 0, whenUnavailable: "proceed" }, () => "done"));
    expect(result).toEqual({ value: "done", replayed: false, attempt: 0 });
  });
});
