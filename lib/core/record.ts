/**
 * The record of one key: everything the service knows about it, and all that a decision may depend on. A new kind of
 * lock adds fields and cases here, never a second record.
 *
 *   granted      client's deadline   expiresAtMs          + marginMs            + retention
 *   ──┼──────────────────┼───────────────┼────────────────────┼─────────────────────┼──▶ time
 *     client treats      client stops    no client treats     may be taken over     may be collected
 *     it as held                         it as held
 */
import type { Details } from "./details.js";
import type { LeaseId } from "./lease-id.js";

/** The lock's modes: a mutex or a writer holds exclusively; readers share. */
export type Mode = "exclusive" | "shared";

/** A part that a newer version of the same format may extend. */
export interface Extensible {
  /** Fields of a newer version: carried along unchanged, and never read. */
  readonly unknown?: Readonly<Record<string, unknown>>;
}

/** One lease's hold on the key. */
export interface Hold extends Details, Extensible {
  /** Digest of the principal that may renew and release it. Empty after a transfer, until the first call of the new lease. */
  readonly principal: string;
  readonly mode: Mode;
  /** The number of the key's permits that it takes; 1 unless the key is a semaphore. */
  readonly permits: number;
  /** Digest of the scope under which it was acquired: leases of one scope hold together. Absent: no scope. */
  readonly scope?: string;
  readonly fencingToken: number;
  readonly leaseMs: number;
  readonly grantedAtMs: number;
  readonly expiresAtMs: number;
  /** The key goes to no other lease before `expiresAtMs + marginMs`. Never decreases while the lease lives. */
  readonly marginMs: number;
  /** Hash of the first acquire's parameters: another acquire by this id must match. Empty: any matches. */
  readonly requestHash: string;
  /** Set when an operator broke the hold: it may drain until it expires, but never renew. */
  readonly broken?: "drain" | "forced";
  /** The last notify that woke a waiter, by which a repeated one is recognised. */
  readonly notified?: Notified;
}

/** A notify of a lease. It counts for one token: a transfer starts a new count, and a change of mode takes the count along. */
export interface Notified extends Extensible {
  readonly fencingToken: number;
  /** The highest sequence of a notify that woke a waiter. */
  readonly sequence: number;
  /** The number of waiters that it woke. */
  readonly count: number;
}

/** An entry of the queue. The acquire's other parameters are not stored: the waiter sends them again with each poll. */
export interface Waiter extends Extensible {
  readonly leaseId: LeaseId;
  /** Digest of the principal that queued it. Only this principal may poll for it or remove it. */
  readonly principal: string;
  readonly owner: string;
  readonly mode: Mode;
  readonly permits: number;
  /** Hash of the acquire's parameters, which are the same in every poll. */
  readonly requestHash: string;
  /** Higher priorities first, then the order of arrival. */
  readonly priority: number;
  /** The waiter loses its place if it isn't seen before this time. */
  readonly aliveUntilMs: number;
  /** The time between the moment it was last seen and `aliveUntilMs`: longer for places further back. */
  readonly ttlMs: number;
  /** It never polls: an agent claims the key for it. Then `aliveUntilMs` is its own deadline, and `ttlMs` is 0. */
  readonly asleep?: true;
  /**
   * In the wait set: the condition that it waits for. In the queue or in an offer: the condition whose notify it got. If it leaves without
   * the key, that notify goes to the next in the wait set.
   */
  readonly condition?: string;
  /** Unknown fields of its queue entry, which an offer doesn't carry. */
  readonly unknownOfPlace?: Extensible["unknown"];
}

/** A member of the wait set: it gets the key only after a notify of its condition. */
export interface Member extends Waiter {
  readonly condition: string;
}

/** A waiter that the key is reserved for, until it claims the key or the offer lapses. No client treats an offer as a held lease. */
export interface Offer extends Omit<Waiter, "aliveUntilMs" | "ttlMs" | "unknownOfPlace"> {
  readonly offeredAtMs: number;
}

/** A reader that waits for the other readers to leave, to become the writer. */
export interface Upgrading extends Extensible {
  readonly leaseId: LeaseId;
  readonly untilMs: number;
}

/** The way a lease ended, as far as the key's record knows. */
export type Ending =
  | "released"
  | "expired"
  | "taken"
  | "broken"
  | "transferred"
  /** It never held. */
  | "cancelled"
  /** Ended according to one of two clocks that disagreed, and not according to the other. */
  | "unknown";

/** A leaseId that never holds again, and why. */
export interface Tombstone extends Extensible {
  readonly leaseId: LeaseId;
  readonly ending: Ending;
  /** Its fencing token, where a repeated request is recognised by it (a break). */
  readonly fencingToken?: number;
  /** Digest of the outcome that it recorded, by which a repeated request is recognised. */
  readonly outcome?: string;
}

/**
 * A JSON value that a run stores. A small one is in the record; a large one is in an item of its own, named by its
 * digest and written before the record refers to it.
 */
export interface Payload extends Extensible {
  /** Digest of the JSON text. */
  readonly digest: string;
  readonly bytes: number;
  /** The JSON text, if the record itself stores it. */
  readonly text?: string;
  /** Epoch seconds after which the payload's own item may be collected. */
  readonly ttlAtSec?: number;
}

/** The saved progress of a run. */
export interface Checkpoint extends Payload {
  /** Its position among the checkpoints of the same lease, if the caller numbers them: a late duplicate has a lower one. */
  readonly sequence?: number;
}

/**
 * `running`: a lease holds it, or did until it ran out · `interrupted`: an attempt ended without an outcome, and the
 * takeover after it was cancelled · `retry`: the latest attempt failed, and the next may start at once · `succeeded`,
 * `failed`: over, and replayed for as long as the outcome is stored.
 */
export type RunState = "running" | "interrupted" | "retry" | "succeeded" | "failed";

/** Work under an idempotency key: a lease whose release carries an outcome. */
export interface Run extends Extensible {
  readonly state: RunState;
  /** 1 for the first; every start adds 1. */
  readonly attempt: number;
  /** True if the attempt before this one ended without an outcome. */
  readonly takeover: boolean;
  /** Fingerprint of the input; empty matches any. */
  readonly fingerprint: string;
  /** The time for which the outcome is stored, in ms; {@link FOREVER_MS} for ever. */
  readonly keepResultMs: number;
  /** The last checkpoint of the latest attempt. */
  readonly checkpoint?: Checkpoint;
  /** The outcome of the latest attempt that ended. */
  readonly outcome?: Outcome;
}

/** The end of an attempt, as recorded by its own lease. */
export interface Outcome {
  readonly recordedBy: LeaseId;
  /** Digest of the lease's principal. */
  readonly principal: string;
  readonly owner: string;
  /** The time of the lease's grant. */
  readonly startedAtMs: number;
  readonly endedAtMs: number;
  /** The result or the error; absent without one. */
  readonly payload?: Payload;
  /** There was a result, but it was too large to store. */
  readonly omitted?: true;
  /** The time at which a final outcome is forgotten. */
  readonly keptUntilMs?: number;
}

/** Everything about one key. */
export interface LockRecord {
  /** Increases by one with every change; a re-created item starts above every earlier version. */
  readonly version: number;
  /** The token of the latest grant; 0 before the first. */
  readonly fencingToken: number;
  /**
   * The token of the latest grant that met no other holder: resources compare it for shared leases and permits. The
   * first reader after a writer raises it, so a late write of that writer is refused.
   */
  readonly fenceFloor: number;
  /** The number of permits: 1 unless the key is a semaphore. The present holders set it; a free key takes the next caller's. */
  readonly limit: number;
  readonly holds: Readonly<Record<LeaseId, Hold>>;
  /** Offers that are not claimed yet. */
  readonly offers: readonly Offer[];
  /** The queue, in order. */
  readonly waiters: readonly Waiter[];
  /** The wait set: the leases that wait for a condition, in the order of their arrival. Absent: none. They are not in the queue. */
  readonly waitSet?: readonly Member[];
  /** The number of keep-alives written, which leave the version unchanged. Version and touches together identify a state of the queue and of the wait set. */
  readonly touches?: number;
  /** The length of the lease that was released last, in ms, and of the one before: the pace of the queue. Absent: none was released yet. */
  readonly heldMs?: number;
  readonly heldBeforeMs?: number;
  /** The first reader that asked to become the writer, and the time until which its request counts. */
  readonly upgrading?: Upgrading;
  /** Tombstones, the latest end first; at most {@link LIMITS.tombstonesMax}. */
  readonly tombstones: readonly Tombstone[];
  /** The low watermark: the highest leaseId that has left `ended`. Ids at or below it get no new lease. Empty: no id has left. */
  readonly lowWatermark: LeaseId;
  /** The state of the work, if the key is a run's. */
  readonly run?: Run;
  /** Epoch seconds after which garbage collection may remove the record. No decision depends on it. */
  readonly ttlAtSec: number;
}

/** The options of a deployment that decisions depend on. */
export interface LockPolicy {
  /** Returns the time after its expiry from which a lease of this length may be taken over, in ms. */
  marginMs(leaseMs: number): number;
  /** E, from which the margin is made, in ms. */
  readonly clockErrorMs: number;
  readonly retentionMs: number;
}
