/**
 * Waits that end while a request is on its way. Regressions: an aborted wait of a reader counted as an outage, and with `whenUnavailable:
 * "proceed"` its work ran beside the holder; a wait ended seconds late while a grant was fitted to its caller; an unexpected error there was
 * handled by nobody; one caller's invocation ended the waits of others; each of several leaseIds had the whole time of a `tryAcquire`.
 */
import { describe, expect, it } from "vitest";
import type { AcquireOptions, LockClient } from "../../../lib/testing.js";
import { type Harness, createHarness } from "../harness.js";
import { invocation } from "../../support/invocation.js";

const KEY = "ORDER_1231";
const SILENT = { lost: "request", silently: true } as const;

/** Returns what became of a call, and how long it took. */
async function ended({ clock }: Harness, call: Promise<unknown>) {
  const beganMs = clock.monotonicMs();
  const told = call.then(
    () => "held",
    (error: unknown) => (error as Error).name,
  );
  return { name: await clock.settle(told, 120_000), afterMs: clock.monotonicMs() - beganMs };
}

describe("a wait that is aborted while a poll is on its way rejects with an AbortError, and never proceeds", () => {
  const WAITS: readonly (readonly [what: string, options: AcquireOptions, view: (locks: LockClient) => LockClient])[] = [
    ["for a mutex", {}, (locks) => locks],
    ["of a reader", { mode: "shared" }, (locks) => locks],
    ["for a permit", { limit: 3 }, (locks) => locks],
    ["of a scope", {}, (locks) => locks.scope("nightly-import-0007")],
  ];

  it.each(WAITS)("%s", async (_what, options, view) => {
    const harness = createHarness();
    const { clock, locks, rival, wire } = harness;
    await rival.acquire(KEY, { leaseMs: 60_000, ...(options.limit !== undefined && { limit: 3, permits: 3 }) });
    const stop = new AbortController();
    const polls = (): number => wire.of("check").length + wire.of("acquire").length;
    const work: unknown[] = [];
    const call = view(locks).withLock(KEY, { ...options, signal: stop.signal, whenUnavailable: "proceed" }, () => void work.push("done"));
    const outcome = ended(harness, call);
    await clock.advance(100);
    for (const operation of ["acquire", "check"] as const) wire.always(operation, { replyMs: 100 });
    for (const before = polls(); polls() === before;) await clock.advance(1);
    stop.abort();
    expect(await outcome).toMatchObject({ name: "AbortError" });
    expect(work).toEqual([]);
  });
});

describe("a grant that is handed to a caller with other meta", () => {
  /** A caller whose grant was made for one that left, while transfers go wrong. */
  async function fitting(options: AcquireOptions, goesWrong: (harness: Harness) => void) {
    const harness = createHarness();
    const { clock, locks, rival } = harness;
    const held = await rival.acquire(KEY, { leaseMs: 60_000 });
    const gone = new AbortController();
    const first = locks.acquire(KEY, { signal: gone.signal }).catch(() => undefined);
    await clock.advance(5);
    const second = ended(harness, locks.acquire(KEY, { ...options, meta: { order: 7 } }));
    await clock.advance(5);
    gone.abort();
    await first;
    goesWrong(harness);
    await held.release();
    return second;
  }

  it("ends with its caller's time", async () => {
    const silently = await fitting({ waitMs: 1000 }, ({ wire }) => wire.always("transfer", SILENT));
    expect(silently.name).not.toBe("held");
    expect(silently.afterMs).toBeLessThanOrEqual(1250);
    expect(await fitting({ waitMs: 1000 }, () => undefined)).toMatchObject({ name: "held" });
  });

  it("is cancelled if the transport throws, and asked for again", async () => {
    const broken = ({ wire }: Harness): void => {
      const { transfer } = wire.api;
      let times = 0;
      const failsOnce: typeof transfer = (...args) =>
        times++ === 0 ? Promise.reject(new TypeError("the transport's")) : transfer(...args);
      Object.assign(wire.api, { transfer: failsOnce });
    };
    expect(await fitting({ waitMs: 5000 }, broken)).toMatchObject({ name: "held" });
  });
});

describe("an invocation", () => {
  it("ends no wait of a caller outside of it that shares its place", async () => {
    const harness = createHarness();
    const { clock, locks, rival, wire } = harness;
    for (const operation of ["acquire", "check", "release"] as const) wire.always(operation, { requestMs: 10, replyMs: 10 });
    const held = await clock.settle(rival.acquire(KEY, { leaseMs: 60_000 }));
    const inside = ended(harness, locks.forInvocation(invocation(clock, 3000)).acquire(KEY));
    await clock.advance(5);
    const outside = ended(harness, locks.acquire(KEY));
    await clock.advance(10_000);
    await held.release();
    expect(await inside).toMatchObject({ name: "LockTimeoutError" });
    expect(await outside).toMatchObject({ name: "held" });
  });

  it("is not outlasted by its release, whoever the key is handed to", async () => {
    const harness = createHarness();
    const { clock, locks, wire } = harness;
    const lease = await locks.forInvocation(invocation(clock, 4000)).acquire(KEY);
    const next = locks.acquire(KEY, { waitMs: 10_000 }).catch(() => undefined);
    await clock.advance(5);
    for (const operation of ["transfer", "release", "acquire", "check"] as const) wire.always(operation, SILENT);
    const { name, afterMs } = await ended(harness, lease.release());
    expect(name).toBe("LockError");
    expect(afterMs).toBeLessThan(4000);
    await clock.settle(next);
  });
});

describe("a call's time", () => {
  it("is shared by all the leaseIds that a tryAcquire needs", async () => {
    const harness = createHarness();
    const { wire, locks } = harness;
    const leaseMs = 2000;
    const first = new Map<string | undefined, number>();
    // An id is answered so late that its lease is nearly over, and can't be renewed: it is given up for another.
    wire.always("renew", { lost: "reply", silently: true });
    wire.onSend = ({ operation, request: { leaseId }, atMs }) => {
      if (operation !== "acquire") return;
      if (!first.has(leaseId)) first.set(leaseId, atMs);
      wire.always("acquire", atMs - first.get(leaseId)! < 0.7 * leaseMs ? { lost: "reply", silently: true } : {});
    };
    const { afterMs } = await ended(harness, locks.tryAcquire(KEY, { leaseMs }));
    expect(afterMs).toBeLessThanOrEqual(leaseMs + 250);
  });

  it.each([100, 200, 400])(
    "is exceeded by one round trip and 250 ms at most when a wait times out, at a round trip of %d ms",
    async (replyMs) => {
      const harness = createHarness();
      await harness.rival.acquire(KEY, { leaseMs: 60_000 });
      for (const operation of ["acquire", "check", "release", "inspect"] as const) harness.wire.always(operation, { replyMs });
      const { name, afterMs } = await ended(harness, harness.locks.acquire(KEY, { waitMs: 4000 }));
      expect(name).toBe("LockTimeoutError");
      expect(afterMs).toBeLessThanOrEqual(4250 + replyMs);
    },
  );
});
