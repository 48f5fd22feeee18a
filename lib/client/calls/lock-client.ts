/** The lock client's interface for users. Every `createLockClient` returns it. */
/// <reference lib="esnext.disposable" preserve="true" />
import type { Health, Listed, Via } from "../../core/api/locks.js";
import type { Inspection } from "../../core/lock/views.js";
import type { ElectOptions, Lead } from "./elect.js";
import type { KeyPart } from "../../core/key.js";
import type { InvocationContext } from "../wire/invocation.js";
import type { RefreshOptions } from "./refresh.js";
import type { Limiter, LimiterOptions, Limits } from "./limiter.js";
import type { Tick, TickOptions, TickResult } from "./tick.js";
import type { CloseOptions } from "../hold/closing.js";
import type { Lease } from "../hold/lease-types.js";
import type { LeaseSet, SetKey } from "../hold/lease-set.js";
import type { AcquireOptions, LeaseOptions, SetOptions, WhenUnavailable } from "./options.js";
import type { RunResult } from "./run/outcome.js";
import type { Run } from "./run/run-once.js";
import type { RunOptions } from "./run/run-options.js";
import type { Runs } from "./run/runs.js";
import type { WatchOptions } from "./watch.js";

/** The locks of one application. Created by `createLockClient`. */
export interface LockClient extends AsyncDisposable {
  /**
   * Asks for the key at once. Returns the lease, or null if the key is held.
   * @throws LockUnavailableError if there was no response for 3 s
   */
  tryAcquire(key: string, options?: LeaseOptions & { readonly signal?: AbortSignal | undefined }): Promise<Lease | null>;
  /**
   * Waits for the key.
   * @throws LockTimeoutError if the key is still held after `waitMs`; LockUnavailableError if there was no response; AbortError if
   *   `signal` aborts. Nothing is held then, unless the cancel gets no response either: a grant can then last until its lease ends.
   */
  acquire(key: string, options?: AcquireOptions): Promise<Lease>;
  /**
   * Acquires the key, keeps the lease alive, runs `work` and releases. With `whenUnavailable: "proceed"`, `work` gets no lease if the locks
   * can't be reached.
   * @throws LockLostError if the lease was lost while `work` ran, whatever `work` returned; InvalidRequestError if it returned a generator,
   *   another async iterable, such as a stream, or an Observable, which would do work after the release: so do all calls that run work.
   */
  withLock<T>(key: string, work: (lease: Lease) => Promise<T> | T): Promise<T>;
  withLock<T>(key: string, options: AcquireOptions & Throwing, work: (lease: Lease) => Promise<T> | T): Promise<T>;
  withLock<T>(key: string, options: AcquireOptions & Skipping, work: (lease: Lease) => Promise<T> | T): Promise<T | undefined>;
  withLock<T>(key: string, options: AcquireOptions & Proceeding, work: UnsureWork<Lease, T>): Promise<T>;
  withLock<T>(key: string, options: AcquireOptions & WhenUnavailable, work: UnsureWork<Lease, T>): Promise<T | undefined>;
  /**
   * Runs `work` once per key and stores its return value. Every other call with the key, now or later, gets the same value. A concurrent
   * call waits for the run. If `work` throws an error, the next caller starts again, up to `maxAttempts` (5), unless it is a
   * {@link FinalError}: throw that for an outcome that no retry changes, such as a declined card.
   * @throws LockTimeoutError if another caller still runs it after `waitMs`; RunFailedError if it failed for good before; LockLostError
   *   if the run was taken over, so that the outcome of `work` was not recorded; LockUnavailableError if it was not recorded in 10 s (the
   *   client tries until the lease is over; in an invocation the call waits for that); LockError with the code `fingerprint-mismatch`,
   *   `attempts-exhausted` or `result-omitted`.
   */
  runOnce<T>(idempotencyKey: string, work: (run: Run) => Promise<T> | T): Promise<RunResult<T>>;
  runOnce<T>(idempotencyKey: string, options: RunOptions & Throwing, work: (run: Run) => Promise<T> | T): Promise<RunResult<T>>;
  runOnce<T>(idempotencyKey: string, options: RunOptions & Skipping, work: (run: Run) => Promise<T> | T): Promise<RunResult<T> | undefined>;
  runOnce<T>(idempotencyKey: string, options: RunOptions & Proceeding, work: UnsureWork<Run, T>): Promise<RunResult<T>>;
  runOnce<T>(idempotencyKey: string, options: RunOptions & WhenUnavailable, work: UnsureWork<Run, T>): Promise<RunResult<T> | undefined>;
  /** Inspects and operates runs. */
  readonly runs: Runs;
  /**
   * Asks at once for all keys, 1 to 25. Returns the set, or null if any of them is held. A set is granted whole, or nothing
   * of it is.
   */
  tryAcquireAll(keys: readonly SetKey[], options?: SetOptions): Promise<LeaseSet | null>;
  /**
   * Waits for all keys: in the queue of the key that is in its way, and then asks for all at once. Of keys that always have callers, it keeps
   * those at which it has had its turn while it waits at the next, for 2 s at most. @throws LockTimeoutError after `waitMs`, naming a key
   * that is held.
   */
  acquireAll(keys: readonly SetKey[], options?: SetOptions): Promise<LeaseSet>;
  /** Acquires all keys, runs `work` and releases. @throws LockLostError if any of them was lost meanwhile. */
  withLocks<T>(keys: readonly SetKey[], work: (set: LeaseSet) => Promise<T> | T): Promise<T>;
  withLocks<T>(keys: readonly SetKey[], options: SetOptions & Throwing, work: (set: LeaseSet) => Promise<T> | T): Promise<T>;
  withLocks<T>(keys: readonly SetKey[], options: SetOptions & Skipping, work: (set: LeaseSet) => Promise<T> | T): Promise<T | undefined>;
  withLocks<T>(keys: readonly SetKey[], options: SetOptions & Proceeding, work: UnsureWork<LeaseSet, T>): Promise<T>;
  withLocks<T>(keys: readonly SetKey[], options: SetOptions & WhenUnavailable, work: UnsureWork<LeaseSet, T>): Promise<T | undefined>;
  /** Returns a handle of the key as a mutex with these options. */
  mutex(key: string, defaults?: AcquireOptions): LockHandle;
  /**
   * Returns a handle of the key as a semaphore of `limit` permits. Each permit has its own lease, so a crashed holder's permits become free
   * by themselves.
   */
  semaphore(key: string, options: AcquireOptions & { readonly limit: number }): LockHandle;
  /** Returns a handle of the key as a read-write lock. */
  readWrite(key: string, defaults?: AcquireOptions): ReadWriteHandle;
  /** Returns a handle of the key in `count` segments, for a resource that is too busy for a single lock. */
  segments(key: string, count: number, defaults?: AcquireOptions): SegmentsHandle;
  /**
   * Returns a reentrant view for one request. An acquire of a key that is held under the same scope, by this process or any other process
   * of the request, is granted at once, with the same token.
   * @param id at least 16 characters that cannot be guessed; as secret as a leaseId. Don't use a trace id that a caller can choose or
   *   that logs reveal
   */
  scope(id: string): LockClient;
  /** Takes over a lease that another process detached. The handle works once, and the lease gets a new token. */
  attach(handle: string, options?: Pick<LeaseOptions, "leaseMs" | "owner" | "heartbeat" | "maxHoldMs" | "progressMs">): Promise<Lease>;
  /**
   * Returns a view for one Lambda invocation, which caps leases and waits by its remaining time. Close it at the end. With `await using`,
   * write `return await`: a plain `return` closes the view before the work is done.
   */
  forInvocation(context: InvocationContext): LockClient;
  /** Returns the key's holders and waiters. */
  inspect(key: string): Promise<Inspection>;
  /**
   * Yields the key's holders and waiters, now and after every change, for `for await`. It polls every `intervalMs`: a change that is undone
   * between two polls is not seen, and a heartbeat doesn't count as a change. Ends when `signal` aborts.
   * @throws LockError if a poll is refused, or there was no response for 10 s.
   */
  watch(key: string, options?: WatchOptions): AsyncIterable<Inspection>;
  /**
   * Leader election: runs `lead` under the key's lease whenever this client is elected, until `signal` aborts or the client is closed. Then
   * the lease's signal aborts too, and the call resolves when `lead` has returned. The key is free then, or when its lease is over. A leader
   * whose lease is lost, or whose `lead` returns, campaigns again after one renewal interval. A candidate costs one request per renewal
   * interval. An outage doesn't end the election, and neither does a refusal after the first answer: it is an event, and the candidate asks
   * again after pauses that grow to 30 s.
   * @throws the error of `lead`: the key is free then, and the election over. A lost lease does not end the election, and neither does an
   *   error by which `lead` then stops: the signal's reason, the error of `assertHeld`, or an AbortError. LockError if the first answer is a
   *   refusal that a repetition doesn't change, such as for want of a right.
   */
  elect(key: string, lead: Lead): Promise<void>;
  elect(key: string, options: ElectOptions, lead: Lead): Promise<void>;
  /**
   * Returns a value that is shared and expensive or dangerous to renew, such as an OAuth token, and renews it once for all if it is not
   * fresh. A fresh value costs no request. Nothing of it is stored by the service. Concurrent callers of this client share one refresh, with
   * the first one's options. A scope doesn't make it reentrant.
   * @throws the error of `read`, `renew` or `save`; RunFailedError while a failure is remembered (`keepFailureMs`); LockTimeoutError if another caller still renews it after `waitMs`; LockLostError if the
   *   lease was lost during the renewal, whose value is not saved then; LockUnavailableError if the value is not fresh and there was no
   *   response; AbortError if `signal` aborts.
   */
  refresh<T>(key: string, options: RefreshOptions<T>): Promise<T>;
  /**
   * Runs `work` once for an occurrence of a schedule, whoever delivers it and however often. The run's key is `name`, `_` and the time as ISO
   * 8601. Two occurrences never run at the same time: a lock on `name` is held meanwhile. If `work` throws, the next delivery of the same
   * occurrence is the next attempt.
   * @throws the error of `work`; RunFailedError if it failed for good before (`FinalError`); LockLostError if the lease was lost while it
   *   ran; LockUnavailableError if there was no response; LockError `attempts-exhausted`; AbortError if `signal` aborts.
   */
  tick<T>(name: string, options: TickOptions, work: (tick: Tick) => Promise<T> | T): Promise<TickResult<T>>;
  /**
   * Returns a limit: so many in a time, and with `concurrent` so many at once. All users of the name give the same rates.
   * @throws InvalidRequestError if a rate is invalid
   */
  limiter(name: string, options: LimiterOptions): Limiter;
  /** Inspects limits. */
  readonly limits: Limits;
  /** Lists held keys in order, one page at a time. */
  list(options?: {
    readonly prefix?: string | undefined;
    readonly owner?: string | undefined;
    readonly max?: number | undefined;
    readonly cursor?: string | undefined;
  }): Promise<Omit<Listed, "ok">>;
  /** Ends the hold with this token. It can't be renewed any more; if `drainMs` is less than its remaining time, it ends by force. */
  forceRelease(
    key: string,
    options: { readonly reason: string; readonly fencingToken: number; readonly drainMs?: number | undefined },
  ): Promise<{ readonly breakInMs: number }>;
  /** Returns the status of the service. A client of `holdfast/dynamodb` also says which way it uses, and since when. */
  health(): Promise<Omit<Health, "ok">>;
  /**
   * Chooses the way of new requests: through the service, straight to the table, or `"auto"`: through the service, and straight to the table
   * while the service can't be reached. All leases stay as they are.
   * @throws InvalidRequestError if the client doesn't have that way (only those of `holdfast/dynamodb` with a `url` have two); LockError
   *   `not-configured` if the other way would not know this client's leases; LockUnavailableError if it could not be asked
   */
  use(via: Via): Promise<void>;
  /**
   * Grants nothing more, ends all waits, and lets work that runs go on under renewed leases. Each lease is released when its work has returned;
   * after `drainMs` the signals of the others abort, and their keys go when their work has returned or their leases are over. Leases of
   * `acquire()` are released at once by default. Resolves when all work has returned or its lease is over, and all releases, cancels and
   * outcomes were answered or given up. Called again, it waits as the first call does, or ends the time of work sooner. Called by work under
   * a lease, it does not wait for that work, whose signal aborts at once. A view closes what was acquired with it.
   */
  close(options?: CloseOptions): Promise<void>;
}

/** Work under a lease. */
export type Work<T> = (lease: Lease) => Promise<T> | T;

/** Work that may run without the lease, if the locks can't be reached. */
export type UnsureWork<L, T> = (lease: L | undefined) => Promise<T> | T;

interface Throwing {
  readonly whenUnavailable?: "throw" | undefined;
}
interface Skipping {
  readonly whenUnavailable: "skip";
}
interface Proceeding {
  readonly whenUnavailable: "proceed";
}

/** A key with its mode and default options. */
export interface LockHandle {
  readonly key: string;
  /** Asks once. Returns the lease, or null. */
  tryAcquire(options?: LeaseOptions & { readonly signal?: AbortSignal | undefined }): Promise<Lease | null>;
  /** Waits for the lease. @throws LockTimeoutError after `waitMs`. */
  acquire(options?: AcquireOptions): Promise<Lease>;
  /** Acquires, runs `work` and releases. @throws LockLostError if the lease was lost meanwhile. */
  withLock<T>(work: Work<T>): Promise<T>;
  withLock<T>(options: AcquireOptions, work: Work<T>): Promise<T>;
}

/** A key used in both modes: several readers together, or a single writer. */
export interface ReadWriteHandle {
  readonly read: LockHandle;
  readonly write: LockHandle;
}

/** A busy resource split into segments with separate locks, such as stock or a counter in parts, for more leases than one key sustains. */
export interface SegmentsHandle extends Omit<LockHandle, "key"> {
  /** The segments' keys. */
  readonly keys: readonly string[];
  /** Returns the handle of the segment to which `part` always maps. */
  at(part: KeyPart): LockHandle;
}
