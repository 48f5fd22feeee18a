/**
 * The predicates of conditions, by name, each beside the rule of the core that it mirrors; and what a
 * conditional write is made of.
 */
import { tombstoneToItem, NO_TOMBSTONE, TOMBSTONES } from "./item.js";
import type { LeaseId } from "../../core/lease-id.js";
import { TABLE } from "./table.js";

/** A conditional UpdateItem, less its table and key. */
export interface Write {
  readonly condition: string;
  readonly update: string;
  readonly names: Readonly<Record<string, string>>;
  readonly values: Readonly<Record<string, unknown>>;
}

/** The attribute that garbage collection goes by. */
export const X = TABLE.ttlAttribute;

/** Nobody waits to be offered the key. */
export const NOBODY_WAITS = "(attribute_not_exists(qi) OR size(qi) = :zero)";
/** `verdictOf`: nobody holds, and nobody waits. */
export const FREE = `(attribute_not_exists(h) OR size(h) = :zero) AND ${NOBODY_WAITS}`;
/** Somebody has the key, or waits for it. */
export const IN_USE = "(size(h) > :zero OR size(qi) > :zero)";
/** `settled`: the one that goes is the only one, and the first who waits, if anybody does, lives and wants it for itself. */
export const HANDS_OVER = "size(h) = :one AND (size(qi) = :zero OR (lim = :one AND q[0].u > :earlier AND attribute_not_exists(q[0].m)))";
/** `isOverfull`, `isCrowded`: one more may wait. */
export const ROOM_TO_WAIT = "size(qi) < :most AND attribute_not_exists(qb)";
/** `placeOf`, `offerOf`, `holdOf`: nothing is known of this id. */
export const NEW_HERE = "NOT contains(qi, :me) AND attribute_not_exists(h.#me)";
/** `offerOf`, `refuseAsking`: the key is offered to this one, and to nobody else. */
export const OFFERED =
  "size(h) = :one AND attribute_exists(h.#me) AND attribute_not_exists(h.#me.t) AND h.#me.p = :by AND h.#me.ph = :params";
/** `nextToken`: the clock alone is above every earlier token. */
export const CLOCK_ABOVE_FENCE = "(attribute_not_exists(f) OR f < :now)";
/** `endingOf`: this id has not ended. */
export const NEVER_ENDED = `${TOMBSTONES.map((name) => `NOT (${name}.i = :me)`).join(" AND ")} AND (attribute_not_exists(fl) OR fl < :me)`;
/** `holdOf`, with its principal. */
export const MINE = "h.#me.p = :principal";
/** `isLive`. */
export const LIVE = "h.#me.e > :earlier";
/** `Hold.broken`. */
export const NOT_BROKEN = "attribute_not_exists(h.#me.b)";
/** `isHeadDead`: the first of the queue, if there is one, was heard of in time. */
export const HEAD_LIVES = "NOT (q[0].u <= :earlier)";
/** `remembered`: the id that leaves the ring does not lower the floor, nor raise it too far. */
export const LOW_WATERMARK_RISES = `(attribute_not_exists(fl) OR attribute_not_exists(${last()}) OR (fl <= ${last()}.i AND ${last()}.i <= :reach))`;
/** `touchedTtlAtSec`: garbage collection already waits long enough. */
export const TTL_STANDS = `${X} >= :touched`;
/** The same: a run's record is left alone then. */
export const TTL_IS_ENOUGH = `${X} >= :ttl`;
/** Of a lock's record, the longest use decides. */
export const TTL_RISES = `${X} <= :ttl`;
/** `extension`: the lease ends later than before, and its margin doesn't fall. */
export const LENGTHENED = "h.#me.e <= :expires AND h.#me.g <= :margin";
/** The length that is guessed where none is said. */
export const SAME_LENGTH = "h.#me.l = :length";
/** `runOf`: nothing is known of a run. */
export const NEVER_RUN = "attribute_not_exists(rn)";
/** `startedTtlAtSec`: the record was made to be kept for as long as an outcome recorded now. */
export const STARTED_LATELY = "h.#me.a >= :lately";
/** `isLater`: no late duplicate of an earlier checkpoint. */
export const LATER_CHECKPOINT = "(attribute_not_exists(rn.c.q) OR rn.c.q <= :sequence)";
/** `LockRecord.touches`: no waiter was heard of since. */
export const TOUCHED_AS_SEEN = "qv = :touches";
/** The same, where none ever was. */
export const UNTOUCHED = "attribute_not_exists(qv)";
/** Only a format this version writes. */
export const KNOWN_FORMAT = "(attribute_not_exists(fv) OR fv <= :format)";

/** `endLease`: the ring's attributes shifted by one, with this lease as the latest to end. */
export function addTombstone(leaseId: LeaseId, outcome?: string): Pick<Write, "update" | "values"> {
  const shifted = TOMBSTONES.map((name, index) => (index === 0 ? `${name} = :ended` : `${name} = if_not_exists(r${index - 1}, :nil)`));
  return {
    update: `fl = if_not_exists(${last()}.i, :nofloor), ${shifted.join(", ")}`,
    values: {
      ":ended": tombstoneToItem({ leaseId, ending: "released", ...(outcome !== undefined && { outcome }) }),
      ":nil": NO_TOMBSTONE,
      ":nofloor": "",
    },
  };
}

function last(): string {
  return TOMBSTONES.at(-1) ?? "";
}
