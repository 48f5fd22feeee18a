/**
 * Release, and cancel of an acquire whose outcome is unknown: always safe to repeat, and truthful
 * about how long the hold lasted (S6). An id that never held is remembered, so that a late duplicate
 * of its acquire is refused (S7).
 *
 * A release is decided even by clocks that disagree beyond the guard. Then the queue is left as it is, no time
 * that the later clock alone says is written, and what is said of the hold is true by both clocks, or `unknown`.
 */
import { endedEvent } from "./grant.js";
import { change, touchedTtlAtSec } from "../change.js";
import type { Decision, LeaseEvent, LeaseState, Release } from "../commands.js";
import { EMPTY_RECORD, cancelLease, endLease, endingOf, holdOf } from "./tombstones.js";
import { refuse } from "../errors.js";
import type { LeaseId } from "../lease-id.js";
import { leaseIdTimeMs } from "../lease-id.js";
import { advanceIfQueued, offerOf, placeOf } from "./queue.js";
import type { Ending, Hold, LockRecord, LockPolicy, Offer, Run, Waiter } from "../record.js";
import type { ClockReading } from "../time.js";
import { isBeyondReach, isLive, isLongOver, isSkewed } from "./expiry.js";

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

/** Decides a release or cancel: always an end, and how it came. */
export function release(record: LockRecord | undefined, command: Release, reading: ClockReading, policy: LockPolicy): Decision<Release> {
  const { leaseId, principal } = command;
  const before = record ?? EMPTY_RECORD;
  const dated = datedBy(leaseId, reading);
  const hold = holdOf(before, leaseId);
  if (hold) {
    if (hold.principal !== "" && hold.principal !== principal) return { answer: refuse("forbidden"), events: [] };
    const ending = endingNow(hold, reading);
    // Its token stays known, so that the break may be repeated.
    const ended = endLease(before, leaseId, ending, reading, hold.broken && { fencingToken: hold.fencingToken });
    const now = advanceIfQueued(ended, reading);
    const { run, ...rest } = now.record;
    const unstarted = run && givenUp(run);
    const next = change({ ...rest, ...(unstarted && { run: unstarted }) }, dated, { ttlAtSec: touchedTtlAtSec(ended, dated, policy) });
    return { answer: { ok: true, state: STATE_OF[ending] }, next, events: [endedEvent(leaseId, hold, ending, dated), ...now.events] };
  }
  const waiter = offerOf(before, leaseId) ?? before.waiters[placeOf(before, leaseId)];
  if (waiter) return leave(before, waiter, command, reading, policy);

  const known = endingOf(before, leaseId);
  if (known) return { answer: { ok: true, state: STATE_OF[known] }, events: repeatedEnd(leaseId, principal, known) };
  // Too old to be granted any more, so there is nothing to keep out: it ended and was collected.
  if (isLongOver(leaseId, reading)) return { answer: { ok: true, state: "unknown" }, events: [] };
  // Nor is there if it was made an hour from now; remembered, it would lift the floor out of everybody's reach.
  if (isBeyondReach(leaseId, reading)) return { answer: { ok: true, state: "never" }, events: [] };
  // By the later clock alone it is too old: then it may have held.
  const ending = isSkewed(reading) && isLongOver(leaseId, { ...reading, earliestMs: reading.latestMs }) ? "unknown" : "cancelled";
  const cancelled = cancelLease(before, leaseId, ending, reading);
  const answer = { ok: true, state: STATE_OF[ending] } as const;
  if (cancelled === before) return { answer, events: [] };
  const next = change(cancelled, dated, { ttlAtSec: touchedTtlAtSec(before, dated, policy) });
  return { answer, next, events: [{ event: "ended", leaseId, owner: "", principal, reason: ending }] };
}

/** The time that a release is written with: of clocks that disagree, the earlier, or the leaseId's own where that lies between them. */
function datedBy(leaseId: LeaseId, reading: ClockReading): ClockReading {
  if (!isSkewed(reading)) return reading;
  const { earliestMs, latestMs } = reading;
  return { earliestMs, latestMs: Math.max(earliestMs, Math.min(latestMs, leaseIdTimeMs(leaseId))) };
}

/** How a hold ends that is released now. */
function endingNow(hold: Hold, reading: ClockReading): Ending {
  if (!isLive(hold, reading)) return hold.broken === "forced" ? "broken" : "expired";
  return isSkewed(reading) && hold.expiresAtMs <= reading.latestMs ? "unknown" : "released";
}

/** Out of the queue, or no use for an offer: the next one's turn, if it was this one's. */
function leave(before: LockRecord, waiter: Waiter | Offer, command: Release, reading: ClockReading, policy: LockPolicy): Decision<Release> {
  const { leaseId, principal } = command;
  if (waiter.principal !== principal) return { answer: refuse("forbidden"), events: [] };
  const without = {
    ...cancelLease(before, leaseId, "cancelled", reading),
    offers: before.offers.filter((offer) => offer !== waiter),
    waiters: before.waiters.filter((other) => other !== waiter),
  };
  const now = advanceIfQueued(without, reading);
  const dated = datedBy(leaseId, reading);
  const next = change(now.record, dated, { ttlAtSec: touchedTtlAtSec(before, dated, policy) });
  const left: LeaseEvent = { event: "ended", leaseId, owner: waiter.owner, principal, reason: "cancelled" };
  return { answer: { ok: true, state: "never" }, next, events: [left, ...now.events] };
}

/**
 * The run after an attempt that is given up without an outcome: as if it had not been started. That is what
 * its own lease says of it, also when it says so late.
 */
function givenUp({ attempt, takeover, ...run }: Run): Run | undefined {
  if (attempt === 1) return undefined;
  return { ...run, attempt: attempt - 1, takeover: false, state: takeover ? "interrupted" : "retry" };
}

/** Told once more, for a log that missed it: the answer to the write that ended it may have been lost. */
function repeatedEnd(leaseId: LeaseId, principal: string, ending: Ending | "forgotten"): readonly LeaseEvent[] {
  return ending === "forgotten" ? [] : [{ event: "ended", leaseId, owner: "", principal, reason: ending, repeated: true }];
}
