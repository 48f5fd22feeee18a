/**
 * Transfers a hold to a new lease. Both detach and attach use it. The new id is made, corrected and cancelled as for an acquire; a refusal
 * of the id is not a refusal of the transfer.
 */
import type { Held } from "../../core/commands.js";
import type { ErrorCode, Refusal } from "../../core/errors.js";
import type { LeaseRef } from "../../core/api/locks.js";
import type { AcquireDeps } from "./acquire.js";
import { cancelAmbiguous, NEW_ID_TRIES } from "./acquire.js";
import type { Answered, RetryBounds } from "../transport/retry.js";
import { retry } from "../transport/retry.js";

const ID_REFUSED: ReadonlySet<ErrorCode> = new Set(["lease-id-time", "lease-over"]);

/** Transfers the hold of `from` to a new id with a new token. Returns the refusal otherwise, and then the new id holds nothing. */
export async function transferHold(
  { key, leaseId }: LeaseRef,
  to: { readonly owner?: string; readonly leaseMs: number },
  bounds: RetryBounds,
  deps: AcquireDeps,
): Promise<Answered<Held | Refusal>> {
  let aboveMs = 0;
  for (let tries = 1; ; tries++) {
    const toLeaseId = deps.ids.next(aboveMs);
    const answered = await retry(
      (options) => deps.api.transfer({ key, leaseId, to: { leaseId: toLeaseId, ...to } }, options),
      bounds,
      deps,
    );
    const { answer } = answered;
    if (answer.ok) return answered;
    await cancelAmbiguous({ ...answered, answer }, { key, leaseId: toLeaseId }, bounds.signal, deps);
    if (!ID_REFUSED.has(answer.code) || tries === NEW_ID_TRIES) return answered;
    deps.ids.correct(answer);
    aboveMs = answer.leaseIdAboveMs ?? aboveMs;
  }
}
