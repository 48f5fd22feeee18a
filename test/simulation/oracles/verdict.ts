/** The oracle's findings: broken properties, and how often the relevant situations occurred. */

/** The properties that the oracle checks. `docs/guarantees.md` states them. */
export type Property =
  | ("S1" | "S2" | "S3" | "S4" | "S5" | "S6" | "S7" | "S8" | "S9" | "S10")
  | ("S11" | "S12" | "S13" | "S14" | "S16" | "S17" | "S18" | "S19" | "S20")
  | ("L1" | "L2" | "L3" | "L4" | "L5" | "L6" | "L7" | "L8" | "L9" | "L10" | "L11" | "R1" | "R2" | "R3" | "R4" | "internal");

/** A broken property, the time at which it broke, and a description. */
export interface Violation {
  readonly property: Property;
  readonly atMs: number;
  readonly what: string;
}

const NOTHING_YET = {
  grants: 0,
  takeovers: 0,
  collections: 0,
  fencedLateWrites: 0,
  duplicatesPastTheRing: 0,
  renewals: 0,
  releases: 0,
  transfers: 0,
  breaks: 0,
  losses: 0,
  /** Leases granted beside other leases: readers, permits. */
  joins: 0,
  /** Leases granted to a scope that already held the key. */
  levels: 0,
  upgrades: 0,
  downgrades: 0,
  /** Sets granted, and sets refused because of one of their keys. */
  sets: 0,
  setsBlocked: 0,
  queued: 0,
  offers: 0,
  claims: 0,
  /** Waiters and offers that were dropped because their client wasn't seen. */
  skipped: 0,
  /** Waiters that wrote a keep-alive. */
  reports: 0,
  runStarts: 0,
  runTakeovers: 0,
  /** Attempts that took over and found a checkpoint. */
  checkpointsHanded: 0,
  /** Final outcomes that were recorded. */
  outcomes: 0,
  zombieOutcomesRefused: 0,
  replays: 0,
  mismatches: 0,
  /** Runs started afresh because the retention of their outcome had passed. */
  outcomesForgotten: 0,
  runsReset: 0,
  runsGivenUp: 0,
  runsCollected: 0,
  /** Waits that ended without the key, after the last request for it. */
  waitsInVain: 0,
  /** Waits for a condition, and notifies. */
  waits: 0,
  notifies: 0,
  /** Clients with two ways that left the service, and that returned to it. */
  failovers: 0,
  fallbacks: 0,
  /** Takes of limits that were granted, those of them that start later, and those that were refused. */
  takes: 0,
  takesLater: 0,
  takesRefused: 0,
  /** Limits that were shut. */
  shuts: 0,
  /** Sleepers that were told of the key, that were told that they lost their place, and that an agent found dead. */
  sleepersWoken: 0,
  sleepersLost: 0,
  sleepersDead: 0,
  /** Sleepers that were told of the key while a Region of their table was cut off. */
  sleepersWokenInAnOutage: 0,
  /** Leases of callers that poll and that sleep, one after the other. */
  turns: 0,
  /** Writes that met one of another Region. */
  conflicts: 0,
};

/** The number of occurrences of each situation. */
export type Coverage = Record<keyof typeof NOTHING_YET, number>;

/** Returns the coverage before any event. */
export function noCoverage(): Coverage {
  return { ...NOTHING_YET };
}

/** The interface that the oracles of a history share. */
export interface Bench {
  readonly coverage: Coverage;
  /** True time in ms. */
  now(): number;
  fail(property: Property, what: string): void;
}
