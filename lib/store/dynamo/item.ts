/**
 * The item: the layout of a record in the table. This file defines the attributes' names. They are short, because
 * DynamoDB charges a write by its size.
 *
 *   p    namespace and shard                k    key
 *   h    leaseId → hold or offer            f    token of the latest grant
 *   v    version                            ff   token of the latest grant that met no other holder
 *   lim  permits                            ug   the reader that waits to upgrade
 *   fl   low watermark of leaseIds          r0…r7  tombstones, latest first
 *   rl   leaseIds that ended since          rz   time of the last of these (earliest clock)
 *   x    ttl (s)                            fv   format version
 *   rn   the run                            dl   an offer to a waiter that sleeps is unclaimed (infra/waking.ts)
 *
 *   q    the queue, each entry with its future `h`      qi   the ends of the waiters' ids
 *   qv   number of keep-alives written                  ox   time of the release that made the offer
 *   qs   number of waiters that sleep                   ol   when the waiter of that offer was last seen
 *   cw   leaseId → member of the wait set, as in `q`, with its index `n`
 *   hl   length of the lease that was released last     hp   of the one before
 *
 *   cv   the version for which the sums of a crowd of readers or permits are right
 *   cp   their permits, with those offered  cb   bytes of the record
 *   co   number of offers
 *   jt   leaseId → token of a lease that joined. Then the hold's own `t` is lower
 *
 * An offer is an entry of `h` without a token. The form of a release moves the first waiter's `g` to `h` without a
 * read. It writes its own time to `ox`, and the time at which the waiter was last seen to `ol`: the later one counts.
 * Any other write puts that time in the offer. `q` and `qi` are always present, because engines differ on removing from
 * a missing list. `qb` is present while the queue may reach its limit of bytes before its limit of waiters: 1 if some
 * waiters are long, 2 if the rest of the record leaves little room.
 *
 * Each leaseId is stored in 22 characters (stored-id.ts).
 *
 * A place of the queue that was left has no leaseId and an empty entry (lists.ts).
 *
 * A waiter that sleeps has the mark `z`, in its entry of the queue and in its offer. Only a write of the whole record makes or claims an offer to it.
 *
 * layout.ts has the attributes inside the parts. Attributes that a newer version of the same format adds beside these stay
 * as they are, since a record is written attribute by attribute.
 *
 * A large payload of a run has an item of its own: `k` is the key, `/` and the payload's digest, `t` its text.
 */
import { LIMITS } from "../../core/limits.js";
import type { Hold, LockRecord, Member, Tombstone, Waiter } from "../../core/record.js";
import { isCrowd } from "../../core/lock/crowd.js";
import { inOrder } from "../../core/lock/places.js";
import { isCrowded, isLong } from "../../core/record-bytes.js";
import type { TableTenancy } from "../port.js";
import { sumsOf } from "./crowd-item.js";
import { FORMAT_VERSION, present, readItem } from "./format.js";
import { type Stored, LEFT, markOf, withListed } from "./lists.js";
import {
  type Item,
  at,
  DamagedAttribute,
  HOLD,
  jsonOf,
  listOf,
  mapOf,
  OFFER,
  OFFER_OF_PLACE,
  PLACE,
  RUN,
  safeInteger,
  textOf,
  TOMBSTONE,
  UPGRADING,
} from "./layout.js";
import { DOORS, TENANCY } from "./item-key.js";
import { leaseIdOf, storedId } from "./stored-id.js";
import { TABLE } from "./table.js";

export { FORMAT_VERSION } from "./format.js";
export { itemKey, payloadKey, shardKey, SHARDS, TENANCY, TENANCY_KEY, DOORS } from "./item-key.js";

/** The attributes of tombstones, latest first. */
export const TOMBSTONES: readonly string[] = Array.from({ length: LIMITS.tombstonesMax }, (_, index) => `r${index}`);

/** The value of a tombstone attribute without a tombstone. */
export const NO_TOMBSTONE = { i: "", w: "" } as const;

/** Attributes that a record may lack. Writing a record without them removes them from the item. */
export const OPTIONAL: readonly string[] = [
  ...["cb", "co", "cp", "cv", "cw", "dl", "ff", "hl", "hp", "jt"],
  ...["ol", "ox", "qb", "qs", "rl", "rn", "rz", "ug"],
];

/** The attributes of the queue and the wait set. `qb` is not among them, since it depends on the holders too. */
export const QUEUE: readonly string[] = ["q", "qi", "cw"];

/** The value of `qb` while some waiters are long. */
export const LONG_WAITERS = 1;

/** Converts a record to its attributes. */
export function toItem(record: LockRecord): Item {
  const sleepers = sleepersIn(record);
  return {
    h: Object.fromEntries([
      ...Object.entries(record.holds).map(([leaseId, hold]) => [storedId(leaseId), HOLD.toItem(hold)]),
      ...record.offers.map((offer) => [storedId(offer.leaseId), { ...OFFER.toItem(offer), a: offer.offeredAtMs }]),
    ]) as Item,
    f: record.fencingToken,
    ...(record.fenceFloor > 0 && { ff: record.fenceFloor }),
    lim: record.limit,
    ...(record.heldMs !== undefined && { hl: record.heldMs, hp: record.heldBeforeMs }),
    v: record.version,
    ...endedToItem(record),
    q: record.waiters.map(waiterToItem),
    qi: record.waiters.map(({ leaseId }) => markOf(leaseId)),
    ...(record.waitSet && {
      cw: Object.fromEntries(record.waitSet.map((member, index) => [storedId(member.leaseId), { ...waiterToItem(member), n: index }])),
    }),
    ...(sleepers > 0 && { qs: sleepers }),
    ...(record.waiters.some(isLong) ? { qb: LONG_WAITERS } : isCrowded(record) && { qb: 2 }),
    [TABLE.ttlAttribute]: record.ttlAtSec,
    ...(record.offers.some(({ asleep }) => asleep) && { dl: "1" }),
    fv: FORMAT_VERSION,
    ...(record.upgrading && { ug: UPGRADING.toItem(record.upgrading) }),
    ...(record.run && { rn: RUN.toItem(record.run) }),
    ...(isCrowd(record) && { cv: record.version, ...sumsOf(record) }),
  };
}

/** Returns the number of waiters that sleep: they have places of their own. Only a write of the whole record changes it. */
export function sleepersIn({ waiters }: LockRecord): number {
  return waiters.filter(({ asleep }) => asleep).length;
}

/** The attributes that tell which leases have ended. */
export function endedToItem({ tombstones, lowWatermark }: LockRecord): Item {
  const ring = TOMBSTONES.map((name, index) => {
    const ended = tombstones[index];
    return [name, ended ? TOMBSTONE.toItem(ended) : NO_TOMBSTONE] as const;
  });
  return { fl: storedId(lowWatermark), ...Object.fromEntries(ring) };
}

/** A waiter's entry in `q`. It includes, as `g`, the `h` that an offer to it has. */
export function waiterToItem(waiter: Waiter): Item {
  const { leaseId, unknown: _ofOffer, unknownOfPlace, ...place } = waiter;
  return {
    ...PLACE.toItem({ ...place, ...(unknownOfPlace && { unknown: unknownOfPlace }) }),
    [OFFER_OF_PLACE]: { [storedId(leaseId)]: OFFER.toItem(waiter) },
  };
}

/**
 * Converts an item to its record.
 * @throws UnreadableRecord for another format, and for an attribute that is damaged
 */
export function fromItem(item: Item): LockRecord {
  return storedIn(item).record;
}

/** Converts what an operation returns of an item, if there is one. @throws UnreadableRecord as {@link storedIn} */
export function storedOf(item: Item | undefined): Stored | undefined {
  const there = present(item);
  return there && storedIn(there);
}

/**
 * Converts an item to its record and its lists.
 * @throws UnreadableRecord for another format, and for an attribute that is damaged
 */
export function storedIn(item: Item): Stored {
  return readItem(item, recordAndLists);
}

function recordAndLists(item: Item): Stored {
  const integer = (name: string, byDefault?: number): number => at(name, () => safeInteger(item[name] ?? byDefault));
  const map = (name: string): Readonly<Record<string, Item>> => at(name, () => mapOf(item[name] ?? {})) as Readonly<Record<string, Item>>;
  const list = (name: string): readonly unknown[] => at(name, () => listOf(item[name] ?? []));
  const holders = map("h");
  const all = at("h", () => Object.entries(holders).map(([id, entry]) => [id, mapOf(entry)] as const));
  const handedOverAtMs = Math.max(integer("ox", 0), integer("ol", 0));
  const joined = map("jt");
  const ring = TOMBSTONES.flatMap((name) => at(name, () => tombstoneIn(item[name])));
  const marks = list("qi");
  const places = at("q", () =>
    listOf(item["q"] ?? []).map((entry, place) => (marks[place] === LEFT ? undefined : waiterFromItem(mapOf(entry)))),
  );
  const listed = at("rl", () => list("rl").map(textOf));
  const record: LockRecord = {
    version: integer("v"),
    fencingToken: integer("f", 0),
    fenceFloor: integer("ff", 0),
    limit: integer("lim", 1),
    ...(item["hl"] !== undefined && { heldMs: integer("hl"), heldBeforeMs: integer("hp") }),
    holds: at("h", () => Object.fromEntries(all.filter(isHold).map(([id, hold]) => [leaseIdOf(id), holdFromItem(hold, joined[id])]))),
    offers: at("h", () =>
      all
        .filter((entry) => !isHold(entry))
        .map(([id, offer]) => ({
          leaseId: leaseIdOf(id),
          ...OFFER.fromItem(offer),
          offeredAtMs: at("a", () => safeInteger(offer["a"] ?? handedOverAtMs)),
        }))
        .sort(inOrder),
    ),
    waiters: places.filter((waiter) => waiter !== undefined),
    ...(item["cw"] !== undefined && { waitSet: at("cw", () => waitSetFromItem(map("cw"))) }),
    tombstones: ring,
    lowWatermark: at("fl", () => leaseIdOf(textOf(item["fl"] ?? ""))),
    ...(item["ug"] !== undefined && { upgrading: at("ug", () => UPGRADING.fromItem(map("ug"))) }),
    ...(item["rn"] !== undefined && { run: at("rn", () => RUN.fromItem(map("rn"))) }),
    ...(item["qv"] !== undefined && { touches: integer("qv") }),
    ttlAtSec: integer(TABLE.ttlAttribute),
  };
  const endedAtMs = integer("rz", 0);
  return {
    record: at("rl", () => withListed(record, listed, endedAtMs)),
    lists: { places: places.map((waiter) => waiter?.leaseId ?? LEFT), listed },
  };
}

/** True if an entry of `h` is a hold: an offer has no token yet. */
function isHold([, entry]: readonly [string, Item]): boolean {
  return entry["t"] !== undefined;
}

function tombstoneIn(entry: unknown = NO_TOMBSTONE): readonly Tombstone[] {
  const ended = mapOf(entry);
  return ended["i"] === "" ? [] : [TOMBSTONE.fromItem(ended)];
}

/** A token that was given after the lease joined, by a change of mode, is in the hold itself. */
function holdFromItem(item: Item, joined: unknown = 0): Hold {
  const hold = HOLD.fromItem(item);
  return { ...hold, fencingToken: Math.max(hold.fencingToken, safeInteger(joined)) };
}

function waiterFromItem(waiter: Item): Waiter {
  const { unknown, aliveUntilMs, ttlMs } = PLACE.fromItem(waiter);
  const asked = at("g", () => {
    // Stryker disable next-line ArrayDeclaration: there is one entry, and the default is for the compiler
    const [[id, offer] = ["", {}]] = Object.entries(mapOf(waiter["g"]));
    return { leaseId: leaseIdOf(id), ...OFFER.fromItem(mapOf(offer)) };
  });
  return { ...asked, aliveUntilMs, ttlMs, ...(unknown && { unknownOfPlace: unknown }) };
}

function waitSetFromItem(members: Readonly<Record<string, Item>>): readonly Member[] {
  return Object.values(members)
    .sort((a, b) => safeInteger(a["n"]) - safeInteger(b["n"]))
    .map((member) => waiterFromItem(member) as Member);
}

/** Returns the tenancy that the table's own item records. @throws UnreadableRecord */
export function tenancyIn(item: Item): TableTenancy {
  return readItem(item, ({ [TENANCY]: tenancy }) => {
    if (tenancy !== "shared" && tenancy !== "tenants") throw new DamagedAttribute("is no tenancy", TENANCY);
    return tenancy;
  });
}

/** Returns the doors that the table's own item lists. @throws UnreadableRecord */
export function doorsIn(item: Item): readonly string[] {
  return readItem(item, ({ [DOORS]: doors = [] }) => at(DOORS, () => listOf(doors).map(textOf)));
}

/** Returns the text of a payload's item, which is JSON. @throws UnreadableRecord */
export function payloadIn(item: Item): string {
  return readItem(item, ({ t }) => at("t", () => (jsonOf(t), textOf(t))));
}
