/**
 * What a client may believe of its lease, and until when. One rule for every reply that says held: the
 * deadline is the instant at which the very request that was answered was *sent*, plus `remainingMs`,
 * less the client's margin. From receipt, a slow reply would stretch the lease beyond the server's.
 *
 *    sent ───── request ─────▶ server reads its clocks: remaining = expiresAt − later clock
 *     │                                                      │
 *     └──────── remainingMs − clientMarginMs ──▶ deadline    └── remainingMs ──▶ expiresAt (+ margin)
 */
import type { LeaseView } from "../../core/commands.js";
import { clientMarginMs } from "../../core/limits.js";
import type { Clock, Instant } from "../../core/time.js";
import { elapsedMs, instantOf } from "../../core/time.js";

/** A reply that said held, and when its request was sent. */
export interface LeaseDeadline {
  readonly sentAt: Instant;
  /** For how long after `sentAt` the lease may be believed. */
  readonly lastsMs: number;
  /** Of two replies the one with the higher version decides. */
  readonly version: number;
}

/** The belief that `lease` gives, in reply to a request sent at `sentAt`. */
export function deadlineFrom(lease: LeaseView, sentAt: Instant): LeaseDeadline {
  return { sentAt, lastsMs: lease.remainingMs - clientMarginMs(lease.leaseMs), version: lease.version };
}

/** How much of a belief is left, computed from both clocks: a frozen one and one that jumped end it. */
export function deadlineLeftMs({ sentAt, lastsMs }: LeaseDeadline, clock: Clock): number {
  return lastsMs - elapsedMs(sentAt, instantOf(clock));
}
