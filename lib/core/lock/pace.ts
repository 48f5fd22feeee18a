/**
 * The pace of a queue: when a waiter asks again, and for how long it may go unseen.
 *
 * A waiter polls at the pace of the latest leases, and at the latest every `pollMaxMs`, which is shorter than an offer's life. Polls only read.
 * A waiter writes a keep-alive when half of its time has passed, or while another waiter's offer is unclaimed. So every live waiter is seen
 * before this offer lapses, and the write that withdraws it also removes the dead waiters.
 */
import { type Touch, type Waiting, ASK_NOW_MS } from "../commands.js";
import type { LeaseId } from "../lease-id.js";
import { DEFAULTS, LIMITS } from "../limits.js";
import type { LockRecord, Member, Waiter } from "../record.js";
import type { ClockReading } from "../time.js";
import { outside, placeOf } from "./places.js";
import { waitSetOf } from "./wait-set.js";

/** Returns the time at which this waiter was last seen; of one that sleeps, its deadline. */
export function lastSeenMs({ aliveUntilMs, ttlMs }: Waiter): number {
  return aliveUntilMs - ttlMs;
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

/**
 * Returns the time for which a place is likely to last: as long as the shorter one of the last two leases, and its hand-over. Each length was
 * measured by one process. The age of a lease is no measure: the clocks of two processes may differ by more than a lease takes.
 */
function stepMs({ heldMs = LIMITS.unknownHeldMs, heldBeforeMs = heldMs, limit }: LockRecord): number {
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
  // It takes longer than those before it, by a few ms as a rule.
  return leftMs < 0 ? Math.min(wholeMs / 4, 4 * LIMITS.handOverMs) : leftMs;
}

/**
 * Returns the time from the likely end of the lease at the front to the next poll of this place. Those behind who is next look soon after the
 * one before them is likely to hold, to learn in time that they are next.
 */
function afterMs(record: LockRecord, place: number): number {
  if (place === 0) return 0;
  const eachMs = stepMs(record);
  return eachMs * (place - 1) + Math.min(eachMs, 3 * LIMITS.handOverMs);
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
    return { ...waiting, position: offered + 1, retryAfterMs: ASK_NOW_MS, pollWithinMs: LIMITS.pollMaxMs };
  }
  const reports = offers
    .filter(({ offeredAtMs }) => lastSeenMs(waiter) < offeredAtMs)
    .map(({ offeredAtMs }) => Math.max(0, offeredAtMs + LIMITS.keepAliveAfterMs - reading.latestMs));
  const pollWithinMs = Math.min(LIMITS.pollMaxMs, ...reports);
  const dueMs = Math.round(restMs(record, reading) + afterMs(record, place));
  const retryAfterMs = Math.min(Math.max(1, dueMs), pollWithinMs);
  return { ...waiting, position: offers.length + place + 1, retryAfterMs, pollWithinMs };
}

/** Returns the place of a member of the wait set, behind the whole queue, and the time of its next poll. */
export function memberView(record: LockRecord, member: Member): Waiting {
  const { offers, waiters } = record;
  const place = waiters.length + waitSetOf(record).indexOf(member);
  const retryAfterMs = Math.min(LIMITS.pollStepMs * (place + 1), LIMITS.pollMaxMs);
  const { condition } = member;
  return { ok: true, state: "waiting", position: offers.length + place + 1, retryAfterMs, pollWithinMs: LIMITS.pollMaxMs, condition };
}

/** Returns the time after which a caller without a place is likely to get one: when those before it have. */
export function placeAfterMs(record: LockRecord, leaseId: LeaseId): number {
  const [ahead, eachMs] = outside(record.waiters, leaseId);
  // Ids of one moment don't tell who is next.
  const leastMs = eachMs < 1 ? LIMITS.burstWaitMs : LIMITS.fullWaitMs;
  return Math.min(LIMITS.pollMaxMs, Math.max(leastMs, Math.round(stepMs(record) * (ahead + 1))));
}
