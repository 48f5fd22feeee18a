/**
 * Time and its units. The only file that touches the machine's clocks; everything else is handed a
 * {@link Clock}, so a test turns time instead of waiting for it. Names carry their unit, last.
 */

/** What runs when a timer is due, and how to take it back. */
export interface Timer {
  cancel(): void;
}

/** A process's view of time: a wall that may jump, a monotonic count that may stop, and timers. */
export interface Clock {
  /** Epoch milliseconds. May jump either way; never decides alone. */
  wallMs(): number;
  /** Milliseconds from an arbitrary start. Never goes back, but stands still in a frozen sandbox. */
  monotonicMs(): number;
  /** Runs `task` once, `delayMs` from now: for somebody who waits. */
  after(delayMs: number, task: () => void): Timer;
  /** The same, without keeping the process alive: a lease never keeps a program from ending. */
  inBackground(delayMs: number, task: () => void): Timer;
}

/** The machine's own clocks. */
export const systemClock: Clock = {
  wallMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  after(delayMs, task) {
    const timer = setTimeout(task, Math.min(delayMs, MAX_TIMER_MS));
    return { cancel: () => clearTimeout(timer) };
  },
  inBackground(delayMs, task) {
    const timer = setTimeout(task, Math.min(delayMs, MAX_TIMER_MS));
    (timer as { unref?: () => void }).unref?.();
    return { cancel: () => clearTimeout(timer) };
  },
};

/** `clock` for work that nobody waits for: none of its timers keeps the process alive. */
export function backgroundClock(clock: Clock): Clock {
  const inBackground = (delayMs: number, task: () => void): Timer => clock.inBackground(delayMs, task);
  return { wallMs: () => clock.wallMs(), monotonicMs: () => clock.monotonicMs(), after: inBackground, inBackground };
}

/** Node runs a longer timeout at once; a day-long lease must not. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * One request's reading of the two server clocks. Every decision uses the one whose error is safe:
 * grant and renew with the later (nobody else may take over too early), take over and refuse as
 * expired with the earlier (nobody is robbed by a fast clock).
 */
export interface ClockReading {
  readonly earliestMs: number;
  readonly latestMs: number;
}

/** A moment as a client sees it, on both of its clocks. */
export interface Instant {
  readonly wallMs: number;
  readonly monotonicMs: number;
}

/** Both clocks of `clock`, now. */
export function instantOf(clock: Clock): Instant {
  return { wallMs: clock.wallMs(), monotonicMs: clock.monotonicMs() };
}

/**
 * How long ago `since` was. The larger of both clocks: a frozen sandbox stops the monotonic one, a
 * step back hides time on the wall, and taking too much time to have passed is the safe error.
 */
export function elapsedMs(since: Instant, now: Instant): number {
  return Math.max(now.monotonicMs - since.monotonicMs, now.wallMs - since.wallMs);
}

/** Whole seconds, rounded up: `Retry-After` and DynamoDB's TTL are in seconds. */
export function toSecondsUp(ms: number): number {
  return Math.ceil(ms / 1000);
}
