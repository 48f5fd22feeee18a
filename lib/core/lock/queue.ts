/**
 * The queue of a key. It stands in the record; whoever writes moves it on, and nobody else has to.
 *
 *   queued ──▶ waiting ──▶ offered ──▶ granted        by the waiter's own claim, with the token of that moment
 *      ▲          │            │
 *      └── asks again          └── lapsed: withdrawn, without a margin, since nobody believed
 *                 └── not heard of: skipped
 *
 * Waiters that were not heard of in time go all at once: when a new one arrives, and when the first of the queue is
 * one of them, whoever writes then. While the first lives, writes that touch only the ends of the queue stay blind.
 *
 * A waiter visits at the latest every `pollMaxMs`, which an offer outlasts. Visits only read; a write says
 * that it is still there, once half of its time has passed, or while another's offer stands unclaimed: by
 * the time that one lapses all who live were heard of since, and the dead go with it in one write.
 */
import type { Acquire, LeaseEvent, Waiting } from "../commands.js";
import { isLapsed, isSkewed, isWaiting } from "./expiry.js";
import { takeOver } from "./grant.js";
import type { Occupant } from "./compatibility.js";
import { verdictOf, permitsOut, standing } from "./compatibility.js";
import type { LeaseId } from "../lease-id.js";
import { DEFAULTS, LIMITS } from "../limits.js";
import { waitersBytes } from "../record-bytes.js";
import type { LockRecord, Offer, Waiter } from "../record.js";
import type { ClockReading } from "../time.js";

/** The offer to `leaseId`, if it is its turn. */
export function offerOf({ offers }: LockRecord, leaseId: LeaseId): Offer | undefined {
  return offers.find((offer) => offer.leaseId === leaseId);
}

/** The place of `leaseId` in the queue, from 0; -1 without one. */
export function placeOf({ waiters }: LockRecord, leaseId: LeaseId): number {
  return waiters.findIndex((waiter) => waiter.leaseId === leaseId);
}

/** The waiter that an acquire makes, wherever it will stand. */
export function waiterFor(command: Acquire, { latestMs }: ClockReading): Waiter {
  const { leaseId, principal, owner, mode, permits, requestHash, priority } = command;
  const ttlMs = DEFAULTS.waiterTtlMs;
  return {
    leaseId,
    principal,
    owner,
    mode,
    permits,
    requestHash,
    priority,
    aliveUntilMs: latestMs + ttlMs,
    ttlMs,
  };
}

/** The waiter, heard of now: the farther back it stands, the longer it need not be heard of again. */
export function touched(waiter: Waiter, place: number, { latestMs }: ClockReading): Waiter {
  const ttlMs = DEFAULTS.waiterTtlMs + DEFAULTS.waiterTtlStepMs * place;
  return { ...waiter, ttlMs, aliveUntilMs: latestMs + ttlMs };
}

/** The order of offers, which tells nothing: a table keeps none. */
export function inOrder(a: Offer, b: Offer): number {
  return a.offeredAtMs - b.offeredAtMs || (a.leaseId < b.leaseId ? -1 : 1);
}

/** `waiters` with this one behind all of its priority. */
export function withWaiter(waiters: readonly Waiter[], waiter: Waiter): readonly Waiter[] {
  const behind = waiters.findIndex(({ priority }) => priority < waiter.priority);
  const place = behind < 0 ? waiters.length : behind;
  return [...waiters.slice(0, place), waiter, ...waiters.slice(place)];
}

/** Whether these are more than may wait, by count or by size. */
export function isOverfull(waiters: readonly Waiter[]): boolean {
  return waiters.length > LIMITS.waitersMax || waitersBytes(waiters) > LIMITS.queueBytes;
}

/** The queue without those that were not heard of in time. */
function withoutDead(record: LockRecord, reading: ClockReading): Pick<AdvancedQueue, "record" | "events"> {
  const waiters = record.waiters.filter((waiter) => isWaiting(waiter, reading));
  if (waiters.length === record.waiters.length) return { record, events: [] };
  const dead = record.waiters.filter((waiter) => !isWaiting(waiter, reading));
  return { record: { ...record, waiters }, events: dead.map(skippedEvent) };
}

/** Whether the first of the queue was not heard of in time: then a write that has no other business with the queue moves it on. */
export function isHeadDead({ waiters: [first] }: LockRecord, reading: ClockReading): boolean {
  return first !== undefined && !isWaiting(first, reading);
}

function skippedEvent({ leaseId, owner }: Offer | Waiter): LeaseEvent {
  return { event: "skipped", leaseId, owner, principal: "" };
}

/** Whether these have the same waiters, each heard of at the same time. */
export function isSameQueue({ waiters }: LockRecord, other: LockRecord): boolean {
  return (
    waiters === other.waiters ||
    (waiters.length === other.waiters.length &&
      waiters.every(({ leaseId, aliveUntilMs }, place) => {
        const its = other.waiters[place];
        return its?.leaseId === leaseId && its.aliveUntilMs === aliveUntilMs;
      }))
  );
}

/** The key after its queue moved on. */
export interface AdvancedQueue {
  readonly record: LockRecord;
  /** Whether it is the asking waiter's turn: it is out of the queue, and fits beside those who hold. */
  readonly isUp: boolean;
  /** Whether any lease was taken over, offer made or withdrawn, or waiter skipped. */
  readonly moved: boolean;
  readonly events: readonly LeaseEvent[];
}

/**
 * What time has brought about, and what is the next one's turn:
 *
 *  1. leases that ran out, margin included, are taken over, and dead waiters go;
 *  2. lapsed offers are withdrawn, and with them every waiter, ahead of who notices, not heard of since they were made;
 *  3. while the first in the queue fits beside those who hold or were offered the key, it is offered it;
 *     a waiter whose time has passed is skipped; who asks itself needs no offer.
 *
 * @param asking its leaseId, where one of the queue asks
 * @param isNew whether it came only now
 */
export function advanceQueue(before: LockRecord, reading: ClockReading, asking?: LeaseId, isNew = false): AdvancedQueue {
  const taken = takeOver(before, reading);
  // Of all that poll and see dead waiters ahead, only the first living one writes: the others would race it.
  const isFirst = asking === undefined || before.waiters.find((waiter) => isWaiting(waiter, reading))?.leaseId === asking;
  const drops = isNew || (isFirst && isHeadDead(before, reading));
  const { record: rest, events: gone } = drops ? withoutDead(taken.rest, reading) : { record: taken.rest, events: [] };
  const events: LeaseEvent[] = [...taken.ended, ...gone];
  const lapsed = rest.offers.filter((offer) => isLapsed(offer, reading));
  const offers = rest.offers.filter((offer) => !lapsed.includes(offer));
  const skip = (waiting: Offer | Waiter): void => void events.push(skippedEvent(waiting));
  lapsed.forEach(skip);

  const lapsedAtMs = Math.max(...lapsed.map(({ offeredAtMs }) => offeredAtMs));
  const asked = rest.waiters.findIndex(({ leaseId }) => leaseId === asking);
  const isGone = (waiter: Waiter, place: number): boolean => (asked < 0 || place < asked) && lastSeenMs(waiter) < lapsedAtMs;
  rest.waiters.filter(isGone).forEach(skip);
  const waiters = rest.waiters.filter((waiter, place) => !isGone(waiter, place));

  const occupants: Occupant[] = [...standing(rest, reading).map(([, hold]) => hold), ...offers];
  let isUp = false;
  for (let [first] = waiters; first && hasRoom(rest, occupants); [first] = waiters) {
    const isAsking = first.leaseId === asking;
    const isHeard = isAsking || isWaiting(first, reading);
    if (isHeard && !fitsBeside(rest, occupants, first, reading)) break;
    waiters.shift();
    if (isHeard) occupants.push(first);
    if (isAsking) isUp = true;
    else if (isHeard) {
      const { aliveUntilMs: _until, ttlMs: _ttl, unknownOfPlace: _of, ...offered } = first;
      offers.push({ ...offered, offeredAtMs: reading.latestMs });
      events.push({ event: "offered", leaseId: first.leaseId, owner: first.owner, principal: "" });
    } else skip(first);
  }
  return { record: { ...rest, offers: offers.sort(inOrder), waiters }, isUp, moved: isUp || events.length > 0, events };
}

/** Whether there is anything left for anybody. */
function hasRoom({ limit }: LockRecord, occupants: readonly Occupant[]): boolean {
  return occupants.length < LIMITS.leasesMax && (occupants[0]?.mode === "shared" || permitsOut(occupants) < limit);
}

/** The key after somebody went: the queue moves on, if there is one. Clocks that disagree leave it to the next waiter's poll. */
export function advanceIfQueued(record: LockRecord, reading: ClockReading): Pick<AdvancedQueue, "record" | "events"> {
  return record.waiters.length === 0 || isSkewed(reading) ? { record, events: [] } : advanceQueue(record, reading);
}

function fitsBeside(record: LockRecord, occupants: readonly Occupant[], { mode, permits }: Waiter, reading: ClockReading): boolean {
  const verdict = verdictOf(record, occupants, { mode, permits, limit: record.limit }, reading);
  return verdict === "free" || verdict === "joins";
}

/** When this waiter was heard of last. */
function lastSeenMs({ aliveUntilMs, ttlMs }: Waiter): number {
  return aliveUntilMs - ttlMs;
}

/** Whether a waiter has to say that it is still there: its time is half over, or another leaves an offer unclaimed. */
export function needsKeepAlive({ offers }: LockRecord, waiter: Waiter, { latestMs }: ClockReading): boolean {
  if (waiter.aliveUntilMs - waiter.ttlMs / 2 <= latestMs) return true;
  return offers.some(({ offeredAtMs }) => lastSeenMs(waiter) < offeredAtMs && offeredAtMs + LIMITS.keepAliveAfterMs <= latestMs);
}

/** What a waiter is told: its place, and when to come again. */
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
  const retryAfterMs = Math.min(LIMITS.pollStepMs * (place + 1), pollWithinMs);
  return { ...waiting, position: offers.length + place + 1, retryAfterMs, pollWithinMs };
}
