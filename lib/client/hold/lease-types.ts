/** A lease as its holder sees it: the interface, which lease.ts implements. */
/// <reference lib="esnext.disposable" preserve="true" />
import type { LeaseState } from "../../core/commands.js";
import type { LeaseId } from "../../core/lease-id.js";
import type { Meta } from "../../core/details.js";
import type { Mode } from "../../core/record.js";
import type { Kind } from "../../core/api/locks.js";
import type { Handoff } from "../ask/local-queue.js";

/**
 * The state. `unknown`: the deadline has not passed, but the last renewal got no response. `waiting`: it waits for a condition, and the key
 * is not held.
 */
export type State = "held" | "unknown" | "waiting" | "lost" | "released";

/** Options of a wait for a condition. */
export interface WaitOptions {
  /** The time to wait for a notify, in ms. @default 45 000 */
  readonly waitMs?: number | undefined;
  /**
   * The time to take the key back after the notify or the timeout, in ms. When it is over, nothing is held, and a notify has gone to the
   * next waiter. An invocation's remaining time shortens it. @default 300 000
   */
  readonly takeBackMs?: number | undefined;
  /** Gives up the wait and the lease: nothing is held then. If the notify came first, the wait ends as notified. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * A hold on a key. Release it, or let `await using` do so, which throws LockLostError unless the lease was held to the end, as `withLock`
 * does. If the block throws as well, JavaScript combines both into a SuppressedError.
 */
export interface Lease extends AsyncDisposable {
  /** The key, with the client's prefix. */
  readonly key: string;
  /** The id under which it was granted. It proves the hold: keep it secret. */
  readonly leaseId: LeaseId;
  /** The label that the acquire gave, for people. */
  readonly owner: string;
  /** `exclusive` or `shared`; an upgrade or a downgrade changes it. */
  readonly mode: Mode;
  /** The permits that it takes of the key's limit; 1 without a limit. */
  readonly permits: number;
  /** The number of holds of its scope on the key, this one included; 1 without a scope. */
  readonly holdCount: number;
  /** Strictly increases with every grant of the key. Pass it to the resource that you write to (see `fencedWrite`). */
  readonly fencingToken: number;
  /**
   * The token that a resource compares for this lease: its own token, or for a shared lease or a permit the token of the last grant that
   * met no other holder. Readers, and permits, hold together, and would otherwise fence each other off.
   */
  readonly fenceFloor: number;
  /** The state, computed at each call. */
  readonly state: State;
  /** Aborts with {@link LockLostError} before another client can be granted the key, and when the lease is released. */
  readonly signal: AbortSignal;
  /** The time for which the lease may still be treated as held without a renewal, in ms; 0 if it is not held. */
  remainingMs(): number;
  /** True if the key is held, computed at each call. */
  isHeld(): boolean;
  /** Call it before each side effect. @throws LockLostError if the key is not held. */
  assertHeld(): void;
  /**
   * Says that the work gets on, for a lease with `progressMs`. Sends nothing. Returns true if the key is held; a lease that was lost stays
   * lost.
   */
  progress(): boolean;
  /**
   * Extends the lease now; never shortens it. Heartbeats do this automatically.
   * @throws LockLostError if the lease has ended; LockUnavailableError if there was no response before the deadline.
   */
  renew(options?: { readonly leaseMs?: number | undefined; readonly meta?: Meta | undefined }): Promise<void>;
  /**
   * Turns a shared lease into an exclusive one as soon as it is the only reader, with a new token.
   * @throws LockTimeoutError if other readers still hold the key after `waitMs` (default 45 s; 0 asks once); LockError `upgrade-conflict`
   *   if another reader asked first: release this lease, or both wait for ever; LockLostError.
   */
  upgrade(options?: { readonly waitMs?: number | undefined }): Promise<void>;
  /**
   * Turns an exclusive lease into a shared one, with a new token, and lets other readers in. @throws LockLostError if the lease has ended.
   */
  downgrade(): Promise<void>;
  /**
   * Frees the key. Returns how the hold ended; `lost` means that the key was granted to another holder before, so the guarded work must be
   * rolled back. Safe to repeat.
   * @throws LockUnavailableError if there was no response: the key is free when its lease ends, at the latest.
   */
  release(): Promise<LeaseState>;
  /**
   * Frees the key, waits until a later holder notifies `condition`, and takes the key back: this lease holds again then, with another
   * leaseId and a new fencing token. Meanwhile it is not held, and its signal does not abort. Call it in a loop that tests the condition:
   * it may also return without a notify, for example after a pause of the process. Only for an exclusive lease without other levels of its
   * scope.
   * @throws LockTimeoutError without a notify in `waitMs`, once the key is taken back: the lease is held. AbortError, LockUnavailableError,
   *   or LockLostError, `taken` if another held the key for all of `takeBackMs`: nothing is held. LockError `not-exclusive`, `queue-full`
   *   or `key-full`: the lease is still held.
   */
  wait(condition: string, options?: WaitOptions): Promise<void>;
  /**
   * Wakes the lease that has waited for `condition` longest, if there is one. It takes the key back after this lease is released, in the
   * order of the queue. Returns the number of leases that it woke: 0 or 1.
   * @throws LockLostError if the lease has ended; LockUnavailableError if there was no response: the notify may have happened.
   */
  notify(condition: string): Promise<number>;
  /** Wakes all leases that wait for `condition`. Returns their number. */
  notifyAll(condition: string): Promise<number>;
  /**
   * Transfers the hold to the process that attaches with the returned handle within `leaseMs`; this side stops. The handle is a secret and
   * works once. @default leaseMs: the lease's own
   */
  detach(options?: { readonly leaseMs?: number | undefined }): Promise<string>;
}

/** The kind of a lease, and its handoff to the next waiter of this process, if any. */
export interface LeaseKind {
  readonly kind: Kind;
  readonly handoff?: Handoff | undefined;
}

/** The keep-alive of a lease, as the lease sees it. */
export interface Keeper<Kept> {
  /** Called when the deadline has become earlier. */
  deadlineMoved(): void;
  /** Called when the lease has ended, or waits for a condition. */
  end(): void;
  /** Called when the lease holds again after a wait. */
  start(): void;
  /** Keeps another lease alive, under which no work runs: without the limits of a hold. */
  keep(lease: Kept): void;
  /** Called when the work says that it gets on. */
  progress(): void;
}

/** The client that holds a lease, as the lease sees it. */
export interface LeaseClient<L> {
  /** The lease ended, for any reason. */
  ended(lease: L): void;
  /** A heartbeat began. */
  beats(lease: L, beat: Promise<void>): void;
  /** A renewal failed, and the lease isn't lost. */
  renewalFailed(lease: L, error: unknown): void;
  /** The keep-alive ended the hold: its key is to be released. */
  giveBack(lease: L): void;
  /** Releases the lease. @throws LockLostError unless it was held until then */
  endHold(lease: L): Promise<void>;
}
