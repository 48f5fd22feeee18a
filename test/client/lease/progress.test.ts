/** Leases that show progress: what keeps them, what a silence ends, and when the key is free then. */
import { describe, expect, it } from "vitest";
import { takeoverMarginMs } from "../../../lib/core/limits.js";
import { type Lease, type Run, currentLease, locked } from "../../../lib/index.js";
import { lockHandler } from "../../../lib/middy.js";
import { passed } from "../../support/invocation.js";
import { type Harness, createHarness, isConsistent } from "../harness.js";

const KEY = "ORDER_1231";
const LEASE_MS = 9000;
const EVERY_MS = LEASE_MS / 3;
const PROGRESS_MS = 20_000;
/** The time after which a lease that nobody renews is free for others. */
const FREE_AFTER_MS = LEASE_MS + takeoverMarginMs(LEASE_MS);
const OPTIONS = { leaseMs: LEASE_MS, progressMs: PROGRESS_MS } as const;
const LOST = { name: "LockLostError", code: "lease-lost", reason: "no-progress" };

/** Work that hangs for ever. */
const hangs = (): Promise<void> => new Promise(() => undefined);

/** Expects that the lost key is held for the rest of its lease, and free within one lease. */
async function expectFreeOneLeaseLater({ clock, rival, wire }: Harness): Promise<void> {
  const requests = wire.sent.length;
  expect(await rival.tryAcquire(KEY)).toBeNull();
  await clock.advance(FREE_AFTER_MS);
  expect(wire.sent).toHaveLength(requests);
  expect(await rival.tryAcquire(KEY)).not.toBeNull();
}

describe("a lease with progressMs", () => {
  it("is kept for as long as its work shows progress", async () => {
    const { clock, locks } = createHarness();
    const lease = await locks.acquire(KEY, OPTIONS);
    for (let step = 0; step < 20; step++) {
      await clock.advance(PROGRESS_MS - 1);
      expect(lease.progress()).toBe(true);
    }
    expect(lease.state).toBe("held");
  });

  it("is lost after a silence of that time, which the grant begins, and sends no more heartbeats", async () => {
    const harness = createHarness();
    const { clock, locks, wire, events } = harness;
    const lease = await locks.acquire(KEY, OPTIONS);
    await clock.advance(PROGRESS_MS - 1);
    expect([lease.state, wire.of("renew").length]).toEqual(["held", Math.floor((PROGRESS_MS - 1) / EVERY_MS)]);
    await clock.advance(1);
    expect([lease.state, isConsistent(lease)]).toEqual(["lost", true]);
    expect(lease.signal.reason).toMatchObject({
      ...LOST,
      key: KEY,
      message: `${KEY}: no progress for ${PROGRESS_MS} ms; its progressMs is ${PROGRESS_MS}`,
    });
    expect(events.map(({ type }) => type)).toEqual(["acquired", "lost"]);
    await expectFreeOneLeaseLater(harness);
  });

  it("is lost that long after its last progress", async () => {
    const { clock, locks } = createHarness();
    const lease = await locks.acquire(KEY, OPTIONS);
    await clock.advance(15_000);
    lease.progress();
    await clock.advance(PROGRESS_MS - 1);
    expect(lease.state).toBe("held");
    await clock.advance(1);
    expect(lease.signal.reason).toMatchObject(LOST);
  });

  it("stays lost when the work shows progress afterwards", async () => {
    const harness = createHarness();
    const lease = await harness.locks.acquire(KEY, OPTIONS);
    await harness.clock.advance(PROGRESS_MS);
    expect([lease.progress(), lease.state]).toEqual([false, "lost"]);
    await expectFreeOneLeaseLater(harness);
    expect([lease.progress(), lease.state]).toEqual([false, "lost"]);
  });

  it("is not kept by a renewal, which is no progress", async () => {
    const { clock, locks } = createHarness();
    const lease = await locks.acquire(KEY, OPTIONS);
    await clock.advance(15_000);
    await lease.renew();
    await clock.advance(5000);
    expect(lease.signal.reason).toMatchObject(LOST);
  });

  it("in a process that was frozen until its lease was over is lost at once, and nothing is sent for it", async () => {
    const { clock, locks, rival, wire } = createHarness();
    const lease = await locks.acquire(KEY, OPTIONS);
    await clock.freeze(PROGRESS_MS + FREE_AFTER_MS);
    expect([lease.progress(), wire.sent.length]).toEqual([false, 1]);
    expect(await rival.tryAcquire(KEY)).not.toBeNull();
  });

  it("in a process that was frozen for a part of its lease, and was silent for too long, is not renewed", async () => {
    const harness = createHarness();
    const { clock, locks, wire } = harness;
    const lease = await locks.acquire(KEY, OPTIONS);
    await clock.advance(PROGRESS_MS - 1500);
    const renewals = wire.of("renew").length;
    await clock.freeze(2000);
    expect([lease.signal.reason, wire.of("renew").length]).toMatchObject([LOST, renewals]);
    await expectFreeOneLeaseLater(harness);
  });

  it("ends by the longest time of its hold if that is over first", async () => {
    const { clock, locks, rival } = createHarness();
    const lease = await locks.acquire(KEY, { ...OPTIONS, maxHoldMs: 30_000 });
    await clock.advance(15_000);
    lease.progress();
    await clock.advance(15_000);
    expect(lease.signal.reason).toMatchObject({ reason: "max-hold" });
    expect(await rival.tryAcquire(KEY)).not.toBeNull();
  });

  it("begins anew with the grant after a wait for a condition, and goes on after one that was refused", async () => {
    const { clock, locks, rival } = createHarness();
    const lease = await locks.acquire(KEY, OPTIONS);
    await clock.advance(15_000);
    const waited = lease.wait("filled", { waitMs: 120_000 });
    await clock.advance(60_000);
    expect(lease.progress()).toBe(false);
    await rival.withLock(KEY, async (filling) => expect(await filling.notify("filled")).toBe(1));
    await clock.settle(waited);
    await clock.advance(PROGRESS_MS - 1000);
    expect(lease.state).toBe("held");

    const reader = await locks.acquire("REPORT", { ...OPTIONS, mode: "shared" });
    await clock.advance(PROGRESS_MS - 1000);
    await expect(clock.settle(reader.wait("filled"))).rejects.toMatchObject({ code: "not-exclusive" });
    await clock.advance(1000);
    expect(reader.signal.reason).toMatchObject(LOST);
  });
});

describe("a lease without progressMs", () => {
  it("is kept without progress, and says whether it is held", async () => {
    const { clock, locks } = createHarness();
    const lease = await locks.acquire(KEY, { leaseMs: LEASE_MS });
    await clock.advance(10 * PROGRESS_MS);
    expect([lease.state, lease.progress()]).toEqual(["held", true]);
    await lease.release();
    expect(lease.progress()).toBe(false);
  });
});

describe("the limit is of one hold", () => {
  it("of a scope: the hold that shows progress keeps the key, and the other is lost", async () => {
    const { clock, locks, rival } = createHarness();
    const scoped = locks.scope("a-request-nobody-guesses");
    const outer = await scoped.acquire(KEY, OPTIONS);
    const inner = await scoped.acquire(KEY, OPTIONS);
    await clock.advance(15_000);
    inner.progress();
    await clock.advance(15_000);
    expect([outer.state, inner.state]).toEqual(["lost", "held"]);
    expect(await rival.tryAcquire(KEY)).toBeNull();
  });

  it("of a detached lease: it is given anew when it is attached", async () => {
    const { clock, locks, rival, events } = createHarness();
    const { progressMs } = OPTIONS;
    const handles = [await (await locks.acquire(KEY, OPTIONS)).detach(), await (await locks.acquire("REPORT", OPTIONS)).detach()] as const;
    const limited = await rival.attach(handles[0], { progressMs });
    const unlimited = await rival.attach(handles[1]);
    await clock.advance(PROGRESS_MS - 1);
    expect([limited.state, unlimited.state]).toEqual(["held", "held"]);
    await clock.advance(1);
    expect([limited.state, unlimited.state]).toEqual(["lost", "held"]);
    expect(limited.signal.reason).toMatchObject(LOST);
    expect(events.map(({ type }) => type)).not.toContain("lost");
  });
});

describe("work that hangs", () => {
  const WAYS: Readonly<Record<string, (harness: Harness, work: (held: Pick<Lease, "signal">) => Promise<void>) => Promise<unknown>>> = {
    withLock: ({ locks }, work) => locks.withLock(KEY, OPTIONS, work),
    "a permit": ({ locks }, work) => locks.semaphore(KEY, { ...OPTIONS, limit: 1 }).withLock(work),
    withLocks: ({ locks }, work) => locks.withLocks([KEY, "B"], OPTIONS, work),
    locked: ({ locks }, work) => locked({ ...OPTIONS, locks, key: () => KEY }, () => work(currentLease() as Lease))(),
    "the handler of a function": ({ locks }, work) =>
      lockHandler({ ...OPTIONS, locks, key: () => KEY }, () => work(currentLease() as Lease))(
        {},
        { getRemainingTimeInMillis: () => 600_000 },
      ),
    elect: ({ locks }, work) => locks.elect(KEY, OPTIONS, work),
  };

  it.each(Object.entries(WAYS))("under %s is told, and its key is free one lease later", async (_way, begin) => {
    const harness = createHarness();
    let signal: AbortSignal | undefined;
    void begin(harness, (held) => {
      signal = held.signal;
      return hangs();
    });
    await harness.clock.advance(PROGRESS_MS - 1);
    expect(signal?.aborted).toBe(false);
    await harness.clock.advance(1);
    expect(signal?.reason).toMatchObject(LOST);
    await expectFreeOneLeaseLater(harness);
  });

  it("and returns at last never counts as done, and frees the key then", async () => {
    const { clock, locks, rival } = createHarness();
    const working = locks.withLock(KEY, OPTIONS, () => passed(clock, PROGRESS_MS + 1000)).catch((error: unknown) => error);
    expect(await clock.settle(working)).toMatchObject(LOST);
    expect(await rival.tryAcquire(KEY)).not.toBeNull();
  });

  it("in a set shows the progress of the set", async () => {
    const { clock, locks } = createHarness();
    const set = await locks.acquireAll([KEY, "B"], OPTIONS);
    await clock.advance(15_000);
    expect(set.progress()).toBe(true);
    await clock.advance(15_000);
    expect(set.state).toBe("held");
    await clock.advance(5000);
    expect([set.state, set.progress()]).toEqual(["lost", false]);
  });
});

describe("a run with progressMs", () => {
  /** Starts a run whose work does a step every 15 s, and then hangs. */
  async function running(step: (run: Run) => unknown) {
    const harness = createHarness();
    const { clock, locks, rival } = harness;
    let signal: AbortSignal | undefined;
    void locks.runOnce(KEY, OPTIONS, async (run) => {
      ({ signal } = run);
      for (let steps = 0; steps < 4; steps++) {
        await passed(clock, 15_000);
        await step(run);
      }
      await hangs();
    });
    await clock.advance(60_000);
    return {
      ...harness,
      signal: signal as unknown as AbortSignal,
      again: () => rival.runOnce(KEY, { waitMs: 0 }, ({ takeover }) => takeover),
    };
  }

  it.each<[what: string, step: (run: Run) => unknown]>([
    ["progress()", (run) => run.progress()],
    ["saveCheckpoint()", (run) => run.saveCheckpoint("a step")],
  ])("is kept by %s, and taken over one lease after a silence", async (_what, step) => {
    const { clock, signal, again } = await running(step);
    await clock.advance(PROGRESS_MS - 1);
    expect(signal.aborted).toBe(false);
    await clock.advance(1);
    expect(signal.reason).toMatchObject(LOST);
    await expect(again()).rejects.toMatchObject({ code: "wait-timeout" });
    await clock.advance(FREE_AFTER_MS);
    expect(await again()).toMatchObject({ value: true, attempt: 2 });
  });

  it("control: is lost without either", async () => {
    const { signal, again } = await running(() => undefined);
    expect(signal.reason).toMatchObject(LOST);
    expect(await again()).toMatchObject({ value: true, attempt: 2 });
  });

  it("records its outcome however long that takes: after the work there is no progress to show", async () => {
    const { clock, locks, rival, wire } = createHarness();
    const working = locks.runOnce(KEY, { leaseMs: LEASE_MS, progressMs: LEASE_MS }, () => passed(clock, LEASE_MS - 1000));
    const told = working.catch((error: unknown) => error);
    wire.always("complete", { lost: "request" });
    await clock.advance(2 * LEASE_MS);
    expect(await told).toMatchObject({ code: "unavailable" });
    wire.always("complete", undefined);
    await clock.advance(LEASE_MS);
    expect(await rival.runs.get(KEY)).toMatchObject({ state: "succeeded", attempt: 1 });
  });
});

describe("what has no limit of progress refuses it by name", () => {
  it.each<[what: string, ask: (locks: Harness["locks"]) => Promise<unknown>]>([
    ["a tick", (locks) => locks.tick("report", { everyMs: 60_000, progressMs: PROGRESS_MS } as never, () => 1)],
    [
      "a limit",
      (locks) => locks.limiter("partner", { rates: [{ count: 1, perMs: 1000 }] }).run({ progressMs: PROGRESS_MS } as never, () => 1),
    ],
  ])("%s", async (_what, ask) => {
    const { locks, wire } = createHarness();
    await expect(ask(locks)).rejects.toMatchObject({ name: "InvalidRequestError", field: "progressMs" });
    expect(wire.sent).toEqual([]);
  });
});
