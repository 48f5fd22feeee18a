/** How fast keys are passed on, as this process saw it lately: by it, who waits knows when a look is worth it. */
import type { Waiting } from "../../core/commands.js";

/** Bounds what is remembered. */
const MOST_ESTIMATES = 1000;
/** Nobody looks more often than this. */
const LEAST_POLL_MS = 15;

/** Looks, counted in grants: so much before the turn is expected, then in steps that grow. Found by measuring requests against idle time. */
const EARLY = 0.85;
const OF_THE_NEXT = 0.25;
const IDLE_STEP = 0.2;
const IDLE_GROWTH = 1.5;

/** The paces of the keys that this process waited for. */
export class WaitEstimator {
  readonly #estimates = new Map<string, number>();

  /** Notes that a place came up, in so many ms a grant. */
  learn(key: string, perGrantMs: number): void {
    const before = this.#estimates.get(key);
    this.#estimates.delete(key);
    this.#estimates.set(key, before === undefined ? perGrantMs : (before + perGrantMs) / 2);
    const [oldest] = this.#estimates.keys();
    if (this.#estimates.size > MOST_ESTIMATES && oldest !== undefined) this.#estimates.delete(oldest);
  }

  /** When the next look is worth it; `idle` looks in a row found nothing new. */
  delayMs(key: string, { position, retryAfterMs }: Waiting, idle: number): number {
    if (retryAfterMs === 0) return 0;
    const paceMs = this.#estimates.get(key);
    if (paceMs === undefined) return retryAfterMs;
    // Somewhat early: what is measured has the wait for the look in it, and would only ever grow.
    const grants = idle === 0 ? EARLY * (position - 1) + OF_THE_NEXT : IDLE_STEP * position * IDLE_GROWTH ** Math.min(idle - 1, 10);
    return Math.max(paceMs * grants, LEAST_POLL_MS);
  }
}
