/**
 * The faults of a history and their magnitudes. Every seed draws its own mix, with about half of the faults off, so that rare combinations
 * occur. A magnitude may exceed every timeout of the design, but never the assumptions: for each request one server clock is within E,
 * client rates are within ρ, and at most one of a client's clocks is wrong.
 */
import { DEFAULTS } from "../../lib/core/limits.js";
import type { Random } from "./random.js";

/** One history's faults. All durations are in ms. */
export interface FaultMix {
  readonly loseRequest: number;
  readonly loseReply: number;
  readonly duplicate: number;
  readonly slowMs: number;
  readonly lateMs: number;
  readonly stallMs: number;
  readonly pause: number;
  readonly pauseMs: number;
  readonly stopsMonotonic: boolean;
  readonly crash: number;
  readonly clientWallErrorMs: number;
  readonly clientJumpMs: number;
  readonly handlerErrorMs: number;
  readonly gatewayErrorMs: number;
  /** The error of one function's clock, beyond the guard. 0: no larger than the others' errors. */
  readonly strayErrorMs: number;
  /** The error of the table's own clock, which direct clients use. */
  readonly tableErrorMs: number;
  /** The chances of faults between a store and the table: a lost write, a lost answer, throttling, a conflict with a transaction. */
  readonly loseWrite: number;
  readonly loseAnswer: number;
  readonly throttle: number;
  readonly conflict: number;
  /** True if server clocks are at their largest allowed error in either direction. That tests the takeover margin. */
  readonly clocksAtExtremes: boolean;
  readonly handlerJumps: boolean;
  /** The share of leases that are renewed. The others run into their deadlines. */
  readonly heartbeats: number;
}

/** The faults that can be taken out of a history, and their value without them. */
const NONE = {
  loseRequest: 0,
  loseReply: 0,
  duplicate: 0,
  slowMs: 20,
  lateMs: 1000,
  stallMs: 5,
  pause: 0,
  crash: 0,
  clientWallErrorMs: 0,
  clientJumpMs: 0,
  handlerErrorMs: DEFAULTS.clockErrorMs,
  gatewayErrorMs: DEFAULTS.clockErrorMs,
  strayErrorMs: 0,
  loseWrite: 0,
  loseAnswer: 0,
  throttle: 0,
  conflict: 0,
  handlerJumps: false,
} as const satisfies Partial<FaultMix>;

/** The names of these faults. */
export const FAULTS = Object.keys(NONE) as readonly (keyof typeof NONE)[];

export function withoutFaults(mix: FaultMix, without: ReadonlySet<string>): FaultMix {
  return { ...mix, ...Object.fromEntries(Object.entries(NONE).filter(([fault]) => without.has(fault))) };
}

/** A history's faults, and whether they are active. In the end all faults stop, and liveness is checked. */
export interface FaultProfile {
  readonly mix: FaultMix;
  isFoul: boolean;
}

const E = DEFAULTS.clockErrorMs;
const MINUTE = 60_000;
/** Minutes, an hour, days: the errors of a machine whose clock isn't synchronised. */
const STRAY_MS = [2 * MINUTE, 20 * MINUTE, 60 * MINUTE, 3 * 24 * 60 * MINUTE];

/** Draws the mix of this history. */
export function drawFaults(random: Random): FaultMix {
  const some = <T>(fault: T, none: T): T => (random.chance(0.5) ? fault : none);
  const handlersAreFaulty = random.chance(0.5);
  const clocksAtExtremes = random.chance(0.3);
  const wildMs = clocksAtExtremes ? E : random.between(E, 14_000);
  const stopsMonotonic = random.chance(0.5);
  return {
    loseRequest: some(random.between(0, 0.2), 0),
    loseReply: some(random.between(0, 0.35), 0),
    duplicate: some(random.between(0, 0.3), 0),
    slowMs: some(random.between(100, 9000), 20),
    lateMs: some(random.between(5_000, 14 * 60_000), 1000),
    stallMs: some(random.between(50, 25_000), 5),
    pause: some(random.between(0, 0.3), 0),
    pauseMs: random.between(500, 60_000),
    stopsMonotonic,
    crash: some(random.between(0, 0.15), 0),
    clientWallErrorMs: some(9_000, 0),
    clientJumpMs: stopsMonotonic ? 0 : some(random.between(0, 3_600_000), 0),
    handlerErrorMs: handlersAreFaulty ? wildMs : E,
    gatewayErrorMs: handlersAreFaulty ? E : wildMs,
    strayErrorMs: handlersAreFaulty && random.chance(0.4) ? random.pick(STRAY_MS) : 0,
    tableErrorMs: E,
    loseWrite: some(random.between(0, 0.03), 0),
    loseAnswer: some(random.between(0, 0.06), 0),
    throttle: some(random.between(0, 0.05), 0),
    conflict: random.pick([0, 0.3, 1]),
    clocksAtExtremes,
    handlerJumps: random.chance(0.7),
    heartbeats: random.pick([0.1, 0.6, 1]),
  };
}

/** Draws a clock's error: the extremes as often as the values between, or only the extremes. */
export function drawClockError(random: Random, mostMs: number, atExtremes = false): number {
  if (atExtremes) return random.pick([-mostMs, mostMs]);
  return random.pick([-mostMs, mostMs, random.between(-mostMs, mostMs), 0]);
}
