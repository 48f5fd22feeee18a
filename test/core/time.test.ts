/** Time: the machine's clocks and timers, the time that passed between two moments, whole seconds, and the pauses between attempts. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { backoffMs } from "../../lib/core/backoff.js";
import { type Clock, backgroundClock, elapsedMs, instantOf, systemClock, toSecondsUp } from "../../lib/core/time.js";

const DAY_MS = 86_400_000;
/** The longest delay that Node's timers take: a longer one fires at once. */
const NODE_MAX_MS = 2 ** 31 - 1;
const background = backgroundClock(systemClock);

describe("the machine's clock", () => {
  beforeEach(() => void vi.useFakeTimers({ now: 1_000 }));
  afterEach(() => void vi.useRealTimers());

  it.each<[string, Clock]>([
    ["itself", systemClock],
    ["in the background", background],
  ])("counts wall time and a monotonic time apart: %s", (_, clock) => {
    const before = instantOf(clock);
    vi.advanceTimersByTime(250);
    vi.setSystemTime(DAY_MS);
    const now = instantOf(clock);
    expect([before.wallMs, now.wallMs, now.monotonicMs - before.monotonicMs]).toEqual([1_000, DAY_MS, 250]);
  });

  it.each<[string, Clock["after"]]>([
    ["after", systemClock.after],
    ["in the background", systemClock.inBackground],
    ["after, of a background clock", background.after],
  ])("runs a task once at its time, but not one that was cancelled: %s", (_, schedule) => {
    const ran: string[] = [];
    schedule(500, () => ran.push("kept"));
    const cancelled = schedule(500, () => ran.push("cancelled"));
    vi.advanceTimersByTime(499);
    cancelled.cancel();
    expect(ran).toEqual([]);
    vi.advanceTimersByTime(1_000);
    expect(ran).toEqual(["kept"]);
  });

  it.each<[string, Clock["after"]]>([
    ["after", systemClock.after],
    ["in the background", systemClock.inBackground],
  ])("doesn't run a task of the far future at once: %s", (_, schedule) => {
    let runs = 0;
    schedule(30 * DAY_MS, () => runs++);
    vi.advanceTimersByTime(NODE_MAX_MS - 1);
    expect(runs).toBe(0);
    vi.advanceTimersByTime(1);
    expect(runs).toBe(1);
  });
});

it("a timer keeps the process alive, and one in the background doesn't", () => {
  const alive = (): number => process.getActiveResourcesInfo().filter((resource) => resource === "Timeout").length;
  const keepsAlive = (schedule: Clock["after"]): boolean => {
    const before = alive();
    const timer = schedule(DAY_MS, () => undefined);
    const during = alive();
    timer.cancel();
    return during > before;
  };
  expect(keepsAlive(systemClock.after)).toBe(true);
  expect(keepsAlive(systemClock.inBackground)).toBe(false);
  expect(keepsAlive(background.after)).toBe(false);
});

it("a timer in the background needs nothing that only Node's timers have: a browser's are numbers", () => {
  const start = vi.spyOn(globalThis, "setTimeout").mockReturnValue(7 as never);
  const stop = vi.spyOn(globalThis, "clearTimeout");
  try {
    systemClock.inBackground(DAY_MS, () => undefined).cancel();
    expect(stop).toHaveBeenCalledExactlyOnceWith(7);
  } finally {
    start.mockRestore();
    stop.mockRestore();
  }
});

it("the time between two moments is the larger figure of the two clocks", () => {
  const since = { wallMs: 1_000, monotonicMs: 50 };
  expect(elapsedMs(since, { wallMs: 1_700, monotonicMs: 150 })).toBe(700);
  expect(elapsedMs(since, { wallMs: 400, monotonicMs: 150 })).toBe(100);
});

it.each([
  [0, 0],
  [1, 1],
  [1_000, 1],
  [1_001, 2],
])("%d ms are %d whole seconds, rounded up", (ms, seconds) => {
  expect(toSecondsUp(ms)).toBe(seconds);
});

it("pauses double from the first to the longest, and stay finite", () => {
  const pauses = (longestMs: number, counts: readonly number[]) => counts.map((count) => backoffMs({ firstMs: 50, longestMs }, count));
  expect(pauses(1_000, [0, 1, 2, 4, 5, 6, 5_000])).toEqual([50, 100, 200, 800, 1_000, 1_000, 1_000]);
  expect(pauses(Infinity, [30, 31, 5_000])).toEqual([50 * 2 ** 30, 50 * 2 ** 30, 50 * 2 ** 30]);
});
