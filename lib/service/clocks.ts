/**
 * The two clocks of a request. Each decision uses the one whose error is safe (core/time.ts), so that any error of one
 * is harmless while the other is right. With one of three handlers off by ±10 s, a single clock broke mutual exclusion
 * in 2419 of 3000 simulated histories, two clocks in none. By one clock nothing is decided (decision 075).
 */
import { brand } from "../core/brand.js";
import { type Refusal, refuse } from "../core/errors.js";
import { isSkewed, refuseBySkew } from "../core/lock/expiry.js";
import { CLOCKS_APART_MS } from "../core/rate.js";
import { type Clock, type ClockReading, elapsedMs, instantOf } from "../core/time.js";
import type { ReadClocks } from "../store/port.js";

/** Bounds of the second clock's present time. */
export interface ClockBounds {
  readonly lowMs: number;
  readonly highMs: number;
}

/**
 * The clocks of a request; no reading while its second clock is unknown. They are stale while a read of the table would narrow their interval.
 */
export type RequestClocks = (() => ClockReading | undefined) & { readonly isStale?: () => boolean };

/** The second clock is read again before a decision if its bounds are further apart than this, in ms. */
const STALE_MS = 2500;

/**
 * Makes the clocks of one request to a function: its own, and the gateway's time at the request's arrival plus the time
 * elapsed since. Without a readable time of the gateway they have no reading.
 */
export function gatewayClocks(clock: Clock, gatewayTimeMs: unknown): RequestClocks {
  const arrived = instantOf(clock);
  return () => {
    if (typeof gatewayTimeMs !== "number" || !Number.isFinite(gatewayTimeMs)) return undefined;
    const now = instantOf(clock);
    const leastMs = Math.max(0, Math.min(now.monotonicMs - arrived.monotonicMs, now.wallMs - arrived.wallMs));
    const mostMs = Math.max(0, elapsedMs(arrived, now));
    return readingOf(now.wallMs, { lowMs: gatewayTimeMs + leastMs, highMs: gatewayTimeMs + mostMs });
  };
}

/**
 * Makes the clocks of a direct client: its own, and the table's from its responses. They are stale before the first
 * response, and after a long silence or a freeze. Nothing is written by stale clocks. Without a response that had a time they have no reading.
 */
export function tableClocks(clock: Clock, tableTime: () => ClockBounds | undefined): RequestClocks {
  const isStale = (): boolean => {
    const bounds = tableTime();
    return !bounds || bounds.highMs - bounds.lowMs > STALE_MS;
  };
  const read = (): ClockReading | undefined => {
    const bounds = tableTime();
    return bounds && readingOf(clock.wallMs(), bounds);
  };
  return Object.assign(read, { isStale });
}

/** Makes the clocks where all parts share one clock, as those in one process do. */
export function oneClock(clock: Clock): ReadClocks {
  return () => {
    const ms = clock.wallMs();
    return { earliestMs: ms, latestMs: ms };
  };
}

function readingOf(ownMs: number, second: ClockBounds): ClockReading {
  return {
    earliestMs: Math.floor(Math.min(ownMs, second.lowMs)),
    latestMs: Math.ceil(Math.max(ownMs, second.highMs)),
    likelyMs: Math.ceil(Math.min(Math.max(ownMs, second.lowMs), second.highMs)),
  };
}

/** Nothing is decided by these clocks: the second one is unknown, or the two disagree by more than the guard. */
export class UnfitClocks extends Error {
  static {
    brand(this, "UnfitClocks");
  }
  override readonly name = "UnfitClocks";
  /** The answer to the request that needed them. */
  readonly refusal: Refusal;

  constructor(refusal: Refusal) {
    super(refusal.detail);
    this.refusal = refusal;
  }
}

const UNKNOWN =
  "The time of the gateway, or the Date of DynamoDB's answers, is missing or can't be read, and one clock alone decides nothing";

/** Returns clocks that are known. A reading throws {@link UnfitClocks} otherwise. Only the end of a lease may be decided by them: they may disagree. */
export function known(clocks: RequestClocks): ReadClocks {
  return () => {
    const reading = clocks();
    if (!reading) throw new UnfitClocks(refuse("clock-unknown", { detail: UNKNOWN }));
    return reading;
  };
}

/** Guards `clocks`: a reading throws {@link UnfitClocks} if one is unknown or they disagree. Each decision uses a reading that was checked. */
export function guarded(clocks: RequestClocks): ReadClocks {
  const read = known(clocks);
  return () => {
    const reading = read();
    if (isSkewed(reading)) throw new UnfitClocks(refuseBySkew(reading));
    return reading;
  };
}

/**
 * Returns clocks for takes from limits: while they agree, the later one doesn't go back. Straight on the table it does, as answers narrow the
 * bounds of the table's time. The last take of a burst would then find the first one dated after now, and be refused.
 */
export function neverBack(clocks: ReadClocks): ReadClocks {
  let latestMs = 0;
  return () => {
    const reading = clocks();
    latestMs = Math.max(reading.latestMs, Math.min(latestMs, reading.earliestMs + CLOCKS_APART_MS));
    return { ...reading, latestMs };
  };
}
