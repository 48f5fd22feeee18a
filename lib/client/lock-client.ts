/** The lock client as its users see it: the one interface that every `createLockClient` returns. */
/// <reference lib="esnext.disposable" preserve="true" />
import type { Health, Listed } from "../core/api/locks.js";
import type { Inspection } from "../core/lock/views.js";
import type { ElectOptions, Lead } from "./coordination/elect.js";
import type { KeyPart } from "../core/key.js";
import type { InvocationContext } from "./invocation.js";
import type { Lease } from "./lease/lease.js";
import type { LeaseSet, SetKey } from "./lease/lease-set.js";
import type { AcquireOptions, LeaseOptions, SetOptions } from "./options.js";
import type { Run, RunResult } from "./run/run-once.js";
import type { RunOptions } from "./run/run-options.js";
import type { Runs } from "./run/runs.js";
import type { WatchOptions } from "./coordination/watch.js";

/** Locks for one application. Made by `createLockClient`. */
export interface LockClient extends AsyncDisposable {
  /**
   * Asks for the key at once: the lease, or null when it is held by another.
   * @throws LockUnavailableError when nobody answered for 3 s
   */
  tryAcquire(key: string, options?: LeaseOptions & { readonly signal?: AbortSignal }): Promise<Lease | null>;
  /**
   * Waits for the key.
   * @throws LockTimeoutError after `waitMs` when the key is held, LockUnavailableError when nobody answered; AbortError
   *   when `signal` aborts. Either way nothing is held, but for what a cancel that nobody answers may leave until its lease is over.
   */
  acquire(key: string, options?: AcquireOptions): Promise<Lease>;
  /**
   * Acquires, keeps the lease alive, runs `work` and releases.
   * @throws LockLostError if the lease was lost while `work` ran, whatever it returned.
   */
  withLock<T>(key: string, work: (lease: Lease) => Promise<T> | T): Promise<T>;
  withLock<T>(key: string, options: AcquireOptions, work: (lease: Lease) => Promise<T> | T): Promise<T>;
  /**
   * Runs `work` once per key, and keeps what it returns: every other call with the key, now or later, gets the
   * same value. Another's run is waited for. An error that `work` throws lets the next caller start again, a
   * {@link FinalError} does not.
   * @throws LockTimeoutError when another still runs it after `waitMs`; RunFailedError when it failed for good
   *   before; LockLostError when the run was taken over: what `work` came to was not recorded; LockError with the
   *   code `fingerprint-mismatch`, `attempts-exhausted`, `result-omitted`, or within its own work `self-deadlock`.
   */
  runOnce<T>(idempotencyKey: string, work: (run: Run) => Promise<T> | T): Promise<RunResult<T>>;
  runOnce<T>(idempotencyKey: string, options: RunOptions, work: (run: Run) => Promise<T> | T): Promise<RunResult<T>>;
  /** What is known of runs, and how they are operated. */
  readonly runs: Runs;
  /** Asks at once for all of the keys, 1 to 25: the set, or null when one of them is held. Nobody waits for one with another in hand. */
  tryAcquireAll(keys: readonly SetKey[], options?: SetOptions): Promise<LeaseSet | null>;
  /** Waits until all of the keys are free at once. @throws LockTimeoutError after `waitMs`, naming one that is not. */
  acquireAll(keys: readonly SetKey[], options?: SetOptions): Promise<LeaseSet>;
  /** Acquires all of the keys, runs `work`, releases. @throws LockLostError if one was lost meanwhile. */
  withLocks<T>(keys: readonly SetKey[], work: (set: LeaseSet) => Promise<T> | T): Promise<T>;
  withLocks<T>(keys: readonly SetKey[], options: SetOptions, work: (set: LeaseSet) => Promise<T> | T): Promise<T>;
  /** The key as a mutex, with these options. */
  mutex(key: string, defaults?: AcquireOptions): LockHandle;
  /** The key as a semaphore of `limit` permits, each with a lease of its own: a crashed holder's come back by themselves. */
  semaphore(key: string, options: AcquireOptions & { readonly limit: number }): LockHandle;
  /** The key as a read-write lock. */
  readWrite(key: string, defaults?: AcquireOptions): ReadWriteHandle;
  /** The key in `count` segments, for a resource that one lock would make slow. */
  segments(key: string, count: number, defaults?: AcquireOptions): SegmentsHandle;
  /**
   * A reentrant view for one request: acquires of a key that is held under the same scope, by this process or any
   * other of the request, are granted at once, with the same token.
   * @param id at least 16 characters that nobody guesses, such as a trace id; a secret as the leaseId is one
   */
  scope(id: string): LockClient;
  /** Takes over what another process detached. The handle works once; the token is a new one. */
  attach(handle: string, options?: Omit<LeaseOptions, "meta">): Promise<Lease>;
  /**
   * A view for one Lambda invocation: caps leases and waits by its remaining time; close it at the end. With
   * `await using`, `return await` what you return: a plain `return` closes the view before the work is done.
   */
  forInvocation(context: InvocationContext): LockClient;
  /** Who holds the key, and who waits. */
  inspect(key: string): Promise<Inspection>;
  /**
   * Who holds the key and who waits, now and after every change, for `for await`. It looks each `intervalMs`: what
   * came and went in between is not seen, and a heartbeat is no change. Ends when `signal` aborts.
   * @throws LockError when a look is refused, or no answer came for 10 s.
   */
  watch(key: string, options?: WatchOptions): AsyncIterable<Inspection>;
  /**
   * Leader election: runs `lead` under the key's lease whenever this client is elected, until `signal` aborts or the
   * client is closed; then the lease's signal aborts too, and it resolves when `lead` has returned. A leader whose lease
   * is lost, or whose `lead` returns, stands again a renewal interval later. Standing by costs one request each
   * renewal interval.
   * @throws what `lead` throws: the key is free then, and the election over. A lease that is lost ends no election, nor does
   *   the error by which `lead` stops then: its signal's reason, what `assertHeld` throws, an AbortError.
   */
  elect(key: string, lead: Lead): Promise<void>;
  elect(key: string, options: ElectOptions, lead: Lead): Promise<void>;
  /** Held keys in order, a page at a time. */
  list(options?: {
    readonly prefix?: string;
    readonly owner?: string;
    readonly max?: number;
    readonly cursor?: string;
  }): Promise<Omit<Listed, "ok">>;
  /** Ends the hold with this token: it can't be renewed; with `drainMs` below its remaining time, by force. */
  forceRelease(
    key: string,
    options: { readonly reason: string; readonly fencingToken: number; readonly drainMs?: number },
  ): Promise<{ readonly breakInMs: number }>;
  /** Whether the service is up. */
  health(): Promise<Omit<Health, "ok">>;
  /** Stops heartbeats, releases what is held, and waits for every release and cancel on its way. The client grants nothing after it. */
  close(): Promise<void>;
}

/** Work under a lease. */
export type Work<T> = (lease: Lease) => Promise<T> | T;

/** A key and how it is used. */
export interface LockHandle {
  readonly key: string;
  /** At once: the lease, or null. */
  tryAcquire(options?: LeaseOptions & { readonly signal?: AbortSignal }): Promise<Lease | null>;
  /** Waits. @throws LockTimeoutError after `waitMs`. */
  acquire(options?: AcquireOptions): Promise<Lease>;
  /** Acquires, runs, releases. @throws LockLostError if the lease was lost meanwhile. */
  withLock<T>(work: Work<T>): Promise<T>;
  withLock<T>(options: AcquireOptions, work: Work<T>): Promise<T>;
}

/** One key used in both modes: readers together, a writer alone. */
export interface ReadWriteHandle {
  readonly read: LockHandle;
  readonly write: LockHandle;
}

/** A hot resource split into segments, each locked by itself: stock or a counter in parts, more leases than one key bears. */
export interface SegmentsHandle extends Omit<LockHandle, "key"> {
  /** The segments' keys. */
  readonly keys: readonly string[];
  /** The segment that `part` always falls to. */
  at(part: KeyPart): LockHandle;
}
