/** Check: reports if a lease is held, or if a waiter's turn has come. Writes nothing. A broken lease is held until its drain ends. */
import { type Held, type Waiting, ASK_NOW_MS } from "../commands.js";
import { holdOf } from "./tombstones.js";
import { type Refusal, refuse } from "../errors.js";
import type { LeaseId } from "../lease-id.js";
import { isHalfOver, memberView, needsKeepAlive, waitingView } from "./pace.js";
import { offerOf, placeOf } from "./places.js";
import { advanceQueue, isWokenByAdvance } from "./queue.js";
import { memberOf } from "./wait-set.js";
import type { LockRecord } from "../record.js";
import type { ClockReading } from "../time.js";
import { isLive } from "./expiry.js";
import { leaseLost, leaseView } from "./views.js";

/** Returns the lease, its place in the queue, or the reason why it is over. */
export function check(
  record: LockRecord | undefined,
  { key, leaseId, principal }: { readonly key: string; readonly leaseId: LeaseId; readonly principal: string },
  reading: ClockReading,
): Held | Waiting | Refusal {
  const hold = record && holdOf(record, leaseId);
  if (!record || !hold) return (record && checkWaiter(record, { leaseId, principal }, reading)) ?? leaseLost(record, leaseId, reading);
  if (hold.principal !== "" && hold.principal !== principal) return refuse("forbidden");
  if (!isLive(hold, reading)) return refuse("lease-lost", { reason: hold.broken === "forced" ? "broken" : "expired" });
  return { ok: true, how: "checked", lease: leaseView(key, leaseId, hold, record, reading) };
}

/** Returns the state of a waiter. `retryAfterMs` is 0 if an acquire would write something: a grant or a keep-alive. */
function checkWaiter(
  record: LockRecord,
  { leaseId, principal }: { readonly leaseId: LeaseId; readonly principal: string },
  reading: ClockReading,
): Waiting | Refusal | undefined {
  const waiter = record.waiters[placeOf(record, leaseId)];
  const member = memberOf(record, leaseId);
  const asking = offerOf(record, leaseId) ?? waiter ?? member;
  if (!asking) return undefined;
  if (asking.principal !== principal) return refuse("forbidden");
  const seen = member ? memberView(record, member) : waitingView(record, leaseId, reading);
  const mustAsk = member
    ? isHalfOver(member, reading) || isWokenByAdvance(record, leaseId, reading)
    : waiter && (needsKeepAlive(record, waiter, reading) || advanceQueue(record, reading, { leaseId }).moved);
  return mustAsk ? { ...seen, retryAfterMs: ASK_NOW_MS } : seen;
}
