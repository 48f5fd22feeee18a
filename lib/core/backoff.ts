/** Pauses between attempts that double from the first to the longest: the one formula of all retries and polls. */

/** The bounds of the pauses, in ms. */
export interface Backoff {
  readonly firstMs: number;
  readonly longestMs: number;
}

/** Doublings after which every pause is the longest: a bound on the exponent. */
const DOUBLINGS_MAX = 30;

/** The pause after `attempts` earlier pauses, in ms, without jitter. */
export function backoffMs({ firstMs, longestMs }: Backoff, attempts: number): number {
  return Math.min(longestMs, firstMs * 2 ** Math.min(attempts, DOUBLINGS_MAX));
}
