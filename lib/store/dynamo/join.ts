/**
 * The writes of a lease that joins others: when it was offered the key, from its place in the queue, or at once
 * (lib/core/lock/crowd.ts). They commute with those of the other members of the crowd.
 */
import type { Acquire } from "../../core/commands.js";
import { ttlAtSec } from "../../core/change.js";
import { grantBeside } from "../../core/lock/acquire.js";
import { permitsOut } from "../../core/lock/compatibility.js";
import { isLately, tokenBeside } from "../../core/lock/crowd.js";
import { newHold } from "../../core/lock/grant.js";
import { offerOf, placeOf } from "../../core/lock/places.js";
import { EMPTY_RECORD, holdOf } from "../../core/lock/tombstones.js";
import { LIMITS } from "../../core/limits.js";
import { holdBytes, waitersBytes } from "../../core/record-bytes.js";
import type { Hold, LockPolicy, LockRecord, Waiter } from "../../core/record.js";
import type { ClockReading } from "../../core/time.js";
import { LISTED_MAX } from "./crowd-item.js";
import { endedToItem, FORMAT_VERSION } from "./item.js";
import { HOLD } from "./layout.js";
import { type Lists, type Stored, LEFT, LEFT_BYTES, listBytes, NO_ENTRY, NOTHING } from "./lists.js";
import * as is from "./predicates.js";
import type { AttemptOf, FormWrite, Write } from "./predicates.js";
import { storedId } from "./stored-id.js";

/** The number of left places at the front of the queue, the claimed one among them, that a claim removes. Other places move then. */
const LEFT_MAX = 4;

/** A part of the write of a lease that joins. */
interface Part extends Pick<Write, "values"> {
  readonly condition: readonly string[];
  readonly set: readonly string[];
  readonly remove: readonly string[];
  /** The bytes that it adds to the record, beside the hold. */
  readonly bytes: number;
  readonly lists?: (before: Lists) => Lists;
}

/**
 * Readers or permits hold the key, and this lease joins them. The token is counted from the last one at the moment of the write, so it stands
 * apart from the hold. A hold's value can't be computed there.
 */
export function join({ command, reading, policy, seen: stored = NOTHING }: AttemptOf<Acquire>): FormWrite {
  const { leaseId, limit } = command;
  const { record: seen } = stored;
  const counts = isLately(seen, reading);
  const hold = { ...newHold(EMPTY_RECORD, command, reading, policy), fencingToken: counts ? 0 : tokenBeside(seen, reading) };
  const parts = [partOf(command, stored, reading), ...compaction(stored)];
  const bytes = parts.reduce((sum, part) => sum + part.bytes, holdBytes(hold, limit));
  const ttl = ttlOf(hold, policy, seen);
  const token = counts ? "jt.#me = f + :one, f = f + :one" : "f = :now";
  const set = ["h.#me = :joined", token, ...parts.flatMap((part) => part.set), "cb = cb + :bytes", "cv = cv + :one", "v = v + :one"];
  const remove = parts.flatMap((part) => part.remove);
  return {
    condition: [
      ...[is.CROWD, ...parts.flatMap(({ condition }) => condition), is.SAME_LIMIT, is.BYTES_TO_JOIN],
      ...[counts ? is.LATELY : is.LONG_AGO, ttl.condition, is.KNOWN_FORMAT],
    ].join(" AND "),
    update: `SET ${[...set, ...ttl.update].join(", ")}${remove.length > 0 ? ` REMOVE ${remove.join(", ")}` : ""}`,
    names: { "#me": storedId(leaseId) },
    values: {
      ...Object.fromEntries(parts.flatMap(({ values }) => Object.entries(values))),
      ":joined": HOLD.toItem(hold),
      ":limit": limit,
      ":bytes": bytes,
      ":small": LIMITS.recordBytes - bytes,
      ":lately": reading.latestMs - LIMITS.nextTokenMs,
      ...(!counts && { ":now": hold.fencingToken }),
      ":ttl": ttlAtSec(hold, policy),
      ":one": 1,
      ":format": FORMAT_VERSION,
    },
    ...(!offerOf(seen, leaseId) && { decides: (before: LockRecord) => grantBeside(before, command, reading, policy) }),
    lists: (before: Lists) => parts.reduce((lists, part) => part.lists?.(lists) ?? lists, before),
  };
}

/**
 * Makes tombstones of the leases that are listed as ended, once there are many. Each lease is listed once, and whoever makes tombstones takes
 * them all. So while the same one is the first, nobody has changed the tombstones.
 */
function compaction({ record, lists: { listed } }: Stored): readonly Part[] {
  if (listed.length < LISTED_MAX) return [];
  const ended = Object.entries(endedToItem(record));
  return [
    {
      condition: [is.LISTED_AS_SEEN],
      set: ended.map(([name]) => `${name} = :${name}`),
      remove: listed.map((_, index) => `rl[${index}]`),
      bytes: -listBytes(listed),
      values: { ":ended": listed[0], ...Object.fromEntries(ended.map(([name, value]) => [`:${name}`, value])) },
      lists: (before) => ({ ...before, listed: before.listed.slice(listed.length) }),
    },
  ];
}

function partOf(command: Acquire, stored: Stored, reading: ClockReading): Part {
  const { record: seen } = stored;
  const offer = offerOf(seen, command.leaseId);
  if (offer) {
    const values = { ":by": command.principal, ":params": command.requestHash };
    return { condition: [is.OFFERED], set: ["co = co - :one"], remove: [], bytes: -waitersBytes([offer]), values };
  }
  const waiter = seen.waiters[placeOf(seen, command.leaseId)];
  return waiter ? fromItsPlace(command, waiter, stored, reading) : atOnce(command, stored, reading);
}

/**
 * It waits, and all before it fit beside the holders too. Each who joins meanwhile takes what was counted for it, or what is free behind this
 * one. So the sum that was free for this one is free still, as long as nobody new stands before it.
 */
function fromItsPlace(command: Acquire, waiter: Waiter, { record: seen, lists: { places } }: Stored, reading: ClockReading): Part {
  const slot = places.indexOf(command.leaseId);
  const room = roomFor(command, seen, reading, []);
  const before = is.placesAsSeen(places.slice(0, slot));
  const condition = [is.waitsAt(slot), `${is.offerAt(slot).requestHash} = :params`, ...before.condition, ...room.condition];
  const values = { ":by": command.principal, ":params": command.requestHash, ...before.values, ...room.values };
  const set = ["cp = cp + :permits"];
  const bytes = -waitersBytes([waiter]);
  const behind = places.findIndex((id, place) => place > slot && id !== LEFT);
  const count = behind < 0 ? places.length : behind;
  const isFirst = places.slice(0, slot).every((id) => id === LEFT);
  if (!isFirst || (count < LEFT_MAX && behind > 0))
    return {
      condition,
      set: [...set, `qi[${slot}] = :left`, `q[${slot}] = :empty`],
      remove: [],
      bytes: bytes + LEFT_BYTES,
      values: { ...values, ":left": LEFT, ":empty": NO_ENTRY },
      lists: (lists) => ({ ...lists, places: lists.places.with(slot, LEFT) }),
    };
  const after = is.placesAsSeen(places.slice(0, count), slot + 1);
  return {
    condition: [...condition, ...after.condition],
    set,
    remove: Array.from({ length: count }, (_, place) => `q[${place}], qi[${place}]`),
    bytes: bytes - LEFT_BYTES * (count - 1),
    values: { ...values, ...after.values },
    lists: (lists) => ({ ...lists, places: lists.places.slice(count) }),
  };
}

/** It is new, and all who wait fit beside the holders too. */
function atOnce(command: Acquire, { record: seen, lists: { places } }: Stored, reading: ClockReading): Part {
  const room = roomFor(command, seen, reading, seen.waiters);
  const queue = is.placesAsSeen(places);
  const size = places.length === 0 ? [is.NOBODY_WAITS] : ["size(qi) = :places", ...queue.condition];
  return {
    condition: [...size, is.NOT_HERE, is.NEVER_ENDED, ...room.condition],
    set: ["cp = cp + :permits"],
    remove: [],
    bytes: 0,
    values: {
      ":me": storedId(command.leaseId),
      ...(places.length === 0 ? { ":zero": 0 } : { ":places": places.length, ...queue.values }),
      ...room.values,
    },
  };
}

/** There is room for one more lease beside the holders, and for what these waiters need. */
function roomFor(
  { limit, permits }: Acquire,
  seen: LockRecord,
  { earliestMs }: ClockReading,
  waiters: readonly Waiter[],
): Pick<Part, "condition" | "values"> {
  const left = seen.upgrading && !holdOf(seen, seen.upgrading.leaseId) ? seen.upgrading.leaseId : undefined;
  return {
    condition: [left === undefined ? is.NOT_UPGRADING : is.UPGRADER_LEFT, is.ROOM_TO_JOIN],
    values: {
      ":permits": permits,
      ":most": LIMITS.leasesMax - waiters.length,
      // Readers take no permits: there is room for as many of them as for leases.
      ":room": (limit > 1 ? limit : LIMITS.leasesMax) - permits - permitsOut(waiters),
      ...(left === undefined ? { ":earlier": earliestMs } : { ":upgrader": storedId(left) }),
    },
  };
}

/** The condition and the update of a lock's TTL: it rises to this lease's, or is enough as far as `seen` shows. It never falls. */
export function ttlOf(
  hold: Pick<Hold, "expiresAtMs" | "marginMs">,
  policy: LockPolicy,
  seen: LockRecord | undefined,
): { readonly condition: string; readonly update: readonly string[] } {
  if (seen && seen.ttlAtSec >= ttlAtSec(hold, policy)) return { condition: is.TTL_IS_ENOUGH, update: [] };
  return { condition: is.TTL_RISES, update: [`${is.X} = :ttl`] };
}
