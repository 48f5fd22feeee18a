/** Work that asks for a key that a call around it seems to hold is told so, and waits like any other: the async context is a hint. */
import { AsyncLocalStorage } from "node:async_hooks";
import { describe, expect, it } from "vitest";
import { type LockClient, type LockClientEvent, currentLease, LockTimeoutError } from "../../../lib/index.js";
import { type Harness, createHarness } from "../harness.js";

const KEY = "ORDER_1";
const SCOPE = "request-6e0c63257de34c92";
const WAIT = { waitMs: 500 };
const HINT = "a call around this one seems to hold it";

/** The keys of the events that report a wait for oneself. */
const selfWaits = (events: readonly LockClientEvent[]): readonly string[] =>
  events.flatMap(({ type, key }) => (type === "self-wait" ? [key] : []));

/** Every way to wait for the key, and those that don't wait. */
const WAITS: readonly (readonly [how: string, ask: (locks: LockClient) => Promise<unknown>])[] = [
  ["acquire", (locks) => locks.acquire(KEY, WAIT)],
  ["withLock", (locks) => locks.withLock(KEY, WAIT, () => "never")],
  ["a shared withLock", (locks) => locks.withLock(KEY, { ...WAIT, mode: "shared" }, () => "never")],
  ["acquireAll", (locks) => locks.acquireAll(["OTHER", KEY], WAIT)],
  ["withLocks", (locks) => locks.withLocks([KEY, "OTHER"], WAIT, () => "never")],
  ["a mutex", (locks) => locks.mutex(KEY).withLock(WAIT, () => "never")],
];
const TRIES: typeof WAITS = [
  ["tryAcquire", (locks) => locks.tryAcquire(KEY)],
  ["tryAcquireAll", (locks) => locks.tryAcquireAll([{ key: KEY }, "OTHER"])],
];

/** Expects that the call waits its time in vain, and that this is told at once and in its error. */
async function waitsInVain({ clock, events }: Harness, ask: () => Promise<unknown>, key = KEY): Promise<void> {
  const before = selfWaits(events).length;
  const asked = ask().catch((error: unknown) => error);
  await clock.advance(0);
  expect(selfWaits(events).slice(before)).toEqual([key]);
  const error = await clock.settle(asked);
  expect(error).toBeInstanceOf(LockTimeoutError);
  expect((error as Error).message).toContain(HINT);
}

describe("inside of a withLock", () => {
  it.each(WAITS)("%s of the same key waits its time, and is told at once that it may wait for itself", async (_how, ask) => {
    const harness = createHarness();
    const { locks, clock } = harness;
    await clock.settle(locks.withLock(KEY, () => waitsInVain(harness, () => ask(locks))));
  });

  it.each(TRIES)("%s of the same key is null, and the listener is told", async (_how, ask) => {
    const { locks, events } = createHarness();
    expect(await locks.withLock(KEY, () => ask(locks))).toBeNull();
    expect(selfWaits(events)).toEqual([KEY]);
  });

  it.each([...WAITS, ...TRIES])("control: %s of it by itself is told to nobody", async (_how, ask) => {
    const { locks, events } = createHarness();
    await ask(locks);
    expect(selfWaits(events)).toEqual([]);
  });

  it("however deep the call, and after however many awaits", async () => {
    const harness = createHarness();
    const { clock, locks } = harness;
    const deep = async (levels: number): Promise<void> => {
      await Promise.resolve();
      if (levels > 0) return deep(levels - 1);
      await new Promise<void>((resolve) => clock.after(10, resolve));
      await waitsInVain(harness, () => locks.acquire(KEY, WAIT));
    };
    await clock.settle(locks.withLock("OUTER", () => locks.withLock(KEY, () => deep(5))));
  });

  it("another key, and the same name in another prefix, are other keys", async () => {
    const { locks } = createHarness();
    const nested = await locks.withLock(KEY, () => locks.withLock("ORDER_2", ({ key }) => key));
    expect(nested).toBe("ORDER_2");
    const { locks: billing } = createHarness({ prefix: "billing:" });
    expect(await billing.withLock(KEY, () => billing.withLock(`shop:${KEY}`, ({ key }) => key))).toBe(`billing:shop:${KEY}`);
  });
});

describe("inside of a withLocks", () => {
  it("a set that overlaps, or one of its keys, waits; a set that doesn't is granted", async () => {
    const harness = createHarness();
    const { locks, clock } = harness;
    const work = locks.withLocks(["a", "b", "c"], async (set) => {
      await waitsInVain(harness, () => locks.withLocks(["d", "b"], WAIT, () => undefined), "b");
      expect(await locks.tryAcquire("c")).toBeNull();
      await locks.withLocks(["d", "e"], () => undefined);
      expect(set.isHeld()).toBe(true);
    });
    await clock.settle(work);
  });
});

describe("inside of a run", () => {
  it("the same run waits its time, also in a scope; the outer goes on", async () => {
    const harness = createHarness();
    const { locks, clock } = harness;
    const { value } = await clock.settle(
      locks.runOnce(KEY, async (run) => {
        await waitsInVain(harness, () => locks.runOnce(KEY, WAIT, () => "never"));
        await waitsInVain(harness, () => locks.scope(SCOPE).runOnce(KEY, WAIT, () => "never"));
        return run.isHeld();
      }),
    );
    expect(value).toBe(true);
  });

  it("another run, and the same one after its end, are none", async () => {
    const { clock, locks, events } = createHarness();
    let left: Promise<unknown> | undefined;
    const { value } = await locks.runOnce(KEY, async () => {
      left = (async () => {
        await new Promise<void>((resolve) => clock.after(1000, resolve));
        return locks.runOnce(KEY, () => expect.unreachable("it is done"));
      })();
      return (await locks.runOnce("OTHER", () => "other")).value;
    });
    expect(value).toBe("other");
    expect(await clock.settle(left!)).toMatchObject({ value: "other", replayed: true });
    expect(selfWaits(events)).toEqual([]);
  });
});

/** A pool as fastq, bottleneck, p-limit 3 and p-queue 7 are: the worker that is free starts the next job, in the context of the last one. */
class Pool {
  readonly #jobs: (() => Promise<void>)[] = [];
  #isAtWork = false;

  run<T>(job: () => Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#jobs.push(() => job().then(resolve, reject));
      if (!this.#isAtWork) void this.#work();
    });
  }

  async #work(): Promise<void> {
    this.#isAtWork = true;
    for (let job = this.#jobs.shift(); job; job = this.#jobs.shift()) await job();
    this.#isAtWork = false;
  }
}

describe("a job of another caller, in a pool whose worker was started under the lock", () => {
  /** Starts the pool's worker under the lock of A, which holds on for a second, and returns what the job of B came to. */
  async function jobOfB<T>({ locks, clock }: Harness, job: () => Promise<T>): Promise<T> {
    const pool = new Pool();
    const passes = (ms: number): Promise<void> => new Promise((resolve) => void clock.after(ms, resolve));
    const a = locks.withLock(KEY, async () => {
      void pool.run(() => passes(10));
      await passes(1000);
    });
    await clock.advance(0);
    // The worker is still at the first job, and begins this one after it.
    const [done] = await clock.settle(Promise.all([pool.run(job), a]));
    return done;
  }

  it("waits for the key and gets it, in place of an error, and the listener is told", async () => {
    const harness = createHarness();
    expect(await jobOfB(harness, () => harness.locks.withLock(KEY, { waitMs: 5000 }, () => "ran"))).toBe("ran");
    expect(selfWaits(harness.events)).toEqual([KEY]);
  });

  it("control: it is in the context of A, whose lease no runtime can tell from its own", async () => {
    expect(await jobOfB(createHarness(), async () => currentLease()?.isHeld())).toBe(true);
  });

  it("started by work that has ended has no lease, and is told nothing", async () => {
    const harness = createHarness();
    const { locks, events } = harness;
    let later: Promise<unknown> | undefined;
    let go = (): void => undefined;
    await locks.withLock(KEY, () => {
      later = new Promise<void>((resolve) => (go = resolve)).then(() => [currentLease(), locks.tryAcquire(KEY)]);
    });
    go();
    const [lease, got] = (await later) as [unknown, Promise<unknown>];
    expect(lease).toBeUndefined();
    expect(await got).not.toBeNull();
    expect(selfWaits(events)).toEqual([]);
  });

  it("has its own context if it is bound to it", async () => {
    const harness = createHarness();
    const bound = AsyncLocalStorage.bind(() => Promise.resolve(currentLease()));
    expect(await harness.locks.withLock(KEY, () => bound())).toBeUndefined();
  });
});

describe("of what may be held beside the outer", () => {
  it("a permit is granted as long as there is one, and waited for when the outer has all of them", async () => {
    const harness = createHarness();
    const { locks, clock } = harness;
    const take = <T>(permits: number, work: () => Promise<T> | T): Promise<T> => locks.withLock(KEY, { ...WAIT, limit: 3, permits }, work);
    const most = await clock.settle(
      take(1, () =>
        take(1, () =>
          take(1, async () => {
            await waitsInVain(harness, () => take(1, () => "never"));
            return "three";
          }),
        ),
      ),
    );
    expect(most).toBe("three");
    await clock.settle(take(2, () => waitsInVain(harness, () => take(2, () => "never"))));
  });

  it("a permit that others have is waited for", async () => {
    const { clock, locks, rival } = createHarness();
    const theirs = await rival.acquire(KEY, { limit: 2 });
    const nested = locks.withLock(KEY, { limit: 2 }, () => locks.withLock(KEY, { limit: 2 }, () => "granted"));
    await clock.advance(1000);
    await theirs.release();
    expect(await clock.settle(nested)).toBe("granted");
  });

  it("a reader is granted beside a reader, also in a set and after a downgrade, and a writer waits", async () => {
    const harness = createHarness();
    const { locks, clock } = harness;
    const shared = { mode: "shared" } as const;
    const readers = locks.withLock(KEY, shared, async () => {
      await locks.withLock(KEY, shared, () => "beside");
      await locks.withLocks([{ key: KEY, ...shared }, "OTHER"], () => locks.withLock(KEY, shared, () => "beside"));
      await waitsInVain(harness, () => locks.withLock(KEY, WAIT, () => "never"));
      await waitsInVain(harness, () => locks.withLocks([KEY], WAIT, () => "never"));
    });
    await clock.settle(readers);
    const writer = locks.withLock(KEY, async (lease) => {
      await waitsInVain(harness, () => locks.withLock(KEY, { ...WAIT, ...shared }, () => "never"));
      await lease.downgrade();
      await locks.withLock(KEY, shared, () => "beside");
    });
    await clock.settle(writer);
  });

  it("another limit is the service's to refuse: it waits for nobody", async () => {
    const { locks } = createHarness();
    await locks.withLock(KEY, { limit: 2 }, () =>
      expect(locks.withLock(KEY, { limit: 3 }, () => "never")).rejects.toMatchObject({ code: "limit-mismatch" }),
    );
  });
});

describe("an acquire that waited in vain for a lease of its own client", () => {
  it("says so, also of a view's; one that waited for another's does not", async () => {
    const { clock, locks, rival } = createHarness();
    const lease = await locks.forInvocation({ getRemainingTimeInMillis: () => 60_000 }).acquire(KEY);
    const inVain = async (): Promise<string> => {
      const error = await clock.settle(locks.acquire(KEY, { waitMs: 500 }).catch((reason: unknown) => reason));
      expect(error).toBeInstanceOf(LockTimeoutError);
      return (error as Error).message;
    };
    expect(await inVain()).toContain("this client holds it itself");
    await lease.release();
    await rival.acquire(KEY);
    expect(await inVain()).not.toContain("this client");
  });

  /** Work beside which the same call waits in vain: within it, and beside it by the same client. */
  const KINDS: readonly (readonly [
    what: string,
    begin: (locks: LockClient, work: () => Promise<unknown>) => Promise<unknown>,
    own: string,
  ])[] = [
    ["a lock", (locks, work) => locks.withLock(KEY, WAIT, work), "this client holds it itself, and a scope makes it reentrant"],
    [
      "a semaphore",
      (locks, work) => locks.withLock(KEY, { ...WAIT, limit: 1000, permits: 600 }, work),
      "this client holds permits of it itself",
    ],
    ["a run", (locks, work) => locks.runOnce(KEY, WAIT, work), "this client runs it itself"],
  ];

  it.each(KINDS)("offers a scope only where one helps: of %s", async (what, begin, own) => {
    const { clock, locks } = createHarness();
    const message = (): Promise<string> =>
      begin(locks, () => expect.unreachable()).catch((error: unknown) => (error as Error).message) as never;
    let end = (): void => undefined;
    let within: Promise<string> | undefined;
    const outer = begin(locks, () => {
      within = message();
      return new Promise<void>((resolve) => (end = resolve));
    });
    await clock.advance(1000);
    expect(await clock.settle(message())).toMatch(new RegExp(`; ${own}$`));
    expect(await within).toContain(HINT);
    expect((await within!).includes("use a scope")).toBe(what === "a lock");
    end();
    await clock.settle(outer);
  });
});

describe("it is no wait for oneself", () => {
  it("with the scope that the outer has: that is reentrant", async () => {
    const harness = createHarness();
    const { locks, clock } = harness;
    const scoped = locks.scope(SCOPE);
    const levels = await scoped.withLock(KEY, () => scoped.withLock(KEY, ({ holdCount }) => holdCount));
    expect(levels).toBe(2);
    const set = await scoped.withLocks([KEY, "OTHER"], () => scoped.withLock(KEY, ({ holdCount }) => holdCount));
    expect(set).toBe(2);
    // Without the scope, it would wait for itself.
    await clock.settle(scoped.withLock(KEY, () => waitsInVain(harness, () => locks.acquire(KEY, WAIT))));
  });

  it("between two clients: the other may be another service, and waits its time", async () => {
    const { clock, locks, rival } = createHarness();
    const asked = locks.withLock(KEY, async () => {
      expect(await rival.tryAcquire(KEY)).toBeNull();
      await expect(rival.acquire(KEY, { waitMs: 200 })).rejects.toBeInstanceOf(LockTimeoutError);
    });
    await clock.settle(asked);
  });

  it("after the outer has ended, for work that it left running", async () => {
    const { clock, locks } = createHarness();
    let left: Promise<unknown> | undefined;
    await locks.withLock(KEY, () => {
      left = (async () => {
        await new Promise<void>((resolve) => clock.after(1000, resolve));
        return (await locks.acquire(KEY)).isHeld();
      })();
    });
    expect(await clock.settle(left!)).toBe(true);
  });

  it("after the outer released by itself, handed over, or was lost", async () => {
    const { locks, rival } = createHarness();
    await locks.withLock(KEY, async (lease) => {
      await lease.release();
      await (await locks.acquire(KEY)).release();
    });
    await locks.withLock(KEY, async (lease) => {
      await lease.detach();
      expect(await locks.tryAcquire(KEY)).toBeNull();
    });
    const robbed = locks.withLock("ROBBED", async (lease) => {
      await rival.forceRelease("ROBBED", { reason: "test", fencingToken: lease.fencingToken, drainMs: 0 });
      await lease.renew().catch(() => undefined);
      await (await locks.acquire("ROBBED")).release();
    });
    await expect(robbed).rejects.toMatchObject({ code: "lease-lost" });
  });

  it("in branches beside each other: they take turns", async () => {
    const { clock, locks } = createHarness();
    let inside = 0;
    let most = 0;
    const branch = (): Promise<void> =>
      locks.withLock(KEY, async () => {
        most = Math.max(most, ++inside);
        await new Promise<void>((resolve) => clock.after(20, resolve));
        inside--;
      });
    await clock.settle(locks.withLock("OUTER", () => Promise.all([branch(), branch(), branch()])));
    expect(most).toBe(1);
  });

  it("of a run and a lock of the same name", async () => {
    const { locks } = createHarness();
    const { value } = await locks.runOnce(KEY, () => locks.withLock(KEY, ({ key }) => key));
    expect(value).toBe(KEY);
  });
});

describe("the error of a wait in vain", () => {
  it("has the key, so an inner one is told from the outer's", async () => {
    const { clock, locks, rival } = createHarness({ prefix: "shop:" });
    await rival.acquire("shop:inner");
    const work = locks.withLock("outer", () => locks.withLock("inner", WAIT, () => "never"));
    await expect(clock.settle(work)).rejects.toMatchObject({ name: "LockTimeoutError", key: "shop:inner" });
    const set = locks.withLocks(["a", "inner"], WAIT, () => "never");
    await expect(clock.settle(set)).rejects.toMatchObject({ name: "LockTimeoutError", key: "shop:a shop:inner" });
  });
});
