/**
 * Release, and cancel of an acquire whose outcome is unknown: always safe to repeat, and truthful about how long the
 * hold lasted (S6). An id that never held gets a tombstone, so that a late duplicate of its acquire is refused (S7).
 *
 * A release is decided even if the clocks disagree beyond the guard. Then the queue stays unchanged, no time is written
 * that only the latest clock shows, and the answer about the hold is either true by both clocks or `unknown`. Only a
 * cancel is refused, if its tombstone would replace one that a clock says is still needed.
 */
import { endedEvent } from "./grant.js";
import { change, touchedTtlAtSec } from "../change.js";
import type { Decision, LeaseEvent, LeaseState, Release } from "../commands.js";
import { EMPTY_RECORD, cancelLease, endLease, endingOf, holdOf } from "./tombstones.js";
import { refuse } from "../errors.js";
import { type LeaseId, leaseIdTimeMs } from "../lease-id.js";
import { offerOf, placeOf, polls } from "./places.js";
import { advanceIfQueued, wakeInsteadOf } from "./queue.js";
import { memberOf, waitSetOf, withWaitSet } from "./wait-set.js";
import type { Ending, Hold, LockRecord, LockPolicy, Offer, Run, Waiter } from "../record.js";
import type { ClockReading } from "../time.js";
import { isBeyondReach, isLive, isLongOver, isSkewed, mayRaiseLowWatermark, refuseBySkew } from "./expiry.js";

const STATE_OF: Readonly<Record<Ending | "forgotten", LeaseState>> = {
  released: "released",
  expired: "expired",
  taken: "lost",
  broken: "lost",
  transferred: "transferred",
  cancelled: "never",
  forgotten: "unknown",
  unknown: "unknown",
};

/** Decides a release or cancel: the lease is always over afterwards, and the answer says how it ended. */
export function release(record: LockRecord | undefined, command: Release, reading: ClockReading, policy: LockPolicy): Decision<Release> {
  const { leaseId, principal } = command;
  const before = record ?? EMPTY_RECORD;
  const dated = datedBy(leaseId, reading);
  const hold = holdOf(before, leaseId);
  if (hold) {
    if (hold.principal !== "" && hold.principal !== principal) return { answer: refuse("forbidden"), events: [] };
    if (command.onlyWaiting || isConfirmed(hold, command)) return { answer: { ok: true, state: "unknown" }, events: [] };
    const decision = end(before, { ...hold, leaseId }, reading, policy, isOnly(before) ? advanceIfQueued : leftToPolls);
    return { ...decision, ...(leavesOthers(before, hold, command, reading) && { commutes: true }) };
  }
  const waiter = offerOf(before, leaseId) ?? before.waiters[placeOf(before, leaseId)] ?? memberOf(before, leaseId);
  if (waiter) return leave(before, waiter, command, reading, policy);

  const known = endingOf(before, leaseId);
  if (known) return { answer: { ok: true, state: STATE_OF[known] }, events: repeatedEnd(leaseId, principal, known) };
  // The id is too old for a grant, so it needs no tombstone. It ended and was collected.
  if (isLongOver(leaseId, reading)) return { answer: { ok: true, state: "unknown" }, events: [] };
  // An id made an hour ahead can't be granted either. Its tombstone would lift the low watermark out of reach for new ids.
  if (isBeyondReach(leaseId, reading)) return { answer: { ok: true, state: "never" }, events: [] };
  // The id is too old by the latest clock alone, so it may have held.
  const ending = isSkewed(reading) && isLongOver(leaseId, { ...reading, earliestMs: reading.latestMs }) ? "unknown" : "cancelled";
  const cancelled = cancelLease(before, leaseId, ending, reading);
  if (!cancelled) return { answer: refuseBySkew(reading), events: [] };
  const answer = { ok: true, state: STATE_OF[ending] } as const;
  if (cancelled === before) return { answer, events: [] };
  const next = change(cancelled, dated, { ttlAtSec: touchedTtlAtSec(before, dated, policy) });
  return { answer, next, events: [{ event: "ended", leaseId, owner: "", principal, reason: ending }] };
}

/** Ends a live lease, and leaves the queue to its next poll: the result of a write that did only that. */
export function endOnly(before: LockRecord, command: Release, reading: ClockReading, policy: LockPolicy): Decision<Release> {
  const hold = holdOf(before, command.leaseId);
  return hold
    ? end(before, { ...hold, leaseId: command.leaseId }, reading, policy, leftToPolls)
    : release(before, command, reading, policy);
}

function end(
  before: LockRecord,
  hold: Hold & Pick<Release, "leaseId">,
  reading: ClockReading,
  policy: LockPolicy,
  advance: typeof advanceIfQueued,
): Decision<Release> {
  const { leaseId } = hold;
  const dated = datedBy(leaseId, reading);
  const ending = endingNow(hold, reading);
  // The tombstone keeps the token of a broken hold, so that the break may be repeated.
  const ended = endLease(before, leaseId, ending, reading, hold.broken && { fencingToken: hold.fencingToken });
  const now = advance(ended, reading);
  const { run, ...rest } = now.record;
  const unstarted = run && givenUp(run);
  const next = change({ ...rest, ...(unstarted && { run: unstarted }) }, dated, {
    heldMs: dated.latestMs - hold.grantedAtMs,
    // Before the first one, any length is longer.
    heldBeforeMs: before.heldMs ?? dated.latestMs,
    ttlAtSec: touchedTtlAtSec(ended, dated, policy),
  });
  return { answer: { ok: true, state: STATE_OF[ending] }, next, events: [endedEvent(leaseId, hold, ending, dated), ...now.events] };
}

/** True if one lease holds the key, and it is offered to nobody. */
export function isOnly({ holds, offers }: LockRecord): boolean {
  return Object.keys(holds).length + offers.length === 1;
}

/**
 * Leaves the queue as it is. The first waiter polls soon, and takes what there is for it. So those who leave at once need no
 * order among them, be it leases or places.
 */
function leftToPolls(record: LockRecord): ReturnType<typeof advanceIfQueued> {
  return { record, events: [] };
}

/**
 * Returns the clock interval that a release is written with. If the clocks disagree, it is the earliest time, or the
 * leaseId's own time if that lies inside the interval.
 */
function datedBy(leaseId: LeaseId, reading: ClockReading): ClockReading {
  if (!isSkewed(reading)) return reading;
  const { earliestMs, latestMs } = reading;
  return { earliestMs, latestMs: Math.max(earliestMs, Math.min(latestMs, leaseIdTimeMs(leaseId))) };
}

/** True if the release is of a pending lease, and this one is confirmed: an expiry is never shortened, but by a break. */
function isConfirmed({ grantedAtMs, expiresAtMs, broken }: Hold, { pendingMs }: Release): boolean {
  return pendingMs !== undefined && (expiresAtMs > grantedAtMs + pendingMs || broken !== undefined);
}

/** True if a live lease leaves others behind. */
function leavesOthers(before: LockRecord, hold: Hold, { principal, pendingMs }: Release, reading: ClockReading): boolean {
  if (isOnly(before) || before.run || isSkewed(reading) || pendingMs !== undefined) return false;
  return hold.principal === principal && !hold.broken && isLive(hold, reading);
}

/**
 * True if a waiter leaves its place alone: it polls, has no notify to pass on, and its tombstone takes the place of none that is ahead of the
 * clock. Whoever sleeps is counted.
 */
function leavesAlone({ waiters }: LockRecord, waiter: Waiter | Offer, reading: ClockReading): boolean {
  if (!polls(waiter) || isSkewed(reading) || !mayRaiseLowWatermark(waiter.leaseId, reading)) return false;
  return waiters.some((other) => other === waiter);
}

/** Returns how a hold ends that is released now. */
function endingNow(hold: Hold, reading: ClockReading): Ending {
  if (!isLive(hold, reading)) return hold.broken === "forced" ? "broken" : "expired";
  return isSkewed(reading) && hold.expiresAtMs <= reading.latestMs ? "unknown" : "released";
}

/**
 * Removes a waiter, an offer or a member of the wait set. Its notify goes to the next of its condition. The queue advances, unless a waiter
 * leaves its place alone.
 */
function leave(before: LockRecord, waiter: Waiter | Offer, command: Release, reading: ClockReading, policy: LockPolicy): Decision<Release> {
  const { leaseId, principal } = command;
  if (waiter.principal !== principal) return { answer: refuse("forbidden"), events: [] };
  const cancelled = cancelLease(before, leaseId, "cancelled", reading);
  if (!cancelled) return { answer: refuseBySkew(reading), events: [] };
  const isMember = memberOf(before, leaseId) !== undefined;
  const without = {
    ...cancelled,
    offers: before.offers.filter((offer) => offer !== waiter),
    waiters: before.waiters.filter((other) => other !== waiter),
  };
  const left = isMember
    ? withWaitSet(
        without,
        waitSetOf(before).filter((other) => other !== waiter),
      )
    : without;
  // Stryker disable next-line ArrayDeclaration: a text in the list has no condition, so it wakes nobody
  const woken = wakeInsteadOf(left, isMember ? [] : [waiter], reading);
  const commutes = leavesAlone(before, waiter, reading);
  const now = (commutes ? leftToPolls : advanceIfQueued)(woken.record, reading);
  const dated = datedBy(leaseId, reading);
  const next = change(now.record, dated, { ttlAtSec: touchedTtlAtSec(before, dated, policy) });
  const ended: LeaseEvent = { event: "ended", leaseId, owner: waiter.owner, principal, reason: "cancelled" };
  const events = [ended, ...woken.events, ...now.events];
  return { answer: { ok: true, state: "never" }, next, events, ...(commutes && { commutes }) };
}

/**
 * Returns the run after an attempt was abandoned without an outcome, as if it had not been started. A late release by
 * its own lease has the same effect.
 */
function givenUp({ attempt, takeover, ...run }: Run): Run | undefined {
  if (attempt === 1) return undefined;
  return { ...run, attempt: attempt - 1, takeover: false, state: takeover ? "interrupted" : "retry" };
}

/** Returns the event again for a repeated request, since the response to the write that ended the lease may have been lost. */
function repeatedEnd(leaseId: LeaseId, principal: string, ending: Ending | "forgotten"): readonly LeaseEvent[] {
  return ending === "forgotten" ? [] : [{ event: "ended", leaseId, owner: "", principal, reason: ending, repeated: true }];
}
