/**
 * The record of one key: everything the service knows about it, and all that a decision may rest on.
 * A new kind of lock is new fields and new cases here, never a second record.
 *
 *   granted      client's deadline   expiresAtMs          + marginMs            + retention
 *   ──┼──────────────────┼───────────────┼────────────────────┼─────────────────────┼──▶ time
 *     holder believes    stops           nobody believes      may be taken over     may be collected
 */
import type { LeaseId } from "./lease-id.js";

/** The lock's modes: a mutex holds exclusively; readers share. */
export type Mode = "exclusive" | "shared";

/** A JSON object that a caller keeps with its lease. */
export type Meta = Readonly<Record<string, unknown>>;

/** One lease's hold on the key. */
export interface Hold {
  /** Who may renew and release it; empty after a transfer, until its first caller. */
  readonly principal: string;
  readonly owner: string;
  readonly mode: Mode;
  readonly permits: number;
  readonly fencingToken: number;
  readonly leaseMs: number;
  readonly grantedAtMs: number;
  readonly expiresAtMs: number;
  /** Nobody else is granted the key before `expiresAtMs + marginMs`; never falls while the lease lives. */
  readonly marginMs: number;
  /** Digest of the first acquire's parameters: another acquire by this id must match. Empty: any does. */
  readonly params: string;
  /** Broken by an operator: may drain until it expires, but never renew. */
  readonly broken?: "drain" | "forced";
  readonly meta?: Meta;
}

/** How a lease ended, as far as the key remembers. */
export type Ending = "released" | "expired" | "taken" | "broken" | "transferred" | "cancelled";

/** A leaseId that never holds again, and why. */
export interface EndedLease {
  readonly leaseId: LeaseId;
  readonly ending: Ending;
  /** Its fencing token, where a repeat is recognised by it (a break). */
  readonly fencingToken?: number;
}

/** Everything about one key. */
export interface LockRecord {
  /** Rises by one with every change; a re-created item starts above every earlier one. */
  readonly version: number;
  /** The token of the latest grant; 0 before the first. */
  readonly fencingToken: number;
  readonly holds: Readonly<Record<LeaseId, Hold>>;
  /** The latest to end first; at most {@link LIMITS.endedRemembered}. */
  readonly ended: readonly EndedLease[];
  /** The highest leaseId that has left `ended`: no new lease at or below it. Empty: none has. */
  readonly floor: LeaseId;
  /** Epoch seconds after which garbage collection may remove the record. Decides nothing else. */
  readonly ttlAtSec: number;
}

/** The knobs of a deployment that decisions depend on. */
export interface LockRules {
  /** How long after its expiry a lease of this length may be taken over, in ms. */
  marginMs(leaseMs: number): number;
  readonly retentionMs: number;
}
