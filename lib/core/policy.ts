/** The policy of a deployment, made from its few options, with the reasons for their bounds. */
import { DEFAULTS, RETENTION_MIN_MS, takeoverMarginMs } from "./limits.js";
import type { LockPolicy } from "./record.js";

/** The options of a deployment. */
export interface PolicyOptions {
  /** E, in ms: at least one of the two server clocks is this close to true time. @default 500 */
  readonly clockErrorMs?: number | undefined;
  /** The shortest time between an item's last use and its garbage collection, in ms; at least an hour. @default 86 400 000 */
  readonly retentionMs?: number | undefined;
}

/**
 * Returns the policy for these options.
 * @throws RangeError when retention is below an hour: late requests could still arrive after tokens and ended leases
 *   are forgotten.
 */
export function createPolicy({ clockErrorMs = DEFAULTS.clockErrorMs, retentionMs = DEFAULTS.retentionMs }: PolicyOptions = {}): LockPolicy {
  if (!(clockErrorMs >= 0 && clockErrorMs < DEFAULTS.clockGuardMs))
    throw new RangeError(`clockErrorMs: must be 0 to ${DEFAULTS.clockGuardMs}, below the clock guard`);
  if (!(retentionMs >= RETENTION_MIN_MS))
    throw new RangeError(`retentionMs: must be at least ${RETENTION_MIN_MS}, or late requests meet a forgotten key`);
  return { marginMs: (leaseMs) => takeoverMarginMs(leaseMs, clockErrorMs), clockErrorMs, retentionMs };
}
