/** The fields that messages share: numbers, text, keys, leaseIds, and the members of a lease. */
import * as v from "valibot";
import { isKey } from "../core/key.js";
import { isShallow, JSON_DEPTH } from "../core/canonical.js";
import type { Details, PublicDetails } from "../core/details.js";
import { LEASE_ID } from "../core/lease-id.js";
import { LIMITS } from "../core/limits.js";

const encoder = new TextEncoder();

/** The schema of a message that has an entry for each member of `Message`, also for one that may be absent. */
export interface Entries<Message> {
  readonly entries: { readonly [Name in keyof Message]-?: v.GenericSchema };
}

/** The rule of a key, in words. */
export const KEY_RULE = "must be 1 to 200 characters of A-Z a-z 0-9 . _ : ~ - and not . or ..";
const LEASE_ID_RULE = "must be a UUIDv7 in lower case";

/** The schema with what the document says of it. */
// eslint-disable-next-line @typescript-eslint/explicit-module-boundary-types -- valibot infers it: a pipe's type names each of its steps
export const described = <S extends v.GenericSchema>(schema: S, words: string) => v.pipe(schema, v.description(words));

/** A whole number within these bounds. */
// eslint-disable-next-line @typescript-eslint/explicit-module-boundary-types -- valibot infers it: a pipe's type names each of its steps
export function integer(min: number, max: number, rule = `must be a whole number from ${min} to ${max}`) {
  return v.pipe(v.number(rule), v.safeInteger(rule), v.minValue(min, rule), v.maxValue(max, rule));
}

/** Text of a length within these bounds. */
// eslint-disable-next-line @typescript-eslint/explicit-module-boundary-types -- valibot infers it: a pipe's type names each of its steps
export function text(maxChars: number, minChars = 0) {
  const rule = `must be text of ${minChars} to ${maxChars} characters`;
  // A lone surrogate is not text: neither UTF-8 nor the table can represent it. Characters outside of the basic plane have two units each,
  // and JSON Schema counts the characters.
  return v.pipe(
    v.string(rule),
    v.minLength(minChars, rule),
    v.maxLength(maxChars, rule),
    v.check((value) => value.isWellFormed() && Array.from(value).length >= minChars, rule),
  );
}

/** Returns the size of `value` as JSON; infinite if it is nested too deeply to be serialised. */
export function jsonBytes(value: unknown): number {
  try {
    return encoder.encode(JSON.stringify(value)).length;
  } catch {
    return Infinity;
  }
}

/** The name of a lock or a run. */
export const Key = v.pipe(v.string(KEY_RULE), v.regex(/^(?!\.{1,2}$)[A-Za-z0-9._:~-]{1,200}$/, KEY_RULE), v.check(isKey, KEY_RULE));

/** Returns the rule, and the version of a UUID that has another one. The id itself proves a hold, so it isn't repeated. */
function leaseIdRule({ input }: { readonly input: string }): string {
  const [, version = "7"] = /^[\da-f]{8}-[\da-f]{4}-([1-8])[\da-f]{3}-[\da-f-]{17}$/i.exec(input) ?? [];
  return version === "7" ? LEASE_ID_RULE : `${LEASE_ID_RULE}, and this is a UUIDv${version}`;
}

/** The id of one caller's lease. */
export const LeaseId = v.pipe(v.string(LEASE_ID_RULE), v.regex(LEASE_ID, leaseIdRule));

/** A lease's length, in ms. */
export const leaseMs = described(integer(LIMITS.leaseMinMs, LIMITS.leaseMaxMs), "The lease's length in ms.");

/** A label of a holder or a waiter, for people. */
export const owner = described(text(LIMITS.ownerChars), "A label for people. Proves nothing.");

export const fencingToken = described(integer(0, Number.MAX_SAFE_INTEGER), "Strictly increases with every new grant of the key.");

export const durationMs = integer(0, Number.MAX_SAFE_INTEGER);

/** A lease's mode. */
export const mode = v.picklist(["exclusive", "shared"], "must be exclusive or shared");

/** A condition's name. */
export const condition = described(text(LIMITS.conditionChars, 1), "The name of a condition of the key.");

const metaRule = `must be an object of at most ${LIMITS.metaBytes} bytes as JSON`;
/** The object that a caller stores with its lease. */
const meta = v.pipe(
  v.custom<Readonly<Record<string, unknown>>>((value) => typeof value === "object" && value !== null && !Array.isArray(value), metaRule),
  v.check((value) => jsonBytes(value) <= LIMITS.metaBytes, metaRule),
  v.description(`At most ${LIMITS.metaBytes} bytes as JSON.`),
);

/** The details of a lease that all callers see. */
export const publicDetails = { owner } satisfies Record<keyof PublicDetails, v.GenericSchema>;
export const details = { ...publicDetails, meta: v.optional(meta) } satisfies Record<keyof Details, v.GenericSchema>;

export const json = v.pipe(
  v.unknown(),
  v.check((value) => isShallow(value), `must be JSON, nested at most ${JSON_DEPTH} deep`),
);

export const runState = v.picklist(["running", "interrupted", "succeeded", "failed"], "must be running, interrupted, succeeded or failed");
