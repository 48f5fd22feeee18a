/**
 * What must be so of the limits for the protocol to be right, asserted when this file loads. Apart from them, because
 * a client carries the limits in every bundle, and decides nothing.
 */
import { clientMarginMs, DEFAULTS, FOREVER_MS, LIMITS, renewAfterMs, RETENTION_MIN_MS } from "./limits.js";

const SECOND = 1000;

const relations: readonly (readonly [rule: string, holds: boolean])[] = [
  ["the default lease is within its bounds", DEFAULTS.leaseMs >= LIMITS.leaseMinMs && DEFAULTS.leaseMs <= LIMITS.leaseMaxMs],
  ["a client still believes for most of the shortest lease", clientMarginMs(LIMITS.leaseMinMs) < LIMITS.leaseMinMs / 2],
  ["the first renewal leaves time for two more", renewAfterMs(LIMITS.leaseMinMs) * 3 <= LIMITS.leaseMinMs],
  [
    "an item outlives every late duplicate of its ids",
    RETENTION_MIN_MS >= LIMITS.leaseIdReachMs + LIMITS.leaseIdAheadMs + LIMITS.leaseIdBehindMs + DEFAULTS.clockGuardMs,
  ],
  [
    "an offer outlasts the next visit of who it is made to, by the worst of clocks and on a slow way",
    DEFAULTS.offerWindowMs >= LIMITS.visitMaxMs + 2 * DEFAULTS.clockErrorMs + 300,
  ],
  ["whoever lives reports before an offer lapses", LIMITS.reportAfterMs + SECOND < LIMITS.visitMaxMs],
  ["whoever visits is heard of before its place is gone", DEFAULTS.waiterTtlMs / 2 > LIMITS.visitMaxMs],
  ["the default retention is not below its minimum", DEFAULTS.retentionMs >= RETENTION_MIN_MS],
  ["forever is a safe integer, whatever is added", Number.isSafeInteger(2 * FOREVER_MS)],
  ["an outcome's body has room for its result", LIMITS.outcomeBodyBytes > LIMITS.resultBytes + LIMITS.inlineBytes],
  ["the guard is wider than the error it guards", DEFAULTS.clockGuardMs > 2 * DEFAULTS.clockErrorMs],
];
for (const [rule, holds] of relations) {
  if (!holds) throw new Error(`lib/core/limits.ts: not so: ${rule}`);
}
