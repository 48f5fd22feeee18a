/**
 * Decides when a client with several ways stops using one of them, and when it returns to it. Each way has a breaker. Pure: the caller reports
 * what happened, and when by a monotonic clock.
 *
 * 1. The way is in use. Three failed attempts in a row, or five in 10 s that are at least half of all, trip the breaker.
 * 2. The way rests for 48 to 72 s. Then one probe at a time is sent to it, a second apart.
 * 3. Three answered probes in a row: the way may be used again. A failed one: it rests again. One whose answer is unclear counts for
 *    neither.
 *
 * The random length of the rest keeps the clients of a fleet from returning all at once.
 */

/** The figures of the breaker. docs/operating.md has them. */
export const BREAKER = {
  /** Attempts in a row without a usable answer that trip it. */
  inARow: 3,
  /** The failures within the window that trip it, if they are also this share of its attempts. */
  failures: 5,
  share: 0.5,
  windowMs: 10_000,
  /** The rest of a way before the first probe, and the part of it by which it varies in either direction. */
  restMs: 60_000,
  restJitter: 0.2,
  /** Answered probes in a row after which the way is used again, and the least time between two of them. */
  probes: 3,
  probeIntervalMs: 1000,
} as const;

const SECOND_MS = 1000;

interface Second {
  readonly atMs: number;
  readonly attempts: number;
  readonly failures: number;
}

/** The state of the breaker. */
export type Breaker =
  | { readonly rests: false; readonly inARow: number; readonly seconds: readonly Second[] }
  | { readonly rests: true; readonly probeAtMs: number; readonly isProbing: boolean; readonly answered: number };

/** An attempt at the way that was answered or not; a probe that is sent, and its result. */
export type BreakerEvent = "answered" | "failed" | "probe" | "probe-answered" | "probe-failed" | "probe-unclear";

/** The first state: nothing has failed. */
export const UNTRIPPED: Breaker = { rests: false, inARow: 0, seconds: [] };

/** True if a probe of the way should be sent at `nowMs`. */
export function isProbeDue(state: Breaker, nowMs: number): boolean {
  return state.rests && !state.isProbing && nowMs >= state.probeAtMs;
}

/** Returns the state after `event` at `nowMs`. @param random from 0 to 1, for the length of a rest */
export function afterEvent(state: Breaker, event: BreakerEvent, nowMs: number, random: number): Breaker {
  if (!state.rests) {
    if (event !== "answered" && event !== "failed") return state;
    const inARow = event === "failed" ? state.inARow + 1 : 0;
    const seconds = counted(state.seconds, event === "failed", nowMs);
    return event === "failed" && (inARow >= BREAKER.inARow || isMostlyFailing(seconds))
      ? resting(nowMs, random)
      : { ...state, inARow, seconds };
  }
  if (event === "probe") return { ...state, isProbing: true };
  if (event === "probe-failed") return resting(nowMs, random);
  if (event !== "probe-answered" && event !== "probe-unclear") return state;
  const answered = state.answered + (event === "probe-answered" ? 1 : 0);
  return answered >= BREAKER.probes ? UNTRIPPED : { ...state, isProbing: false, answered, probeAtMs: nowMs + BREAKER.probeIntervalMs };
}

function resting(nowMs: number, random: number): Breaker {
  const { restMs, restJitter } = BREAKER;
  return { rests: true, probeAtMs: nowMs + restMs * (1 - restJitter + 2 * restJitter * random), isProbing: false, answered: 0 };
}

/** Counts an attempt in its second, and drops the seconds before the window. */
function counted(seconds: readonly Second[], isFailure: boolean, nowMs: number): readonly Second[] {
  const last = seconds.at(-1);
  const failures = Number(isFailure);
  if (last && nowMs < last.atMs + SECOND_MS)
    return [...seconds.slice(0, -1), { ...last, attempts: last.attempts + 1, failures: last.failures + failures }];
  return [...seconds.filter(({ atMs }) => atMs > nowMs - BREAKER.windowMs), { atMs: nowMs, attempts: 1, failures }];
}

function isMostlyFailing(seconds: readonly Second[]): boolean {
  const sum = (of: "attempts" | "failures"): number => seconds.reduce((total, second) => total + second[of], 0);
  return sum("failures") >= BREAKER.failures && sum("failures") >= BREAKER.share * sum("attempts");
}
