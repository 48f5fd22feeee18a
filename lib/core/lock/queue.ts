/**
 * The queue of a key. It is part of the record, and writes of the record advance it. No background process does.
 *
 *   queued ──▶ waiting ──▶ offered ──▶ granted        by the waiter's own claim, with the token of that moment
 *      ▲          │            │
 *      └── polls again         └── lapsed: withdrawn without a margin, since no client treats an offer as held
 *                 └── not seen in time: skipped
 *
 * Readers or permits that hold the key together, a crowd, need no offers: each waiter claims from its place as soon as it fits beside the
 * holders and all that wait before it. Nobody takes what those before it need. Such claims don't race each other.
 *
 * Waiters that were not seen in time are removed together: by the decision on a new caller, and while the first in the queue is one of them, by any
 * lease's write and the poll of the first live waiter. While the first is alive, writes that touch only the ends of the queue need no
 * read.
 *
 * A waiter that came by a notify carries its condition. If it is skipped, the notify goes to the next in the wait set.
 *
 * A waiter that sleeps never polls. It counts as seen until its own deadline, since its `ttlMs` is 0, so it is neither skipped nor removed
 * before. An agent claims the key for it, by a poll as its own.
 */
import type { LeaseEvent } from "../commands.js";
import { type Occupant, isCompatible, occupantsOf, permitsOut } from "./compatibility.js";
import { isCrowd } from "./crowd.js";
import { isLapsed, isSkewed, isWaiting } from "./expiry.js";
import { takeOver } from "./grant.js";
import { lastSeenMs } from "./pace.js";
import { inOrder, withWaiter } from "./places.js";
import { liveMembers, memberOf, waitSetOf, withWaitSet } from "./wait-set.js";
import type { LeaseId } from "../lease-id.js";
import { LIMITS } from "../limits.js";
import type { LockRecord, Offer, Waiter } from "../record.js";
import type { ClockReading } from "../time.js";

/** True if the first in the queue was not seen in time. Then writes that otherwise ignore the queue advance it. */
export function isHeadDead({ waiters: [first] }: LockRecord, reading: ClockReading): boolean {
  return first !== undefined && !isWaiting(first, reading);
}

function skippedEvent({ leaseId, owner }: Offer | Waiter): LeaseEvent {
  return { event: "skipped", leaseId, owner, principal: "" };
}

/** A key's record after its queue was advanced. */
export interface AdvancedQueue {
  readonly record: LockRecord;
  /** True if the polling waiter's turn has come: it is out of the queue, and compatible with the holders. */
  readonly isCallersTurn: boolean;
  /** True if a lease was taken over, an offer made or withdrawn, or a waiter skipped. */
  readonly moved: boolean;
  readonly events: readonly LeaseEvent[];
}

/** Whose write advances a queue: without either field, that of a lease which changes or ends. */
export interface Mover {
  /** The caller, if it is in the queue. */
  readonly leaseId?: LeaseId | undefined;
  /** True for an acquire that has just come, whether it is in the queue or not. */
  readonly isNew?: boolean;
}

/**
 * Advances the queue:
 *
 *  1. takes over expired leases whose margin has passed, and removes dead waiters;
 *  2. withdraws lapsed offers, and removes every waiter ahead of the caller that was not seen since they were made;
 *  3. offers the key to the first in the queue while it is compatible with the holders and the offers. Skips a waiter
 *     that was not seen in time. The caller itself needs no offer, and by an acquire neither does a waiter that comes for itself;
 *  4. passes the notify of each waiter that was skipped to the next in the wait set, and offers again.
 */
export function advanceQueue(before: LockRecord, reading: ClockReading, by: Mover = {}): AdvancedQueue {
  const taken = takeOver(before, reading);
  const living = removesDead(before, reading, by) ? withoutDead(taken.rest, reading) : { record: taken.rest, skipped: [] };
  const standing = withoutLapsed(living.record, reading, by);
  const offered = offerToNext(standing.record, reading, by);
  const skipped = [...living.skipped, ...standing.skipped];
  const events = [...taken.ended, ...skipped.map(skippedEvent), ...offered.events];
  const now = { ...offered, moved: offered.isCallersTurn || events.length > 0, events };
  return now.record.waitSet ? passOn(now, [...skipped, ...offered.skipped], reading, by) : now;
}

/** A record without some that waited or were offered the key. */
interface Thinned {
  readonly record: LockRecord;
  readonly skipped: readonly (Offer | Waiter)[];
}

/**
 * True if this write removes the dead: that of a newcomer; and while the first is dead, that of a lease, and of the first live waiter. The other
 * waiters would lose the race to it.
 */
function removesDead(before: LockRecord, reading: ClockReading, { leaseId, isNew }: Mover): boolean {
  // Stryker disable next-line OptionalChaining: a caller in the queue is alive, so there is a live waiter
  const isFirst = leaseId === undefined || before.waiters.find((waiter) => isWaiting(waiter, reading))?.leaseId === leaseId;
  return isNew === true || (isFirst && isHeadDead(before, reading));
}

/** Removes the waiters that were not seen in time. */
function withoutDead(record: LockRecord, reading: ClockReading): Thinned {
  const waiters = record.waiters.filter((waiter) => isWaiting(waiter, reading));
  return { record: { ...record, waiters }, skipped: record.waiters.filter((waiter) => !isWaiting(waiter, reading)) };
}

/** Withdraws the offers that lapsed, and removes the waiters ahead of the caller that were not seen since the latest of them was made. */
function withoutLapsed(record: LockRecord, reading: ClockReading, { leaseId }: Mover): Thinned {
  const lapsed = record.offers.filter((offer) => isLapsed(offer, reading));
  const lapsedAtMs = Math.max(...lapsed.map(({ offeredAtMs }) => offeredAtMs));
  const asked = record.waiters.findIndex((waiter) => waiter.leaseId === leaseId);
  // Stryker disable next-line EqualityOperator: the one that asks was seen just now
  const isGone = (waiter: Waiter, place: number): boolean => (asked < 0 || place < asked) && lastSeenMs(waiter) < lapsedAtMs;
  const offers = record.offers.filter((offer) => !lapsed.includes(offer));
  const waiters = record.waiters.filter((waiter, place) => !isGone(waiter, place));
  return { record: { ...record, offers, waiters }, skipped: [...lapsed, ...record.waiters.filter(isGone)] };
}

/** Offers the key to those at the front of the queue, as long as they fit beside the holders. */
function offerToNext(record: LockRecord, reading: ClockReading, { leaseId, isNew }: Mover): Thinned & Omit<AdvancedQueue, "moved"> {
  const occupants: Occupant[] = [...occupantsOf(record, reading)];
  // Others write the whole record in any case, so an offer costs them nothing.
  const isAcquire = leaseId !== undefined || isNew === true;
  const [offers, waiters] = [[...record.offers], [...record.waiters]];
  const [coming, skipped, events]: [Waiter[], Waiter[], LeaseEvent[]] = [[], [], []];
  let isCallersTurn = false;
  for (let [first] = waiters; first && hasRoom(record, occupants); [first] = waiters) {
    const isAsking = first.leaseId === leaseId;
    const isAlive = isAsking || isWaiting(first, reading);
    if (isAlive && !isCompatible(record, occupants, first, reading)) break;
    waiters.shift();
    if (isAlive) occupants.push(first);
    if (isAsking) isCallersTurn = true;
    else if (isAcquire && comesForItself(record, first, reading)) coming.push(first);
    else if (isAlive) {
      const { aliveUntilMs: _until, ttlMs: _ttl, unknownOfPlace: _of, ...offered } = first;
      // A request may stall after it read its clocks. A waiter that was seen after that was told to come back in `pollMaxMs` from then.
      // A waiter that sleeps was told nothing.
      offers.push({ ...offered, offeredAtMs: first.asleep ? reading.latestMs : Math.max(reading.latestMs, lastSeenMs(first)) });
      events.push({ event: "offered", leaseId: first.leaseId, owner: first.owner, principal: "" });
    } else {
      skipped.push(first);
      events.push(skippedEvent(first));
    }
  }
  return { record: { ...record, offers: offers.sort(inOrder), waiters: [...coming, ...waiters] }, isCallersTurn, skipped, events };
}

/**
 * True if a waiter that fits beside a crowd keeps its place and claims from there, by its own next poll. What it needs is left to it
 * meanwhile, so it needs no offer. One that wasn't seen for a while may have died: it gets an offer, which lapses.
 */
function comesForItself(record: LockRecord, waiter: Waiter, { latestMs }: ClockReading): boolean {
  return isCrowd(record) && !waiter.asleep && lastSeenMs(waiter) > latestMs - LIMITS.keepAliveAfterMs;
}

/** Passes the notifies of these waiters, which left without the key, to the next of their conditions. */
function passOn(now: AdvancedQueue, left: readonly (Offer | Waiter)[], reading: ClockReading, by: Mover): AdvancedQueue {
  const woken = wakeInsteadOf(now.record, left, reading);
  if (woken.record === now.record) return now;
  // A woken waiter stands behind the caller or takes what is free, so it doesn't become the caller's turn by that.
  const again = now.isCallersTurn ? { record: woken.record, events: [] } : advanceQueue(woken.record, reading, { leaseId: by.leaseId });
  return { ...now, ...again, isCallersTurn: now.isCallersTurn, moved: true, events: [...now.events, ...woken.events, ...again.events] };
}

/** Wakes one member for each of these waiters that had come by a notify, and that left without the key. */
export function wakeInsteadOf(record: LockRecord, left: readonly (Offer | Waiter)[], reading: ClockReading): Moved {
  let moved: Moved = { record, events: [] };
  // Stryker disable next-line ArrayDeclaration: nobody waits for the condition that a text in it would name
  for (const condition of left.flatMap((waiter) => waiter.condition ?? [])) {
    const { record: next, events } = wake(moved.record, condition, reading);
    moved = { record: next, events: [...moved.events, ...events] };
  }
  return moved;
}

/** A record whose queue moved. */
type Moved = Pick<AdvancedQueue, "record" | "events">;

/** A record after members of its wait set were moved to the queue, and their number. */
interface Woken extends Moved {
  readonly count: number;
}

/** Moves the first live member that waits for `condition` to the queue, or all of them, and removes the dead ones before it. */
export function wake(record: LockRecord, condition: string, reading: ClockReading, all = false): Woken {
  const { offers } = record;
  const waitSet = waitSetOf(record);
  const live = liveMembers(record, reading).filter((member) => member.condition === condition);
  const woken = all ? live : live.slice(0, 1);
  const last = woken.at(-1);
  const before = last ? waitSet.slice(0, waitSet.indexOf(last)) : waitSet;
  const dead = before.filter((member) => member.condition === condition && !isWaiting(member, reading));
  if (woken.length + dead.length === 0) return { record, events: [], count: 0 };
  const left = waitSet.filter((member) => !woken.includes(member) && !dead.includes(member));
  const events = dead.map(skippedEvent);
  let { waiters } = record;
  for (const member of woken) {
    waiters = withWaiter(waiters, member);
    const { leaseId, owner, principal } = member;
    events.push({ event: "queued", leaseId, owner, principal, condition, position: offers.length + waiters.indexOf(member) + 1 });
  }
  return { record: withWaitSet({ ...record, waiters }, left), events, count: woken.length };
}

/** True if `leaseId` is in the wait set, and advancing the queue now would take it out. So the one that gains writes, and no other. */
export function isWokenByAdvance(record: LockRecord, leaseId: LeaseId, reading: ClockReading): boolean {
  return memberOf(advanceQueue(record, reading).record, leaseId) === undefined;
}

/** True if the key has room for any further lease. */
function hasRoom({ limit }: LockRecord, occupants: readonly Occupant[]): boolean {
  return occupants.length < LIMITS.leasesMax && (occupants[0]?.mode === "shared" || permitsOut(occupants) < limit);
}

/** Advances the queue after a lease ended, if there is one. Skewed clocks leave that to the next waiter's poll. */
export function advanceIfQueued(record: LockRecord, reading: ClockReading): Moved {
  return record.waiters.length === 0 || isSkewed(reading) ? { record, events: [] } : advanceQueue(record, reading);
}
