/** The service's time, as the page shows all times. The browser's clock may be wrong: only its pace is used. */

/** The service's time less the browser's, in ms, and the error of that: half of the time that the answer took. */
let known = { offsetMs: 0, errorMs: Infinity };

/** The difference from which an offset is another, and not the way of a request, in ms. */
const MOVED_MS = 1000;
/** The difference that is worth a word, in ms. */
const SKEW_MS = 5000;

/** Returns the service's time, in epoch ms. Before its first answer it is the browser's. */
export function serviceNowMs(): number {
  return Date.now() + known.offsetMs;
}

/** Learns the offset from an answer that tells the service's time. The quickest answer counts until the offset has moved. */
export function learnOffset(serverTimeMs: number, sentAtMs: number, answeredAtMs: number): void {
  const offsetMs = serverTimeMs - (sentAtMs + answeredAtMs) / 2;
  const errorMs = (answeredAtMs - sentAtMs) / 2;
  const isMoved = Math.abs(offsetMs - known.offsetMs) > MOVED_MS + errorMs + known.errorMs;
  if (isMoved || errorMs <= known.errorMs) known = { offsetMs, errorMs };
}

/** Returns how far the browser's clock is from the service's, in ms, if that is worth a word; positive: it is ahead. */
export function skewMs(): number | undefined {
  return Math.abs(known.offsetMs) > SKEW_MS ? -known.offsetMs : undefined;
}
