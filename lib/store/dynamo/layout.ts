/**
 * The layout of the parts of a record: for each member its attribute, and the conversion both ways. A member without a row doesn't compile.
 * Attributes are short, because DynamoDB charges a write by its size. Fields that a newer version of the same format adds inside a part are
 * read as `unknown` and written back unchanged.
 */
import type {
  Checkpoint,
  Extensible,
  Hold,
  Mode,
  Notified,
  Offer,
  Outcome,
  Payload,
  Run,
  Tombstone,
  Upgrading,
  Waiter,
} from "../../core/record.js";
import { brand, isA } from "../../core/brand.js";
import type { LeaseId } from "../../core/lease-id.js";
import { leaseIdOf, storedId } from "./stored-id.js";

/** An item's attributes as plain values, without its key. */
export type Item = Readonly<Record<string, unknown>>;

/** One member: its attribute, the stored value (undefined: none is stored), and the member again (undefined: it is absent). */
interface Attribute<Value> {
  readonly name: string;
  readonly to: (value: Exclude<Value, undefined>) => unknown;
  readonly from: (stored: unknown) => Value;
}

type Members<Part> = { readonly [Member in Exclude<keyof Part, "unknown">]-?: Attribute<Part[Member]> };

/** A path in an expression for each member of a part. */
type Paths<Part> = Readonly<Required<Record<Exclude<keyof Part, "unknown">, string>>>;

/** The conversions of a part, and the names of its attributes. */
interface Layout<Part> {
  readonly names: readonly string[];
  /** Returns the paths of the attributes of a part that is stored at `path`. */
  readonly pathsIn: (path: string) => Paths<Part>;
  readonly toItem: (part: Part) => Item;
  readonly fromItem: (item: Item) => Part;
}

/** Returns the conversions of a part with these members. `others` are attributes of it that are converted elsewhere. */
function layoutOf<Part extends object>(members: Members<Part>, others: readonly string[] = []): Layout<Part & Extensible> {
  const rows = Object.entries(members) as [string, Attribute<unknown>][];
  const names = rows.map(([, { name }]) => name);
  const known = new Set([...names, ...others]);
  return {
    names,
    pathsIn: (path) => Object.fromEntries(rows.map(([member, { name }]) => [member, `${path}.${name}`])) as Paths<Part>,
    toItem(part) {
      const item: Record<string, unknown> = { ...part.unknown };
      for (const [member, { name, to }] of rows) {
        const value = (part as Item)[member];
        const stored = value === undefined ? undefined : to(value);
        if (stored !== undefined) item[name] = stored;
      }
      return item;
    },
    fromItem(item) {
      const part: Record<string, unknown> = {};
      for (const [member, { name, from }] of rows) {
        const value = at(name, () => from(item[name]));
        if (value !== undefined) part[member] = value;
      }
      const unknown = Object.entries(item).filter(([name]) => !known.has(name));
      return { ...part, ...(unknown.length > 0 && { unknown: Object.fromEntries(unknown) }) } as Part & Extensible;
    },
  };
}

/** A text that is stored as it is. */
function text<Value extends string>(name: string): Attribute<Value> {
  return { name, to: (value) => value, from: (stored) => textOf(stored) as Value };
}

/** A truth value that is stored as it is. */
function truth<Value extends boolean>(name: string): Attribute<Value> {
  const from = (stored: unknown): Value => {
    if (typeof stored !== "boolean") throw new DamagedAttribute("is no truth value");
    return stored as Value;
  };
  return { name, to: (value) => value, from };
}

/** A token or a time. One that is as by default isn't stored. */
function integer(name: string, byDefault?: number): Attribute<number> {
  return { name, to: (value) => (value === byDefault ? undefined : value), from: (stored) => safeInteger(stored ?? byDefault) };
}

/** The mode of a waiter, stored if it is shared. */
const WAITING_MODE: Attribute<Mode> = { name: "m", to: (mode) => (mode === "shared" ? "s" : undefined), from: modeFrom };

/** A leaseId. */
function idOfLease(name: string): Attribute<LeaseId> {
  return { name, to: storedId, from: (stored) => leaseIdOf(textOf(stored)) };
}

/** A member that may be absent. */
function optional<Value>({ name, to, from }: Attribute<Value>): Attribute<Value | undefined> {
  return { name, to, from: (stored) => (stored === undefined ? undefined : from(stored)) };
}

/** A part within a part. */
function part<Value>(name: string, { toItem, fromItem }: Layout<Value>): Attribute<Value | undefined> {
  return optional<Value>({ name, to: toItem, from: (stored) => fromItem(mapOf(stored)) });
}

/** The mark of a waiter that sleeps. */
const ASLEEP: Attribute<true | undefined> = optional<true>({ name: "z", to: () => 1, from: () => true });

const NOTIFIED = layoutOf<Notified>({ fencingToken: integer("t"), sequence: integer("s"), count: integer("n") });

/** A hold, in `h`. */
export const HOLD = layoutOf<Hold>({
  principal: text("p"),
  owner: text("o"),
  mode: { name: "m", to: (mode) => (mode === "exclusive" ? "x" : "s"), from: modeFrom },
  permits: integer("n"),
  scope: optional(text("sc")),
  fencingToken: integer("t"),
  leaseMs: integer("l"),
  grantedAtMs: integer("a"),
  expiresAtMs: integer("e"),
  marginMs: integer("g"),
  requestHash: text("ph"),
  broken: optional({ name: "b", to: (broken) => (broken === "forced" ? 2 : 1), from: (stored) => (stored === 2 ? "forced" : "drain") }),
  // Text, because DynamoDB has fewer numbers than JSON, less nesting, and no lone surrogates.
  meta: optional({
    name: "mt",
    to: (meta) => JSON.stringify(meta),
    from: (stored) => jsonOf(stored) as NonNullable<Hold["meta"]>,
  }),
  notified: part("nt", NOTIFIED),
});

/** An offer without its leaseId and its time `a`: in `h`, and in a waiter's entry as `g`. */
export const OFFER = layoutOf<Omit<Offer, "leaseId" | "offeredAtMs">>(
  {
    principal: text("p"),
    owner: text("o"),
    mode: WAITING_MODE,
    permits: integer("n", 1),
    requestHash: text("ph"),
    priority: integer("pr", 0),
    condition: optional(text("c")),
    asleep: ASLEEP,
  },
  ["a"],
);

/** The attribute of a waiter's entry that has the offer to it, by its leaseId. */
export const OFFER_OF_PLACE = "g";

/** A waiter's entry in the queue, apart from the offer in it and its place `n` in the wait set. */
export const PLACE = layoutOf<Pick<Waiter, "aliveUntilMs" | "ttlMs" | "mode" | "asleep">>(
  { aliveUntilMs: integer("u"), ttlMs: integer("s"), mode: WAITING_MODE, asleep: ASLEEP },
  [OFFER_OF_PLACE, "n"],
);

export const TOMBSTONE = layoutOf<Tombstone>({
  leaseId: idOfLease("i"),
  ending: text("w"),
  fencingToken: optional(integer("t")),
  outcome: optional(text("o")),
});

/** The reader that waits to upgrade. */
export const UPGRADING = layoutOf<Upgrading>({ leaseId: idOfLease("i"), untilMs: integer("u") });

const PAYLOAD_MEMBERS: Members<Payload> = {
  digest: text("d"),
  bytes: integer("n"),
  text: optional(text("t")),
  ttlAtSec: optional(integer("x")),
};

/** A result or an error of a run. */
export const PAYLOAD = layoutOf(PAYLOAD_MEMBERS);

export const CHECKPOINT = layoutOf<Checkpoint>({ ...PAYLOAD_MEMBERS, sequence: optional(integer("q")) });

const OUTCOME = layoutOf<Outcome>({
  recordedBy: idOfLease("b"),
  principal: text("p"),
  owner: text("w"),
  startedAtMs: integer("g"),
  endedAtMs: integer("e"),
  payload: part("o", PAYLOAD),
  omitted: optional(truth("om")),
  keptUntilMs: optional(integer("u")),
});

const ATTEMPT = layoutOf<Omit<Run, "outcome">>(
  {
    state: text("s"),
    attempt: integer("a"),
    takeover: truth("t"),
    fingerprint: text("ph"),
    keepResultMs: integer("k"),
    checkpoint: part("c", CHECKPOINT),
  },
  OUTCOME.names,
);

/** A run, in `rn`. Its outcome's attributes are beside its own; `b` is present if there is an outcome. */
export const RUN: Pick<Layout<Run>, "toItem" | "fromItem"> & Pick<Layout<Omit<Run, "outcome"> & Outcome>, "pathsIn"> = {
  pathsIn: (path) => ({ ...ATTEMPT.pathsIn(path), ...OUTCOME.pathsIn(path) }),
  toItem: (run) => ({ ...ATTEMPT.toItem(run), ...(run.outcome && OUTCOME.toItem(run.outcome)) }),
  fromItem(item) {
    const attempt = ATTEMPT.fromItem(item);
    if (item["b"] === undefined) return attempt;
    const { unknown: _ofTheAttempt, ...outcome } = OUTCOME.fromItem(item);
    return { ...attempt, outcome };
  },
};

function modeFrom(mode: unknown): Mode {
  return mode === "s" ? "shared" : "exclusive";
}

/** An attribute of which nothing can be read. The message says what it isn't, after the name. */
export class DamagedAttribute extends Error {
  static {
    brand(this, "DamagedAttribute");
  }
  override readonly name = "DamagedAttribute";
  /** The names of the attributes down to this one, without leaseIds. */
  readonly path: string = "";

  constructor(what: string, path = "", options?: ErrorOptions) {
    super(what, options);
    this.path = path;
  }
}

/** Reads an attribute, or a part of an item. @throws DamagedAttribute with `name` before its path, for any error of `read` */
export function at<Value>(name: string, read: () => Value): Value {
  try {
    return read();
  } catch (error) {
    const { message, path } = isA(error, DamagedAttribute) ? error : { message: "can't be read", path: "" };
    throw new DamagedAttribute(message, path === "" ? name : `${name}.${path}`, { cause: error });
  }
}

/** Checks a number that must be a token or a time. @throws DamagedAttribute */
export function safeInteger(value: unknown): number {
  if (!Number.isSafeInteger(value)) throw new DamagedAttribute("is no safe integer");
  return value as number;
}

/** Checks a text. @throws DamagedAttribute */
export function textOf(value: unknown): string {
  if (typeof value !== "string") throw new DamagedAttribute("is no text");
  return value;
}

/** Checks a map: a part, or parts by their names. @throws DamagedAttribute */
export function mapOf(value: unknown): Item {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new DamagedAttribute("is no map");
  return value as Item;
}

/** Checks a list. @throws DamagedAttribute */
export function listOf(value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) throw new DamagedAttribute("is no list");
  return value as readonly unknown[];
}

/** Reads the JSON in a text. @throws DamagedAttribute */
export function jsonOf(value: unknown): unknown {
  try {
    return JSON.parse(textOf(value));
  } catch (error) {
    throw new DamagedAttribute("is no JSON text", "", { cause: error });
  }
}
