/**
 * Guesses: the common case of a command as one conditional write, sent without looking first. Each is
 * built from named predicates, and each predicate mirrors a rule of the core. When all of them hold,
 * the write leaves exactly the record that `transition` would (a property test holds the two together);
 * when one fails, the refused write brings the item back and the core decides.
 */
import { touchedTtlAtSec, ttlAtSec } from "../core/change.js";
import type { Acquire, Command, Conclude, Release, Renew, Start } from "../core/commands.js";
import { outcomeDigest } from "../core/conclude.js";
import { BLANK } from "../core/ending.js";
import { newHold, refuseNewLease } from "../core/grant.js";
import { isAlone } from "../core/holding.js";
import { DEFAULTS } from "../core/limits.js";
import type { Kind } from "../core/lock-api.js";
import type { Hold, LockRules } from "../core/record.js";
import { isKept, startedTtlAtSec } from "../core/run.js";
import { nextAttempt } from "../core/start.js";
import type { ClockReading } from "../core/time.js";
import type { Item } from "./item.js";
import { checkpointToItem, FORMAT_VERSION, holdToItem, metaToItem, payloadToItem, runToItem } from "./item.js";
import * as is from "./predicates.js";
import type { Write } from "./predicates.js";

/** The guess for `command`, if its common case can be written blind. */
export function guess(kind: Kind, command: Command, reading: ClockReading, rules: LockRules): Write | undefined {
  switch (command.type) {
    // An id whose time is out of bounds is no new lease's; it may hold since earlier, so the record decides.
    case "acquire":
      return refuseNewLease(BLANK, command.leaseId, reading) ? undefined : guessAcquire(command, reading, rules);
    case "start":
      return refuseNewLease(BLANK, command.leaseId, reading) ? undefined : guessStart(command, reading, rules);
    case "renew":
      if (command.checkpoint && !isKept(command.checkpoint)) return undefined;
      return kind === "runs" ? guessRenewOfRun(command, reading, rules) : guessRenewOfLock(command, reading, rules);
    case "release":
      return kind === "runs" ? undefined : guessRelease(command, reading, rules);
    case "conclude":
      return command.payload && !isKept(command.payload) ? undefined : guessConclude(command, reading, rules);
    default:
      return undefined;
  }
}

/** The key is free and this id is new to it. */
function guessAcquire(command: Acquire, reading: ClockReading, rules: LockRules): Write {
  const hold = newHold(BLANK, command, reading, rules);
  return grant(command.leaseId, hold, command.limit, ttlAtSec(hold, rules));
}

/** Nothing was run under the key, and this id is new to it. */
function guessStart(command: Start, reading: ClockReading, rules: LockRules): Write {
  const hold = newHold(BLANK, command, reading, rules);
  const run = runToItem(nextAttempt(undefined, false, command));
  return grant(command.leaseId, hold, 1, startedTtlAtSec(hold, command.keepResultMs, rules), run);
}

/** The grant of a free key; of one that nobody ran yet, with the run. */
function grant(leaseId: string, hold: Hold, limit: number, ttl: number, run?: Item): Write {
  const alone = isAlone({ mode: hold.mode, limit });
  return {
    condition: [is.FREE, is.CLOCK_ABOVE_FENCE, is.NEVER_ENDED, ...(run ? [is.NEVER_RUN] : []), is.KNOWN_FORMAT].join(" AND "),
    update:
      `SET h = :h, f = :now, ff = ${alone ? ":now" : "if_not_exists(ff, :zero)"}, lim = :limit, v = if_not_exists(v, :now) + :one, ` +
      `${is.X} = :ttl, fv = :format, q = if_not_exists(q, :none), qi = if_not_exists(qi, :none), fl = if_not_exists(fl, :empty)${run ? ", rn = :run" : ""} REMOVE ug`,
    names: {},
    values: {
      ":h": { [leaseId]: holdToItem(hold) },
      ":me": leaseId,
      ":now": hold.grantedAtMs,
      ":limit": limit,
      ...(run && { ":run": run }),
      ":ttl": ttl,
      ":format": FORMAT_VERSION,
      ":zero": 0,
      ":one": 1,
      ":none": [],
      ":empty": "",
    },
  };
}

/** The lease is mine, lives, and is lengthened. */
function guessRenewOfLock(command: Renew, reading: ClockReading, rules: LockRules): Write {
  return renewal(command, reading, rules, {
    condition: [is.TTL_RISES],
    update: [`${is.X} = :ttl`, ...(command.meta ? ["h.#me.mt = :meta"] : [])],
    values: command.meta && { ":meta": metaToItem(command.meta) },
  });
}

/** The same of a run's lease, whose record is kept for long enough from its start on. */
function guessRenewOfRun({ checkpoint, ...command }: Renew, reading: ClockReading, rules: LockRules): Write {
  return renewal(command, reading, rules, {
    condition: [is.TTL_IS_ENOUGH, ...(checkpoint?.sequence === undefined ? [] : [is.LATER_CHECKPOINT])],
    update: checkpoint ? ["rn.c = :checkpoint"] : [],
    values: checkpoint && {
      ":checkpoint": checkpointToItem(checkpoint),
      ...(checkpoint.sequence !== undefined && { ":sequence": checkpoint.sequence }),
    },
  });
}

/** Unless told, the lease's length is guessed to be the default. */
function renewal(
  { leaseId, principal, leaseMs: askedMs }: Renew,
  reading: ClockReading,
  rules: LockRules,
  also: { readonly condition: readonly string[]; readonly update: readonly string[]; readonly values: Write["values"] | undefined },
): Write {
  const leaseMs = askedMs ?? DEFAULTS.leaseMs;
  const expiresAtMs = reading.laterMs + leaseMs;
  const marginMs = rules.marginMs(leaseMs);
  const sameLength = askedMs === undefined ? [is.SAME_LENGTH] : [];
  return {
    condition: [is.MINE, is.LIVE, is.NOT_BROKEN, is.LENGTHENED, ...sameLength, ...also.condition, is.KNOWN_FORMAT].join(" AND "),
    update: `SET ${["h.#me.e = :expires", "h.#me.l = :length", "h.#me.g = :margin", "v = v + :one", ...also.update].join(", ")}`,
    names: { "#me": leaseId },
    values: {
      ":principal": principal,
      ":earlier": reading.earlierMs,
      ":expires": expiresAtMs,
      ":length": leaseMs,
      ":margin": marginMs,
      ":one": 1,
      ":ttl": ttlAtSec({ expiresAtMs, marginMs }, rules),
      ":format": FORMAT_VERSION,
      ...also.values,
    },
  };
}

/** The lease is mine and lives, and nobody waits: whoever holds beside it, it goes. */
function guessRelease(command: Release, reading: ClockReading, rules: LockRules): Write {
  return ending(command, reading, [is.TTL_STANDS], [], { ":touched": touchedTtlAtSec(BLANK, reading, rules) });
}

/** The same, of a run that was started lately: its record is kept for as long as any outcome recorded now must be. */
function guessConclude(command: Conclude, reading: ClockReading, rules: LockRules): Write {
  const { state, payload, omitted } = command;
  const said = [
    "rn.s = :state",
    "rn.b = :me",
    "rn.p = :principal",
    ...(payload ? ["rn.o = :payload"] : []),
    ...(omitted ? ["rn.om = :true"] : []),
  ];
  const kept = state === "retry" ? [] : ["rn.u = rn.k + :now"];
  const write = ending(
    command,
    reading,
    [is.STARTED_LATELY],
    [...said, ...kept],
    {
      ":lately": reading.laterMs - rules.retentionMs,
      ":state": state,
      ":me": command.leaseId,
      ...(payload && { ":payload": payloadToItem(payload) }),
      ...(omitted && { ":true": true }),
      ...(state !== "retry" && { ":now": reading.laterMs }),
    },
    outcomeDigest(command),
  );
  const gone = [...(state === "retry" ? [] : ["rn.c"]), ...(payload ? [] : ["rn.o"]), ...(omitted ? [] : ["rn.om"])];
  return { ...write, update: [write.update, ...gone].join(", ") };
}

function ending(
  { leaseId, principal }: Pick<Release, "leaseId" | "principal">,
  reading: ClockReading,
  condition: readonly string[],
  update: readonly string[],
  values: Write["values"],
  outcome?: string,
): Write {
  const ring = is.endInRing(leaseId, outcome);
  return {
    condition: [is.MINE, is.LIVE, is.NOT_BROKEN, is.NOBODY_WAITS, is.FLOOR_RISES, ...condition, is.KNOWN_FORMAT].join(" AND "),
    update: `SET ${["v = v + :one", ring.update, ...update].join(", ")} REMOVE h.#me`,
    names: { "#me": leaseId },
    values: {
      ":principal": principal,
      ":earlier": reading.earlierMs,
      ":zero": 0,
      ":one": 1,
      ":format": FORMAT_VERSION,
      ...ring.values,
      ...values,
    },
  };
}
