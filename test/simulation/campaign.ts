/** Many histories and their totals: violations, and proof that the relevant situations occurred. */
import type { History } from "./history.js";
import type { Coverage, Violation } from "./oracles/verdict.js";

/** The result of a campaign. */
export interface Campaign {
  histories: number;
  requests: number;
  events: number;
  coverage: Partial<Coverage>;
  /** The first violations, each with the seed that replays it. */
  readonly failures: (Violation & { readonly seed: number })[];
  violatingHistories: number;
}

/** The situations that a campaign must have reached. Without them a green run would prove nothing. */
export const MUST_SEE: readonly (keyof Coverage)[] = [
  ...(["takeovers", "collections", "fencedLateWrites", "duplicatesPastTheRing"] as const),
  ...(["joins", "levels", "upgrades", "downgrades", "sets", "setsBlocked"] as const),
  ...(["queued", "offers", "claims", "skipped", "reports"] as const),
  ...(["runTakeovers", "checkpointsHanded", "zombieOutcomesRefused", "replays", "mismatches"] as const),
  ...(["waitsInVain", "waits", "notifies"] as const),
  ...(["takesLater", "takesRefused", "shuts"] as const),
  ...(["sleepersWoken", "sleepersLost", "sleepersDead", "turns"] as const),
  ...(["outcomesForgotten", "runsReset", "runsGivenUp", "runsCollected"] as const),
];

const FAILURES_KEPT = 10;

/** Returns the result of a campaign that has run no seed yet. */
export function emptyCampaign(): Campaign {
  return { histories: 0, requests: 0, events: 0, coverage: {}, failures: [], violatingHistories: 0 };
}

/** Simulates these seeds in order. Stops early if `enough` returns true. */
export async function campaign(
  run: (seed: number) => Promise<History>,
  seeds: Iterable<number>,
  enough: (sofar: Campaign) => boolean = () => false,
): Promise<Campaign> {
  const total = emptyCampaign();
  for (const seed of seeds) {
    add(total, await run(seed));
    if (enough(total)) break;
  }
  return total;
}

/** The message of a worker after each history. Its last message is its part of the campaign. */
export const PLAYED = "played";

/** Adds the result of another part of the campaign to `total`. */
export function merge(total: Campaign, part: Campaign): void {
  total.histories += part.histories;
  total.requests += part.requests;
  total.events += part.events;
  total.violatingHistories += part.violatingHistories;
  total.failures.push(...part.failures);
  count(total.coverage, part.coverage);
}

/** The situations that are played in scenes of their own, which have a table of one Region; and those that only several Regions have. */
const IN_ONE_REGION: ReadonlySet<string> = new Set(["waits", "notifies", "turns"]);
const IN_REGIONS = ["conflicts", "sleepersWokenInAnOutage"] as const;

/** Returns the situations that the campaign should have reached and didn't. */
export function unseen({ coverage }: Campaign, inRegions: boolean): readonly string[] {
  const wanted = inRegions ? [...MUST_SEE.filter((what) => !IN_ONE_REGION.has(what)), ...IN_REGIONS] : MUST_SEE;
  return wanted.filter((what) => (coverage[what] ?? 0) === 0);
}

function add(total: Campaign, { seed, violations, coverage, requests, events }: History): void {
  total.histories++;
  total.requests += requests;
  total.events += events;
  count(total.coverage, coverage);
  if (violations.length === 0) return;
  total.violatingHistories++;
  if (total.failures.length < FAILURES_KEPT) total.failures.push(...violations.slice(0, 1).map((violation) => ({ ...violation, seed })));
}

function count(total: Partial<Coverage>, part: Partial<Coverage>): void {
  for (const [what, times] of Object.entries(part) as [keyof Coverage, number][]) total[what] = (total[what] ?? 0) + times;
}
