/** The watchdog's rules, on a clock that the test turns: when it ends a command, and when it leaves it alone. */
import { beforeEach, describe, expect, it } from "vitest";
import { Guard } from "../../bin/exec/guard.js";
import { VirtualClock } from "../../lib/testing.js";

const KILL_AFTER_MS = 5000;
const TARGET = -4711;

let clock: VirtualClock;
let guard: Guard;
/** The signals that were sent, each with the seconds since the beginning. */
let sent: string[];
/** The number of times that the guard reported its own SIGTERM. */
let reports: number;

beforeEach(() => {
  clock = new VirtualClock();
  const began = clock.monotonicMs();
  sent = [];
  reports = 0;
  guard = new Guard({
    clock,
    killAfterMs: KILL_AFTER_MS,
    signal: (target, name) => void sent.push(`${name} to ${target} at ${(clock.monotonicMs() - began) / 1000}`),
    onTerm: () => void reports++,
  });
});

/** Tells that the lease is held for so long. */
function held(remainingMs: number, sentWallMs = clock.wallMs()): void {
  guard.hear({ termInMs: remainingMs - KILL_AFTER_MS, killInMs: remainingMs, sentWallMs });
}

const watched = (remainingMs: number): void => {
  held(remainingMs);
  guard.hear({ target: TARGET });
};
const ended = (termAt: number, killAt: number): string[] => [
  `SIGTERM to ${TARGET} at ${termAt}`,
  `SIGCONT to ${TARGET} at ${termAt}`,
  `SIGKILL to ${TARGET} at ${killAt}`,
];

describe("a holder that tells nothing more", () => {
  it("has its command asked to end before the lease is over, and killed when it is", async () => {
    watched(30_000);
    await clock.advance(60_000);
    expect({ sent, reports }).toEqual({ sent: ended(25, 30), reports: 1 });
  });

  it("control: one that goes on telling keeps its command", async () => {
    watched(30_000);
    for (let beats = 0; beats < 100; beats++) {
      await clock.advance(10_000);
      held(30_000);
    }
    expect(sent).toEqual([]);
  });

  it("has its command ended on time if its last words waited to be read", async () => {
    guard.hear({ target: TARGET });
    held(30_000, clock.wallMs() - 4000);
    await clock.advance(60_000);
    expect(sent).toEqual(ended(21, 26));
  });

  it("has its command ended when the machine wakes up, if it slept until the lease was over", async () => {
    watched(30_000);
    await clock.advance(10_000);
    clock.jumpWall(3_600_000); // The monotonic clock and the timers stood still.
    await clock.advance(1000);
    expect(sent).toEqual([`SIGKILL to ${TARGET} at 10.5`]);
  });

  it("has its command ended on time by the monotonic clock, if the wall clock is set back", async () => {
    watched(30_000);
    await clock.advance(10_000);
    clock.jumpWall(-3_600_000);
    await clock.advance(60_000);
    expect(sent).toEqual(ended(25, 30));
  });
});

describe("a holder that is gone", () => {
  it("has its command asked to end at once, and killed after the time to end", async () => {
    watched(30_000);
    await clock.advance(3000);
    guard.holderGone();
    await clock.advance(60_000);
    expect({ sent, reports }).toEqual({ sent: ended(3, 8), reports: 1 });
  });

  it("never moves the end to a later time", async () => {
    watched(30_000);
    await clock.advance(28_000);
    guard.holderGone();
    await clock.advance(60_000);
    expect(sent).toEqual(ended(25, 30));
  });

  it("before it had started a command has none to end", async () => {
    held(30_000);
    guard.holderGone();
    await clock.advance(60_000);
    expect(sent).toEqual([]);
  });
});

describe("a holder that ends its command itself", () => {
  it("is helped only if the command lives on after its time to end", async () => {
    watched(30_000);
    await clock.advance(2000);
    guard.hear({ termInMs: null, killInMs: KILL_AFTER_MS, sentWallMs: clock.wallMs() });
    await clock.advance(1000);
    guard.holderGone();
    await clock.advance(60_000);
    expect({ sent, reports }).toEqual({ sent: [`SIGKILL to ${TARGET} at 7`], reports: 0 });
  });

  it("too late, when the guard has asked already, doesn't prolong it", async () => {
    watched(30_000);
    await clock.advance(27_000);
    guard.hear({ termInMs: null, killInMs: KILL_AFTER_MS, sentWallMs: clock.wallMs() });
    held(30_000);
    await clock.advance(60_000);
    expect(sent).toEqual(ended(25, 30));
  });
});
