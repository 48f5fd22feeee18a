/**
 * A shared value that is expensive or dangerous to renew, renewed once for all: an OAuth token whose provider revokes the whole chain if a
 * refresh token is used twice. The value stays in the caller's own store; the service sees the key alone.
 *
 * 1. Read the value. A fresh one costs no request.
 * 2. Acquire the key, and read again: another caller may have renewed it meanwhile. Who waits reads now and then too, and leaves the queue
 *    with a value that is fresh.
 * 3. Renew. Then save, unless the lease was lost: a process that was frozen must not overwrite a later value.
 *
 * Everybody asks for the key exclusively. A reader that shared it could be the one that takes over from a dead process, and then the one
 * that renews would not learn of the death.
 */
import { type Backoff, backoffMs } from "../../core/backoff.js";
import { isA } from "../../core/brand.js";
import { bounded } from "../../core/key.js";
import type { Ending } from "../../core/record.js";
import * as LIMITS from "../../core/request-limits.js";
import { abortError } from "../ask/fresh-id.js";
import { FinalError, RunFailedError } from "../wire/errors.js";
import { type Check, type Checks, CHECKS, checkOptions, checkWork, ms } from "../wire/checks.js";
import type { Registry } from "../hold/registry.js";
import type { Session } from "./session.js";
import { type Runtime, pause } from "../wire/retry.js";
import type { Locks } from "./locks.js";

/** The circumstances in which {@link RefreshOptions.renew} is called. */
export interface Renewal {
  /** Aborts when the lease is lost: another process can renew the value from then on. */
  readonly signal: AbortSignal;
  /**
   * True if the last holder of the key before this one ended without a release, so it may have renewed `old` and not saved the result. Costs a
   * request, so ask when the provider refuses `old`. No lock can tell more: somebody has to log in again. A key remembers its last eight
   * endings, also of callers that gave up a wait: after eight of these it is false.
   */
  interrupted(): Promise<boolean>;
}

/** The calls and limits of a refresh. */
export interface RefreshOptions<T> {
  /**
   * Reads the value from your own store, undefined if there is none. Called without the lock, again about once a second by a process that waits
   * for it, and under it.
   */
  readonly read: () => Promise<T | undefined> | T | undefined;
  /** Returns true if the value can be used as it is. Leave a margin, such as a minute before it expires. */
  readonly isFresh: (value: T) => boolean;
  /** Makes a new value, with `old` as it was read under the lock. Nobody else does so at the same time. */
  readonly renew: (old: T | undefined, renewal: Renewal) => Promise<T> | T;
  /** Stores the value. Let the store refuse a smaller fencing token than it has seen (see `fencedWrite`). */
  readonly save: (value: T, lease: { readonly fencingToken: number }) => Promise<unknown>;
  /** The lease's length in ms, after which another process takes over if this one dies. @default the client's `leaseMs`, else 30 000 */
  readonly leaseMs?: number | undefined;
  /** The time to wait for another process that renews the value, in ms. @default the client's `waitMs`, else 45 000 */
  readonly waitMs?: number | undefined;
  /**
   * The time in ms, 1 min to 365 d, for which a failure is remembered if `renew` throws a {@link FinalError}, such as for a refresh token that
   * the provider has revoked: until then every caller whose value is not fresh gets a RunFailedError, and `renew` is not called. Other
   * errors are not remembered. The service stores the name and message of the error, as of a run. It costs a request before each renewal.
   * @default 0, which remembers none
   */
  readonly keepFailureMs?: number | undefined;
  /** Ends this caller's wait with an AbortError, and not that of others. A renewal that has begun goes on. */
  readonly signal?: AbortSignal | undefined;
}

/** The refreshes of one client that are under way, by their keys. */
export type PendingRefreshes = Map<string, PendingRefresh>;

const isCalled: Check = (name, value) => checkWork(name, name, value, "it must be a function");
const CALLS = { read: isCalled, isFresh: isCalled, renew: isCalled, save: isCalled };
const OPTIONS: Checks<RefreshOptions<never>> = {
  ...CALLS,
  leaseMs: CHECKS.leaseMs,
  waitMs: CHECKS.waitMs,
  signal: CHECKS.signal,
  keepFailureMs: (name, value) => void (value === 0 || ms(LIMITS.keepResultMinMs, LIMITS.keepResultMaxMs)(name, value)),
};

/** The pauses between two reads of who waits: the first, which doubles up to the longest, with jitter. */
const READS: Backoff = { firstMs: 100, longestMs: 1000 };

/** The endings of a lease whose holder did not give it back. */
const INTERRUPTED: ReadonlySet<Ending> = new Set(["expired", "taken", "broken"]);

/** @throws InvalidRequestError naming the invalid option of a refresh. */
export function checkRefresh<T>(options: RefreshOptions<T>): void {
  checkOptions("refresh", options, OPTIONS, ...Object.keys(CALLS));
}

/** Returns the fresh value. Callers of one client share one refresh, which has the first caller's options. */
export async function refresh<T>(
  locks: Locks,
  pending: PendingRefreshes,
  key: string,
  options: RefreshOptions<T>,
  { registry, deps }: Pick<Session, "registry" | "deps">,
): Promise<T> {
  const underWay = pending.get(key);
  if (underWay) {
    const value = (await underWay.join(options.signal, registry)) as T;
    // A value that is fresh for another caller can be the one that the provider refused to this one.
    if (options.isFresh(value)) return value;
  }
  const refreshing = pending.get(key) ?? new PendingRefresh(pending, key, (signal) => refreshed(locks, key, { ...options, signal }, deps));
  return refreshing.join(options.signal, registry) as Promise<T>;
}

/** A refresh, for all callers that wait for it. When the last of them is gone, its wait for the key ends; a renewal that has begun goes on. */
class PendingRefresh {
  readonly #value: Promise<unknown>;
  readonly #givenUp = new AbortController();
  #callers = 0;

  constructor(pending: PendingRefreshes, key: string, start: (signal: AbortSignal) => Promise<unknown>) {
    pending.set(key, this);
    const isOver = (): void => {
      if (pending.get(key) === this) pending.delete(key);
    };
    this.#givenUp.signal.addEventListener("abort", isOver);
    this.#value = start(this.#givenUp.signal).finally(isOver);
    // If all callers are gone, nobody is left to tell.
    this.#value.catch(() => undefined);
  }

  /** Resolves with the value. @throws AbortError if `signal` aborts before that; LockError if the client is closed */
  async join(signal: AbortSignal | undefined, registry: Registry): Promise<unknown> {
    this.#callers++;
    try {
      return await registry.run(
        signal,
        (giveUp) =>
          new Promise((resolve, reject) => {
            const stop = (): void => reject(abortError(giveUp));
            giveUp.addEventListener("abort", stop);
            if (giveUp.aborted) stop();
            this.#value.then(resolve, reject);
          }),
      );
    } finally {
      if (--this.#callers === 0) this.#givenUp.abort();
    }
  }
}

/** Returns the fresh value, for one caller. */
export async function refreshed<T>(
  locks: Locks,
  key: string,
  { read, isFresh, renew, save, leaseMs, waitMs, keepFailureMs = 0, signal }: RefreshOptions<T>,
  runtime: Runtime,
): Promise<T> {
  const current = await read();
  if (current !== undefined && isFresh(current)) return current;
  const waiting = new AbortController();
  const stop = (): void => waiting.abort(signal?.reason);
  signal?.addEventListener("abort", stop, { once: true });
  if (signal?.aborted) stop();
  const granted = new AbortController();
  const renewed = freshValue({ read, isFresh }, granted.signal, runtime);
  void renewed.then((value) => value !== undefined && waiting.abort());
  try {
    return await locks.withLock(key, { leaseMs, waitMs, signal: waiting.signal }, async (lease) => {
      granted.abort();
      const old = await read();
      if (old !== undefined && isFresh(old)) return old;
      const renewal: Renewal = { signal: lease.signal, interrupted: () => wasInterrupted(locks, key) };
      const value = await rememberingFailure(locks, key, keepFailureMs, () => renew(old, renewal));
      lease.assertHeld();
      await save(value, { fencingToken: lease.fencingToken });
      return value;
    });
  } catch (error) {
    granted.abort();
    const value = signal?.aborted ? undefined : await renewed;
    if (value !== undefined) return value;
    throw error;
  } finally {
    signal?.removeEventListener("abort", stop);
  }
}

/** Returns what `renew` does. A final failure is the outcome of a run, for `keepMs`. @throws RunFailedError while one is remembered */
async function rememberingFailure<T>(locks: Locks, key: string, keepMs: number, renew: () => Promise<T> | T): Promise<T> {
  if (keepMs === 0) return renew();
  // `key()` makes no such key of other parts.
  const runKey = bounded(`${key}_~refresh`);
  const last = await locks.runs.get(runKey);
  if (last?.error) throw new RunFailedError(key, last.error, last.attempt);
  try {
    return await renew();
  } catch (error) {
    const fail = (): never => {
      throw error;
    };
    // A failure that can't be recorded is the same failure to this caller.
    if (isA(error, FinalError)) await locks.runOnce(runKey, { keepResultMs: keepMs, waitMs: 0 }, fail).catch(() => undefined);
    throw error;
  }
}

/** Reads the value now and then, and returns it when it is fresh; undefined when `granted` aborts, or if a read fails. */
async function freshValue<T>(
  { read, isFresh }: Pick<RefreshOptions<T>, "read" | "isFresh">,
  granted: AbortSignal,
  { clock, random }: Runtime,
): Promise<T | undefined> {
  for (let reads = 0; ; reads++) {
    await pause(backoffMs(READS, reads) * (0.5 + 0.5 * random()), clock, granted);
    if (granted.aborted) return undefined;
    try {
      const value = await read();
      if (value !== undefined && isFresh(value)) return value;
    } catch {
      return undefined;
    }
  }
}

/** True if the last lease of the key that was held and is over was not given back. */
async function wasInterrupted(locks: Locks, key: string): Promise<boolean> {
  const { recent = [] } = await locks.inspect(key);
  const last = recent.find(({ ending }) => ending !== "cancelled");
  return last !== undefined && INTERRUPTED.has(last.ending);
}
