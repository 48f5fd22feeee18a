/** Work under a lease: run while it is held, released after it, and never said to have succeeded when it was lost. */
import type { KeyUse } from "./reentrancy-guard.js";
import { runHolding } from "./reentrancy-guard.js";
import { LockLostError } from "../errors.js";
import type { Session } from "../session.js";
import type { HeldLease, Lease } from "../lease/lease.js";
import type { LeaseSet } from "../lease/lease-set.js";

/** Runs `work` while `lease` holds the keys in this way, and releases it. @throws LockLostError if it was lost meanwhile, whatever the work came to. */
export async function runUnderLease<T>(
  session: Session,
  lease: HeldLease,
  uses: readonly KeyUse[],
  work: () => Promise<T> | T,
  shown: Lease | LeaseSet = lease,
): Promise<T> {
  let result: T;
  try {
    result = await runHolding({ uses, of: session.deps.api, lease: shown, isHeld: () => lease.isHeld() }, work);
  } catch (error) {
    // Whatever the work came to, it ran without the lock at the end: that is what the caller must know.
    const reported = lease.wasLost ? lossOf(lease, error) : error;
    await session.released(lease);
    throw reported;
  }
  await session.endHold(lease);
  return result;
}

/** The loss, with what the work threw (if it wasn't the loss itself) as its cause. */
function lossOf(lease: HeldLease, error: unknown): LockLostError {
  const loss: unknown = lease.signal.reason;
  if (error instanceof LockLostError) return error;
  return loss instanceof LockLostError
    ? new LockLostError(loss.message, loss.reason, error)
    : new LockLostError(`${lease.key}: lost`, "deadline", error);
}
