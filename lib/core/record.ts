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

/** Something that a newer version of the same format may say more of. */
interface Extensible {
  /** Fields of a newer version: carried along as they are, and never read. */
  readonly unknown?: Readonly<Record<string, unknown>>;
}

/** One lease's hold on the key. */
export interface Hold extends Extensible {
  /** Digest of the principal that may renew and release it; empty after a transfer, until its first caller. */
  readonly principal: string;
  readonly owner: string;
  readonly mode: Mode;
  /** How many of the key's permits it takes; 1 but of a semaphore. */
  readonly permits: number;
  /** Digest of the scope under which it was acquired: leases of one scope hold together. Absent: none. */
  readonly scope?: string;
  readonly fencingToken: number;
  readonly leaseMs: number;
  readonly grantedAtMs: number;
  readonly expiresAtMs: number;
  /** Nobody else is granted the key before `expiresAtMs + marginMs`; never falls while the lease lives. */
  readonly marginMs: number;
  /** Digest of the first acquire's parameters: another acquire by this id must match. Empty: any does. */
  readonly requestHash: string;
  /** Broken by an operator: may drain until it expires, but never renew. */
  readonly broken?: "drain" | "forced";
  readonly meta?: Meta;
}

/** Somebody in the queue. What else it asks for it says again when its turn has come. */
export interface Waiter extends Extensible {
  readonly leaseId: LeaseId;
  /** Digest of the principal that queued it: nobody else asks for it, or takes it out. */
  readonly principal: string;
  readonly owner: string;
  readonly mode: Mode;
  readonly permits: number;
  /** Digest of the acquire's parameters, which are the same at every ask. */
  readonly requestHash: string;
  /** Higher ones first; of equal ones, who came first. */
  readonly priority: number;
  /** It loses its place when nothing was heard of it by then. */
  readonly aliveUntilMs: number;
  /** How long before that it was heard of: longer the farther back it stands. */
  readonly ttlMs: number;
  /** Unknown fields of its place in the queue, which an offer has no use for. */
  readonly unknownOfPlace?: Extensible["unknown"];
}

/** Whose turn it is: the key is kept for it until it claims it, or the offer lapses. Nobody believes in an offer. */
export interface Offer extends Omit<Waiter, "aliveUntilMs" | "ttlMs" | "unknownOfPlace"> {
  readonly offeredAtMs: number;
}

/** A reader that waits for the others to go. */
export interface Upgrading extends Extensible {
  readonly leaseId: LeaseId;
  readonly untilMs: number;
}

/** How a lease ended, as far as the key remembers. */
export type Ending =
  | "released"
  | "expired"
  | "taken"
  | "broken"
  | "transferred"
  /** It never held. */
  | "cancelled"
  /** By one of two clocks that disagreed, and not by the other. */
  | "unknown";

/** A leaseId that never holds again, and why. */
export interface Tombstone extends Extensible {
  readonly leaseId: LeaseId;
  readonly ending: Ending;
  /** Its fencing token, where a repeat is recognised by it (a break). */
  readonly fencingToken?: number;
  /** Digest of the outcome that it recorded, by which a repeat of that is recognised. */
  readonly outcome?: string;
}

/**
 * A JSON value that a run keeps: in the record where it is small, else on an item of its own, named by
 * its digest and written before the record speaks of it.
 */
export interface Payload extends Extensible {
  /** Of the JSON text. */
  readonly digest: string;
  readonly bytes: number;
  /** The JSON text, where the record itself keeps it. */
  readonly text?: string;
  /** Epoch seconds after which the item of its own may be collected. */
  readonly ttlAtSec?: number;
}

/** How far the work got. */
export interface Checkpoint extends Payload {
  /** Its place among those of the same lease, where its caller counts: a late duplicate has a lower one. */
  readonly sequence?: number;
}

/**
 * `running`: a lease holds it, or did until it ran out · `interrupted`: an attempt never said how it
 * ended, and the takeover after it was cancelled · `retry`: the latest attempt failed, the next may start
 * at once · `succeeded`, `failed`: over, and replayed for as long as it is kept.
 */
export type RunState = "running" | "interrupted" | "retry" | "succeeded" | "failed";

/** Work under an idempotency key: a lease whose release carries an outcome. */
export interface Run extends Extensible {
  readonly state: RunState;
  /** 1 for the first; every start adds one. */
  readonly attempt: number;
  /** The attempt before this one never said how it ended. */
  readonly takeover: boolean;
  /** Of what the run is about; empty matches any. */
  readonly fingerprint: string;
  /** How long the outcome is kept; {@link FOREVER_MS} for ever. */
  readonly keepResultMs: number;
  /** What the latest attempt saved last. */
  readonly checkpoint?: Checkpoint;
  /** How the latest attempt that ended did. */
  readonly outcome?: Outcome;
}

/** An attempt's end, as its own lease recorded it. */
export interface Outcome {
  readonly recordedBy: LeaseId;
  /** Digest of its principal. */
  readonly principal: string;
  /** The result or the error; absent when there was none. */
  readonly payload?: Payload;
  /** There was a result, too large to be kept. */
  readonly omitted?: true;
  /** When a final outcome is forgotten. */
  readonly keptUntilMs?: number;
}

/** Everything about one key. */
export interface LockRecord {
  /** Rises by one with every change; a re-created item starts above every earlier one. */
  readonly version: number;
  /** The token of the latest grant; 0 before the first. */
  readonly fencingToken: number;
  /**
   * The token of the latest grant that met nobody else holding: what a resource compares for shared leases and permits. So
   * the first reader after a writer raises it, and a late write of that writer is refused.
   */
  readonly fenceFloor: number;
  /** How many permits may be out at once: 1 but for a semaphore. The present holders'; a free key takes the next caller's. */
  readonly limit: number;
  readonly holds: Readonly<Record<LeaseId, Hold>>;
  /** Those whose turn it is, and who have not claimed it yet. */
  readonly offers: readonly Offer[];
  /** The queue, in order. */
  readonly waiters: readonly Waiter[];
  /** How often waiters have said that they are still there, which leaves the version alone: with it, a state of the queue. */
  readonly touches?: number;
  /** The reader that asked first to become the writer, and until when it counts as asking. */
  readonly upgrading?: Upgrading;
  /** The latest to end first; at most {@link LIMITS.tombstonesMax}. */
  readonly ended: readonly Tombstone[];
  /** The highest leaseId that has left `ended`: no new lease at or below it. Empty: none has. */
  readonly floor: LeaseId;
  /** Where the key is a run's: what became of the work. */
  readonly run?: Run;
  /** Epoch seconds after which garbage collection may remove the record. Decides nothing else. */
  readonly ttlAtSec: number;
}

/** The knobs of a deployment that decisions depend on. */
export interface LockPolicy {
  /** How long after its expiry a lease of this length may be taken over, in ms. */
  marginMs(leaseMs: number): number;
  readonly retentionMs: number;
}
