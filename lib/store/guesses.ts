/**
 * Guesses: the common case of a command as one conditional write, sent without looking first. Each is
 * built from named predicates, and each predicate mirrors a rule of the core. When all of them hold,
 * the write leaves exactly the record that `transition` would (a property test holds the two together);
 * when one fails, the refused write brings the item back and the core decides.
 */
import { newHold, refuseNewLease } from "../core/acquire.js";
import { touchedTtlAtSec, ttlAtSec } from "../core/change.js";
import type { Acquire, Command, Release, Renew } from "../core/commands.js";
import { BLANK } from "../core/ending.js";
import { DEFAULTS } from "../core/limits.js";
import type { LockRules } from "../core/record.js";
import type { ClockReading } from "../core/time.js";
import { endedToItem, FORMAT_VERSION, holdToItem, metaToItem, NO_ENDED, RING } from "./item.js";
import { TABLE } from "./table.js";

/** A conditional UpdateItem, less its table and key. */
export interface Write {
  readonly condition: string;
  readonly update: string;
  readonly names: Readonly<Record<string, string>>;
  readonly values: Readonly<Record<string, unknown>>;
}

const X = TABLE.ttlAttribute;

/** `freeInMs`/`isTakeable`: nobody holds and nobody waits. */
const FREE = "(attribute_not_exists(h) OR size(h) = :zero) AND (attribute_not_exists(qi) OR size(qi) = :zero)";
/** `nextToken`: the clock alone is above every earlier token. */
const CLOCK_ABOVE_FENCE = "(attribute_not_exists(f) OR f < :now)";
/** `endingOf`: this id has not ended. */
const NEVER_ENDED = `${RING.map((name) => `NOT (${name}.i = :me)`).join(" AND ")} AND (attribute_not_exists(fl) OR fl < :me)`;
/** `holdOf`, with its principal. */
const MINE = "h.#me.p = :principal";
/** `isLive`. */
const LIVE = "h.#me.e > :earlier";
const NOT_BROKEN = "attribute_not_exists(h.#me.b)";
/** `endLease`: the id that leaves the ring does not lower the floor. */
const FLOOR_RISES = `(attribute_not_exists(fl) OR attribute_not_exists(${last()}) OR fl <= ${last()}.i)`;
/** `touchedTtlAtSec`: garbage collection already waits long enough. */
const TTL_STANDS = `${X} >= :touched`;
/** `holds` would be empty without it, and no waiter is to be offered the key. */
const ALONE = "size(h) = :one AND (attribute_not_exists(qi) OR size(qi) = :zero)";
/** Only a format this version writes. */
const KNOWN_FORMAT = "(attribute_not_exists(fv) OR fv <= :format)";

/** The guess for `command`, if its common case can be written blind. */
export function guess(command: Command, reading: ClockReading, rules: LockRules): Write | undefined {
  switch (command.type) {
    case "acquire":
      // An id whose time is out of bounds is no new lease's; it may hold since earlier, so the record decides.
      return refuseNewLease(BLANK, command.leaseId, reading) ? undefined : guessAcquire(command, reading, rules);
    case "renew":
      return guessRenew(command, reading, rules);
    case "release":
      return guessRelease(command, reading, rules);
    default:
      return undefined;
  }
}

/** The key is free and this id is new to it. */
function guessAcquire(command: Acquire, reading: ClockReading, rules: LockRules): Write {
  const hold = newHold(BLANK, command, reading, rules);
  return {
    condition: [FREE, CLOCK_ABOVE_FENCE, NEVER_ENDED, KNOWN_FORMAT].join(" AND "),
    update:
      `SET h = :h, f = :now, v = if_not_exists(v, :now) + :one, ${X} = :ttl, fv = :format, ` +
      `q = if_not_exists(q, :none), qi = if_not_exists(qi, :none), fl = if_not_exists(fl, :empty)`,
    names: {},
    values: {
      ":h": { [command.leaseId]: holdToItem(hold) },
      ":me": command.leaseId,
      ":now": reading.laterMs,
      ":ttl": ttlAtSec(hold, rules),
      ":format": FORMAT_VERSION,
      ":zero": 0,
      ":one": 1,
      ":none": [],
      ":empty": "",
    },
  };
}

/** The lease is mine, lives, and is lengthened. Unless told, its length is guessed to be the default. */
function guessRenew(command: Renew, reading: ClockReading, rules: LockRules): Write {
  const leaseMs = command.leaseMs ?? DEFAULTS.leaseMs;
  const expiresAtMs = reading.laterMs + leaseMs;
  const marginMs = rules.marginMs(leaseMs);
  const LENGTHENED = `h.#me.e <= :expires AND h.#me.g <= :margin AND ${X} <= :ttl`;
  const SAME_LENGTH = command.leaseMs === undefined ? ["h.#me.l = :length"] : [];
  return {
    condition: [MINE, LIVE, NOT_BROKEN, LENGTHENED, ...SAME_LENGTH, KNOWN_FORMAT].join(" AND "),
    update:
      `SET h.#me.e = :expires, h.#me.l = :length, h.#me.g = :margin, v = v + :one, ${X} = :ttl` +
      (command.meta ? ", h.#me.mt = :meta" : ""),
    names: { "#me": command.leaseId },
    values: {
      ":principal": command.principal,
      ":earlier": reading.earlierMs,
      ":expires": expiresAtMs,
      ":length": leaseMs,
      ":margin": marginMs,
      ":one": 1,
      ":ttl": ttlAtSec({ expiresAtMs, marginMs }, rules),
      ":format": FORMAT_VERSION,
      ...(command.meta && { ":meta": metaToItem(command.meta) }),
    },
  };
}

/** The lease is mine, lives, and is the only one: the key is free after it. */
function guessRelease(command: Release, reading: ClockReading, rules: LockRules): Write {
  const shifted = RING.map((name, index) => (index === 0 ? `${name} = :ended` : `${name} = if_not_exists(r${index - 1}, :nil)`));
  return {
    condition: [MINE, LIVE, NOT_BROKEN, ALONE, FLOOR_RISES, TTL_STANDS, KNOWN_FORMAT].join(" AND "),
    update: `SET h = :empty, v = v + :one, fl = if_not_exists(${last()}.i, :nofloor), ${shifted.join(", ")}`,
    names: { "#me": command.leaseId },
    values: {
      ":principal": command.principal,
      ":earlier": reading.earlierMs,
      ":ended": endedToItem({ leaseId: command.leaseId, ending: "released" }),
      ":empty": {},
      ":nil": NO_ENDED,
      ":nofloor": "",
      ":touched": touchedTtlAtSec(BLANK, reading, rules),
      ":zero": 0,
      ":one": 1,
      ":format": FORMAT_VERSION,
    },
  };
}

function last(): string {
  return RING.at(-1) ?? "";
}
