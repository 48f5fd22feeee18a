/**
 * Time and its units. This is the only file that reads the machine's clocks; all other code gets a {@link Clock}, so a
 * test advances time instead of waiting for it. A name ends with its unit.
 */

export interface Timer {
  cancel(): void;
}

/** A process's clocks: wall time that may jump, a monotonic count that may stop, and timers. */
export interface Clock {
  /** Epoch milliseconds. May jump either way; no decision depends on it alone. */
  wallMs(): number;
  /** Milliseconds from an arbitrary start. Never goes back, but stands still in a frozen sandbox. */
  monotonicMs(): number;
  /** Runs `task` once after `delayMs`, or after 24 days if that is sooner, and never before. The process stays alive: a caller is waiting. */
  after(delayMs: number, task: () => void): Timer;
  /** The same, without keeping the process alive: a lease must not stop a program from ending. */
  inBackground(delayMs: number, task: () => void): Timer;
}

/** The machine's own clocks. */
export const systemClock: Clock = {
  wallMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  after: startTimer,
  inBackground: (delayMs, task) => startTimer(delayMs, task, true),
};

/** Returns `clock` for background work: its timers don't keep the process alive. */
export function backgroundClock(clock: Clock): Clock {
  const inBackground = (delayMs: number, task: () => void): Timer => clock.inBackground(delayMs, task);
  return { wallMs: () => clock.wallMs(), monotonicMs: () => clock.monotonicMs(), after: inBackground, inBackground };
}

/** Node fires a longer timeout at once, which must not happen to a day-long lease. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** Node cuts a timeout and its own clock to whole milliseconds, so its timers end up to 2 ms early. */
const EARLY_MS = 2;

/** Starts a timer that ends no sooner than `delayMs`: an early one would make the end of a wait look like a service that gave no answer. */
function startTimer(delayMs: number, task: () => void, inBackground?: boolean): Timer {
  const timer = setTimeout(task, Math.min(delayMs + EARLY_MS, MAX_TIMER_MS));
  if (inBackground) (timer as { unref?: () => void }).unref?.();
  return { cancel: () => clearTimeout(timer) };
}

/**
 * The clock interval of one request, from its two server clocks. Every decision uses the end whose error is safe.
 * Grants and renewals use the latest clock, so that no other server takes over too early. Takeovers and expiry checks
 * use the earliest clock, so that a fast clock doesn't take a lease from its holder.
 */
export interface ClockReading {
  readonly earliestMs: number;
  readonly latestMs: number;
  /**
   * The server's own clock, as far as the second one allows it. Fencing tokens are made from it: those of two servers then rise with the
   * time, even while the second clock tells both no more than the second. @default latestMs
   */
  readonly likelyMs?: number;
}

/** A moment on both of a client's clocks. */
export interface Instant {
  readonly wallMs: number;
  readonly monotonicMs: number;
}

/** Reads both clocks of `clock`. */
export function instantOf(clock: Clock): Instant {
  return { wallMs: clock.wallMs(), monotonicMs: clock.monotonicMs() };
}

/**
 * Returns the time since `since`, in ms: the larger of the two clocks' figures. A frozen sandbox stops the monotonic
 * clock, and a step back hides time on the wall clock. Overestimating is the safe error.
 */
export function elapsedMs(since: Instant, now: Instant): number {
  return Math.max(now.monotonicMs - since.monotonicMs, now.wallMs - since.wallMs);
}

/** Converts to whole seconds, rounded up: `Retry-After` and DynamoDB's TTL are in seconds. */
export function toSecondsUp(ms: number): number {
  return Math.ceil(ms / 1000);
}
