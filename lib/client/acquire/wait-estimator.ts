/** Estimates how fast keys are passed on, from this process's recent waits, so that waiters poll when it is worthwhile. */
import type { Waiting } from "../../core/commands.js";

/** The number of keys whose estimates are stored. */
const MOST_ESTIMATES = 1000;
/** The shortest pause between polls, in ms. */
const LEAST_POLL_MS = 15;

/**
 * The times of polls, counted in grants: the first poll comes this much before the expected turn, further ones at growing steps. The values
 * come from measuring requests against idle time.
 */
const EARLY = 0.85;
const WEIGHT_OF_LATEST = 0.25;
const IDLE_STEP = 0.2;
const IDLE_GROWTH = 1.5;

/** The estimates for the keys that this process waited for. */
export class WaitEstimator {
  readonly #estimates = new Map<string, number>();

  /** Records that a waiter reached its turn, at this many ms per grant. */
  learn(key: string, perGrantMs: number): void {
    const before = this.#estimates.get(key);
    this.#estimates.delete(key);
    this.#estimates.set(key, before === undefined ? perGrantMs : (before + perGrantMs) / 2);
    const [oldest] = this.#estimates.keys();
    if (this.#estimates.size > MOST_ESTIMATES && oldest !== undefined) this.#estimates.delete(oldest);
  }

  /** Returns the time until the next poll, in ms; `idle` is the number of consecutive polls without news. */
  delayMs(key: string, { position, retryAfterMs }: Waiting, idle: number): number {
    if (retryAfterMs === 0) return 0;
    const paceMs = this.#estimates.get(key);
    if (paceMs === undefined) return retryAfterMs;
    // The poll comes a little early: the measured time includes the wait for the poll itself, and would otherwise only grow.
    const grants = idle === 0 ? EARLY * (position - 1) + WEIGHT_OF_LATEST : IDLE_STEP * position * IDLE_GROWTH ** Math.min(idle - 1, 10);
    return Math.max(paceMs * grants, LEAST_POLL_MS);
  }
}
