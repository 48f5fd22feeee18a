/**
 * Which faults a history has, and how bad: every seed draws its own mix (about half of them off), so
 * that rare combinations come up. Every magnitude may exceed every timeout of the design, but never the
 * assumptions: for each request one server clock is within E, client rates are within ρ, and a client's
 * clocks are not both wrong.
 */
import { DEFAULTS } from "../../lib/core/limits.js";
import type { Random } from "./random.js";

/** One history's faults; all durations in ms. */
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
  /** How far one function's clock may be off, beyond the guard; 0: no further than the others'. */
  readonly strayErrorMs: number;
  /** Of the table's own clock, which clients straight on the table go by. */
  readonly tableErrorMs: number;
  /** Between a store and the table: writes lost, answers lost, throttled, in the way of a transaction. */
  readonly loseWrite: number;
  readonly loseAnswer: number;
  readonly throttle: number;
  readonly conflict: number;
  /** Server clocks are as far off as they may be, one way or the other: there the takeover margin shows. */
  readonly clocksAtExtremes: boolean;
  readonly handlerJumps: boolean;
  /** How many of the leases are kept alive; the others show what happens at a deadline. */
  readonly heartbeats: number;
}

/** A history's faults, and whether they strike: in the end everything heals, and liveness is judged. */
export interface FaultProfile {
  readonly mix: FaultMix;
  isFoul: boolean;
}

const E = DEFAULTS.clockErrorMs;
const MINUTE = 60_000;
/** Minutes, an hour, days: a machine whose clock nobody sets. */
const STRAY_MS = [2 * MINUTE, 20 * MINUTE, 60 * MINUTE, 3 * 24 * 60 * MINUTE];

/** The mix of this history. */
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

/** A clock's error: its extremes as often as anything between, or nothing else. */
export function drawClockError(random: Random, mostMs: number, atExtremes = false): number {
  if (atExtremes) return random.pick([-mostMs, mostMs]);
  return random.pick([-mostMs, mostMs, random.between(-mostMs, mostMs), 0]);
}
