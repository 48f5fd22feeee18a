/**
 * The writes of leases that begin or go on, and of an outcome. Each is built from named predicates, and each predicate mirrors a rule of the
 * core. If all of them hold, the write leaves exactly the record that `transition` would, or with an `outcome` the one that it describes.
 */
import { touchedTtlAtSec, ttlAtSec } from "../../core/change.js";
import { grantBeside, queueBehind } from "../../core/lock/acquire.js";
import { CROWDED_BYTES, placesBeside, waitersBytes } from "../../core/record-bytes.js";
import type { Acquire, Complete, Renew, Start } from "../../core/commands.js";
import { outcomeDigest } from "../../core/run/complete.js";
import { extendOnly } from "../../core/lock/renew.js";
import { EMPTY_RECORD, holdOf } from "../../core/lock/tombstones.js";
import { newHold } from "../../core/lock/grant.js";
import { isAlone } from "../../core/lock/compatibility.js";
import { DEFAULTS, LIMITS } from "../../core/limits.js";
import { placesFor, waiterFor } from "../../core/lock/places.js";
import type { Hold, LockPolicy } from "../../core/record.js";
import { startedTtlAtSec } from "../../core/run/run.js";
import { nextAttempt } from "../../core/run/start.js";
import type { ClockReading } from "../../core/time.js";
import { sumsOf } from "./crowd-item.js";
import { ending, shifted } from "./ending.js";
import { ttlOf } from "./join.js";
import { FORMAT_VERSION, LONG_WAITERS, sleepersIn, waiterToItem } from "./item.js";
import { type Item, CHECKPOINT, HOLD, PAYLOAD, RUN } from "./layout.js";
import { markOf, NOTHING } from "./lists.js";
import * as is from "./predicates.js";
import type { AttemptOf, FormWrite, Write } from "./predicates.js";
import { storedId } from "./stored-id.js";

/**
 * The key is free and this id is new to it. While leases are listed as ended, the core reads a low watermark that is higher than the stored one,
 * and would refuse an id below it. What was written is a grant all the same, and is told as one.
 */
export function grant({ command, reading, policy }: AttemptOf<Acquire>): FormWrite {
  const hold = newHold(EMPTY_RECORD, command, reading, policy);
  return {
    ...grantOf(command.leaseId, hold, command.limit, ttlAtSec(hold, policy)),
    decides: (before) => grantBeside(before, command, reading, policy),
  };
}

/** Returns how many places a queue may have, those of sleepers among them, for one more of this caller to fit surely. */
export function placesAround({ command, seen: { record } = NOTHING }: AttemptOf<Acquire>): number {
  const asleep = sleepersIn(record);
  return asleep + Math.min(placesFor(record.waiters, command), placesBeside(asleep));
}

/** The key is in use, and there is room for another waiter. Checks no expiry: the first poll does. The sums of a crowd are kept right, if `isCounted`. */
export function append(attempt: AttemptOf<Acquire>, isCounted: boolean): FormWrite {
  const { command, reading, policy, seen: { record } = NOTHING } = attempt;
  const [waiter, mark] = [waiterFor(command, reading), markOf(command.leaseId)];
  const [asleep, bytes] = [sleepersIn(record), waitersBytes([waiter])];
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
      ":most": placesAround(attempt),
      ...(asleep > 0 ? { ":asleep": asleep } : !isCounted && { ":zero": 0 }),
      ...(isCounted ? { ":bytes": bytes, ":small": LIMITS.recordBytes - bytes, ":long": LONG_WAITERS } : { ":crowded": CROWDED_BYTES }),
      ":limit": command.limit,
      ":touched": touchedTtlAtSec(EMPTY_RECORD, reading, policy),
      ":one": 1,
      ":format": FORMAT_VERSION,
    },
    decides: (before) => queueBehind(before, command, reading, policy),
    lists: ({ places, listed }) => ({ places: [...places, command.leaseId], listed }),
  };
}

/** The key is offered to this id alone. The token is above the one that was seen. */
export function claim({ command, reading, policy, seen: { record } = NOTHING }: AttemptOf<Acquire>): Write {
  const { leaseId, principal, requestHash } = command;
  const hold = newHold(record, command, reading, policy);
  const ttl = ttlOf(hold, policy, record);
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
export function start({ command, reading, policy }: AttemptOf<Start>): Write {
  const hold = newHold(EMPTY_RECORD, command, reading, policy);
  const run = RUN.toItem(nextAttempt(undefined, false, command));
  return grantOf(command.leaseId, hold, 1, startedTtlAtSec(hold, command.keepResultMs, policy), run);
}

/** Grants a free key; for a run, writes the run as well. */
function grantOf(leaseId: string, hold: Hold, limit: number, ttl: number, run?: Item): Write {
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
export function renew({ command, reading, policy, seen: { record } = NOTHING }: AttemptOf<Renew>): FormWrite {
  const times = timesOf(command, reading, policy, holdOf(record, command.leaseId));
  const ttl = ttlOf(times, policy, record);
  const write = renewal(command, reading, policy, times, { condition: [ttl.condition, is.HEAD_LIVES], update: ttl.update, values: {} });
  // Behind a place that was left, the first who waits may be dead.
  return { ...write, decides: (before) => extendOnly(before, command, reading, policy) };
}

/** The same for a run's lease. The start already gave its record a TTL that is long enough. */
export function renewRun({ command: { checkpoint, ...command }, reading, policy }: AttemptOf<Renew>): Write {
  return renewal(command, reading, policy, timesOf(command, reading, policy), {
    condition: [is.TTL_IS_ENOUGH, ...(checkpoint?.sequence === undefined ? [] : [is.LATER_CHECKPOINT])],
    update: checkpoint ? [`${is.run.checkpoint} = :checkpoint`] : [],
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
    update: `SET ${[`${is.my.expiresAtMs} = :expires`, `${is.my.leaseMs} = :length`, `${is.my.marginMs} = :margin`, ...NEXT_VERSION, ...also.update].join(", ")}`,
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
export function complete({ command, reading, policy }: AttemptOf<Complete>): Write {
  const { state, payload, omitted } = command;
  const said = [
    `${is.run.state} = :state`,
    `${is.run.recordedBy} = :me`,
    `${is.run.principal} = :principal`,
    `${is.run.owner} = ${is.my.owner}`,
    `${is.run.startedAtMs} = ${is.my.grantedAtMs}`,
    `${is.run.endedAtMs} = :now`,
    ...(payload ? [`${is.run.payload} = :payload`] : []),
    ...(omitted ? [`${is.run.omitted} = :true`] : []),
  ];
  const kept = state === "retry" ? [] : [`${is.run.keptUntilMs} = ${is.run.keepResultMs} + :now`];
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
    shifted(command, reading, "rises", outcomeDigest(command)),
  );
  const gone = [
    ...(state === "retry" ? [] : [is.run.checkpoint]),
    ...(payload ? [] : [is.run.payload]),
    ...(omitted ? [] : [is.run.omitted]),
  ];
  return { ...write, update: `${write.update} REMOVE ${["h.#me", ...gone].join(", ")}` };
}
