/**
 * The item: the layout of a record in the table. This file defines the attributes' names. They are short, because
 * DynamoDB charges a write by its size.
 *
 *   p    namespace and shard                k    key
 *   h    leaseId → hold or offer            f    token of the latest grant
 *   v    version                            ff   token of the latest grant that met no other holder
 *   lim  permits                            ug   the reader that waits to upgrade
 *   fl   low watermark                      r0…r7  tombstones, latest first
 *   rl   leaseIds that were released since  rz   time of the last of these (earliest clock)
 *   x    ttl (s)                            fv   format version
 *   rn   the run                            dl   an offer to a waiter that sleeps is unclaimed
 *
 *   q    the queue, each entry with its future `h`      qi   the waiters' leaseIds
 *   qv   number of keep-alives written                  ox   time of the release that made the offer
 *   ol   when the waiter of that offer was last seen
 *   cw   leaseId → member of the wait set, as in `q`, with its index `n`
 *
 *   cv   the version for which the sums of a crowd of readers or permits are right
 *   cp   their permits, with those offered  cb   bytes of the record
 *   co   number of offers
 *   jt   short leaseId → token of a lease that joined. Then the hold's own `t` is lower
 *
 * An offer is an entry of `h` without a token. The fast path of a release moves the first waiter's `g` to `h` without a
 * read. It writes its own time to `ox`, and the time at which the waiter was last seen to `ol`: the later one counts.
 * Any other write puts that time in the offer. `q` and `qi` are always present, because engines differ on removing from
 * a missing list. `qb` is present while the queue may reach its limit of bytes before its limit of waiters: 1 if some
 * waiters are long, 2 if the rest of the record leaves little room. Earlier versions wrote 1 for both.
 *
 * A waiter that sleeps has the mark `z`, in its entry of the queue and in its offer. While there is one, the record has the second format: a
 * version that knows only the first would let an offer to it lapse after seconds. No fast path makes or claims an offer to it.
 *
 * Fields that a newer version of the same format adds inside these parts are read as `unknown` and written back
 * unchanged. Attributes that it adds beside them stay as they are, since a record is written attribute by attribute.
 *
 * A large payload of a run has an item of its own: `k` is the key, `/` and the payload's digest, `t` its text.
 */
import { LIMITS } from "../../core/limits.js";
import type {
  Checkpoint,
  Tombstone,
  Ending,
  Hold,
  LockRecord,
  Member,
  Mode,
  Notified,
  Offer,
  Outcome,
  Payload,
  Run,
  RunState,
  Upgrading,
  Waiter,
} from "../../core/record.js";
import { isCrowd } from "../../core/lock/crowd.js";
import { inOrder } from "../../core/lock/queue.js";
import { isCrowded, isLong } from "../../core/record-bytes.js";
import { NewerFormat } from "../port.js";
import { shortId, sumsOf, withListed } from "./crowd-item.js";
import { TABLE } from "./table.js";

export { itemKey, payloadKey, shardKey, SHARDS, TENANCY, TENANCY_KEY } from "./item-key.js";

/** The major version of this layout. A reader refuses a newer one. */
export const FORMAT_VERSION = 2;
/** The format of every item but those of {@link FORMAT_VERSION}, which earlier versions must refuse. */
export const FIRST_FORMAT = 1;

/** An item's attributes as plain values, without its key. */
export type Item = Readonly<Record<string, unknown>>;

/** The attributes of tombstones, latest first. */
export const TOMBSTONES: readonly string[] = Array.from({ length: LIMITS.tombstonesMax }, (_, index) => `r${index}`);

/** The value of a tombstone attribute without a tombstone. */
export const NO_TOMBSTONE = { i: "", w: "" } as const;

/**
 * The attributes of each part that this version knows. A part's other attributes are kept as they are. A new attribute is added here, in the
 * part's `…ToItem` and `…FromItem`, and in the round trip of test/store/item.test.ts.
 */
const KNOWN = {
  hold: new Set(["p", "o", "m", "n", "sc", "t", "l", "a", "e", "g", "ph", "b", "mt", "nt"]),
  notified: new Set(["t", "s", "n"]),
  offer: new Set(["p", "o", "ph", "m", "n", "pr", "a", "c", "z"]),
  place: new Set(["g", "u", "s", "m", "n", "z"]),
  ended: new Set(["i", "w", "t", "o"]),
  upgrading: new Set(["i", "u"]),
  run: new Set(["s", "a", "t", "ph", "k", "c", "b", "p", "o", "om", "u"]),
  payload: new Set(["d", "n", "t", "x", "q"]),
} as const;

/** Returns the attributes of a part that this version does not know. */
function unknownOf(part: Item, known: ReadonlySet<string>): Item | undefined {
  const unknown = Object.entries(part).filter(([name]) => !known.has(name));
  return unknown.length > 0 ? Object.fromEntries(unknown) : undefined;
}

function withUnknown(part: Item, known: ReadonlySet<string>): { readonly unknown?: Item } {
  const unknown = unknownOf(part, known);
  return unknown ? { unknown } : {};
}

/** Attributes that a record may lack. Writing a record without them removes them from the item. */
export const OPTIONAL: readonly string[] = ["cb", "co", "cp", "cv", "cw", "dl", "ff", "jt", "ol", "ox", "qb", "rl", "rn", "rz", "ug"];

/** The attributes of the queue and the wait set. `qb` is not among them, since it depends on the holders too. */
export const QUEUE: readonly string[] = ["q", "qi", "cw"];

/** The value of `qb` while some waiters are long. */
export const LONG_WAITERS = 1;

/** Converts a record to its attributes. */
export function toItem(record: LockRecord): Item {
  const ring = TOMBSTONES.map((name, index) => {
    const ended = record.tombstones[index];
    return [name, ended ? tombstoneToItem(ended) : NO_TOMBSTONE] as const;
  });
  return {
    h: Object.fromEntries([
      ...Object.entries(record.holds).map(([leaseId, hold]) => [leaseId, holdToItem(hold)]),
      ...record.offers.map((offer) => [offer.leaseId, { ...offerToItem(offer), a: offer.offeredAtMs }]),
    ]) as Item,
    f: record.fencingToken,
    ...(record.fenceFloor > 0 && { ff: record.fenceFloor }),
    lim: record.limit,
    v: record.version,
    fl: record.lowWatermark,
    ...Object.fromEntries(ring),
    q: record.waiters.map(waiterToItem),
    qi: record.waiters.map(({ leaseId }) => leaseId),
    ...(record.waitSet && {
      cw: Object.fromEntries(record.waitSet.map((member, index) => [member.leaseId, { ...waiterToItem(member), n: index }])),
    }),
    ...(record.waiters.some(isLong) ? { qb: LONG_WAITERS } : isCrowded(record) && { qb: 2 }),
    [TABLE.ttlAttribute]: record.ttlAtSec,
    ...(record.offers.some(isAsleep) && { dl: "1" }),
    fv: [...record.offers, ...record.waiters].some(isAsleep) ? FORMAT_VERSION : FIRST_FORMAT,
    ...(record.upgrading && { ug: { ...record.upgrading.unknown, i: record.upgrading.leaseId, u: record.upgrading.untilMs } }),
    ...(record.run && { rn: runToItem(record.run) }),
    ...(isCrowd(record) && { cv: record.version, ...sumsOf(record) }),
  };
}

function isAsleep({ asleep }: Offer | Waiter): boolean {
  return asleep === true;
}

/** A run's attributes in `rn`. `b`, the lease that recorded the outcome, is present if there is an outcome. */
export function runToItem({ state, attempt, takeover, fingerprint, keepResultMs, checkpoint, outcome, unknown }: Run): Item {
  return {
    ...unknown,
    s: state,
    a: attempt,
    t: takeover,
    ph: fingerprint,
    k: keepResultMs,
    ...(checkpoint && { c: checkpointToItem(checkpoint) }),
    ...(outcome && {
      b: outcome.recordedBy,
      p: outcome.principal,
      ...(outcome.payload && { o: payloadToItem(outcome.payload) }),
      ...(outcome.omitted && { om: true }),
      ...(outcome.keptUntilMs !== undefined && { u: outcome.keptUntilMs }),
    }),
  };
}

/** A checkpoint's attributes within a run. */
export function checkpointToItem({ sequence, ...payload }: Checkpoint): Item {
  return { ...payloadToItem(payload), ...(sequence !== undefined && { q: sequence }) };
}

/** A payload's attributes within a run. */
export function payloadToItem({ digest, bytes, text, ttlAtSec, unknown }: Payload): Item {
  return { ...unknown, d: digest, n: bytes, ...(text !== undefined && { t: text }), ...(ttlAtSec !== undefined && { x: ttlAtSec }) };
}

/** The value of a tombstone's attribute. */
export function tombstoneToItem({ leaseId, ending, fencingToken, outcome, unknown }: Tombstone): Item {
  return {
    ...unknown,
    i: leaseId,
    w: ending,
    ...(fencingToken !== undefined && { t: fencingToken }),
    ...(outcome !== undefined && { o: outcome }),
  };
}

/** A waiter's entry in `q`. It includes, as `g`, the `h` that an offer to it has. */
export function waiterToItem(waiter: Waiter): Item {
  const { leaseId, mode, aliveUntilMs, ttlMs, asleep, unknownOfPlace } = waiter;
  const marks = { ...(mode === "shared" && { m: "s" }), ...(asleep && { z: 1 }) };
  return { ...unknownOfPlace, g: { [leaseId]: offerToItem(waiter) }, u: aliveUntilMs, s: ttlMs, ...marks };
}

function offerToItem(offer: Omit<Offer, "leaseId" | "offeredAtMs">): Item {
  const { principal, owner, mode, permits, requestHash, priority, condition, asleep, unknown } = offer;
  return {
    ...unknown,
    p: principal,
    o: owner,
    ph: requestHash,
    ...(mode === "shared" && { m: "s" }),
    ...(permits > 1 && { n: permits }),
    ...(priority > 0 && { pr: priority }),
    ...(condition !== undefined && { c: condition }),
    ...(asleep && { z: 1 }),
  };
}

/** A hold's attributes in `h`. */
export function holdToItem(hold: Hold): Item {
  const { notified } = hold;
  return {
    ...hold.unknown,
    p: hold.principal,
    o: hold.owner,
    m: hold.mode === "exclusive" ? "x" : "s",
    n: hold.permits,
    ...(hold.scope !== undefined && { sc: hold.scope }),
    t: hold.fencingToken,
    l: hold.leaseMs,
    a: hold.grantedAtMs,
    e: hold.expiresAtMs,
    g: hold.marginMs,
    ph: hold.requestHash,
    ...(hold.broken && { b: hold.broken === "forced" ? 2 : 1 }),
    ...(hold.meta && { mt: metaToItem(hold.meta) }),
    ...(notified && { nt: { ...notified.unknown, t: notified.fencingToken, s: notified.sequence, n: notified.count } }),
  };
}

/** Converts meta to text, because DynamoDB has fewer numbers than JSON, less nesting, and no lone surrogates. */
export function metaToItem(meta: NonNullable<Hold["meta"]>): string {
  return JSON.stringify(meta);
}

/**
 * Converts an item to its record.
 * @throws NewerFormat when a newer major version wrote it.
 */
export function fromItem(item: Item): LockRecord {
  const format = Number(item["fv"] ?? FIRST_FORMAT);
  if (format > FORMAT_VERSION) {
    throw new NewerFormat(`the record has format ${format}, this version reads up to ${FORMAT_VERSION}`);
  }
  const all = Object.entries((item["h"] ?? {}) as Readonly<Record<string, Item>>);
  const holds = all.filter(([, hold]) => isHold(hold));
  const offers = all.filter(([, offer]) => !isHold(offer));
  const handedOverAtMs = Math.max(safeInteger(item["ox"] ?? 0), safeInteger(item["ol"] ?? 0));
  const joined = (item["jt"] ?? {}) as Item;
  const ring = TOMBSTONES.map((name) => (item[name] ?? NO_TOMBSTONE) as Item).filter((entry) => entry["i"] !== "");
  const record: LockRecord = {
    version: safeInteger(item["v"]),
    fencingToken: safeInteger(item["f"] ?? 0),
    fenceFloor: safeInteger(item["ff"] ?? 0),
    limit: safeInteger(item["lim"] ?? 1),
    holds: Object.fromEntries(holds.map(([leaseId, hold]) => [leaseId, holdFromItem(hold, joined[shortId(leaseId)])])),
    offers: offers
      .map(([leaseId, offer]) => ({ ...offerFromItem(leaseId, offer), offeredAtMs: safeInteger(offer["a"] ?? handedOverAtMs) }))
      .sort(inOrder),
    waiters: ((item["q"] ?? []) as readonly Item[]).map(waiterFromItem),
    ...(item["cw"] !== undefined && { waitSet: waitSetFromItem(item["cw"] as Readonly<Record<string, Item>>) }),
    tombstones: ring.map(tombstoneFromItem),
    lowWatermark: (item["fl"] as string | undefined) ?? "",
    ...(item["ug"] !== undefined && { upgrading: upgradingFromItem(item["ug"] as Item) }),
    ...(item["rn"] !== undefined && { run: runFromItem(item["rn"] as Item) }),
    ...(item["qv"] !== undefined && { touches: safeInteger(item["qv"]) }),
    ttlAtSec: safeInteger(item[TABLE.ttlAttribute]),
  };
  return withListed(record, (item["rl"] ?? []) as readonly string[], safeInteger(item["rz"] ?? 0));
}

/** True if an entry of `h` is a hold: an offer has no token yet. */
function isHold(entry: Item): boolean {
  return entry["t"] !== undefined;
}

function offerFromItem(leaseId: string, offer: Item): Omit<Offer, "offeredAtMs"> {
  return {
    leaseId,
    principal: offer["p"] as string,
    owner: offer["o"] as string,
    mode: modeFrom(offer["m"]),
    permits: safeInteger(offer["n"] ?? 1),
    requestHash: offer["ph"] as string,
    priority: safeInteger(offer["pr"] ?? 0),
    ...(offer["c"] !== undefined && { condition: offer["c"] as string }),
    ...(offer["z"] !== undefined && { asleep: true as const }),
    ...withUnknown(offer, KNOWN.offer),
  };
}

function waiterFromItem(waiter: Item): Waiter {
  // Stryker disable next-line ArrayDeclaration: there is one entry, and the default is for the compiler
  const [[leaseId, offer] = ["", {}]] = Object.entries(waiter["g"] as Readonly<Record<string, Item>>);
  const unknownOfPlace = unknownOf(waiter, KNOWN.place);
  return {
    ...offerFromItem(leaseId, offer),
    aliveUntilMs: safeInteger(waiter["u"]),
    ttlMs: safeInteger(waiter["s"]),
    ...(unknownOfPlace && { unknownOfPlace }),
  };
}

function waitSetFromItem(members: Readonly<Record<string, Item>>): readonly Member[] {
  return Object.values(members)
    .sort((a, b) => safeInteger(a["n"]) - safeInteger(b["n"]))
    .map((member) => waiterFromItem(member) as Member);
}

function notifiedFromItem(notified: Item): Notified {
  return {
    fencingToken: safeInteger(notified["t"]),
    sequence: safeInteger(notified["s"]),
    count: safeInteger(notified["n"]),
    ...withUnknown(notified, KNOWN.notified),
  };
}

function modeFrom(mode: unknown): Mode {
  return mode === "s" ? "shared" : "exclusive";
}

function upgradingFromItem(upgrading: Item): Upgrading {
  return { leaseId: upgrading["i"] as string, untilMs: safeInteger(upgrading["u"]), ...withUnknown(upgrading, KNOWN.upgrading) };
}

function runFromItem(run: Item): Run {
  const outcome: Outcome = {
    recordedBy: run["b"] as string,
    principal: run["p"] as string,
    ...(run["o"] !== undefined && { payload: payloadFromItem(run["o"] as Item) }),
    ...(run["om"] !== undefined && { omitted: true }),
    ...(run["u"] !== undefined && { keptUntilMs: safeInteger(run["u"]) }),
  };
  return {
    state: run["s"] as RunState,
    attempt: safeInteger(run["a"]),
    takeover: run["t"] === true,
    fingerprint: run["ph"] as string,
    keepResultMs: safeInteger(run["k"]),
    ...(run["c"] !== undefined && { checkpoint: checkpointFromItem(run["c"] as Item) }),
    ...(run["b"] !== undefined && { outcome }),
    ...withUnknown(run, KNOWN.run),
  };
}

function checkpointFromItem(checkpoint: Item): Checkpoint {
  return { ...payloadFromItem(checkpoint), ...(checkpoint["q"] !== undefined && { sequence: safeInteger(checkpoint["q"]) }) };
}

function payloadFromItem(payload: Item): Payload {
  return {
    digest: payload["d"] as string,
    bytes: safeInteger(payload["n"]),
    ...(payload["t"] !== undefined && { text: payload["t"] as string }),
    ...(payload["x"] !== undefined && { ttlAtSec: safeInteger(payload["x"]) }),
    ...withUnknown(payload, KNOWN.payload),
  };
}

function tombstoneFromItem(entry: Item): Tombstone {
  return {
    leaseId: entry["i"] as string,
    ending: entry["w"] as Ending,
    ...(entry["t"] !== undefined && { fencingToken: safeInteger(entry["t"]) }),
    ...(entry["o"] !== undefined && { outcome: entry["o"] as string }),
    ...withUnknown(entry, KNOWN.ended),
  };
}

function holdFromItem(hold: Item, joined: unknown = 0): Hold {
  return {
    principal: hold["p"] as string,
    owner: hold["o"] as string,
    mode: modeFrom(hold["m"]),
    permits: safeInteger(hold["n"]),
    ...(hold["sc"] !== undefined && { scope: hold["sc"] as string }),
    // A token that was given later, by a change of mode, is in the hold itself.
    fencingToken: Math.max(safeInteger(hold["t"]), safeInteger(joined)),
    leaseMs: safeInteger(hold["l"]),
    grantedAtMs: safeInteger(hold["a"]),
    expiresAtMs: safeInteger(hold["e"]),
    marginMs: safeInteger(hold["g"]),
    requestHash: hold["ph"] as string,
    ...(hold["b"] !== undefined && { broken: hold["b"] === 2 ? ("forced" as const) : ("drain" as const) }),
    ...(hold["mt"] !== undefined && { meta: JSON.parse(hold["mt"] as string) as NonNullable<Hold["meta"]> }),
    ...(hold["nt"] !== undefined && { notified: notifiedFromItem(hold["nt"] as Item) }),
    ...withUnknown(hold, KNOWN.hold),
  };
}

/** Checks a number that must be a token or a time. Anything else means that the item is damaged. */
function safeInteger(value: unknown): number {
  if (!Number.isSafeInteger(value)) throw new Error(`the item holds ${String(value)} where a safe integer belongs`);
  return value as number;
}
