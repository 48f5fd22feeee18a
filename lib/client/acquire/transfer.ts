/**
 * Handing a hold to a new lease: the one way of detaching and attaching. The new id is made, corrected
 * and cancelled as an acquire's is; a refusal of the id is no refusal of the hand-over.
 */
import type { Held } from "../../core/commands.js";
import type { ErrorCode, Refusal } from "../../core/errors.js";
import type { LeaseRef } from "../../core/api/locks.js";
import type { AcquireDeps } from "./acquire.js";
import { cancelAmbiguous, NEW_ID_TRIES } from "./acquire.js";
import type { Answered, RetryBounds } from "../transport/retry.js";
import { retry } from "../transport/retry.js";

const ID_REFUSED: ReadonlySet<ErrorCode> = new Set(["lease-id-time", "lease-over"]);

/** The hold of `from` under a new id and with a new token; or why not, and then the new id holds nothing. */
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
