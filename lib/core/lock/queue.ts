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
 * Waiters that were not seen in time are removed together: by the write that adds a new waiter, and by any write while
 * the first in the queue is one of them. While the first is alive, writes that touch only the ends of the queue need no
 * read.
 *
 * A waiter polls at the pace of the latest leases, and at the latest every `pollMaxMs`, which is shorter than an offer's life. Polls only read. A waiter
 * writes a keep-alive when half of its time has passed, or while another waiter's offer is unclaimed. So every live
 * waiter is seen before this offer lapses, and the write that withdraws it also removes the dead waiters.
 *
 * A waiter that came by a notify carries its condition. If it is skipped, the notify goes to the next in the wait set.
 *
 * A waiter that sleeps never polls. It counts as seen until its own deadline, since its `ttlMs` is 0, so it is neither skipped nor removed
 * before. An agent claims the key for it, by a poll as its own.
 */
import type { Acquire, LeaseEvent, Touch, Waiting } from "../commands.js";
import { isCrowd } from "./crowd.js";
import { isLapsed, isSkewed, isWaiting } from "./expiry.js";
import { takeOver } from "./grant.js";
import { holdOf } from "./tombstones.js";
import { liveMembers, memberOf, waitSetOf, withWaitSet } from "./wait-set.js";
import { type Occupant, isCompatible, occupantsOf, permitsOut } from "./compatibility.js";
import { type LeaseId, isSameLeaseId, leaseIdTimeMs } from "../lease-id.js";
import { DEFAULTS, LIMITS } from "../limits.js";
import { waitersBytes } from "../record-bytes.js";
import type { LockRecord, Member, Offer, Waiter } from "../record.js";
import type { ClockReading } from "../time.js";

/** Returns the offer to `leaseId`, if there is one. */
export function offerOf({ offers }: LockRecord, leaseId: LeaseId): Offer | undefined {
  return offers.find((offer) => isSameLeaseId(offer.leaseId, leaseId));
}

/** Returns the place of `leaseId` in the queue, from 0; -1 if it is not in it. */
export function placeOf({ waiters }: LockRecord, leaseId: LeaseId): number {
  return waiters.findIndex((waiter) => isSameLeaseId(waiter.leaseId, leaseId));
}

/** True if `leaseId` holds the key, is offered it, or waits for it or for a condition. */
export function isInRecord(record: LockRecord, leaseId: LeaseId): boolean {
  return (
    (holdOf(record, leaseId) ?? offerOf(record, leaseId) ?? record.waiters[placeOf(record, leaseId)] ?? memberOf(record, leaseId)) !==
    undefined
  );
}

/** Makes the queue entry of an acquire, whatever its place. */
export function waiterFor(command: Acquire, { latestMs }: ClockReading): Waiter {
  const { leaseId, principal, owner, mode, permits, requestHash, priority, sleepMs } = command;
  const common = { leaseId, principal, owner, mode, permits, requestHash, priority };
  if (sleepMs !== undefined) return { ...common, aliveUntilMs: latestMs + sleepMs, ttlMs: 0, asleep: true };
  const ttlMs = DEFAULTS.waiterTtlMs;
  return { ...common, aliveUntilMs: latestMs + ttlMs, ttlMs };
}

/**
 * Returns the waiter as seen now. The further back it is, the longer it may go unseen. A waiter that came forward keeps the time that its
 * former place gave it: a keep-alive is written only if it ends later than the last one, so that a stalled one takes nothing back. A poll
 * doesn't move the deadline of a waiter that sleeps.
 */
export function touched<W extends Waiter>(waiter: W, place: number, { latestMs }: ClockReading): W {
  if (waiter.asleep) return waiter;
  const ttlMs = DEFAULTS.waiterTtlMs + DEFAULTS.waiterTtlStepMs * place;
  const aliveUntilMs = Math.max(waiter.aliveUntilMs + 1, latestMs + ttlMs);
  return { ...waiter, ttlMs: aliveUntilMs - latestMs, aliveUntilMs };
}

/** Returns the record after this keep-alive. */
export function withTouch(record: LockRecord, { waiter, index, inWaitSet, ttlAtSec = 0 }: Touch): LockRecord {
  const { touches = 0, waiters, waitSet = [] } = record;
  const list = inWaitSet ? { waitSet: waitSet.with(index, waiter as Member) } : { waiters: waiters.with(index, waiter) };
  return { ...record, touches: touches + 1, ...list, ttlAtSec: Math.max(record.ttlAtSec, ttlAtSec) };
}

/** Compares offers for sorting. The order has no meaning: the table stores offers in an unordered map. */
export function inOrder(a: Offer, b: Offer): number {
  // Stryker disable next-line EqualityOperator: no two offers have the same id
  return a.offeredAtMs - b.offeredAtMs || (a.leaseId < b.leaseId ? -1 : 1);
}

/**
 * Returns `waiters` with this one behind all of the same or a higher priority. One that gets one of the last places may have waited for it
 * outside, while others came and slept: it goes before those of them at the end that began to wait later.
 */
export function withWaiter(waiters: readonly Waiter[], waiter: Waiter): readonly Waiter[] {
  const behind = waiters.findIndex(({ priority }) => priority < waiter.priority);
  let place = behind < 0 ? waiters.length : behind;
  if (polls(waiter) && waiters.filter(polls).length >= LIMITS.placesForAnyone) while (isLaterSleeper(waiters[place - 1], waiter)) place--;
  return [...waiters.slice(0, place), waiter, ...waiters.slice(place)];
}

function isLaterSleeper(other: Waiter | undefined, { leaseId, priority }: Waiter): boolean {
  return other?.asleep === true && other.priority === priority && leaseIdTimeMs(other.leaseId) > leaseIdTimeMs(leaseId);
}

type AnyWaiter = Pick<Waiter, "asleep" | "condition">;

/** True for a waiter that asks again by itself, and that no notify brought. */
export function polls({ asleep, condition }: AnyWaiter): boolean {
  return !asleep && condition === undefined;
}

/**
 * True if there are more waiters than may queue, by number or by size, for a new one of this kind. Each of the three kinds has places of its
 * own: otherwise sleepers, who come and go all the time, would keep those that poll from the queue for ever. For the same reason a part of
 * the bytes is for those that poll alone.
 */
export function isOverfull(waiters: readonly Waiter[], kind: AnyWaiter, most: number): boolean {
  const alike = waiters.filter((waiter) => polls(waiter) === polls(kind) && waiter.asleep === kind.asleep);
  const bytesMax = LIMITS.queueBytes - (polls(kind) ? 0 : LIMITS.pollersBytes);
  return alike.length > most || waitersBytes(waiters) > bytesMax;
}

/**
 * Returns how many callers are likely to be outside the queue before this one, and the time between two of them. Whoever asks again keeps the
 * time at which it began to wait in its new id. So those in the queue came before those outside, one after the other at the pace that their
 * ids show. Where nobody polls, nobody is outside.
 */
function outside(waiters: readonly Waiter[], leaseId: LeaseId): readonly [ahead: number, eachMs: number] {
  const cameMs = waiters.filter(polls).map((waiter) => leaseIdTimeMs(waiter.leaseId));
  if (cameMs.length === 0) return [0, 0];
  const latestMs = Math.max(...cameMs);
  const eachMs = (latestMs - Math.min(...cameMs)) / cameMs.length;
  return [Math.max(0, (leaseIdTimeMs(leaseId) - latestMs) / Math.max(1, eachMs)), eachMs];
}

/** Returns the most waiters of its kind among whom this caller gets a place. The last places are for those who come next, and for urgent callers. */
export function placesFor(waiters: readonly Waiter[], { leaseId, priority, sleepMs }: Acquire): number {
  // A waiter that sleeps sends no polls.
  if (sleepMs !== undefined) return LIMITS.membersMax;
  const free = LIMITS.waitersMax - waiters.filter(polls).length;
  const isNext = priority > 0 || outside(waiters, leaseId)[0] <= 2 * free;
  return isNext ? LIMITS.waitersMax : LIMITS.placesForAnyone;
}

/** Returns the time after which a caller without a place is likely to get one: when those before it have. */
export function placeAfterMs(record: LockRecord, leaseId: LeaseId): number {
  const [ahead, eachMs] = outside(record.waiters, leaseId);
  // Ids of one moment don't tell who is next.
  const leastMs = eachMs < 1 ? LIMITS.burstWaitMs : LIMITS.fullWaitMs;
  return Math.min(LIMITS.pollMaxMs, Math.max(leastMs, Math.round(stepMs(record) * (ahead + 1))));
}

/** Removes the waiters that were not seen in time. */
function withoutDead(record: LockRecord, reading: ClockReading): { readonly record: LockRecord; readonly dead: readonly Waiter[] } {
  const waiters = record.waiters.filter((waiter) => isWaiting(waiter, reading));
  const dead = record.waiters.filter((waiter) => !isWaiting(waiter, reading));
  return { record: { ...record, waiters }, dead };
}

/** True if the first in the queue was not seen in time. Then writes that otherwise ignore the queue advance it. */
export function isHeadDead({ waiters: [first] }: LockRecord, reading: ClockReading): boolean {
  return first !== undefined && !isWaiting(first, reading);
}

function skippedEvent({ leaseId, owner }: Offer | Waiter): LeaseEvent {
  return { event: "skipped", leaseId, owner, principal: "" };
}

/** True if both queues and wait sets have the same waiters, each last seen at the same time. */
export function isSameQueue(record: LockRecord, other: LockRecord): boolean {
  return areSame(record.waiters, other.waiters) && areSame(waitSetOf(record), waitSetOf(other));
}

function areSame(waiters: readonly Waiter[], others: readonly Waiter[]): boolean {
  const seen = (all: readonly Waiter[]): string => all.map(({ leaseId, aliveUntilMs }) => `${leaseId} ${aliveUntilMs}`).join();
  return seen(waiters) === seen(others);
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

/**
 * Advances the queue:
 *
 *  1. takes over expired leases whose margin has passed, and removes dead waiters;
 *  2. withdraws lapsed offers, and removes every waiter ahead of the caller that was not seen since they were made;
 *  3. offers the key to the first in the queue while it is compatible with the holders and the offers. Skips a waiter
 *     that was not seen in time. The caller itself needs no offer, and by an acquire neither does a waiter that comes for itself;
 *  4. passes the notify of each waiter that was skipped to the next in the wait set, and offers again.
 *
 * @param asking the leaseId of the caller, if it is in the queue
 * @param isNew true if the caller was just added to the queue
 */
export function advanceQueue(before: LockRecord, reading: ClockReading, asking?: LeaseId, isNew = false): AdvancedQueue {
  const taken = takeOver(before, reading);
  // Only the first live waiter behind dead ones writes: the others would lose the race to it.
  // Stryker disable next-line OptionalChaining: a caller in the queue is alive, so there is a live waiter
  const isFirst = asking === undefined || before.waiters.find((waiter) => isWaiting(waiter, reading))?.leaseId === asking;
  const drops = isNew || (isFirst && isHeadDead(before, reading));
  const { record: rest, dead } = drops ? withoutDead(taken.rest, reading) : { record: taken.rest, dead: [] };
  const events: LeaseEvent[] = [...taken.ended, ...dead.map(skippedEvent)];
  const skipped: (Offer | Waiter)[] = [...dead];
  const lapsed = rest.offers.filter((offer) => isLapsed(offer, reading));
  const offers = rest.offers.filter((offer) => !lapsed.includes(offer));
  const skip = (waiting: Offer | Waiter): void => {
    skipped.push(waiting);
    events.push(skippedEvent(waiting));
  };
  lapsed.forEach(skip);

  const lapsedAtMs = Math.max(...lapsed.map(({ offeredAtMs }) => offeredAtMs));
  const asked = rest.waiters.findIndex(({ leaseId }) => leaseId === asking);
  // Stryker disable next-line EqualityOperator: the one that asks was seen just now
  const isGone = (waiter: Waiter, place: number): boolean => (asked < 0 || place < asked) && lastSeenMs(waiter) < lapsedAtMs;
  rest.waiters.filter(isGone).forEach(skip);
  const waiters = rest.waiters.filter((waiter, place) => !isGone(waiter, place));

  const occupants: Occupant[] = [...occupantsOf(rest, reading)];
  // Others write the whole record in any case, so an offer costs them nothing.
  const isAcquire = asking !== undefined || isNew;
  const coming: Waiter[] = [];
  let isCallersTurn = false;
  for (let [first] = waiters; first && hasRoom(rest, occupants); [first] = waiters) {
    const isAsking = first.leaseId === asking;
    const isAlive = isAsking || isWaiting(first, reading);
    if (isAlive && !isCompatible(rest, occupants, first, reading)) break;
    waiters.shift();
    if (isAlive) occupants.push(first);
    if (isAsking) isCallersTurn = true;
    else if (isAcquire && comesForItself(rest, first, reading)) coming.push(first);
    else if (isAlive) {
      const { aliveUntilMs: _until, ttlMs: _ttl, unknownOfPlace: _of, ...offered } = first;
      // A request may stall after it read its clocks. A waiter that was seen after that was told to come back in `pollMaxMs` from then.
      // A waiter that sleeps was told nothing.
      offers.push({ ...offered, offeredAtMs: first.asleep ? reading.latestMs : Math.max(reading.latestMs, lastSeenMs(first)) });
      events.push({ event: "offered", leaseId: first.leaseId, owner: first.owner, principal: "" });
    } else skip(first);
  }
  const now = {
    record: { ...rest, offers: offers.sort(inOrder), waiters: [...coming, ...waiters] },
    isCallersTurn,
    moved: isCallersTurn || events.length > 0,
    events,
  };
  return rest.waitSet ? passOn(now, skipped, reading, asking) : now;
}

/**
 * True if a waiter that fits beside a crowd keeps its place and claims from there, by its own next poll. What it needs is left to it
 * meanwhile, so it needs no offer. One that wasn't seen for a while may have died: it gets an offer, which lapses.
 */
function comesForItself(record: LockRecord, waiter: Waiter, { latestMs }: ClockReading): boolean {
  return isCrowd(record) && !waiter.asleep && lastSeenMs(waiter) > latestMs - LIMITS.keepAliveAfterMs;
}

/** Passes the notifies of these waiters, which left without the key, to the next of their conditions. */
function passOn(now: AdvancedQueue, left: readonly (Offer | Waiter)[], reading: ClockReading, asking?: LeaseId): AdvancedQueue {
  const woken = wakeInsteadOf(now.record, left, reading);
  if (woken.record === now.record) return now;
  const again = now.isCallersTurn ? { record: woken.record, events: [] } : advanceQueue(woken.record, reading, asking);
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

/** Returns the time at which this waiter was last seen. */
function lastSeenMs({ aliveUntilMs, ttlMs }: Waiter): number {
  return aliveUntilMs - ttlMs;
}

/** True if half of the time is over for which a waiter or a member of the wait set may go unseen. */
export function isHalfOver({ aliveUntilMs, ttlMs }: Waiter, { latestMs }: ClockReading): boolean {
  return aliveUntilMs - ttlMs / 2 <= latestMs;
}

/** True if a waiter has to send a keep-alive: half of its time is over, or another waiter leaves an offer unclaimed. */
export function needsKeepAlive({ offers }: LockRecord, waiter: Waiter, reading: ClockReading): boolean {
  const { latestMs } = reading;
  if (waiter.asleep) return false;
  if (isHalfOver(waiter, reading)) return true;
  return offers.some(({ offeredAtMs }) => lastSeenMs(waiter) < offeredAtMs && offeredAtMs + LIMITS.keepAliveAfterMs <= latestMs);
}

/** Returns the place of a member of the wait set, behind the whole queue, and the time of its next poll. */
export function memberView(record: LockRecord, member: Member): Waiting {
  const { offers, waiters } = record;
  const place = waiters.length + waitSetOf(record).indexOf(member);
  const retryAfterMs = Math.min(LIMITS.pollStepMs * (place + 1), LIMITS.pollMaxMs);
  const { condition } = member;
  return { ok: true, state: "waiting", position: offers.length + place + 1, retryAfterMs, pollWithinMs: LIMITS.pollMaxMs, condition };
}

/**
 * Returns the time for which a place is likely to last: as long as the shorter one of the last two leases, and its hand-over. Each length was
 * measured by one process, and no age of a lease is: the clocks of two processes may differ by more than a lease takes.
 */
export function stepMs({ heldMs = LIMITS.unknownHeldMs, heldBeforeMs = heldMs, limit }: LockRecord): number {
  return (Math.max(0, Math.min(heldMs, heldBeforeMs)) + LIMITS.handOverMs) / limit;
}

/**
 * Returns the time for which the lease at the front is likely to go on. The token of an exclusive lease is the time of its grant, by the
 * clock of the process that asked for it. Clocks that differ make a poll too early or too late, and no decision rests on it.
 */
function restMs(record: LockRecord, { latestMs, likelyMs = latestMs }: ClockReading): number {
  const wholeMs = stepMs(record);
  const leftMs = wholeMs - (likelyMs - record.fencingToken);
  if (!isHeldAlone(record) || leftMs > wholeMs) return wholeMs / 2;
  // It takes longer than those before it.
  return leftMs < 0 ? wholeMs / 4 : leftMs;
}

/** True if a lease held the key alone, nobody waited, and by now it has gone on for longer than those before it. */
export function isLikelyOver(record: LockRecord, { latestMs, likelyMs = latestMs }: ClockReading): boolean {
  const { waiters, heldMs, fencingToken } = record;
  return isHeldAlone(record) && waiters.length === 0 && heldMs !== undefined && likelyMs - fencingToken > stepMs(record);
}

function isHeldAlone({ limit, offers, holds }: LockRecord): boolean {
  return limit === 1 && offers.length === 0 && Object.keys(holds).length === 1;
}

/** Returns a waiter's place, and the time of its next poll. */
export function waitingView(record: LockRecord, leaseId: LeaseId, reading: ClockReading): Waiting {
  const { offers, waiters } = record;
  const place = placeOf(record, leaseId);
  const waiter = waiters[place];
  const waiting = { ok: true, state: "waiting" } as const;
  if (!waiter) {
    const offered = offers.findIndex((offer) => offer.leaseId === leaseId);
    return { ...waiting, position: offered + 1, retryAfterMs: 0, pollWithinMs: LIMITS.pollMaxMs };
  }
  const reports = offers
    .filter(({ offeredAtMs }) => lastSeenMs(waiter) < offeredAtMs)
    .map(({ offeredAtMs }) => Math.max(0, offeredAtMs + LIMITS.keepAliveAfterMs - reading.latestMs));
  const pollWithinMs = Math.min(LIMITS.pollMaxMs, ...reports);
  const dueMs = Math.round(restMs(record, reading) + stepMs(record) * place);
  const retryAfterMs = Math.min(Math.max(LIMITS.handOverMs, dueMs), pollWithinMs);
  return { ...waiting, position: offers.length + place + 1, retryAfterMs, pollWithinMs };
}
