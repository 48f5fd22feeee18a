/**
 * Release, and cancel of an acquire whose outcome is unknown: always safe to repeat, and truthful
 * about how long the hold lasted (S6). An id that never held is remembered, so that a late duplicate
 * of its acquire is refused (S7).
 */
import { endedEvent } from "./grant.js";
import { change, touchedTtlAtSec } from "./change.js";
import type { Decision, LeaseEvent, LeaseState, Release } from "./commands.js";
import { BLANK, endLease, endingOf, holdOf } from "./ending.js";
import { refuse } from "./errors.js";
import type { LeaseId } from "./lease-id.js";
import { movedOn, offerOf, placeOf } from "./queue.js";
import type { Ending, LockRecord, LockRules, Offer, Run, Waiter } from "./record.js";
import type { ClockReading } from "./time.js";
import { isBeyondReach, isLive, isLongOver } from "./expiry.js";

const STATE_OF: Readonly<Record<Ending | "forgotten", LeaseState>> = {
  released: "released",
  expired: "expired",
  taken: "lost",
  broken: "lost",
  transferred: "transferred",
  cancelled: "never",
  forgotten: "unknown",
};

/** Decides a release or cancel: always an end, and how it came. */
export function release(record: LockRecord | undefined, command: Release, reading: ClockReading, rules: LockRules): Decision<Release> {
  const { leaseId, principal } = command;
  const before = record ?? BLANK;
  const hold = holdOf(before, leaseId);
  if (hold) {
    if (hold.principal !== "" && hold.principal !== principal) return { answer: refuse("forbidden"), events: [] };
    const ending = isLive(hold, reading) ? "released" : hold.broken === "forced" ? "broken" : "expired";
    // Its token stays known, so that the break may be repeated.
    const ended = endLease(before, leaseId, ending, hold.broken && { fencingToken: hold.fencingToken });
    const now = movedOn(ended, reading);
    const { run, ...rest } = now.record;
    const unstarted = run && givenUp(run);
    const next = change({ ...rest, ...(unstarted && { run: unstarted }) }, reading, { ttlAtSec: touchedTtlAtSec(ended, reading, rules) });
    return { answer: { ok: true, state: STATE_OF[ending] }, next, events: [endedEvent(leaseId, hold, ending, reading), ...now.events] };
  }
  const waiter = offerOf(before, leaseId) ?? before.waiters[placeOf(before, leaseId)];
  if (waiter) return leave(before, waiter, command, reading, rules);

  const ending = endingOf(before, leaseId);
  if (ending) return { answer: { ok: true, state: STATE_OF[ending] }, events: repeatedEnd(leaseId, principal, ending) };
  // Too old to be granted any more, so there is nothing to keep out: it ended and was collected.
  if (isLongOver(leaseId, reading)) return { answer: { ok: true, state: "unknown" }, events: [] };
  // Nor is there if it was made an hour from now; remembered, it would lift the floor out of everybody's reach.
  if (isBeyondReach(leaseId, reading)) return { answer: { ok: true, state: "never" }, events: [] };
  const next = change(endLease(before, leaseId, "cancelled"), reading, { ttlAtSec: touchedTtlAtSec(before, reading, rules) });
  return { answer: { ok: true, state: "never" }, next, events: [{ event: "ended", leaseId, owner: "", principal, reason: "cancelled" }] };
}

/** Out of the queue, or no use for an offer: the next one's turn, if it was this one's. */
function leave(before: LockRecord, waiter: Waiter | Offer, command: Release, reading: ClockReading, rules: LockRules): Decision<Release> {
  const { leaseId, principal } = command;
  if (waiter.principal !== principal) return { answer: refuse("forbidden"), events: [] };
  const without = {
    ...endLease(before, leaseId, "cancelled"),
    offers: before.offers.filter((offer) => offer !== waiter),
    waiters: before.waiters.filter((other) => other !== waiter),
  };
  const now = movedOn(without, reading);
  const next = change(now.record, reading, { ttlAtSec: touchedTtlAtSec(before, reading, rules) });
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
