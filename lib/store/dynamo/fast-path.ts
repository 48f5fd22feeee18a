/**
 * Fast paths: the common case of a command as one conditional write, sent without a read. Each is built from named
 * predicates, and each predicate mirrors a rule of the core. If all of them hold, the write leaves exactly the record
 * that `transition` would, or with an `outcome` the one that it describes (test/store/differential/differential.test.ts
 * compares them). If one fails, the response has the present item, and the core decides on it.
 */
import { touchedTtlAtSec, ttlAtSec } from "../../core/change.js";
import { queueBehind } from "../../core/lock/acquire.js";
import { CROWDED_BYTES, isLong, placesBeside, waitersBytes } from "../../core/record-bytes.js";
import type { Acquire, Command, Complete, Renew, Start } from "../../core/commands.js";
import { outcomeDigest } from "../../core/run/complete.js";
import { extendOnly } from "../../core/lock/renew.js";
import { EMPTY_RECORD, holdOf } from "../../core/lock/tombstones.js";
import { newHold, refuseNewLease } from "../../core/lock/grant.js";
import { isSkewed } from "../../core/lock/expiry.js";
import { isAlone } from "../../core/lock/compatibility.js";
import { isCrowd } from "../../core/lock/crowd.js";
import { DEFAULTS, LIMITS } from "../../core/limits.js";
import type { Kind } from "../../core/api/locks.js";
import type { LeanWay } from "../compare-and-set.js";
import { isLikelyOver, placeOf, placesFor, waiterFor, withWaiter } from "../../core/lock/queue.js";
import type { Hold, LockRecord, LockPolicy } from "../../core/record.js";
import { isStored, startedTtlAtSec } from "../../core/run/run.js";
import { nextAttempt } from "../../core/run/start.js";
import { transition } from "../../core/transition.js";
import type { ClockReading } from "../../core/time.js";
import { type RecentRecord, NOTHING_SEEN } from "./recent-records.js";
import { sumsOf } from "./crowd-item.js";
import { endAnyway, ending, handOver, leave, leavePlace, shifted } from "./ending.js";
import { join, ttlOf } from "./join.js";
import { FORMAT_VERSION, LONG_WAITERS, sleepersIn, waiterToItem } from "./item.js";
import { type Item, CHECKPOINT, HOLD, PAYLOAD, RUN } from "./layout.js";
import { markOf } from "./lists.js";
import * as is from "./predicates.js";
import type { FastPath, Write } from "./predicates.js";
import { storedId } from "./stored-id.js";

/** Returns the fast path of `command`, if its common case needs no read. The recent record shows which case is likely. */
export function fastPath(
  kind: Kind,
  command: Command,
  reading: ClockReading,
  policy: LockPolicy,
  seen: RecentRecord = NOTHING_SEEN,
): FastPath | undefined {
  switch (command.type) {
    case "acquire":
      return fastAcquire(command, reading, policy, seen);
    case "start":
      return refuseNewLease(EMPTY_RECORD, command.leaseId, reading) ? undefined : fastStart(command, reading, policy);
    case "renew":
      // Only the record shows if there is room for new meta, or if the prolonged checkpoint is still the stored one.
      if (command.meta || command.prolonged || (command.checkpoint && !isStored(command.checkpoint))) return undefined;
      return kind === "runs" ? fastRenewOfRun(command, reading, policy) : fastRenewOfLock(command, reading, policy, seen.record);
    case "release":
      // Skewed clocks don't advance the queue, and may leave the ending of the hold unknown.
      if (kind === "runs" || isSkewed(reading) || command.onlyWaiting) return undefined;
      if (seen.record && seen.waiting.has(command.leaseId)) {
        const { commutes } = transition(seen.record, command, reading, policy);
        return commutes && leavePlace(command, reading, policy, seen.record);
      }
      return seen.record && seen.holds > 1 ? leave(command, reading, policy, seen.record) : handOver(command, reading, policy, seen.record);
    case "complete":
      return command.payload && !isStored(command.payload) ? undefined : fastComplete(command, reading, policy);
    // Stryker disable next-line ConditionalExpression: the function returns nothing without it too
    default:
      return undefined;
  }
}

/** Returns the write of a change that the core decided on this record, in one of the lean ways, if this command has it. */
export function leanWrite(
  way: LeanWay,
  command: Command,
  record: LockRecord,
  reading: ClockReading,
  policy: LockPolicy,
): FastPath | undefined {
  switch (way) {
    case "end":
      return command.type === "release" && !command.onlyWaiting ? endAnyway(command, reading, policy, record) : undefined;
    case "commute":
      return commuting(command, record, reading, policy);
    case "append":
      return command.type === "acquire" && isPlain(command) ? append(command, reading, policy, record, false) : undefined;
  }
}

/** Returns the write of a change that the core decided on this record, and that commutes with others of its kind. */
function commuting(command: Command, record: LockRecord, reading: ClockReading, policy: LockPolicy): FastPath | undefined {
  if (command.type === "acquire") {
    if (!fitsNow(command, record, reading, policy)) return isLong(command) ? undefined : append(command, reading, policy, record);
    return isAlone(command) ? fastClaim(command, reading, policy, record) : join(command, record, reading, policy);
  }
  if (command.type === "renew") return fastRenewOfLock(command, reading, policy, record, holdOf(record, command.leaseId));
  // Stryker disable next-line ConditionalExpression: no other command commutes
  if (command.type !== "release") return undefined;
  return placeOf(record, command.leaseId) < 0 ? leave(command, reading, policy, record) : leavePlace(command, reading, policy, record);
}

function fastAcquire(command: Acquire, reading: ClockReading, policy: LockPolicy, seen: RecentRecord): FastPath | undefined {
  const { leaseId, wait } = command;
  // A waiter that sleeps is granted nothing at once, and its mark must leave the queue with it.
  if (command.sleepMs !== undefined || seen.asleep.has(leaseId)) return undefined;
  const claimsBeside = seen.waiting.has(leaseId) && !isAlone(command);
  if (seen.offered.has(leaseId) || claimsBeside || seen.first === leaseId)
    return isAlone(command) ? fastClaim(command, reading, policy, seen.record) : claimBeside(command, reading, policy, seen.record);
  if (seen.waiting.has(leaseId)) return undefined;
  // An id whose time is out of bounds can't become a new lease. It may hold already, so the record decides.
  if (refuseNewLease(EMPTY_RECORD, leaseId, reading)) return undefined;
  if (!isAlone(command) && seen.record) {
    const { answer, commutes } = transition(seen.record, command, reading, policy);
    if (commutes) return commuting(command, seen.record, reading, policy);
    if (!answer.ok) return undefined;
  } else if (wait && seen.isInUse && isPlain(command)) {
    const { record = EMPTY_RECORD } = seen;
    if (isLikelyOver(record, reading)) return fastGrant(command, reading, policy);
    return append(command, reading, policy, record);
  }
  // DynamoDB charges a refused write by the item's size too. Who would most likely be refused reads: holders and waiters need the item's
  // write units, and a read takes none of them.
  return seen.isInUse ? undefined : fastGrant(command, reading, policy);
}

/** This id waits or is offered the key, and others hold it. */
function claimBeside(command: Acquire, reading: ClockReading, policy: LockPolicy, seen: LockRecord | undefined): FastPath | undefined {
  const commutes = seen && transition(seen, command, reading, policy).commutes;
  return commutes && join(command, seen, reading, policy);
}

/** The key is free and this id is new to it. */
function fastGrant(command: Acquire, reading: ClockReading, policy: LockPolicy): Write {
  const hold = newHold(EMPTY_RECORD, command, reading, policy);
  return grant(command.leaseId, hold, command.limit, ttlAtSec(hold, policy));
}

/** True if the lease is granted at once. */
function fitsNow(command: Acquire, record: LockRecord, reading: ClockReading, policy: LockPolicy): boolean {
  return transition(record, command, reading, policy).behind === undefined;
}

/** True if the waiter belongs at the end of the queue, as long as the key is in use. */
function isPlain(command: Acquire): boolean {
  return command.scope === undefined && command.priority === 0 && command.sleepMs === undefined && !isLong(command);
}

/**
 * The key is in use, and there is room for another waiter. Checks no expiry: the first poll does. The sums of a crowd are kept right, if
 * `isCounted`. Undefined if the waiter's place is not at the end, or if there may be no room.
 */
function append(
  command: Acquire,
  reading: ClockReading,
  policy: LockPolicy,
  seen: LockRecord,
  isCounted = isCrowd(seen),
): FastPath | undefined {
  const [waiter, mark] = [waiterFor(command, reading), markOf(command.leaseId)];
  const asleep = sleepersIn(seen);
  const most = asleep + Math.min(placesFor(seen.waiters, command), placesBeside(asleep));
  if (seen.waiters.length >= most || withWaiter(seen.waiters, waiter).at(-1) !== waiter) return undefined;
  const bytes = waitersBytes([waiter]);
  // A key for which somebody sleeps is in use.
  const uses = asleep > 0 ? [is.SLEEPERS_AS_SEEN] : [is.NOBODY_SLEEPS, ...(isCounted ? [] : [is.IN_USE])];
  const room = isCounted ? [is.CROWD, is.PLACE_TO_WAIT, is.BYTES_TO_JOIN] : [is.ROOM_TO_WAIT, is.NOT_CROWDED];
  return {
    condition: [...room, ...uses, is.NEW_HERE, is.NEVER_ENDED, is.SAME_LIMIT, is.TTL_STANDS, is.KNOWN_FORMAT].join(" AND "),
    update: `SET q = list_append(q, :waiters), qi = list_append(qi, :ids), v = v + :one${isCounted ? ", cb = cb + :bytes, cv = cv + :one" : ""}`,
    names: { "#me": storedId(command.leaseId) },
    values: {
      ":me": storedId(command.leaseId),
      ...{ ":waiters": [waiterToItem(waiter)], ":ids": [mark], ":mark": mark },
      ":most": most,
      ...(asleep > 0 ? { ":asleep": asleep } : !isCounted && { ":zero": 0 }),
      ...(isCounted ? { ":bytes": bytes, ":small": LIMITS.recordBytes - bytes, ":long": LONG_WAITERS } : { ":crowded": CROWDED_BYTES }),
      ":limit": command.limit,
      ":touched": touchedTtlAtSec(EMPTY_RECORD, reading, policy),
      ":one": 1,
      ":format": FORMAT_VERSION,
    },
    outcome: (before) => queueBehind(before, command, reading, policy),
    lists: ({ places, listed }) => ({ places: [...places, command.leaseId], listed }),
  };
}

/** The key is offered to this id alone. The token is above the one that was seen. */
function fastClaim(command: Acquire, reading: ClockReading, policy: LockPolicy, seen = EMPTY_RECORD): Write {
  const { leaseId, principal, requestHash } = command;
  const hold = newHold(seen, command, reading, policy);
  const ttl = ttlOf(hold, policy, seen);
  return {
    condition: [is.OFFERED_ALONE, is.CLOCK_ABOVE_FENCE, ttl.condition, is.KNOWN_FORMAT].join(" AND "),
    update: `SET ${["h.#me = :hold", "f = :token", "ff = :token", "v = v + :one", ...ttl.update].join(", ")} REMOVE ug`,
    names: { "#me": storedId(leaseId) },
    values: {
      ":by": principal,
      ":params": requestHash,
      ":hold": HOLD.toItem(hold),
      ":token": hold.fencingToken,
      ":ttl": ttlAtSec(hold, policy),
      ":one": 1,
      ":format": FORMAT_VERSION,
    },
  };
}

/** No run is stored under the key, and this id is new to it. */
function fastStart(command: Start, reading: ClockReading, policy: LockPolicy): Write {
  const hold = newHold(EMPTY_RECORD, command, reading, policy);
  const run = RUN.toItem(nextAttempt(undefined, false, command));
  return grant(command.leaseId, hold, 1, startedTtlAtSec(hold, command.keepResultMs, policy), run);
}

/** Grants a free key; for a run, writes the run as well. */
function grant(leaseId: string, hold: Hold, limit: number, ttl: number, run?: Item): Write {
  const crowd = isAlone({ mode: hold.mode, limit }) ? undefined : sumsOf({ ...EMPTY_RECORD, limit, holds: { [leaseId]: hold } });
  // The sums of a crowd don't count who waits for a condition, and its limit must not be another than theirs.
  const members = crowd ? is.NO_MEMBERS : is.NO_MEMBER;
  return {
    condition: [is.FREE, is.CLOCK_ABOVE_FENCE, is.NEVER_ENDED, ...(run ? [is.NEVER_RUN] : []), members, is.NO_OTHER_FORMAT].join(" AND "),
    update:
      `SET h = :h, f = :token, ff = :token, lim = :limit, v = if_not_exists(v, :now) + :one, ` +
      `${is.X} = :ttl, fv = :format, q = :none, qi = :none, fl = if_not_exists(fl, :empty)${run ? ", rn = :run" : ""}` +
      (crowd
        ? ", cv = :one + if_not_exists(v, :now), cp = :cp, cb = :cb, co = :zero, jt = :jt REMOVE ug"
        : " REMOVE cv, cp, cb, co, jt, ug"),
    names: members === is.NO_MEMBER ? { "#me": storedId(leaseId) } : {},
    values: {
      ":h": { [storedId(leaseId)]: HOLD.toItem(hold) },
      ":me": storedId(leaseId),
      ":token": hold.fencingToken,
      ":now": hold.grantedAtMs,
      ":limit": limit,
      ...(run && { ":run": run }),
      ...(crowd && { ":cp": crowd.cp, ":cb": crowd.cb, ":jt": crowd.jt }),
      ":ttl": ttl,
      ":format": FORMAT_VERSION,
      ":zero": 0,
      ":one": 1,
      ":none": [],
      ":empty": "",
    },
  };
}

/** The lease is the caller's, is live, and will end later. Other leases may have a longer record already. */
function fastRenewOfLock(command: Renew, reading: ClockReading, policy: LockPolicy, seen: LockRecord | undefined, known?: Hold): FastPath {
  const times = timesOf(command, reading, policy, known);
  const ttl = ttlOf(times, policy, seen);
  const write = renewal(command, reading, policy, times, { condition: [ttl.condition, is.HEAD_LIVES], update: ttl.update, values: {} });
  // Behind a place that was left, the first who waits may be dead.
  return { ...write, outcome: (before) => extendOnly(before, command, reading, policy) };
}

/** The same for a run's lease. The start already gave its record a TTL that is long enough. */
function fastRenewOfRun({ checkpoint, ...command }: Renew, reading: ClockReading, policy: LockPolicy): Write {
  return renewal(command, reading, policy, timesOf(command, reading, policy), {
    condition: [is.TTL_IS_ENOUGH, ...(checkpoint?.sequence === undefined ? [] : [is.LATER_CHECKPOINT])],
    update: checkpoint ? ["rn.c = :checkpoint"] : [],
    values: checkpoint && {
      ":checkpoint": CHECKPOINT.toItem(checkpoint),
      ...(checkpoint.sequence !== undefined && { ":sequence": checkpoint.sequence }),
    },
  });
}

/** The times of a lease after its renewal. */
type Times = Pick<Hold, "leaseMs" | "expiresAtMs" | "marginMs">;

/** Returns the times of a renewed lease. Without a length in the request, the condition assumes that of the known hold, or the default. */
function timesOf(command: Renew, { latestMs }: ClockReading, policy: LockPolicy, known?: Hold): Times {
  const leaseMs = command.leaseMs ?? known?.leaseMs ?? DEFAULTS.leaseMs;
  return { leaseMs, expiresAtMs: latestMs + leaseMs, marginMs: policy.marginMs(leaseMs) };
}

function renewal(
  command: Renew,
  reading: ClockReading,
  policy: LockPolicy,
  { leaseMs, expiresAtMs, marginMs }: Times,
  also: { readonly condition: readonly string[]; readonly update: readonly string[]; readonly values: Write["values"] | undefined },
): Write {
  const { leaseId, principal } = command;
  const sameLength = command.leaseMs === undefined ? [is.SAME_LENGTH] : [];
  return {
    condition: [is.MINE, is.LIVE, is.NOT_BROKEN, is.LENGTHENED, ...sameLength, ...also.condition, is.KNOWN_FORMAT].join(" AND "),
    update: `SET ${["h.#me.e = :expires", "h.#me.l = :length", "h.#me.g = :margin", ...NEXT_VERSION, ...also.update].join(", ")}`,
    names: { "#me": storedId(leaseId) },
    values: {
      ":principal": principal,
      ":earlier": reading.earliestMs,
      ":zero": 0,
      ":expires": expiresAtMs,
      ":length": leaseMs,
      ":margin": marginMs,
      ":one": 1,
      ":ttl": ttlAtSec({ expiresAtMs, marginMs }, policy),
      ":format": FORMAT_VERSION,
      ...also.values,
    },
  };
}

/** The next version, at which the sums of a crowd are as right as before. */
const NEXT_VERSION = ["v = v + :one", "cv = if_not_exists(cv, :zero) + :one"];

/** The lease of a run is the caller's, live and alone. The run started recently: its record's TTL is long enough for any outcome recorded now. */
function fastComplete(command: Complete, reading: ClockReading, policy: LockPolicy): Write {
  const { state, payload, omitted } = command;
  const said = [
    "rn.s = :state",
    "rn.b = :me",
    "rn.p = :principal",
    "rn.w = h.#me.o",
    "rn.g = h.#me.a",
    "rn.e = :now",
    ...(payload ? ["rn.o = :payload"] : []),
    ...(omitted ? ["rn.om = :true"] : []),
  ];
  const kept = state === "retry" ? [] : ["rn.u = rn.k + :now"];
  const write = ending(
    command,
    reading,
    {
      condition: [is.NOBODY_WAITS, is.STARTED_LATELY],
      update: [...said, ...kept],
      values: {
        ":zero": 0,
        ":lately": reading.latestMs - policy.retentionMs,
        ":state": state,
        ":me": storedId(command.leaseId),
        ...(payload && { ":payload": PAYLOAD.toItem(payload) }),
        // Stryker disable next-line BooleanLiteral: a reader looks only if there is a value
        ...(omitted && { ":true": true }),
        ":now": reading.latestMs,
      },
    },
    shifted(command, reading, false, outcomeDigest(command)),
  );
  const gone = [...(state === "retry" ? [] : ["rn.c"]), ...(payload ? [] : ["rn.o"]), ...(omitted ? [] : ["rn.om"])];
  return { ...write, update: `${write.update} REMOVE ${["h.#me", ...gone].join(", ")}` };
}
