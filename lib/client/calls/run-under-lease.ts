/** Runs work under a lease and releases the lease afterwards. Work whose lease was lost never counts as successful. */
import { isA } from "../../core/brand.js";
import { type KeyUse, runHolding } from "./surrounding.js";
import { LockLostError } from "../wire/errors.js";
import type { Session } from "./session.js";
import type { HeldLease } from "../hold/lease.js";
import type { Lease } from "../hold/lease-types.js";
import type { LeaseSet } from "../hold/lease-set.js";

/**
 * Runs `work` while `lease` holds the keys in these ways, then releases it. @throws LockLostError if the lease was lost meanwhile, whatever
 * the outcome of `work`.
 */
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
    // The work ended without the lock, and the caller must learn that first.
    const reported = lease.wasLost ? lossOf(lease, error) : error;
    await session.holds.tryRelease(lease);
    throw reported;
  }
  await session.holds.endHold(lease);
  return result;
}

/** Returns the loss, with the work's own error (unless it is this loss itself) as its cause. */
function lossOf(lease: HeldLease, error: unknown): LockLostError {
  const loss: unknown = lease.ending.reason;
  const { key } = lease;
  if (isA(error, LockLostError) && error.key === key) return error;
  return isA(loss, LockLostError)
    ? new LockLostError(loss.message, loss.reason, { key, cause: error })
    : new LockLostError(`${key}: lost`, "deadline", { key, cause: error });
}
