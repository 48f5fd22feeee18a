/** Backoff: pauses between attempts double from the first to the longest. All retries and polls use this formula. */

/** The bounds of the pauses, in ms. */
export interface Backoff {
  readonly firstMs: number;
  readonly longestMs: number;
}

/** The most doublings, so that the exponent stays bounded. */
const DOUBLINGS_MAX = 30;

/** Returns the pause after `attempts` earlier pauses, in ms, without jitter. */
export function backoffMs({ firstMs, longestMs }: Backoff, attempts: number): number {
  return Math.min(longestMs, firstMs * 2 ** Math.min(attempts, DOUBLINGS_MAX));
}
