/** withLock: work under a lock, and the correct report if the lock was lost before the end. */
import { describe, expect, it } from "vitest";
import {
  type AcquireOptions,
  type Lease,
  type LockClient,
  type VirtualClock,
  InvalidRequestError,
  LockLostError,
} from "../../../lib/testing.js";
import { createHarness } from "../harness.js";

const KEY = "ORDER_1231";
const LEASE_MS = 9000;
const OPTIONS = { leaseMs: LEASE_MS } as const;

describe("withLock", () => {
  it("takes options or none, and work that isn't async", async () => {
    const { locks } = createHarness();
    expect(await locks.withLock(KEY, () => 1)).toBe(1);
    expect(await locks.withLock(KEY, { waitMs: 0 }, () => 2)).toBe(2);
    expect(await locks.withLock(KEY, async () => null)).toBeNull();
  });

  it("releases when work that isn't async throws, and keeps its error", async () => {
    const { locks } = createHarness();
    const error = new Error("out of stock");
    const thrown = (): never => {
      throw error;
    };
    await expect(locks.withLock(KEY, thrown)).rejects.toBe(error);
    expect((await locks.inspect(KEY)).holders).toEqual([]);
  });

  it("says what is missing when it is given no function", async () => {
    const { locks, wire } = createHarness();
    const careless = locks.withLock as unknown as (key: string, options: object) => Promise<unknown>;
    await expect(careless(KEY, OPTIONS)).rejects.toBeInstanceOf(InvalidRequestError);
    expect(wire.sent).toEqual([]);
  });
});

/** Work under a lock, by each way that ends with the work. */
type Hold = <T>(locks: LockClient, options: AcquireOptions, work: (lease: Lease) => Promise<T> | T) => Promise<T>;
const WAYS: readonly (readonly [name: string, hold: Hold])[] = [
  ["withLock", (locks, options, work) => locks.withLock(KEY, options, work)],
  [
    "await using",
    async (locks, options, work) => {
      await using lease = await locks.acquire(KEY, options);
      return await work(lease);
    },
  ],
];

describe.each(WAYS)("%s throws LockLostError, whatever the work came to,", (name, hold) => {
  /** Loses the lease while the work runs; the work ends when its signal aborts. */
  async function losing(end: (lease: Lease) => unknown): Promise<unknown> {
    const { clock, locks, wire } = createHarness();
    wire.always("renew", { lost: "request" });
    const working = hold(locks, OPTIONS, async (lease) => {
      await new Promise((resolve) => lease.signal.addEventListener("abort", resolve));
      return end(lease);
    });
    return clock.settle(working.catch((error: unknown) => error));
  }

  it("when it was lost and the work returned a value", async () => {
    expect(await losing(() => "done")).toMatchObject({ name: "LockLostError", reason: "deadline" });
  });

  it("when it was lost and the work threw something: that is the cause", async () => {
    const cause = new Error("out of stock");
    const error = await losing(() => {
      throw cause;
    });
    const loss = { name: "LockLostError", reason: "deadline" };
    expect(error).toMatchObject(name === "withLock" ? { ...loss, cause } : { name: "SuppressedError", error: loss, suppressed: cause });
  });

  it("when the work itself noticed", async () => {
    const error = await losing((lease) => lease.assertHeld());
    const loss = { name: "LockLostError", reason: "deadline" };
    expect(error).toMatchObject(name === "withLock" ? loss : { name: "SuppressedError", error: loss, suppressed: loss });
  });

  it("when the process was frozen past the lease", async () => {
    const { clock, locks } = createHarness();
    const working = hold(locks, OPTIONS, () => new Promise<string>((resolve) => clock.after(100, () => resolve("done"))));
    const failed = expect(working).rejects.toMatchObject({ name: "LockLostError", reason: "deadline" });
    await clock.advance(10);
    await clock.freeze(LEASE_MS);
    await failed;
  });

  it("when it ended by its maxHoldMs", async () => {
    const { clock, locks } = createHarness();
    const working = hold(locks, { ...OPTIONS, maxHoldMs: 1000 }, () => new Promise((resolve) => clock.after(2000, () => resolve(1))));
    await expect(clock.settle(working)).rejects.toMatchObject({ name: "LockLostError", reason: "max-hold" });
  });

  it("when the client was closed under it, of which no loss is told", async () => {
    const { clock, locks, rival, events } = createHarness();
    let isFree: boolean | undefined;
    const working = hold(locks, OPTIONS, async () => {
      await locks.close();
      isFree = (await rival.inspect(KEY)).holders.length === 0;
      return "done";
    });
    await expect(clock.settle(working)).rejects.toMatchObject({ name: "LockLostError", reason: "closed" });
    expect(events.map(({ type }) => type)).toEqual(["acquired", "released"]);
    // Only the work of withLock is known to run.
    expect(isFree).toBe(name !== "withLock");
    expect((await rival.inspect(KEY)).holders).toEqual([]);
  });

  it("when the lease was taken away by force, and only the release heard of it", async () => {
    const { clock, locks, rival } = createHarness();
    const working = hold(locks, OPTIONS, async (lease) => {
      await rival.forceRelease(KEY, { reason: "stuck", fencingToken: lease.fencingToken, drainMs: 0 });
      expect(await rival.tryAcquire(KEY)).not.toBeNull();
      expect(lease.isHeld()).toBe(true);
      return "done";
    });
    await expect(clock.settle(working)).rejects.toMatchObject({ name: "LockLostError", reason: "broken" });
  });

  it("when it was taken away so long ago that the key doesn't remember", async () => {
    const { clock, locks, rival } = createHarness();
    const working = hold(locks, OPTIONS, async (lease) => {
      await rival.forceRelease(KEY, { reason: "stuck", fencingToken: lease.fencingToken, drainMs: 0 });
      for (let round = 0; round < 10; round++) await (await rival.acquire(KEY)).release();
      return "done";
    });
    await expect(clock.settle(working)).rejects.toBeInstanceOf(LockLostError);
  });

  it("but not when it ran out after the work, before the release was there: nobody was in between", async () => {
    const { clock, locks, wire } = createHarness();
    wire.next("release", { requestMs: 500 });
    const work = (): Promise<string> => new Promise((resolve) => clock.after(LEASE_MS - 100, () => resolve("done")));
    const result = await clock.settle(hold(locks, { ...OPTIONS, heartbeat: false }, work));
    expect(clock.monotonicMs() - wire.of("acquire")[0]!.atMs).toBeGreaterThan(LEASE_MS);
    expect(result).toBe("done");
  });

  it("but not when nobody answers the release, which is told of", async () => {
    const { clock, locks, wire, events } = createHarness();
    wire.always("release", { lost: "reply" });
    expect(await clock.settle(hold(locks, OPTIONS, () => "done"))).toBe("done");
    expect(events.map(({ type }) => type)).toEqual(["acquired", "released", "release-failed"]);
    expect(events.at(-1)).toMatchObject({ key: KEY, error: { code: "unavailable" } });
  });

  it("but not when the work released it by itself, also before its client was closed, or handed it over", async () => {
    const { clock, locks } = createHarness();
    expect(await hold(locks, OPTIONS, (lease) => lease.release())).toBe("released");
    expect(typeof (await clock.settle(hold(locks, OPTIONS, (lease) => lease.detach())))).toBe("string");
    const { locks: closed } = createHarness();
    const closing = async (lease: Lease): Promise<string> => {
      await lease.release();
      await closed.close();
      return "done";
    };
    expect(await hold(closed, OPTIONS, closing)).toBe("done");
  });
});

describe("the error of a loss", () => {
  const LOSSES: readonly [what: string, lose: (locks: LockClient, clock: VirtualClock) => Promise<unknown>, key: string][] = [
    ["a lease that was not renewed", (locks, clock) => held(locks, () => clock.freeze(LEASE_MS)), "shop:k"],
    ["a lease at its maxHoldMs", (locks, clock) => held(locks, () => clock.advance(1000), { maxHoldMs: 1000 }), "shop:k"],
    [
      "a lease that was broken",
      (locks) =>
        locks.withLock("k", OPTIONS, async (lease) => {
          await locks.forceRelease("k", { reason: "stuck", fencingToken: lease.fencingToken });
          await lease.renew();
        }),
      "shop:k",
    ],
    ["a lease that was released", (locks) => held(locks, async (lease) => void (await lease.release())), "shop:k"],
    ["a lease that was detached", (locks) => held(locks, async (lease) => void (await lease.detach())), "shop:k"],
    ["a lease whose client was closed", (locks) => held(locks, () => locks.close()), "shop:k"],
    [
      "a handle of a lease that is gone",
      (locks, clock) =>
        held(locks, async (lease) => {
          const handle = await lease.detach({ leaseMs: 1000 });
          await clock.advance(10_000);
          await locks.attach(handle);
        }),
      "shop:k",
    ],
    ["a set", (locks, clock) => locks.withLocks(["a", "b"], OPTIONS, () => clock.freeze(LEASE_MS)), "shop:a shop:b"],
    [
      "a run that was taken over",
      (locks, clock) =>
        locks.runOnce("run", OPTIONS, async (run) => {
          await clock.freeze(LEASE_MS);
          run.assertHeld();
        }),
      "shop:run",
    ],
  ];

  const held = (locks: LockClient, lose: (lease: Lease) => Promise<void>, options: AcquireOptions = {}): Promise<void> =>
    locks.withLock("k", { ...OPTIONS, ...options }, async (lease) => {
      await lose(lease);
      lease.assertHeld();
    });

  it.each(LOSSES)("of %s has its key", async (_what, lose, key) => {
    const { clock, locks } = createHarness({ prefix: "shop:" });
    await expect(clock.settle(lose(locks, clock))).rejects.toMatchObject({ name: "LockLostError", key });
  });

  it("tells an inner loss from the outer's: it is the cause if both are lost", async () => {
    const { clock, locks } = createHarness();
    const inner = { name: "LockLostError", key: "inner", reason: "max-hold" };
    const nested = (before: () => Promise<void>) =>
      locks.withLock("outer", OPTIONS, async () => {
        await locks.withLock("inner", { ...OPTIONS, maxHoldMs: 1000 }, () => clock.advance(1000)).finally(before);
      });
    await expect(clock.settle(nested(async () => undefined))).rejects.toMatchObject(inner);
    const both = nested(() => clock.freeze(LEASE_MS));
    await expect(clock.settle(both)).rejects.toMatchObject({ name: "LockLostError", key: "outer", reason: "deadline", cause: inner });
  });
});
