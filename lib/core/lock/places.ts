/**
 * The places of a queue: who is in it, in which order, and for whom there is room. Those that poll, those that sleep and those that a notify
 * brought have places of their own.
 */
import type { Acquire } from "../commands.js";
import { holdOf } from "./tombstones.js";
import { memberOf, waitSetOf } from "./wait-set.js";
import { type LeaseId, isSameLeaseId, leaseIdTimeMs } from "../lease-id.js";
import { DEFAULTS, LIMITS } from "../limits.js";
import { waitersBytes } from "../record-bytes.js";
import type { LockRecord, Offer, Waiter } from "../record.js";
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
export function outside(waiters: readonly Waiter[], leaseId: LeaseId): readonly [ahead: number, eachMs: number] {
  const cameMs = waiters.filter(polls).map((waiter) => leaseIdTimeMs(waiter.leaseId));
  if (cameMs.length === 0) return [0, 0];
  const latestMs = Math.max(...cameMs);
  const eachMs = (latestMs - Math.min(...cameMs)) / cameMs.length;
  return [Math.max(0, (leaseIdTimeMs(leaseId) - latestMs) / Math.max(1, eachMs)), eachMs];
}

/** Returns the most waiters of its kind among whom this caller gets a place. The last places are for those who come next, and for urgent callers. */
export function placesFor(waiters: readonly Waiter[], { leaseId, priority, sleepMs }: Acquire): number {
  // A waiter that sleeps sends no polls, so there may be as many of them as of members that wait for a condition.
  if (sleepMs !== undefined) return LIMITS.membersMax;
  const free = LIMITS.waitersMax - waiters.filter(polls).length;
  const isNext = priority > 0 || outside(waiters, leaseId)[0] <= 2 * free;
  return isNext ? LIMITS.waitersMax : LIMITS.placesForAnyone;
}

/** True if both queues and wait sets have the same waiters, each in its place until the same time. */
export function isSameQueue(record: LockRecord, other: LockRecord): boolean {
  return areSame(record.waiters, other.waiters) && areSame(waitSetOf(record), waitSetOf(other));
}

function areSame(waiters: readonly Waiter[], others: readonly Waiter[]): boolean {
  const seen = (all: readonly Waiter[]): string => all.map(({ leaseId, aliveUntilMs }) => `${leaseId} ${aliveUntilMs}`).join();
  return seen(waiters) === seen(others);
}
