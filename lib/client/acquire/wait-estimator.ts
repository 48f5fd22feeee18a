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

/**
 * The times of polls on a key without an estimate (docs/decisions/048). The first poll comes after this time for the first place, and after
 * its square root for those behind: a queue that moves fast is noticed early. Once places move on, a poll comes at this share of the
 * time that the rest of the queue would take, since a move is noticed late.
 */
const FIRST_POLL_MS = 300;
const SHARE_OF_SEEN = 0.4;

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

  /**
   * Returns the time until the next poll, in ms; `idle` is the number of consecutive polls without news. `seenMs` is the time for each
   * place by which this waiter saw itself move on.
   */
  delayMs(key: string, { position, retryAfterMs }: Waiting, idle: number, seenMs?: number): number {
    if (retryAfterMs === 0) return 0;
    const paceMs = this.#estimates.get(key);
    if (paceMs === undefined) {
      const firstMs =
        seenMs === undefined ? FIRST_POLL_MS * Math.sqrt(position) : Math.max(SHARE_OF_SEEN * seenMs, LEAST_POLL_MS) * position;
      return Math.min(retryAfterMs, firstMs * IDLE_GROWTH ** idle);
    }
    // The poll comes a little early: the measured time includes the wait for the poll itself, and would otherwise only grow.
    const grants = idle === 0 ? EARLY * (position - 1) + WEIGHT_OF_LATEST : IDLE_STEP * position * IDLE_GROWTH ** Math.min(idle - 1, 10);
    return Math.max(paceMs * grants, LEAST_POLL_MS);
  }
}
