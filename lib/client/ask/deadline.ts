/**
 * Computes the deadline until which a client may treat its lease as held. Every reply that says held follows one rule: the deadline is the
 * instant at which the answered request was *sent*, plus `remainingMs`, minus the client's margin. Counted from receipt, a slow reply would
 * extend the lease beyond the server's. No reply makes it longer than `leaseMs`.
 *
 *    sent ───── request ─────▶ server reads its clocks: remaining = expiresAt − latest clock
 *     │                                                      │
 *     └──────── remainingMs − clientMarginMs ──▶ deadline    └── remainingMs ──▶ expiresAt (+ margin)
 */
import type { LeaseView } from "../../core/commands.js";
import { clientMarginMs } from "../../core/renewal.js";
import { type Clock, type Instant, elapsedMs, instantOf } from "../../core/time.js";

/** The deadline from a reply that said held. */
export interface LeaseDeadline {
  readonly sentAt: Instant;
  /** The time after `sentAt` for which the lease may be treated as held, in ms. */
  readonly lastsMs: number;
  /** The record's version: of two replies, the one with the higher version counts. */
  readonly version: number;
}

/** Returns the deadline for `lease`, the reply to a request sent at `sentAt`. */
export function deadlineFrom(lease: LeaseView, sentAt: Instant): LeaseDeadline {
  return { sentAt, lastsMs: Math.min(lease.remainingMs, lease.leaseMs) - clientMarginMs(lease.leaseMs), version: lease.version };
}

/**
 * Returns the time left until the deadline, in ms. The clock that shows more elapsed time counts, so neither a freeze nor a step of the
 * wall clock extends it.
 */
export function deadlineLeftMs({ sentAt, lastsMs }: LeaseDeadline, clock: Clock): number {
  return lastsMs - elapsedMs(sentAt, instantOf(clock));
}
