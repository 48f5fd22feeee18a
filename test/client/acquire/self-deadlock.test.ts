/** Work that asks for a key that an outer call holds would wait for itself. It fails at once, and other work doesn't. */
import { describe, expect, it } from "vitest";
import { type LockClient, LockTimeoutError } from "../../../lib/index.js";
import { createHarness } from "../harness.js";

const KEY = "ORDER_1";
const REFUSED = { name: "LockError", code: "self-deadlock", definite: true, retry: "never" };
const SCOPE = "request-6e0c63257de34c92";

/** Every way to ask for the key. */
const WAYS: readonly (readonly [how: string, ask: (locks: LockClient) => Promise<unknown>])[] = [
  ["acquire", (locks) => locks.acquire(KEY)],
  ["tryAcquire", (locks) => locks.tryAcquire(KEY)],
  ["withLock", (locks) => locks.withLock(KEY, () => "never")],
  ["a shared withLock", (locks) => locks.withLock(KEY, { mode: "shared" }, () => "never")],
  ["acquireAll", (locks) => locks.acquireAll(["OTHER", KEY])],
  ["tryAcquireAll", (locks) => locks.tryAcquireAll([{ key: KEY }, "OTHER"])],
  ["withLocks", (locks) => locks.withLocks([KEY, "OTHER"], () => "never")],
  ["a mutex", (locks) => locks.mutex(KEY).withLock(() => "never")],
];

describe("inside of a withLock", () => {
  it.each(WAYS)("%s of the same key fails at once, and nothing is sent", async (_how, ask) => {
    const { locks, rival, wire } = createHarness();
    const result = await locks.withLock(KEY, async (lease) => {
      const sent = wire.sent.length;
      await expect(ask(locks)).rejects.toMatchObject(REFUSED);
      expect(wire.sent).toHaveLength(sent);
      return lease.isHeld();
    });
    expect(result).toBe(true);
    expect((await rival.inspect(KEY)).holders).toEqual([]);
  });

  it.each(WAYS)("control: %s of it by itself is no deadlock", async (_how, ask) => {
    const { locks } = createHarness();
    await ask(locks);
  });

  it("however deep the call, and after however many awaits", async () => {
    const { clock, locks } = createHarness();
    const deep = async (levels: number): Promise<void> => {
      await Promise.resolve();
      if (levels > 0) return deep(levels - 1);
      await new Promise<void>((resolve) => clock.after(10, resolve));
      await expect(locks.acquire(KEY)).rejects.toMatchObject(REFUSED);
    };
    await clock.settle(locks.withLock("OUTER", () => locks.withLock(KEY, () => deep(5))));
  });

  it("another key, and the same name in another prefix, are other keys", async () => {
    const { locks } = createHarness();
    const nested = await locks.withLock(KEY, () => locks.withLock("ORDER_2", ({ key }) => key));
    expect(nested).toBe("ORDER_2");
    const { locks: billing } = createHarness({ prefix: "billing:" });
    expect(await billing.withLock(KEY, () => billing.withLock(`billing:${KEY}`, ({ key }) => key))).toBe(`billing:billing:${KEY}`);
  });

  it("what comes after the refusal goes on as if it had not been asked", async () => {
    const { locks } = createHarness();
    await locks.withLock(KEY, async () => {
      await expect(locks.acquire(KEY)).rejects.toMatchObject(REFUSED);
      await locks.withLock("OTHER", ({ fencingToken }) => expect(fencingToken).toBeGreaterThan(0));
    });
    await locks.withLock(KEY, () => undefined);
  });
});

describe("inside of a withLocks", () => {
  it("a set that overlaps, or one of its keys, fails at once; a set that doesn't is granted", async () => {
    const { locks } = createHarness();
    await locks.withLocks(["a", "b", "c"], async (set) => {
      await expect(locks.withLocks(["d", "b"], () => undefined)).rejects.toMatchObject(REFUSED);
      await expect(locks.tryAcquire("c")).rejects.toMatchObject(REFUSED);
      await locks.withLocks(["d", "e"], () => undefined);
      expect(set.isHeld()).toBe(true);
    });
  });
});

describe("inside of a run", () => {
  it("the same run fails at once, and nothing is sent; the outer goes on", async () => {
    const { locks, wire } = createHarness();
    const { value } = await locks.runOnce(KEY, async (run) => {
      const sent = wire.sent.length;
      await expect(locks.runOnce(KEY, () => "never")).rejects.toMatchObject(REFUSED);
      await expect(locks.scope(SCOPE).runOnce(KEY, () => "never")).rejects.toMatchObject(REFUSED);
      expect(wire.sent).toHaveLength(sent);
      return run.isHeld();
    });
    expect(value).toBe(true);
  });

  it("another run, and the same one after its end, are none", async () => {
    const { clock, locks } = createHarness();
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
  });
});

describe("of what may be held beside the outer", () => {
  it("a permit is granted as long as there is one, and refused when the outer has all that it would wait for", async () => {
    const { locks } = createHarness();
    const take = <T>(permits: number, work: () => Promise<T> | T): Promise<T> => locks.withLock(KEY, { limit: 3, permits }, work);
    const most = await take(1, () =>
      take(1, () =>
        take(1, async () => {
          await expect(take(1, () => "never")).rejects.toMatchObject(REFUSED);
          return "three";
        }),
      ),
    );
    expect(most).toBe("three");
    await take(2, () => expect(take(2, () => "never")).rejects.toMatchObject(REFUSED));
  });

  it("a permit that others have is waited for", async () => {
    const { clock, locks, rival } = createHarness();
    const theirs = await rival.acquire(KEY, { limit: 2 });
    const nested = locks.withLock(KEY, { limit: 2 }, () => locks.withLock(KEY, { limit: 2 }, () => "granted"));
    await clock.advance(1000);
    await theirs.release();
    expect(await clock.settle(nested)).toBe("granted");
  });

  it("a reader is granted beside a reader, also in a set and after a downgrade, and a writer refused", async () => {
    const { locks } = createHarness();
    const shared = { mode: "shared" } as const;
    await locks.withLock(KEY, shared, async () => {
      await locks.withLock(KEY, shared, () => "beside");
      await locks.withLocks([{ key: KEY, ...shared }, "OTHER"], () => locks.withLock(KEY, shared, () => "beside"));
      await expect(locks.withLock(KEY, () => "never")).rejects.toMatchObject(REFUSED);
      await expect(locks.withLocks([KEY], () => "never")).rejects.toMatchObject(REFUSED);
    });
    await locks.withLock(KEY, async (lease) => {
      await expect(locks.withLock(KEY, shared, () => "never")).rejects.toMatchObject(REFUSED);
      await lease.downgrade();
      await locks.withLock(KEY, shared, () => "beside");
    });
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
});

describe("it is no deadlock", () => {
  it("with the scope that the outer has: that is reentrant", async () => {
    const { locks } = createHarness();
    const scoped = locks.scope(SCOPE);
    const levels = await scoped.withLock(KEY, () => scoped.withLock(KEY, ({ holdCount }) => holdCount));
    expect(levels).toBe(2);
    const set = await scoped.withLocks([KEY, "OTHER"], () => scoped.withLock(KEY, ({ holdCount }) => holdCount));
    expect(set).toBe(2);
    // Without the scope, it would be a deadlock.
    await scoped.withLock(KEY, () => expect(locks.acquire(KEY)).rejects.toMatchObject(REFUSED));
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
