/** Many histories, and what they add up to: violations, and proof that the interesting things happened. */
import type { History } from "./history.js";
import type { Coverage, Violation } from "./verdict.js";

/** What a campaign came to. */
export interface Campaign {
  histories: number;
  requests: number;
  events: number;
  coverage: Partial<Coverage>;
  /** The first violations, each with the seed that replays it. */
  readonly failures: (Violation & { readonly seed: number })[];
  violatingHistories: number;
}

/** What a campaign must have seen: without these a green run would mean nothing. */
export const MUST_SEE: readonly (keyof Coverage)[] = [
  ...(["takeovers", "collections", "fencedLateWrites", "duplicatesPastTheRing"] as const),
  ...(["joins", "levels", "upgrades", "downgrades", "sets", "setsBlocked"] as const),
  ...(["queued", "offers", "claims", "skipped", "reports"] as const),
  ...(["runTakeovers", "checkpointsHanded", "zombieOutcomesRefused", "replays", "mismatches"] as const),
  ...(["outcomesForgotten", "runsReset", "runsGivenUp", "runsCollected"] as const),
];

const FAILURES_KEPT = 10;

/** A campaign of nothing yet. */
export function emptyCampaign(): Campaign {
  return { histories: 0, requests: 0, events: 0, coverage: {}, failures: [], violatingHistories: 0 };
}

/** Simulates these seeds, one after the other; stops early if `enough` says so. */
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

/** `total` with what another part of the campaign came to. */
export function merge(total: Campaign, part: Campaign): void {
  total.histories += part.histories;
  total.requests += part.requests;
  total.events += part.events;
  total.violatingHistories += part.violatingHistories;
  total.failures.push(...part.failures);
  count(total.coverage, part.coverage);
}

/** What the campaign should have seen and did not. */
export function unseen({ coverage }: Campaign): readonly string[] {
  return MUST_SEE.filter((what) => (coverage[what] ?? 0) === 0);
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
