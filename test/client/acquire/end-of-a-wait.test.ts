/**
 * L9: what was free before the end of a wait is granted. Regression: after a learned pace a waiter paused until the end of its wait and
 * gave up without asking, up to 3 s after the key had been offered to it.
 */
import { describe, expect, it } from "vitest";
import { refuse } from "../../../lib/core/errors.js";
import { LIMITS } from "../../../lib/core/limits.js";
import { LockTimeoutError } from "../../../lib/index.js";
import type { AcquireOptions, Lease, LockClient } from "../../../lib/testing.js";
import { type Harness, createHarness } from "../harness.js";

const KEY = "ORDER_1231";
const HOLD_MS = 10_000;
const WAIT_MS = 2000;
/** The time in which the last request of a wait is answered, at most. */
const ANSWER_MS = 500;

/** A client that has waited twice for long holds of the key, so that it polls rarely. */
async function patient(): Promise<Harness> {
  const harness = createHarness();
  const { clock, locks, rival } = harness;
  for (let waits = 0; waits < 2; waits++) {
    const held = await rival.acquire(KEY);
    const waiting = locks.acquire(KEY, { waitMs: 60_000 });
    await clock.advance(HOLD_MS);
    await held.release();
    await (await clock.settle(waiting)).release();
  }
  return harness;
}

/** Waits for what a rival holds, which it releases after `freeMs`. Returns the time of the wait. */
async function waitWhile({ clock, rival, locks }: Harness, freeMs: number, options: AcquireOptions): Promise<number> {
  const { limit } = options;
  const held = await Promise.all(Array.from({ length: limit ?? 1 }, () => rival.acquire(KEY, { ...(limit !== undefined && { limit }) })));
  const beganMs = clock.monotonicMs();
  const waiting = locks.acquire(KEY, { waitMs: WAIT_MS, ...options });
  waiting.catch(() => undefined);
  await clock.advance(freeMs);
  for (const lease of held) await lease.release();
  const lease = await clock.settle(waiting);
  const tookMs = clock.monotonicMs() - beganMs;
  await lease.release();
  return tookMs;
}

describe("a wait that polls rarely", () => {
  it.each<[string, AcquireOptions]>([
    ["the key", {}],
    ["a place among readers", { mode: "shared" }],
    ["a permit", { limit: 2 }],
  ])("gets %s, whenever it becomes free before the end", async (_what, options) => {
    for (let freeMs = 100; freeMs < WAIT_MS; freeMs += 100) {
      const tookMs = await waitWhile(await patient(), freeMs, options);
      expect(tookMs, `free after ${freeMs} ms`).toBeLessThanOrEqual(WAIT_MS);
    }
  });

  it("control: at its end it asks once more, and is told that the key is held", async () => {
    const { clock, locks, rival, wire } = await patient();
    await rival.acquire(KEY);
    const asked = wire.of("acquire").length;
    const beganMs = clock.monotonicMs();
    await expect(clock.settle(locks.acquire(KEY, { waitMs: WAIT_MS }))).rejects.toMatchObject({
      ...{ name: "LockTimeoutError", holders: [{ owner: "rival" }], waitedMs: WAIT_MS },
    });
    const requests = wire.of("acquire").slice(asked);
    expect([requests.at(0), requests.at(-1)]).toMatchObject([{ atMs: beganMs }, { atMs: beganMs + WAIT_MS }]);
    // It looks in between, at the pace of the queue's record, but the last look was some time before.
    expect(wire.of("check").at(-1)?.atMs).toBeLessThan(beganMs + WAIT_MS);
    expect((await rival.inspect(KEY)).waiters).toEqual([]);
  });
});

describe("callers that share a place", () => {
  it("each end with the key if it was free before their own end, whoever asked for it", async () => {
    const { clock, locks, rival } = await patient();
    const held = await rival.acquire(KEY);
    const order: string[] = [];
    const use = (name: string, waitMs: number) =>
      locks
        .withLock(KEY, { waitMs }, () => void order.push(name))
        .catch((error: unknown) => void order.push(`${name}: ${(error as Error).name}`));
    const [short, long, shorter] = [use("short", WAIT_MS), use("long", 60_000), use("shorter", 1000)];
    await clock.advance(WAIT_MS - 50);
    await held.release();
    const freeMs = clock.monotonicMs();
    await clock.settle(Promise.all([short, long, shorter]));
    expect(order).toEqual(["shorter: LockTimeoutError", "short", "long"]);
    expect(clock.monotonicMs() - freeMs).toBeLessThanOrEqual(50);
  });

  it("get the hold that is handed on as their wait ends", async () => {
    const { clock, locks, wire } = createHarness();
    const held = await locks.acquire(KEY);
    const waiting = locks.acquire(KEY, { waitMs: 1000 });
    waiting.catch(() => undefined);
    wire.next("transfer", { requestMs: 100, replyMs: 100 });
    await clock.advance(900);
    void held.release();
    expect((await clock.settle(waiting)).isHeld()).toBe(true);
  });
});

describe("the last request of a wait", () => {
  const lateBy = async (replyMs: number): Promise<[Lease | LockTimeoutError, Harness]> => {
    const harness = await patient();
    const { clock, locks, rival, wire } = harness;
    const held = await rival.acquire(KEY);
    const waiting = locks.acquire(KEY, { waitMs: WAIT_MS });
    await clock.advance(WAIT_MS - 1);
    wire.next("acquire", { replyMs });
    await held.release();
    return [await clock.settle(waiting.catch((error: unknown) => error as LockTimeoutError)), harness];
  };

  it("is answered late, and the key is granted all the same", async () => {
    const [lease] = await lateBy(ANSWER_MS - 50);
    expect(lease).toMatchObject({ state: "held" });
  });

  it("control: is not answered in time, and leaves nothing behind", async () => {
    const [error, { clock, rival }] = await lateBy(2 * ANSWER_MS);
    expect(error).toBeInstanceOf(LockTimeoutError);
    await clock.advance(ANSWER_MS);
    expect((await rival.inspect(KEY)).holders).toEqual([]);
  });
});

describe("a process that stands still past the end of its wait", () => {
  /** Waits for a key that is released while the waiter stands still, and that others use until the waiter's id is forgotten. */
  const wakesLate = async (meanwhile: (harness: Harness) => unknown = () => undefined): Promise<[Promise<Lease>, Harness]> => {
    const harness = createHarness();
    const { clock, locks, rival } = harness;
    const held = await rival.acquire(KEY);
    // A reader waits for itself alone. Writers of one process share a place, and a wait that goes on for the others.
    const waiting = locks.acquire(KEY, { mode: "shared", waitMs: WAIT_MS });
    waiting.catch(() => undefined);
    await clock.advance(WAIT_MS / 2);
    await held.release();
    const slept = clock.freeze(20 * WAIT_MS);
    for (let uses = 0; uses < 2 * LIMITS.tombstonesMax; uses++) await (await rival.acquire(KEY)).release();
    await meanwhile(harness);
    await slept;
    return [clock.settle(waiting), harness];
  };

  const ids = ({ wire }: Harness): number => new Set(wire.of("acquire").map(({ request }) => request.leaseId)).size;

  it("gets the free key under a new id, since its own is forgotten", async () => {
    const [waiting] = await wakesLate();
    expect((await waiting).isHeld()).toBe(true);
  });

  it("control: is told that it waits if the key is held, and leaves its place", async () => {
    const [waiting, { rival }] = await wakesLate(({ rival: other }) => other.acquire(KEY));
    await expect(waiting).rejects.toMatchObject({ name: "LockTimeoutError", position: 1 });
    expect((await rival.inspect(KEY)).waiters).toEqual([]);
  });

  it("asks once more and no oftener, if new ids are over too", async () => {
    const [waiting, harness] = await wakesLate(({ wire }) => wire.always("acquire", { instead: refuse("lease-over") }));
    await expect(waiting).rejects.toMatchObject({ name: "LockTimeoutError" });
    // The id of its place, and the tries of one request.
    expect(ids(harness)).toBe(1 + 5);
  });
});

describe("what else waits", () => {
  /** Does this shortly before `waitMs` are over, and returns what was waited for. */
  const justBefore = async <T>({ clock }: Harness, waiting: Promise<T>, waitMs: number, act: () => Promise<unknown>): Promise<T> => {
    waiting.catch(() => undefined);
    await clock.advance(waitMs - 1);
    await act();
    return clock.settle(waiting);
  };

  it("a wait for a condition is notified until its end", async () => {
    const harness = await patient();
    const { locks, rival } = harness;
    const lease = await locks.acquire(KEY);
    const waited = lease.wait("stocked", { waitMs: WAIT_MS });
    const notify = (client: LockClient) => client.withLock(KEY, (theirs) => theirs.notify("stocked"));
    await expect(justBefore(harness, waited, WAIT_MS, () => notify(rival))).resolves.toBeUndefined();
    expect(lease.isHeld()).toBe(true);
  });

  it("a set asks for its keys at its end, and no more often before it", async () => {
    const harness = createHarness();
    const { locks, rival, wire } = harness;
    const held = await rival.acquire("B");
    const set = locks.acquireAll(["A", "B"], { waitMs: WAIT_MS });
    expect((await justBefore(harness, set, WAIT_MS, () => held.release())).isHeld()).toBe(true);
    expect(wire.of("inspect").length).toBeLessThanOrEqual(5);
  });

  it("a reader asks to become the writer at the end of its wait", async () => {
    const harness = createHarness();
    const { locks, rival } = harness;
    const [lease, other] = [await locks.acquire(KEY, { mode: "shared" }), await rival.acquire(KEY, { mode: "shared" })];
    await justBefore(harness, lease.upgrade({ waitMs: WAIT_MS }), WAIT_MS, () => other.release());
    expect(lease.mode).toBe("exclusive");
  });

  it("a run asks for the outcome of the other at the end of its wait", async () => {
    const harness = createHarness();
    const { locks, rival } = harness;
    let finish = (_value: string): void => undefined;
    const running = rival.runOnce(KEY, () => new Promise<string>((resolve) => (finish = resolve)));
    await harness.clock.advance(1);
    const replayed = locks.runOnce(KEY, { waitMs: 700 }, () => "again");
    const end = async (): Promise<unknown> => (finish("done"), running);
    expect(await justBefore(harness, replayed, 700, end)).toMatchObject({ value: "done", replayed: true });
  });
});
