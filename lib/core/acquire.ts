/**
 * Acquire: a free key is granted; a lease that ran out, margin included, is taken over; who may hold
 * beside others joins them. First things first, each line a row of the precedence table in the tests:
 *
 *  1. the id holds already              → the same lease again (S8), or 403, 422 lease-reused, 410 lease-over
 *  2. the id ended                      → 410 lease-over (S7)
 *  3. its time is out of bounds         → 422 lease-id-time
 *  4. a living lease of its scope holds → nested in it, with its token (S10); 409 for another limit, 423 for exclusive inside shared
 *  5. others hold with another limit    → 409 limit-mismatch
 *  6. others keep it out                → 423 locked
 *  7. otherwise                         → granted, with a token above every earlier one (S2, S3)
 */
import { change, ttlAtSec } from "./change.js";
import type { Acquire, Decision, LeaseEvent } from "./commands.js";
import { BLANK, holdOf } from "./ending.js";
import { newHold, refuseAgain, refuseLocked, refuseNewLease, takeOver } from "./grant.js";
import type { Refusal } from "./errors.js";
import { refuse } from "./errors.js";
import type { Holder } from "./holding.js";
import { findingOf, isAlone, levelsOf, standing } from "./holding.js";
import { LIMITS } from "./limits.js";
import type { Hold, LockRecord, LockRules } from "./record.js";
import type { ClockReading } from "./time.js";
import { leaseView } from "./views.js";

/** Decides an acquire: granted, the same lease again, or why not. */
export function acquire(record: LockRecord | undefined, command: Acquire, reading: ClockReading, rules: LockRules): Decision<Acquire> {
  const { leaseId } = command;
  const before = record ?? BLANK;

  const mine = holdOf(before, leaseId);
  if (mine) return again(before, mine, command, reading);
  const over = refuseNewLease(before, leaseId, reading);
  if (over) return { answer: over, events: [] };

  const [outer] = levelsOf(before, command.scope, reading);
  if (outer) return nested(before, outer, command, reading, rules);
  const keptOut = refuseBeside(before, standing(before, reading), command, reading);
  return keptOut ? { answer: keptOut, events: [] } : granted(before, command, reading, rules);
}

/** Why those who hold keep this one out, if they do. */
function refuseBeside(record: LockRecord, others: readonly Holder[], command: Acquire, reading: ClockReading): Refusal | undefined {
  const finding = findingOf(record, others, command, reading);
  if (finding === "other-limit") return refuseLimit(record, command);
  return finding === "held" || others.length >= LIMITS.leasesMax ? refuseLocked(record, reading) : undefined;
}

function refuseLimit({ limit }: LockRecord, command: Acquire): Refusal {
  return refuse("limit-mismatch", { detail: `The key is in use with a limit of ${limit}, not ${command.limit}` });
}

/** A new lease, beside those that may hold with it; what ran out is taken over. */
function granted(before: LockRecord, command: Acquire, reading: ClockReading, rules: LockRules): Decision<Acquire> {
  const { leaseId, limit } = command;
  const { rest, ended } = takeOver(before, reading);
  const { upgrading: _stale, ...free } = rest;
  const hold = newHold(rest, command, reading, rules);
  const others = Object.keys(rest.holds).length > 0;
  const next = change(others ? rest : free, reading, {
    holds: { ...rest.holds, [leaseId]: hold },
    fencingToken: hold.fencingToken,
    fenceFloor: isAlone(command) ? hold.fencingToken : rest.fenceFloor,
    limit,
    ttlAtSec: others ? Math.max(rest.ttlAtSec, ttlAtSec(hold, rules)) : ttlAtSec(hold, rules),
  });
  return { answer: grantAnswer(next, hold, command, reading), next, events: [...ended, grantEvent(leaseId, hold)] };
}

/** Another level of the scope that holds: past everybody, with the same token and a length of its own. */
function nested(before: LockRecord, [, outer]: Holder, command: Acquire, reading: ClockReading, rules: LockRules): Decision<Acquire> {
  const { leaseId } = command;
  if (command.limit !== before.limit) return { answer: refuseLimit(before, command), events: [] };
  if (outer.mode === "shared" && command.mode === "exclusive") {
    const detail = "Its scope holds the key shared: a reader becomes the writer by a change of mode";
    return { answer: refuseLocked(before, reading, detail), events: [] };
  }
  // A level of its own would outlast what an operator is ending.
  if (outer.broken) return { answer: refuseLocked(before, reading, "An operator is ending the hold of its scope"), events: [] };
  if (Object.keys(before.holds).length >= LIMITS.leasesMax) return { answer: refuseLocked(before, reading), events: [] };
  if (command.permits > outer.permits) return { answer: refuseLocked(before, reading, "Its scope has fewer permits"), events: [] };
  const { mode, permits, fencingToken } = outer;
  const hold: Hold = { ...newHold(before, command, reading, rules), mode, permits, fencingToken };
  const next = change(before, reading, {
    holds: { ...before.holds, [leaseId]: hold },
    ttlAtSec: Math.max(before.ttlAtSec, ttlAtSec(hold, rules)),
  });
  return { answer: grantAnswer(next, hold, command, reading), next, events: [grantEvent(leaseId, hold)] };
}

function grantAnswer(next: LockRecord, hold: Hold, { key, leaseId }: Acquire, reading: ClockReading) {
  return { ok: true, how: "granted", lease: leaseView(key, leaseId, hold, next, reading) } as const;
}

function grantEvent(leaseId: string, { owner, principal, fencingToken }: Hold): LeaseEvent {
  return { event: "granted", leaseId, owner, principal, fencingToken };
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
  const lease = leaseView(key, leaseId, hold, next ?? record, reading);
  return { answer: { ok: true, how: "replayed", lease }, ...(next && { next }), events: [replayed] };
}
