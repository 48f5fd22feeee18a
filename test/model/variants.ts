/**
 * The deliberate mistakes of lock.pml, and the situations that it must reach. A run of the model without an error means nothing
 * unless each of these is found.
 */

/** One mistake: an `#ifdef` of lock.pml, named as in test/simulation where the same mistake is switched there. */
export interface Variant {
  readonly name: string;
  /** The properties of docs/guarantees.md of which it must break one. */
  readonly breaks: readonly string[];
  /** True for a mistake about sleepers: it is searched for in the model with one. */
  readonly sleeps?: true;
}

const EXCLUSION = ["S1", "S9"] as const;

/** The mistakes, in the order in which they are run. */
export const VARIANTS: readonly Variant[] = [
  { name: "no-margin", breaks: EXCLUSION },
  { name: "margin-of-e", breaks: EXCLUSION },
  { name: "margin-without-drift", breaks: EXCLUSION },
  { name: "single-clock", breaks: EXCLUSION },
  { name: "takeover-by-the-later-clock", breaks: EXCLUSION },
  { name: "remaining-by-the-earlier-clock", breaks: EXCLUSION },
  { name: "lease-ms-for-remaining-ms", breaks: EXCLUSION },
  { name: "deadline-from-receipt", breaks: EXCLUSION },
  { name: "unconditional-write", breaks: EXCLUSION },
  { name: "release-without-owner-check", breaks: EXCLUSION },
  { name: "release-before-belief-ends", breaks: EXCLUSION },
  { name: "renewal-that-shortens", breaks: EXCLUSION },
  { name: "renewal-without-its-hold", breaks: EXCLUSION },
  { name: "offered-key-to-a-newcomer", breaks: EXCLUSION },
  { name: "claimed-after-withdrawal", breaks: EXCLUSION },
  { name: "token-lost-at-the-end", breaks: ["S3"] },
  { name: "no-tombstones", breaks: ["S7"] },
  { name: "no-low-watermark", breaks: ["S7"] },
  { name: "left-place-read-as-a-waiter", breaks: ["S7"] },
  { name: "offer-never-lapses", breaks: ["L1"] },
  { name: "told-beside-who-claimed", breaks: ["S18"], sleeps: true },
  { name: "gone-believed-by-all", breaks: ["S18"], sleeps: true },
  { name: "ended-whatever-it-holds", breaks: ["S18"], sleeps: true },
  { name: "asleep-and-granted", breaks: ["S18"], sleeps: true },
  { name: "sleeper-seen-as-a-poller", breaks: ["L8"], sleeps: true },
  { name: "offer-lapses-as-a-pollers", breaks: ["L8"], sleeps: true },
  { name: "deleted-before-it-is-told", breaks: ["L8"], sleeps: true },
];

/** Those that need a sleeper: the last of all. */
export const SLEEPERS_SITUATIONS: readonly string[] = [
  "a sleeper is told that it has the key",
  "a sleeper is told that it lost its place",
  "a sleeper that nobody waits for is found dead",
  "an agent can't tell a dead sleeper from a told one",
  "a sleeper was granted the key when its wait is ended",
];

/** The situations that must occur: number n of this list is `occurs(n)` in lock.pml, counted from 1. */
export const SITUATIONS: readonly string[] = [
  "an acquire is replayed",
  "an offer is claimed",
  "a duplicate is refused by the low watermark alone",
  "an expired lease is taken over",
  "a lapsed offer is withdrawn",
  "a waiter is offered the key",
  "the key is granted three times",
  "a holder releases",
  "the key is granted after the faults",
  ...SLEEPERS_SITUATIONS,
];
