/**
 * Acquire: a free key is granted; a lease that ran out, margin included, is taken over. First things
 * first, each line a row of the precedence table in the tests:
 *
 *  1. the id holds already         → the same lease again (S8), or 403, 422 lease-reused, 410 lease-over
 *  2. the id ended                 → 410 lease-over (S7)
 *  3. its time is out of bounds    → 422 lease-id-time
 *  4. somebody keeps the key       → 423 locked
 *  5. otherwise                    → granted, with a token above every earlier one (S2, S3)
 */
import type { Acquire, Decision, LeaseEvent } from "./commands.js";
import { BLANK, endLease, endingOf, floorTimeMs, holdOf } from "./ending.js";
import type { Refusal } from "./errors.js";
import { refuse } from "./errors.js";
import type { LeaseId } from "./lease-id.js";
import { leaseIdTimeMs } from "./lease-id.js";
import { LIMITS } from "./limits.js";
import type { Hold, LockRecord, LockRules } from "./record.js";
import { change, ttlAtSec } from "./change.js";
import type { ClockReading } from "./time.js";
import { freeInMs, holdersOf, isLive, isTakeable, leaseView } from "./views.js";

/** Decides an acquire: granted, the same lease again, or why not. */
export function acquire(record: LockRecord | undefined, command: Acquire, reading: ClockReading, rules: LockRules): Decision<Acquire> {
  const { key, leaseId } = command;
  const before = record ?? BLANK;

  const mine = holdOf(before, leaseId);
  if (mine) return again(before, mine, command, reading);
  const over = refuseNewLease(before, leaseId, reading);
  if (over) return { answer: over, events: [] };

  if (Object.values(before.holds).some((hold) => !isTakeable(hold, reading))) {
    const refusal = refuse("locked", { retryAfterMs: freeInMs(before, reading), holders: holdersOf(before, reading) });
    return { answer: refusal, events: [] };
  }

  const { free, ended } = takeOver(before, reading);
  const hold = newHold(free, command, reading, rules);
  const next = change(free, reading, { holds: { [leaseId]: hold }, fencingToken: hold.fencingToken, ttlAtSec: ttlAtSec(hold, rules) });
  const granted: LeaseEvent = { event: "granted", leaseId, owner: hold.owner, principal: hold.principal, fencingToken: hold.fencingToken };
  return {
    answer: { ok: true, how: "granted", lease: leaseView(key, leaseId, hold, next.version, reading) },
    next,
    events: [...ended, granted],
  };
}

/** The same id asks again: the same lease, the same token, the same expiry; or why not. */
function again(record: LockRecord, hold: Hold, command: Acquire, reading: ClockReading): Decision<Acquire> {
  const { key, leaseId, principal } = command;
  if (hold.principal !== "" && hold.principal !== principal) return { answer: refuse("forbidden"), events: [] };
  if (!isLive(hold, reading)) return { answer: leaseOver(record), events: [] };
  if (hold.params !== "" && hold.params !== command.params) {
    return { answer: refuse("lease-reused", { detail: "This leaseId holds the key with other parameters than these" }), events: [] };
  }
  const replayed: LeaseEvent = { event: "replayed", leaseId, owner: hold.owner, principal, fencingToken: hold.fencingToken };
  // After a transfer the first to ask is whose it is from then on.
  const next =
    hold.principal === "" ? change(record, reading, { holds: { ...record.holds, [leaseId]: { ...hold, principal } } }) : undefined;
  const lease = leaseView(key, leaseId, hold, (next ?? record).version, reading);
  return { answer: { ok: true, how: "replayed", lease }, ...(next && { next }), events: [replayed] };
}

/** Why `leaseId` can't become a new lease of this key, if it can't. Also asked of a transfer's new id. */
export function refuseNewLease(record: LockRecord, leaseId: LeaseId, reading: ClockReading): Refusal | undefined {
  if (endingOf(record, leaseId)) return leaseOver(record);
  const timeMs = leaseIdTimeMs(leaseId);
  // From the floor on, if that is ahead of the clocks: wherever it stands, some id is above it and taken.
  const latestMs =
    Math.min(Math.max(reading.laterMs, floorTimeMs(record)), reading.laterMs + LIMITS.leaseIdReachMs) + LIMITS.leaseIdAheadMs;
  if (timeMs > latestMs || timeMs < reading.laterMs - LIMITS.leaseIdBehindMs) {
    return refuse("lease-id-time", {
      serverTimeMs: reading.laterMs,
      detail: `The leaseId says it was made ${timeMs - reading.laterMs} ms from now`,
    });
  }
  return undefined;
}

function leaseOver(record: LockRecord): Refusal {
  return refuse("lease-over", record.floor === "" ? {} : { leaseIdAboveMs: floorTimeMs(record) });
}

/** The key without the leases that ran out, each remembered as taken. */
function takeOver(record: LockRecord, reading: ClockReading): { free: LockRecord; ended: readonly LeaseEvent[] } {
  const ended: LeaseEvent[] = [];
  let free = record;
  for (const [leaseId, hold] of Object.entries(record.holds)) {
    free = endLease(free, leaseId, hold.broken ? "broken" : "taken", hold.broken && hold.fencingToken);
    ended.push(endedEvent(leaseId, hold, hold.broken ? "broken" : "taken", reading));
  }
  return { free, ended };
}

/** What the log says of a hold's end. */
export function endedEvent(leaseId: LeaseId, hold: Hold, reason: NonNullable<LeaseEvent["reason"]>, reading: ClockReading): LeaseEvent {
  const { owner, principal, fencingToken, grantedAtMs } = hold;
  return { event: "ended", leaseId, owner, principal, fencingToken, heldMs: Math.max(0, reading.laterMs - grantedAtMs), reason };
}

/** A grant's token: above every earlier one, and above every one that was collected with its item. */
export function nextToken(record: LockRecord, reading: ClockReading): number {
  return Math.max(record.fencingToken + 1, reading.laterMs);
}

/** The hold that `command` is granted now. */
export function newHold(record: LockRecord, command: Acquire, reading: ClockReading, rules: LockRules): Hold {
  const { principal, owner, leaseMs, params, meta } = command;
  return {
    principal,
    owner,
    mode: "exclusive",
    permits: 1,
    fencingToken: nextToken(record, reading),
    leaseMs,
    grantedAtMs: reading.laterMs,
    expiresAtMs: reading.laterMs + leaseMs,
    marginMs: rules.marginMs(leaseMs),
    params,
    ...(meta && { meta }),
  };
}
