/**
 * Transfers a hold to a new lease. Both detach and attach use it. The new id is made, corrected and cancelled as for an acquire; a refusal
 * of the id is not a refusal of the transfer.
 */
import type { Held } from "../../core/commands.js";
import type { Refusal } from "../../core/errors.js";
import type { LeaseRef } from "../../core/api/locks.js";
import type { AcquireDeps } from "./acquire.js";
import { withFreshLeaseId } from "./acquire.js";
import type { Answered, RetryBounds } from "../transport/retry.js";

/** Transfers the hold of `from` to a new id with a new token. Returns the refusal otherwise, and then the new id holds nothing. */
export function transferHold(
  { key, leaseId }: LeaseRef,
  to: { readonly owner?: string; readonly leaseMs: number },
  bounds: RetryBounds,
  deps: AcquireDeps,
): Promise<Answered<Held | Refusal>> {
  return withFreshLeaseId({ key, signal: bounds.signal }, bounds, deps, (toLeaseId, options) =>
    deps.api.transfer({ key, leaseId, to: { leaseId: toLeaseId, ...to } }, options),
  );
}
