/** Clients for controls: one whose locks exclude nobody, and one that acquires a set's keys one after another. */
import type { AcquireOptions, Lease, LeaseSet, LockClient, LockHandle, SetKey, Work } from "../../lib/index.js";

const OPEN: Partial<Lease> = {
  fencingToken: 1,
  fenceFloor: 1,
  signal: new AbortController().signal,
  assertHeld: () => undefined,
  upgrade: () => Promise.resolve(),
  downgrade: () => Promise.resolve(),
  [Symbol.asyncDispose]: () => Promise.resolve(),
};

/** A client that grants every request at once. All grants have the same token. */
export function unlocked(): LockClient {
  const lease = OPEN as Lease;
  const everyone = new Proxy<Record<string, number>>({}, { get: () => OPEN.fencingToken });
  const set = { ...OPEN, fencingTokens: everyone } as unknown as LeaseSet;
  const handle = {
    acquire: () => Promise.resolve(lease),
    withLock: async <T>(...rest: [Work<T>] | [AcquireOptions, Work<T>]) => (rest.at(-1) as Work<T>)(lease),
  } as unknown as LockHandle;
  return {
    readWrite: () => ({ read: handle, write: handle }),
    semaphore: () => handle,
    withLocks: async <T>(_keys: readonly SetKey[], work: (set: LeaseSet) => Promise<T>) => work(set),
  } as unknown as LockClient;
}

/** Returns `locks` with a lock for each key of a set, acquired in the order in which the keys are named. Calls `met` after the first. */
export function oneAfterAnother(locks: LockClient, waitMs: number, met: () => Promise<void>): LockClient {
  async function withLocks<T>(keys: readonly string[], work: (set: LeaseSet) => Promise<T>): Promise<T> {
    const fencingTokens: Record<string, number> = {};
    const from = async (at: number): Promise<T> => {
      const next = keys[at];
      if (next === undefined) return work({ fencingTokens, assertHeld: () => undefined } as unknown as LeaseSet);
      return locks.withLock(next, { waitMs }, async (lease) => {
        fencingTokens[next] = lease.fencingToken;
        if (at === 0) await met();
        return from(at + 1);
      });
    };
    return from(0);
  }
  return { withLocks } as unknown as LockClient;
}
