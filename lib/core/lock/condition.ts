/**
 * Conditions, as a monitor has them: a lease waits for a condition, and a later holder of the key notifies it.
 *
 *   holds ──wait──▶ in the wait set ──notify──▶ in the queue ──▶ holds, under the new leaseId and with a new token
 *
 * A wait frees the key and joins the wait set in one change of the record. Only a holder can notify, so no notify comes between the two.
 *
 * A notify wakes the first live member of its condition. If that one leaves without the key, the notify goes to the next (queue.ts). A
 * repeated notify is recognised by its sequence: only a notify that woke a waiter is noted, since no waiter can join while its lease holds.
 */
import { change, touchedTtlAtSec } from "../change.js";
import type { Decision, Notify, WaitForCondition } from "../commands.js";
import { type Refusal, refuse } from "../errors.js";
import { LIMITS } from "../limits.js";
import type { Hold, LockPolicy, LockRecord } from "../record.js";
import type { ClockReading } from "../time.js";
import { holdCount } from "./compatibility.js";
import { isLive } from "./expiry.js";
import { endedEvent, refuseNewLease } from "./grant.js";
import { memberView, waitingView } from "./pace.js";
import { isInRecord, isOverfull, offerOf, placeOf, waiterFor } from "./places.js";
import { advanceIfQueued, wake } from "./queue.js";
import { endLease, holdOf } from "./tombstones.js";
import { leaseLost } from "./views.js";
import { liveMembers, memberOf, withWaitSet } from "./wait-set.js";

/** Decides a wait: the key is free, and the new id is in the wait set; or a refusal, and the lease holds on. */
export function waitForCondition(
  record: LockRecord | undefined,
  command: WaitForCondition,
  reading: ClockReading,
  policy: LockPolicy,
): Decision<WaitForCondition> {
  const { key, leaseId, condition, to } = command;
  const hold = record && holdOf(record, leaseId);
  if (!record || !hold) return repeated(record, command, reading) ?? { answer: leaseLost(record, leaseId, reading), events: [] };
  const refusal = refuseUse(record, hold, command, reading);
  if (refusal) return { answer: refusal, events: [] };
  const over = isInRecord(record, to.leaseId) ? refuse("lease-reused") : refuseNewLease(record, to.leaseId, reading);
  if (over) return { answer: over, events: [] };

  const member = { ...waiterFor(to, reading), condition };
  const waitSet = [...liveMembers(record, reading), member];
  if (isOverfull([...record.waiters, ...waitSet], member, LIMITS.membersMax))
    return {
      answer: refuse("queue-full", {
        retryAfterMs: LIMITS.pollMaxMs,
        detail: `${waitSet.length - 1} wait for conditions of ${key} already`,
      }),
      events: [],
    };
  // The tombstone keeps the token of a broken hold, so that the break may be repeated.
  const ended = endLease(record, leaseId, "released", reading, hold.broken && { fencingToken: hold.fencingToken });
  const now = advanceIfQueued(withWaitSet(ended, waitSet), reading);
  const next = change(now.record, reading, { ttlAtSec: touchedTtlAtSec(record, reading, policy) });
  const { owner, principal } = member;
  return {
    answer: memberView(next, member),
    next,
    events: [
      endedEvent(leaseId, hold, "released", reading),
      { event: "waiting", leaseId: to.leaseId, owner, principal, condition },
      ...now.events,
    ],
  };
}

/** Answers a repeated wait with the present place, as long as the new id still waits. */
function repeated(record: LockRecord | undefined, { to }: WaitForCondition, reading: ClockReading): Decision<WaitForCondition> | undefined {
  const member = record && memberOf(record, to.leaseId);
  const waiting = record && (member ?? offerOf(record, to.leaseId) ?? record.waiters[placeOf(record, to.leaseId)]);
  if (!waiting) return undefined;
  if (waiting.principal !== to.principal) return { answer: refuse("forbidden"), events: [] };
  return { answer: member ? memberView(record, member) : waitingView(record, to.leaseId, reading), events: [] };
}

/** Decides a notify: the number of waiters that it woke, now or when it was first carried out. */
export function notify(record: LockRecord | undefined, command: Notify, reading: ClockReading, policy: LockPolicy): Decision<Notify> {
  const { leaseId, condition, sequence, all } = command;
  const hold = record && holdOf(record, leaseId);
  if (!record || !hold) return { answer: leaseLost(record, leaseId, reading), events: [] };
  const refusal = refuseUse(record, hold, command, reading);
  if (refusal) return { answer: refusal, events: [] };

  const { fencingToken, notified } = hold;
  if (
    // Stryker disable next-line ConditionalExpression: undefined is not at most a number, so the comparison alone would do
    sequence !== undefined &&
    notified?.fencingToken === fencingToken &&
    sequence <= notified.sequence
  )
    return { answer: { ok: true, how: "replayed", notified: sequence === notified.sequence ? notified.count : 0 }, events: [] };
  const { record: woken, events, count } = wake(record, condition, reading, all);
  const answer = { ok: true, how: "notified", notified: count } as const;
  if (woken === record) return { answer, events: [] };
  const noted: Hold = count > 0 && sequence !== undefined ? { ...hold, notified: { ...notified, fencingToken, sequence, count } } : hold;
  const next = change(woken, reading, {
    holds: { ...woken.holds, [leaseId]: noted },
    ttlAtSec: touchedTtlAtSec(record, reading, policy),
  });
  return { answer, next, events };
}

/** Refuses a lease that is not the caller's, has ended, or does not hold the whole key exclusively and once. */
function refuseUse(record: LockRecord, hold: Hold, { principal }: Pick<Notify, "principal">, reading: ClockReading): Refusal | undefined {
  if (hold.principal !== "" && hold.principal !== principal) return refuse("forbidden");
  if (!isLive(hold, reading)) return refuse("lease-lost", { reason: hold.broken === "forced" ? "broken" : "expired" });
  if (hold.mode === "exclusive" && record.limit === 1 && holdCount(record, hold, reading) === 1) return undefined;
  return refuse("not-exclusive", { detail: "Readers, permits and reentrant holds can't wait for a condition or notify it" });
}
