/**
 * Closing lets work end under its lease, and gives no key away under which work runs. It waits for every pending request that frees a key.
 * Regression: the client forgot a release once it was sent. `close()` resolved before the response, and a process that exited then left the
 * key held.
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Lease, LockClient } from "../../lib/testing.js";
import { invocation, passed } from "../support/invocation.js";
import { sized } from "../support/tier.js";
import { createHarness } from "./harness.js";

const KEY = "ORDER_1231";
const ON_ITS_WAY_MS = 400;
const LEASES = 300;

/** Operations that start to free the key and are still running when the client is closed. */
const ENDINGS: readonly (readonly [what: string, begin: (locks: LockClient) => Promise<unknown>])[] = [
  ["release()", async (locks) => void (await locks.acquire(KEY)).release()],
  ["the end of withLock", (locks) => begun((done) => locks.withLock(KEY, done))],
  ["the end of withLocks", (locks) => begun((done) => locks.withLocks([KEY], done))],
  ["the end of a locked block", async (locks) => void (await locks.acquire(KEY))[Symbol.asyncDispose]()],
  ["the end of a run", (locks) => begun((done) => locks.runOnce(KEY, done))],
  ["detach()", async (locks) => void (await locks.acquire(KEY)).detach()],
  ["the hold's longest time", async (locks) => void (await locks.acquire(KEY, { maxHoldMs: 1 }))],
];

const SLOW = ["release", "releaseSet", "complete", "transfer"] as const;

/** Resolves when the work has returned; the end of the lease is then pending. */
function begun(work: (done: () => void) => Promise<unknown>): Promise<void> {
  return new Promise((resolve, reject) => void work(resolve).catch(reject));
}

describe.each(ENDINGS)("closing while %s is on its way", (_what, begin) => {
  const VIEWS: readonly (readonly [string, (locks: LockClient) => { readonly locks: LockClient; readonly closes: LockClient }])[] = [
    ["a client", (locks) => ({ locks, closes: locks })],
    ["a client, of a view of it,", (locks) => ({ locks: locks.scope("request-0123456789"), closes: locks })],
    ["the view of an invocation", (locks) => view(locks)],
    ["a client, of the view of a view,", (locks) => ({ locks: view(locks).locks.scope("request-0123456789"), closes: locks })],
  ];
  const view = (locks: LockClient) => {
    const own = locks.forInvocation({ getRemainingTimeInMillis: () => 600_000 });
    return { locks: own, closes: own };
  };

  it.each(VIEWS)("%s waits until it is answered", async (_whose, make) => {
    const { clock, locks: client, rival, wire } = createHarness();
    for (const operation of SLOW) wire.always(operation, { requestMs: ON_ITS_WAY_MS });
    const { locks, closes } = make(client);
    await begin(locks);
    await clock.advance(1);
    const sent = wire.sent.length;
    expect(SLOW.some((operation) => wire.of(operation).length > 0)).toBe(true);
    await clock.settle(closes.close());
    expect(wire.sent).toHaveLength(sent);
    // Only the recipient of a transfer may hold it.
    const { holders } = await rival.inspect(KEY);
    expect(holders).toHaveLength(wire.of("transfer").length);
    expect((await rival.runs.get(KEY))?.state ?? "succeeded").toBe("succeeded");
  });
});

describe("closing", () => {
  it("a second time waits as the first does", async () => {
    const { clock, locks, rival, wire } = createHarness();
    const leases: Lease[] = [await locks.acquire("a"), await locks.acquire("b")];
    wire.always("release", { requestMs: ON_ITS_WAY_MS });
    void locks.close();
    await clock.settle(locks.close());
    for (const { key } of leases) expect((await rival.inspect(key)).holders).toEqual([]);
  });

  describe("with three hundred leases", () => {
    const harness = async () => {
      const made = createHarness();
      const { clock, locks } = made;
      await clock.settle(Promise.all(Array.from({ length: LEASES }, (_, at) => locks.acquire(`${KEY}.${at}`, { heartbeat: false }))));
      const closed = async (): Promise<number> => {
        const began = clock.monotonicMs();
        await clock.settle(locks.close());
        return clock.monotonicMs() - began;
      };
      return { ...made, closed };
    };

    it("releases all, a hundred at once", async () => {
      const { wire, rival, closed } = await harness();
      wire.always("release", { requestMs: ON_ITS_WAY_MS });
      // Each release is on its way for as long, so those that are sent together are on their way together.
      expect(await closed()).toBe(3 * ON_ITS_WAY_MS);
      expect(wire.of("release")).toHaveLength(LEASES);
      expect((await rival.list()).items).toEqual([]);
    });

    it("ends in the time of one when nobody answers, and says so of each", async () => {
      const { wire, events, closed } = await harness();
      wire.always("release", { lost: "request", silently: true });
      expect(await closed()).toBeLessThanOrEqual(5000);
      expect(new Set(wire.of("release").map(({ request }) => request.key)).size).toBe(100);
      expect(events.filter(({ type }) => type === "release-failed")).toHaveLength(LEASES);
    });
  });

  it("ends though nobody answers any more", async () => {
    const { clock, locks, wire } = createHarness();
    const lease = await locks.acquire("a");
    for (const operation of SLOW) wire.always(operation, { lost: "request", silently: true });
    lease.release().catch(() => undefined);
    const began = clock.monotonicMs();
    await clock.settle(locks.close());
    expect(clock.monotonicMs() - began).toBeLessThanOrEqual(5000);
  });
});

/** The work of a call, which may hear of the signal and of the time that its lease has left. */
type Work = (lease: Pick<Lease, "signal" | "remainingMs">) => Promise<unknown>;
interface WorkOptions {
  readonly leaseMs: number;
  readonly maxHoldMs?: number | undefined;
}
type Way = readonly [what: string, begin: (locks: LockClient, options: WorkOptions, work: Work) => Promise<unknown>];

/** The calls that run work under a lease. */
const WORKS: readonly Way[] = [
  ["withLock", (locks, options, work) => locks.withLock(KEY, options, work)],
  ["withLock in a scope", (locks, options, work) => locks.scope("request-0123456789").withLock(KEY, options, work)],
  ["withLocks", (locks, options, work) => locks.withLocks(["a", KEY], options, work)],
  [
    "elect",
    (locks, { leaseMs }, work) => {
      const over = new AbortController();
      return locks.elect(KEY, { leaseMs, signal: over.signal }, async (lease) => {
        await work(lease);
        over.abort();
      });
    },
  ],
  ["tick", (locks, { leaseMs }, work) => locks.tick(KEY, { everyMs: 3_600_000, maxLateMs: 3_600_000, leaseMs }, work)],
  ["runOnce", (locks, { leaseMs }, work) => locks.runOnce(KEY, { leaseMs }, work)],
];

/** The ways in which this side ends it, some time after its begin. Each begins the work. */
type End = (locks: LockClient, clock: ReturnType<typeof createHarness>["clock"], atMs: number, drainMs: number) => EndParts;
interface EndParts {
  readonly begins?: LockClient;
  readonly maxHoldMs?: number;
  readonly end?: () => Promise<void>;
}
const ENDS: Readonly<Record<string, End>> = {
  "the client is closed": (locks) => ({ end: () => locks.close() }),
  "the client is closed with drainMs": (locks, _clock, _atMs, drainMs) => ({ end: () => locks.close({ drainMs }) }),
  "a view is closed": (locks, clock) => {
    const view = locks.forInvocation(invocation(clock, 600_000));
    return { begins: view, end: () => view.close() };
  },
  "the client of the view is closed": (locks, clock) => ({
    begins: locks.forInvocation(invocation(clock, 600_000)),
    end: () => locks.close(),
  }),
  "the invocation ends": (locks, clock, atMs) => ({ begins: locks.forInvocation(invocation(clock, atMs + 1000)) }),
  "maxHoldMs is over": (_locks, _clock, atMs) => ({ maxHoldMs: Math.max(1, atMs) }),
};

/** Work that lasts, and stops some time after it is told, if it listens. */
const HISTORY = fc.record({
  ends: fc.constantFrom(...Object.keys(ENDS)),
  leaseMs: fc.integer({ min: 1000, max: 20_000 }),
  workMs: fc.integer({ min: 0, max: 40_000 }),
  atMs: fc.integer({ min: 0, max: 20_000 }),
  drainMs: fc.integer({ min: 0, max: 20_000 }),
  listens: fc.boolean(),
  windsUpMs: fc.integer({ min: 0, max: 8000 }),
});

/** Lives through the history. Returns what the work had when another was granted the key. */
async function lived(
  { ends, leaseMs, workMs, atMs, drainMs, listens, windsUpMs }: typeof HISTORY extends fc.Arbitrary<infer H> ? H : never,
  [what, begin]: Way,
) {
  const { clock, locks, rival } = createHarness();
  const { begins = locks, maxHoldMs, end } = ENDS[ends]!(locks, clock, atMs, drainMs);
  let [isRunning, heldUntilMs, wasTold] = [false, 0, false];
  let granted: { readonly isRunning: boolean; readonly leftMs: number } | undefined;
  const work: Work = async (lease) => {
    isRunning = true;
    const nowMs = (): number => clock.monotonicMs();
    const told = new Promise<void>((resolve) => void lease.signal.addEventListener("abort", () => resolve()));
    void told.then(() => (wasTold = true));
    const look = (): void => {
      const leftMs = lease.remainingMs();
      if (leftMs > 0) heldUntilMs = nowMs() + leftMs;
      if (isRunning) clock.after(100, look);
    };
    look();
    await Promise.race([passed(clock, workMs), ...(listens ? [told.then(() => passed(clock, windsUpMs))] : [])]);
    isRunning = false;
  };
  const works = begin(begins, { leaseMs, maxHoldMs }, work).catch(() => undefined);
  await clock.advance(0);
  const takes = (): void => void (granted = { isRunning, leftMs: heldUntilMs - clock.monotonicMs() });
  const rivals = what === "runOnce" ? rival.runOnce(KEY, { waitMs: 300_000 }, takes) : rival.withLock(KEY, { waitMs: 300_000 }, takes);
  await clock.advance(atMs);
  let closed = end === undefined;
  void end?.().then(() => (closed = true));
  await clock.settle(Promise.all([works, rivals]));
  await clock.advance(60_000);
  return { granted, wasTold, closed };
}

describe("while the work that was promised the key runs, nobody else is granted it before the lease is over", () => {
  it.each(WORKS)("%s", async (...way) => {
    let [returned, outlived] = [0, 0];
    const property = fc.asyncProperty(HISTORY, async (history) => {
      const { granted, wasTold, closed } = await lived(history, way);
      expect(closed).toBe(true);
      if (!granted?.isRunning) return void returned++;
      outlived++;
      expect(wasTold).toBe(true);
      // The service's lease lasts longer than the client counts.
      expect(granted.leftMs).toBeLessThanOrEqual(0);
    });
    await fc.assert(property, { numRuns: sized({ quick: 20, slow: 60 }) });
    expect(Math.min(returned, outlived)).toBeGreaterThan(0);
  });

  it("control: under acquire() nobody knows of the work, and the key goes while it runs", async () => {
    const held: Way = ["acquire", async (locks, options, work) => work(await locks.acquire(KEY, options))];
    const history = { ends: "the client is closed", leaseMs: 20_000, workMs: 5000, atMs: 1000, drainMs: 0, listens: false, windsUpMs: 0 };
    const { granted } = await lived(history, held);
    expect(granted).toMatchObject({ isRunning: true });
    expect(granted!.leftMs).toBeGreaterThan(10_000);
  });
});

describe("a client that is closed while work runs", () => {
  const DRAIN_MS = 10_000;
  /** Begins work that lasts `workMs`, and closes after a second. */
  async function closing(workMs: number, options?: { readonly drainMs: number }) {
    const { clock, locks, rival, wire } = createHarness();
    let lease: Lease | undefined;
    const working = locks
      .withLock(KEY, { leaseMs: 3000 }, async (held) => {
        lease = held;
        await passed(clock, workMs);
        return "done";
      })
      .catch((error: unknown) => error);
    await clock.advance(1000);
    const began = clock.monotonicMs();
    let closedAfterMs: number | undefined;
    void locks.close(options).then(() => (closedAfterMs = clock.monotonicMs() - began));
    return { clock, locks, rival, wire, working, lease: () => lease!, closedAfterMs: () => closedAfterMs };
  }

  it("grants nothing more, renews the lease until the work has returned, releases it, and is closed", async () => {
    const { clock, locks, wire, working, lease, closedAfterMs } = await closing(8000);
    await expect(locks.tryAcquire("another")).rejects.toMatchObject({ code: "closed" });
    await clock.advance(6000);
    expect(lease().state).toBe("held");
    expect(wire.of("renew").length).toBeGreaterThanOrEqual(4);
    expect(closedAfterMs()).toBeUndefined();
    await clock.advance(1000);
    expect(await working).toBe("done");
    expect(wire.of("release")).toHaveLength(1);
    expect(closedAfterMs()).toBe(7000);
  });

  it("ends waits at once", async () => {
    const { clock, locks, rival } = createHarness();
    await rival.acquire("another");
    const waiting = expect(locks.acquire("another")).rejects.toMatchObject({ code: "closed" });
    void locks.withLock(KEY, () => passed(clock, 5000));
    await clock.advance(1000);
    void locks.close();
    await clock.advance(0);
    await waiting;
  });

  it.each([
    ["its drainMs", 4000, { drainMs: 4000 }],
    ["10 s, if nothing is said", DRAIN_MS, undefined],
  ])("tells the work after %s, renews no more, and is closed when the lease is over", async (_what, drainMs, options) => {
    const { clock, rival, wire, working, lease, closedAfterMs } = await closing(60_000, options);
    await clock.advance(drainMs - 1);
    expect(lease().signal.aborted).toBe(false);
    await clock.advance(1);
    expect(lease().signal.reason).toMatchObject({ name: "LockLostError", reason: "closed" });
    const renewals = wire.of("renew").length;
    expect(await rival.tryAcquire(KEY)).toBeNull();
    await clock.advance(3000);
    expect(wire.of("renew")).toHaveLength(renewals);
    expect(wire.of("release")).toEqual([]);
    expect(closedAfterMs()).toBeLessThanOrEqual(drainMs + 3000);
    expect(await clock.settle(working)).toMatchObject({ name: "LockLostError", reason: "closed" });
  });

  it("ends the time of work sooner if it is closed again with less", async () => {
    const { clock, locks, lease } = await closing(60_000);
    void locks.close({ drainMs: 0 });
    expect(lease().signal.aborted).toBe(true);
    await clock.advance(30_000);
  });

  it("tells a leader at once, which leads for ever otherwise, and lets it wind up before another leads", async () => {
    const { clock, locks, rival } = createHarness();
    const order: string[] = [];
    const lead =
      (who: string) =>
      async ({ signal }: Lease): Promise<void> => {
        order.push(`${who} leads`);
        await new Promise((resolve) => void signal.addEventListener("abort", resolve));
        await passed(clock, 2000);
        order.push(`${who} has ended`);
      };
    void locks.elect(KEY, lead("this"));
    await clock.advance(1000);
    void rival.elect(KEY, lead("another"));
    await clock.settle(locks.close());
    expect(order).toEqual(["this leads", "this has ended"]);
    await clock.advance(20_000);
    expect(order).toEqual(["this leads", "this has ended", "another leads"]);
  });

  it("waits for the release of acquired leases only if it is given time", async () => {
    for (const drainMs of [undefined, 5000]) {
      const { clock, locks } = createHarness(drainMs === undefined ? {} : { drainMs });
      const lease = await locks.acquire(KEY);
      void locks.close();
      expect(lease.isHeld()).toBe(drainMs !== undefined);
      await clock.advance(5000);
      expect(lease.state).toBe("released");
    }
  });

  it("says what its option may be", async () => {
    await expect(createHarness().locks.close({ drainMs: -1 })).rejects.toMatchObject({ field: "drainMs" });
  });
});
