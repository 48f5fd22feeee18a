/** What the oracle finds: properties broken, and how often the interesting things happened. */

/** The properties that can be found broken; `docs/guarantees.md` states them. */
export type Property =
  | ("S1" | "S2" | "S3" | "S4" | "S5" | "S6" | "S7" | "S8" | "S9" | "S10" | "S11" | "S12" | "S13" | "S14")
  | ("L1" | "L2" | "L3" | "L4" | "R1" | "R2" | "R3" | "R4" | "internal");

/** A property found broken, when, and how. */
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
  /** Leases granted beside another's: readers, permits. */
  joins: 0,
  /** Leases granted under the scope that held already. */
  levels: 0,
  upgrades: 0,
  downgrades: 0,
  /** Sets granted, and sets that one of their keys kept out. */
  sets: 0,
  setsBlocked: 0,
  queued: 0,
  offers: 0,
  claims: 0,
  /** Waiters and offers that were given up because nobody was heard of. */
  skipped: 0,
  /** Waiters that wrote that they were there. */
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
  /** Runs started afresh because the time for which their outcome was kept had passed. */
  outcomesForgotten: 0,
  runsReset: 0,
  runsGivenUp: 0,
  runsCollected: 0,
};

/** How often the interesting things happened. */
export type Coverage = Record<keyof typeof NOTHING_YET, number>;

/** Nothing has happened yet. */
export function noCoverage(): Coverage {
  return { ...NOTHING_YET };
}

/** What those who judge a history have in common. */
export interface Bench {
  readonly coverage: Coverage;
  /** True time in ms. */
  now(): number;
  fail(property: Property, what: string): void;
}
