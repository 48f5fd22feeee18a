/**
 * Callers in a local queue get the same results as callers on their own. Regression: a caller that timed out during an
 * outage got the error that the key is held, and a patient caller had to stop when the first caller timed out.
 */
import { describe, expect, it } from "vitest";
import { refuse } from "../../../lib/core/errors.js";
import { type LockClient, locked, LockTimeoutError, LockUnavailableError } from "../../../lib/testing.js";
import { createHarness } from "../harness.js";
import type { Fate } from "../wire.js";

const KEY = "ORDER_1231";

/** Acquires for up to `waitMs` and returns the outcome and the time it took. */
async function outcomeOf(harness: ReturnType<typeof createHarness>, waitMs: number, locks: LockClient = harness.locks) {
  const began = harness.clock.monotonicMs();
  const error = await locks.acquire(KEY, { waitMs }).then(
    () => undefined,
    (thrown: unknown) => thrown as Error,
  );
  return { name: error?.name ?? "held", afterMs: harness.clock.monotonicMs() - began };
}

const OUTAGES: readonly (readonly [what: string, fate: Fate])[] = [
  ["doesn't answer", { lost: "request", silently: true }],
  ["breaks the connection", { lost: "request" }],
  ["answers 503", { instead: refuse("unavailable") }],
  ["answers 429", { instead: refuse("throttled", { retryAfterMs: 200 }) }],
];

describe.each(OUTAGES)("while the service %s", (_what, fate) => {
  it("every caller of a line is told of an outage, each when its own time is over", async () => {
    const harness = createHarness();
    harness.wire.always("acquire", fate);
    const waitsMs = [800, 3000, 1500, 6000];
    const outcomes = await harness.clock.settle(Promise.all(waitsMs.map((waitMs) => outcomeOf(harness, waitMs))));
    expect(outcomes).toEqual(waitsMs.map((afterMs) => ({ name: "LockUnavailableError", afterMs })));
  });

  it("as a caller that is alone is", async () => {
    const harness = createHarness();
    harness.wire.always("acquire", fate);
    const { name, afterMs } = await harness.clock.settle(outcomeOf(harness, 1500));
    expect(name).toBe("LockUnavailableError");
    expect(afterMs).toBeLessThanOrEqual(1500);
    expect(afterMs).toBeGreaterThan(500);
  });

  it("which began after the key was found held, too", async () => {
    const harness = createHarness();
    await harness.rival.acquire(KEY, { leaseMs: 60_000 });
    const all = Promise.all([4000, 8000].map((waitMs) => outcomeOf(harness, waitMs)));
    await harness.clock.advance(500);
    for (const operation of ["acquire", "check", "release"] as const) harness.wire.always(operation, fate);
    expect(await harness.clock.settle(all)).toEqual([4000, 8000].map((afterMs) => ({ name: "LockUnavailableError", afterMs })));
  });

  it("control: for less than a second before a wait ends, it is told that the key is held", async () => {
    for (const mode of ["exclusive", "shared"] as const)
      for (const waitMs of [1000, 1200, 1400, 1600, 1800]) {
        const harness = createHarness();
        await harness.rival.acquire(KEY, { leaseMs: 60_000 });
        const ended = harness.locks.acquire(KEY, { waitMs, mode }).catch((error: unknown) => error);
        await harness.clock.advance(waitMs - 500);
        for (const operation of ["acquire", "check"] as const) harness.wire.always(operation, fate);
        expect(await harness.clock.settle(ended)).toBeInstanceOf(LockTimeoutError);
      }
  });

  it("a patient caller gets the key when the outage ends, whatever became of the first in line", async () => {
    const harness = createHarness();
    harness.wire.always("acquire", fate);
    const [impatient, patient] = [outcomeOf(harness, 1000), harness.locks.acquire(KEY, { waitMs: 20_000 })];
    await harness.clock.advance(5000);
    harness.wire.always("acquire", undefined);
    expect((await harness.clock.settle(patient)).state).toBe("held");
    expect(await impatient).toMatchObject({ name: "LockUnavailableError", afterMs: 1000 });
  });

  it("whenUnavailable decides for every call of a locked function, and whenHeld for none", async () => {
    const harness = createHarness();
    harness.wire.always("acquire", fate);
    let ran = 0;
    const call = (waitMs: number) =>
      locked({ locks: harness.locks, key: () => KEY, waitMs, whenUnavailable: "proceed" }, async () => ++ran)();
    expect(await harness.clock.settle(Promise.all([2000, 1000, 3000].map(call)))).toEqual([2, 1, 3]);
  });
});

describe("while the key is held", () => {
  it("control: every caller of a line is told so, and none proceeds", async () => {
    const harness = createHarness();
    await harness.rival.acquire(KEY, { leaseMs: 60_000 });
    const work = locked({ locks: harness.locks, key: () => KEY, waitMs: 1000, whenUnavailable: "proceed" }, async () => "ran");
    const all = Promise.allSettled([work(), work(), outcomeOf(harness, 3000)]);
    const [first, second, third] = await harness.clock.settle(all);
    for (const one of [first, second]) expect(one).toMatchObject({ status: "rejected", reason: expect.any(LockTimeoutError) as Error });
    expect(third).toMatchObject({ value: { name: "LockTimeoutError", afterMs: 3000 } });
  });

  it("an answer that is on its way when the time is over makes no outage of it", async () => {
    const harness = createHarness({ random: () => 0 });
    await harness.rival.acquire(KEY, { leaseMs: 60_000 });
    harness.wire.always("check", { replyMs: 300 });
    for (const waitMs of [1000, 1100, 1200, 1300, 1400, 1500]) {
      const { name, afterMs } = await harness.clock.settle(outcomeOf(harness, waitMs));
      expect(name).toBe("LockTimeoutError");
      expect(afterMs).toBeGreaterThanOrEqual(waitMs);
      expect(afterMs).toBeLessThanOrEqual(waitMs + 300);
    }
    // On their own, like readers, callers get the same result.
    for (const waitMs of [1000, 1100, 1200, 1300, 1400, 1500]) {
      const reading = harness.locks.acquire(KEY, { waitMs, mode: "shared" });
      await expect(harness.clock.settle(reading)).rejects.toBeInstanceOf(LockTimeoutError);
    }
  });

  it("a process that stands still until long after the end of its wait makes no outage of it", async () => {
    for (const mode of ["exclusive", "shared"] as const)
      for (const stopMs of [900, 950, 990]) {
        const { clock, locks, rival, wire } = createHarness();
        await rival.acquire(KEY, { leaseMs: 60_000 });
        const ended = locks.acquire(KEY, { waitMs: 1000, mode }).catch((error: unknown) => error);
        await clock.advance(500);
        for (const operation of ["acquire", "check"] as const) wire.always(operation, { lost: "request", silently: true });
        await clock.advance(stopMs - 500);
        await clock.freeze(5000);
        expect(await clock.settle(ended)).toBeInstanceOf(LockTimeoutError);
      }
  });

  it("by a caller of the same line, the others wait and are told so when their time is over", async () => {
    const harness = createHarness();
    const held = await harness.locks.acquire(KEY);
    expect(await harness.clock.settle(outcomeOf(harness, 1000))).toEqual({ name: "LockTimeoutError", afterMs: 1000 });
    expect(held.state).toBe("held");
  });

  it("and handing it over is not answered, an outage is what the next in line is told of", async () => {
    const harness = createHarness();
    const held = await harness.locks.acquire(KEY);
    const next = outcomeOf(harness, 3000);
    for (const operation of ["transfer", "release", "acquire"] as const)
      harness.wire.always(operation, { lost: "request", silently: true });
    const released = held.release().catch((error: unknown) => error);
    expect(await harness.clock.settle(next)).toEqual({ name: "LockUnavailableError", afterMs: 3000 });
    expect(await harness.clock.settle(released)).toBeInstanceOf(LockUnavailableError);
  });
});
