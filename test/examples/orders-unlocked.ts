/** For controls: a client without its locks, and one that locks each operation for itself. The example's own code stays as it is. */
import type { Lease, LockClient, Work } from "../../lib/index.js";

type WithLock = <T>(name: string, work: Work<T>) => Promise<T>;

/** `locks`, whose `withLock` is another; so are those of its views. */
function withOther(locks: LockClient, withLock: (view: LockClient) => WithLock): LockClient {
  const other = (view: LockClient): LockClient => ({
    ...view,
    withLock: withLock(view) as LockClient["withLock"],
    forInvocation: (context) => other(view.forInvocation(context)),
  });
  return other(locks);
}

/** Lets everybody in at once, with a token that no resource refuses. */
export function withoutLocks(locks: LockClient): LockClient {
  const lease = { fencingToken: Number.MAX_SAFE_INTEGER, assertHeld: () => undefined } as Partial<Lease> as Lease;
  return withOther(locks, () => async (_name, work) => work(lease));
}

/** Puts the operation's name behind the key: who does the same waits, who does something else doesn't. */
export function keyPerOperation(locks: LockClient, operation: string): LockClient {
  return withOther(locks, (view) => (name, work) => view.withLock(`${name}_${operation}`, work));
}
