/**
 * Relations between limits that the protocol depends on. They are asserted when the function's code is made (infra/bundle.ts): no
 * constant changes after that, so no function asserts them again at each start.
 */
import * as limits from "./limits.js";
import { FOREVER_MS, RETENTION_MIN_MS } from "./limits.js";
import { clientMarginMs } from "./renewal.js";

/** The limits and defaults: the real ones, or a test's. */
type Figures<Of> = { readonly [Name in keyof Of]: number };

const SECOND = 1000;

/** @throws Error naming the relation that does not hold. */
export function assertLimits(
  LIMITS: Figures<typeof limits.LIMITS> = limits.LIMITS,
  DEFAULTS: Figures<typeof limits.DEFAULTS> = limits.DEFAULTS,
): void {
  const relations: readonly (readonly [rule: string, holds: boolean])[] = [
    ["the default lease is within its bounds", DEFAULTS.leaseMs >= LIMITS.leaseMinMs && DEFAULTS.leaseMs <= LIMITS.leaseMaxMs],
    [
      "the default wait outlasts a crashed holder's lease, its margin and two polls",
      DEFAULTS.waitMs >= DEFAULTS.leaseMs + limits.takeoverMarginMs(DEFAULTS.leaseMs, DEFAULTS.clockErrorMs) + 2 * LIMITS.pollMaxMs,
    ],
    ["a client treats the shortest lease as held for most of it", clientMarginMs(LIMITS.leaseMinMs) < LIMITS.leaseMinMs / 2],
    [
      "a full queue leaves room for one hold",
      // The remainder has room for an owner, a meta and as much again.
      LIMITS.queueBytes + LIMITS.smallRecordBytes + 2 * (3 * LIMITS.ownerChars + LIMITS.metaBytes) <= LIMITS.recordBytes,
    ],
    [
      "an item outlives every late duplicate of its ids",
      RETENTION_MIN_MS >= LIMITS.leaseIdReachMs + LIMITS.leaseIdAheadMs + LIMITS.leaseIdBehindMs + DEFAULTS.clockGuardMs,
    ],
    [
      "an offer outlasts its waiter's next poll, with the worst clocks and latency",
      DEFAULTS.offerWindowMs >= LIMITS.pollMaxMs + 2 * DEFAULTS.clockErrorMs + 300,
    ],
    ["a waiter is seen before its offer lapses", LIMITS.keepAliveAfterMs + SECOND < LIMITS.pollMaxMs],
    ["a waiter that polls in time is seen before it loses its place", DEFAULTS.waiterTtlMs / 2 > LIMITS.pollMaxMs],
    ["the default retention is not below its minimum", DEFAULTS.retentionMs >= RETENTION_MIN_MS],
    ["forever is a safe integer, whatever is added", Number.isSafeInteger(2 * FOREVER_MS)],
    ["an outcome's body has room for its result", LIMITS.outcomeBodyBytes > LIMITS.resultBytes + LIMITS.inlineBytes],
    ["the guard is wider than the error it guards", DEFAULTS.clockGuardMs > 2 * DEFAULTS.clockErrorMs],
  ];
  const [broken] = relations.find(([, holds]) => !holds) ?? [];
  if (broken !== undefined) throw new Error(`lib/core/limits.ts: not so: ${broken}`);
}
