/** The rules of a deployment, made from its few knobs, with the reasons for their bounds. */
import { assertLimits } from "./limit-relations.js";
import { DEFAULTS, RETENTION_MIN_MS, takeoverMarginMs } from "./limits.js";
import type { LockPolicy } from "./record.js";

assertLimits();

/** What a deployment may turn. */
export interface PolicyOptions {
  /** E, in ms: at least one of the two server clocks is this close to true time. @default 500 */
  readonly clockErrorMs?: number;
  /** How long an item outlives its last use, in ms; at least an hour. @default 86 400 000 */
  readonly retentionMs?: number;
}

/**
 * The rules for these options.
 * @throws RangeError when retention is below an hour: tokens and ended leases would be forgotten while
 *   late requests may still arrive.
 */
export function createPolicy({ clockErrorMs = DEFAULTS.clockErrorMs, retentionMs = DEFAULTS.retentionMs }: PolicyOptions = {}): LockPolicy {
  if (!(clockErrorMs >= 0 && clockErrorMs < DEFAULTS.clockGuardMs))
    throw new RangeError(`clockErrorMs: must be 0 to ${DEFAULTS.clockGuardMs}, below the clock guard`);
  if (!(retentionMs >= RETENTION_MIN_MS))
    throw new RangeError(`retentionMs: must be at least ${RETENTION_MIN_MS}, or late requests meet a forgotten key`);
  return { marginMs: (leaseMs) => takeoverMarginMs(leaseMs, clockErrorMs), retentionMs };
}
