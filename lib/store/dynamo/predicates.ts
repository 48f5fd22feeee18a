/** Named predicates for write conditions, each with the name of the core rule that it mirrors; and the parts of a conditional write. */
import { NO_TOMBSTONE, TOMBSTONES } from "./item.js";
import { CHECKPOINT, HOLD, OFFER, OFFER_OF_PLACE, PLACE, RUN, TOMBSTONE, UPGRADING } from "./layout.js";
import type { Command, Decision } from "../../core/commands.js";
import type { LeaseId } from "../../core/lease-id.js";
import type { LockRecord } from "../../core/record.js";
import type { Attempt } from "../compare-and-set.js";
import { type Lists, type Stored, LEFT, markOf } from "./lists.js";
import { TABLE } from "./table.js";

/** A conditional UpdateItem, without its table and key. */
export interface Write {
  readonly condition: string;
  readonly update: string;
  readonly names: Readonly<Record<string, string>>;
  readonly values: Readonly<Record<string, unknown>>;
}

/** A write in one of the forms (forms.ts). */
export interface FormWrite extends Write {
  /** The decision that it carries out on the record before it. Absent: the core's decision on that record. */
  readonly decides?: (before: LockRecord) => Decision;
  /** The lists of the item that it leaves, where they are others than before. */
  readonly lists?: (before: Lists) => Lists;
}

/** A command on an item, and the decision on it. */
export type AttemptOf<C extends Command = Command> = Attempt<C, Stored>;

/** The caller's hold. In each expression, `#me` is its leaseId. */
export const my = HOLD.pathsIn("h.#me");
/** The first in the queue. */
export const first = { ...PLACE.pathsIn("q[0]"), offer: `q[0].${OFFER_OF_PLACE}` };
/** The run of the key. */
export const run = RUN.pathsIn("rn");
/** The reader that waits to become the writer. */
const upgrading = UPGRADING.pathsIn("ug");
/** The lease that ended first of those that have a tombstone. */
const oldest = TOMBSTONES.at(-1) ?? "";
const oldestId = TOMBSTONE.pathsIn(oldest).leaseId;

/** The TTL attribute, which garbage collection uses. */
export const X = TABLE.ttlAttribute;

/** No waiter is in the queue. */
export const NOBODY_WAITS = "(attribute_not_exists(qi) OR size(qi) = :zero)";
/** Nobody holds the key, is offered it or waits for it. */
export const FREE = `(attribute_not_exists(h) OR size(h) = :zero) AND ${NOBODY_WAITS}`;
/** The key has a holder, an offer or a waiter. */
export const IN_USE = "(size(h) > :zero OR size(qi) > :zero)";
/** `advanceQueue`: the lease that ends is the only one. The queue is empty, or its first waiter is alive, wants the key exclusively and polls. */
export const HANDS_OVER =
  "size(h) = :one AND (size(qi) = :zero OR " +
  `(lim = :one AND ${first.aliveUntilMs} > :earlier AND attribute_not_exists(${first.mode}) AND attribute_not_exists(${first.asleep})))`;
/** `isOverfull`, `isCrowded`: there is room for one more waiter. */
export const ROOM_TO_WAIT = "size(qi) < :most AND attribute_not_exists(qb)";
/** `isOverfull`: nobody sleeps, or as many as were seen. They have places of their own. */
export const NOBODY_SLEEPS = "attribute_not_exists(qs)";
export const SLEEPERS_AS_SEEN = "qs = :asleep";
/** `isCrowded`: a full queue fits beside the leases that joined. */
export const NOT_CROWDED = "NOT (cb > :crowded)";
/** `isCrowd`: the sums are right for this very version, and at least one lease holds the key beside the offers. */
export const CROWD = "cv = v AND size(h) > co";
/** `isUpgrading`: no reader waits to become the writer. */
export const NOT_UPGRADING = `NOT (${upgrading.untilMs} > :earlier)`;
/** `isUpgrading`: the reader that asked to become the writer is this one, which held no more when it was seen, and never holds again. */
export const UPGRADER_LEFT = `${upgrading.leaseId} = :upgrader`;
/** `refuseLimit`: the holders have this limit. */
export const SAME_LIMIT = "lim = :limit";
/** `isCompatible`: there is room for one more lease, and for its permits. Expired holders count. */
export const ROOM_TO_JOIN = "size(h) < :most AND cp <= :room";
/** `isOverfull`: there is room for one more waiter behind a crowd, whose own size is counted. */
export const PLACE_TO_WAIT = "size(qi) < :most AND NOT (qb = :long)";
/** `refuseGrowth`: the record stays within its size. */
export const BYTES_TO_JOIN = "cb <= :small";
/** `holdOf`: this id doesn't hold. */
export const NOT_HERE = "attribute_not_exists(h.#me)";
/** `isLately`: tokens are counted on from the last one. */
export const LATELY = "f >= :lately";
/** The contrary: the clock gives the next one. */
export const LONG_AGO = "f < :lately";
/** The sums are there, right or not. */
export const COUNTED = "attribute_exists(jt)";
/** `leavesOthers`, `advanceIfQueued`: another lease or offer stays, or nobody waits. */
export const LEAVES_THE_QUEUE = "(size(qi) = :zero OR size(h) > :one)";
/** `memberOf`: this id doesn't wait for a condition. */
export const NO_MEMBER = "attribute_not_exists(cw.#me)";
/** `liveMembers`: nobody waits for a condition. */
export const NO_MEMBERS = "attribute_not_exists(cw)";
/** `placeOf`, `offerOf`, `holdOf`, `memberOf`: the record has no entry of this id, and no waiter whose mark ends alike. */
export const NEW_HERE = `NOT contains(qi, :mark) AND attribute_not_exists(h.#me) AND ${NO_MEMBER}`;
/** `offerOf`, `refuseAsking`: the key is offered to this id. */
export const OFFERED = `attribute_not_exists(${my.fencingToken}) AND ${my.principal} = :by AND ${my.requestHash} = :params`;
/** The same, and nobody else holds it or is offered it. */
export const OFFERED_ALONE = `size(h) = :one AND ${OFFERED}`;
/** `nextToken`: the clock alone is above every earlier token. */
export const CLOCK_ABOVE_FENCE = "(attribute_not_exists(f) OR f < :token)";
/** `endingOf`: this id has not ended. */
export const NEVER_ENDED = `${TOMBSTONES.map((name) => `NOT (${TOMBSTONE.pathsIn(name).leaseId} = :me)`).join(" AND ")} AND NOT contains(rl, :me) AND (attribute_not_exists(fl) OR fl < :me)`;
/** No lease ended without a tombstone: the latest to end comes first. */
export const NONE_LISTED = "NOT (size(rl) > :zero)";
/** `endLease`: the tombstones, and the leases listed first, are as they were seen. */
export const LISTED_AS_SEEN = "rl[0] = :ended";
/** `holdOf`, with its principal. */
export const MINE = `${my.principal} = :principal`;
/** `isLive`. */
export const LIVE = `${my.expiresAtMs} > :earlier`;
/** `Hold.broken`. */
export const NOT_BROKEN = `attribute_not_exists(${my.broken})`;
/** `isHeadDead`: the queue is empty, or its first waiter was seen in time, or has left its place. */
export const HEAD_LIVES = `NOT (${first.aliveUntilMs} <= :earlier)`;
/** `endLease`: the id that drops out neither lowers the low watermark nor raises it too far. */
export const LOW_WATERMARK_RISES = `(attribute_not_exists(fl) OR attribute_not_exists(${oldest}) OR (fl <= ${oldestId} AND ${oldestId} <= :reach))`;
/** `endLease`: the id that drops out is below the low watermark. */
export const LOW_WATERMARK_STAYS = `${oldestId} <= fl AND ${oldestId} <= :reach`;
/** `touchedTtlAtSec`: garbage collection waits long enough already. */
export const TTL_STANDS = `${X} >= :touched`;
/** `renewedTtlAtSec`, or another lease of a crowd: garbage collection waits long enough already. */
export const TTL_IS_ENOUGH = `${X} >= :ttl`;
/** A lock's record lives as long as its longest use requires: garbage collection comes no later than after this one. */
export const TTL_RISES = `${X} <= :ttl`;
/** `keptTtlAtSec`: garbage collection would come too early. */
export const TTL_TOO_SOON = `${X} < :kept`;
/** `extension`: the lease ends later than before, and its margin doesn't decrease. */
export const LENGTHENED = `${my.expiresAtMs} <= :expires AND ${my.marginMs} <= :margin`;
/** The lease has the length that the form assumes if the request has none. */
export const SAME_LENGTH = `${my.leaseMs} = :length`;
/** `runOf`: the record has no run. */
export const NEVER_RUN = "attribute_not_exists(rn)";
/** `startedTtlAtSec`: the record lives long enough for an outcome that is recorded now. */
export const STARTED_LATELY = `${my.grantedAtMs} >= :lately`;
const { sequence } = CHECKPOINT.pathsIn(run.checkpoint);
/** `isLater`: not a late duplicate of an earlier checkpoint. */
export const LATER_CHECKPOINT = `(attribute_not_exists(${sequence}) OR ${sequence} <= :sequence)`;
/** `LockRecord.touches`: no keep-alive was written since. */
export const TOUCHED_AS_SEEN = "qv = :touches";
/** The same for a record without any keep-alive. */
export const UNTOUCHED = "attribute_not_exists(qv)";
/** Not a predicate: the length of the lease that ends, and of the one before. */
export const HELD_FOR = `hp = if_not_exists(hl, :now), hl = :now - ${my.grantedAtMs}`;
/** The record has this version's format. */
export const KNOWN_FORMAT = "fv = :format";
/** The same, or the key has no record yet. */
export const NO_OTHER_FORMAT = `(attribute_not_exists(v) OR ${KNOWN_FORMAT})`;

/** The effect of the end of a lease on the low watermark. */
export type Watermark = "rises" | "stays";

/** `endLease`: shifts the tombstone attributes by one, with this lease as the latest to end. */
export function addTombstone(leaseId: LeaseId, watermark: Watermark, outcome?: string): Pick<Write, "update" | "values"> {
  const shifted = TOMBSTONES.map((name, index) => (index === 0 ? `${name} = :ended` : `${name} = if_not_exists(r${index - 1}, :nil)`));
  return {
    update: [...(watermark === "stays" ? [] : [`fl = if_not_exists(${oldestId}, :nofloor)`]), ...shifted].join(", "),
    values: {
      // Stryker disable next-line ConditionalExpression: an outcome that is undefined is not written either
      ":ended": TOMBSTONE.toItem({ leaseId, ending: "released", ...(outcome !== undefined && { outcome }) }),
      ":nil": NO_TOMBSTONE,
      ...(watermark === "rises" && { ":nofloor": "" }),
    },
  };
}

/** The offer that the caller would get at this place of the stored queue. */
export function offerAt(slot: number): ReturnType<typeof OFFER.pathsIn> {
  return OFFER.pathsIn(`q[${slot}].${OFFER_OF_PLACE}.#me`);
}

/** `placeOf`: this id waits at this place of the stored queue, with its principal, and didn't come by a notify. */
export function waitsAt(slot: number): string {
  const { principal, condition } = offerAt(slot);
  return `${principal} = :by AND attribute_not_exists(${condition})`;
}

/**
 * The same waiters stand at these places of the stored queue, or have left them: nobody new stands there.
 * @param from the first place to look at
 */
export function placesAsSeen(
  places: readonly string[],
  from = 0,
): { readonly condition: readonly string[]; readonly values: Write["values"] } {
  const all = [...places.entries()].slice(from);
  return {
    condition: all.map(([slot, id]) => (id === LEFT ? `qi[${slot}] = :left` : `qi[${slot}] IN (:w${slot}, :left)`)),
    values: {
      ...(all.length > 0 && { ":left": LEFT }),
      ...Object.fromEntries(all.flatMap(([slot, id]) => (id === LEFT ? [] : [[`:w${slot}`, markOf(id)]]))),
    },
  };
}
