/** Runs work under a lease and releases the lease afterwards. Work whose lease was lost never counts as successful. */
import { isA } from "../../core/brand.js";
import { type KeyUse, runHolding } from "./surrounding.js";
import { closedError } from "../hold/registry.js";
import { LockLostError } from "../wire/errors.js";
import type { Session } from "./session.js";
import type { HeldLease } from "../hold/lease.js";
import type { Lease } from "../hold/lease-types.js";
import type { LeaseSet } from "../hold/lease-set.js";

/** The circumstances of work under a lease. */
export interface Under {
  /** The keys, and the ways in which they are held. */
  readonly uses: readonly KeyUse[];
  /** The lease as the work sees it. @default the lease itself */
  readonly shown?: Lease | LeaseSet;
  /** True if the work ends only when its lease's signal aborts. @default false */
  readonly isToldAtOnce?: boolean;
}

/**
 * Runs `work` while `lease` holds the keys, then releases it. @throws LockLostError if the lease was lost meanwhile, whatever the outcome of
 * `work`; LockError if the client was closed before it began.
 */
export async function runUnderLease<T>(
  session: Session,
  lease: HeldLease,
  { uses, shown = lease, isToldAtOnce = false }: Under,
  work: () => Promise<T> | T,
): Promise<T> {
  const { registry, holds, deps } = session;
  return registry.during(lease, isToldAtOnce, async () => {
    let result: T;
    try {
      if (registry.closedBy) throw closedError();
      result = await runHolding({ uses, of: deps.api, lease: shown, hold: lease }, work);
    } catch (error) {
      // The work ended without the lock, and the caller must learn that first.
      const reported = lease.wasLost ? lossOf(lease, error) : error;
      await holds.tryRelease(lease);
      throw reported;
    }
    await holds.endHold(lease);
    return result;
  });
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
