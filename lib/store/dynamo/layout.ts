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

/** The conversions of a part, and the names of its attributes. */
interface Layout<Part> {
  readonly names: readonly string[];
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
        const value = from(item[name]);
        if (value !== undefined) part[member] = value;
      }
      const unknown = Object.entries(item).filter(([name]) => !known.has(name));
      return { ...part, ...(unknown.length > 0 && { unknown: Object.fromEntries(unknown) }) } as Part & Extensible;
    },
  };
}

/** A value that is stored as it is. */
function plain<Value>(name: string): Attribute<Value> {
  return { name, to: (value) => value, from: (stored) => stored as Value };
}

/** A token or a time. One that is as by default isn't stored. */
function integer(name: string, byDefault?: number): Attribute<number> {
  return { name, to: (value) => (value === byDefault ? undefined : value), from: (stored) => safeInteger(stored ?? byDefault) };
}

/** The mode of a waiter, stored if it is shared. */
const WAITING_MODE: Attribute<Mode> = { name: "m", to: (mode) => (mode === "shared" ? "s" : undefined), from: modeFrom };

/** A leaseId. */
function idOfLease(name: string): Attribute<LeaseId> {
  return { name, to: storedId, from: (stored) => leaseIdOf(stored as string) };
}

/** A member that may be absent. */
function optional<Value>({ name, to, from }: Attribute<Value>): Attribute<Value | undefined> {
  return { name, to, from: (stored) => (stored === undefined ? undefined : from(stored)) };
}

/** A part within a part. */
function part<Value>(name: string, { toItem, fromItem }: Layout<Value>): Attribute<Value | undefined> {
  return optional<Value>({ name, to: toItem, from: (stored) => fromItem(stored as Item) });
}

/** The mark of a waiter that sleeps. */
const ASLEEP: Attribute<true | undefined> = optional<true>({ name: "z", to: () => 1, from: () => true });

const NOTIFIED = layoutOf<Notified>({ fencingToken: integer("t"), sequence: integer("s"), count: integer("n") });

/** A hold, in `h`. */
export const HOLD = layoutOf<Hold>({
  principal: plain("p"),
  owner: plain("o"),
  mode: { name: "m", to: (mode) => (mode === "exclusive" ? "x" : "s"), from: modeFrom },
  permits: integer("n"),
  scope: optional(plain("sc")),
  fencingToken: integer("t"),
  leaseMs: integer("l"),
  grantedAtMs: integer("a"),
  expiresAtMs: integer("e"),
  marginMs: integer("g"),
  requestHash: plain("ph"),
  broken: optional({ name: "b", to: (broken) => (broken === "forced" ? 2 : 1), from: (stored) => (stored === 2 ? "forced" : "drain") }),
  // Text, because DynamoDB has fewer numbers than JSON, less nesting, and no lone surrogates.
  meta: optional({
    name: "mt",
    to: (meta) => JSON.stringify(meta),
    from: (stored) => JSON.parse(stored as string) as NonNullable<Hold["meta"]>,
  }),
  notified: part("nt", NOTIFIED),
});

/** An offer without its leaseId and its time `a`: in `h`, and in a waiter's entry as `g`. */
export const OFFER = layoutOf<Omit<Offer, "leaseId" | "offeredAtMs">>(
  {
    principal: plain("p"),
    owner: plain("o"),
    mode: WAITING_MODE,
    permits: integer("n", 1),
    requestHash: plain("ph"),
    priority: integer("pr", 0),
    condition: optional(plain("c")),
    asleep: ASLEEP,
  },
  ["a"],
);

/** A waiter's entry in the queue, apart from the offer in it and its place `n` in the wait set. */
export const PLACE = layoutOf<Pick<Waiter, "aliveUntilMs" | "ttlMs" | "mode" | "asleep">>(
  { aliveUntilMs: integer("u"), ttlMs: integer("s"), mode: WAITING_MODE, asleep: ASLEEP },
  ["g", "n"],
);

export const TOMBSTONE = layoutOf<Tombstone>({
  leaseId: idOfLease("i"),
  ending: plain("w"),
  fencingToken: optional(integer("t")),
  outcome: optional(plain("o")),
});

/** The reader that waits to upgrade. */
export const UPGRADING = layoutOf<Upgrading>({ leaseId: idOfLease("i"), untilMs: integer("u") });

const PAYLOAD_MEMBERS: Members<Payload> = {
  digest: plain("d"),
  bytes: integer("n"),
  text: optional(plain("t")),
  ttlAtSec: optional(integer("x")),
};

/** A result or an error of a run. */
export const PAYLOAD = layoutOf(PAYLOAD_MEMBERS);

export const CHECKPOINT = layoutOf<Checkpoint>({ ...PAYLOAD_MEMBERS, sequence: optional(integer("q")) });

const OUTCOME = layoutOf<Outcome>({
  recordedBy: idOfLease("b"),
  principal: plain("p"),
  owner: plain("w"),
  startedAtMs: integer("g"),
  endedAtMs: integer("e"),
  payload: part("o", PAYLOAD),
  omitted: optional(plain("om")),
  keptUntilMs: optional(integer("u")),
});

const ATTEMPT = layoutOf<Omit<Run, "outcome">>(
  {
    state: plain("s"),
    attempt: integer("a"),
    takeover: plain("t"),
    fingerprint: plain("ph"),
    keepResultMs: integer("k"),
    checkpoint: part("c", CHECKPOINT),
  },
  OUTCOME.names,
);

/** A run, in `rn`. Its outcome's attributes are beside its own; `b` is present if there is an outcome. */
export const RUN: Pick<Layout<Run>, "toItem" | "fromItem"> = {
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

/** Checks a number that must be a token or a time. Anything else means that the item is damaged. */
export function safeInteger(value: unknown): number {
  if (!Number.isSafeInteger(value)) throw new Error(`no safe integer in the item: ${String(value)}`);
  return value as number;
}
