/** Clients for controls: one without its locks, and one that locks each operation separately. The example's own code is unchanged. */
import type { Lease, LockClient, Work } from "../../lib/index.js";

type WithLock = <T>(name: string, work: Work<T>) => Promise<T>;

/** Returns `locks` and its views with another `withLock`. */
function withOther(locks: LockClient, withLock: (view: LockClient) => WithLock): LockClient {
  const other = (view: LockClient): LockClient => ({
    ...view,
    withLock: withLock(view) as LockClient["withLock"],
    forInvocation: (context) => other(view.forInvocation(context)),
  });
  return other(locks);
}

/** A client that excludes nobody, with a token that no resource refuses. */
export function withoutLocks(locks: LockClient): LockClient {
  const lease = { fencingToken: Number.MAX_SAFE_INTEGER, assertHeld: () => undefined } as Partial<Lease> as Lease;
  return withOther(locks, () => async (_name, work) => work(lease));
}

/** Appends the operation's name to the key: only callers of the same operation exclude each other. */
export function keyPerOperation(locks: LockClient, operation: string): LockClient {
  return withOther(locks, (view) => (name, work) => view.withLock(`${name}_${operation}`, work));
}
