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
import { BLANK, holdOf } from "./ending.js";
import { refuse } from "./errors.js";
import { newHold, refuseAgain, refuseNewLease, takeOver } from "./grant.js";
import type { Hold, LockRecord, LockRules } from "./record.js";
import { change, ttlAtSec } from "./change.js";
import type { ClockReading } from "./time.js";
import { freeInMs, holdersOf, isTakeable, leaseView } from "./views.js";

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
  const refusal = refuseAgain(record, hold, command, reading);
  if (refusal) return { answer: refusal, events: [] };
  const replayed: LeaseEvent = { event: "replayed", leaseId, owner: hold.owner, principal, fencingToken: hold.fencingToken };
  // After a transfer the first to ask is whose it is from then on.
  const next =
    hold.principal === "" ? change(record, reading, { holds: { ...record.holds, [leaseId]: { ...hold, principal } } }) : undefined;
  const lease = leaseView(key, leaseId, hold, (next ?? record).version, reading);
  return { answer: { ok: true, how: "replayed", lease }, ...(next && { next }), events: [replayed] };
}
