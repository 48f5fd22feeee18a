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
  return withOther(locks, () => async (_name, work) => work(leaseWithAnyToken(() => undefined)));
}

/**
 * Appends the operation's name to the key: only callers of the same operation exclude each other. Tokens of different keys have no order,
 * so the work gets one that no resource refuses.
 */
export function keyPerOperation(locks: LockClient, operation: string): LockClient {
  return withOther(
    locks,
    (view) => (name, work) => view.withLock(`${name}_${operation}`, (lease) => work(leaseWithAnyToken(() => lease.assertHeld()))),
  );
}

function leaseWithAnyToken(assertHeld: () => void): Lease {
  return { fencingToken: Number.MAX_SAFE_INTEGER, assertHeld } as Partial<Lease> as Lease;
}
