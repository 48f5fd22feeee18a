/**
 * Attribute values of the in-memory table, as plain JavaScript: a string is an S, a number an N, a set of strings an SS, and so on. Only the
 * types that the store uses exist; any other set and a binary are refused by name. Values are immutable.
 */
import type { WireItem, WireValue } from "../../store/dynamo/calls.js";
import { validationError } from "./errors.js";

/** An attribute's value. */
export type Value = string | number | boolean | null | ReadonlySet<string> | readonly Value[] | ValueMap;

/** A map of attributes. */
export interface ValueMap {
  readonly [name: string]: Value;
}

/** DynamoDB's name for a value's type. */
export type ValueType = "S" | "N" | "BOOL" | "NULL" | "SS" | "L" | "M";

const MAX_DEPTH = 32;

/** The type of `value`. */
export function typeOf(value: Value): ValueType {
  if (typeof value === "string") return "S";
  if (typeof value === "number") return "N";
  if (typeof value === "boolean") return "BOOL";
  if (value === null) return "NULL";
  if (isSet(value)) return "SS";
  return Array.isArray(value) ? "L" : "M";
}

/** True if `value` is a map. */
export function isMap(value: Value | undefined): value is ValueMap {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !isSet(value);
}

/** True if `value` is a list. */
export function isList(value: Value | undefined): value is readonly Value[] {
  return Array.isArray(value);
}

/** True if `value` is a set of texts. */
export function isSet(value: Value | undefined): value is ReadonlySet<string> {
  return value instanceof Set;
}

/**
 * Copies `given` without its undefined members, as the document client marshals it.
 * @throws Error for a type that this table doesn't support, and for a number that JavaScript can't represent exactly.
 */
export function valueOf(given: unknown, depth = 0): Value {
  if (depth > MAX_DEPTH) throw validationError("Nesting Levels have exceeded supported limits");
  if (typeof given === "string" || typeof given === "boolean" || given === null) return given;
  if (typeof given === "number") {
    if (!Number.isFinite(given) || Math.abs(given) > Number.MAX_SAFE_INTEGER)
      throw new Error(`Number ${given} is greater than Number.MAX_SAFE_INTEGER, or no number`);
    return given;
  }
  if (Array.isArray(given)) {
    const list: Value[] = [];
    for (const one of given) if (one !== undefined) list.push(valueOf(one, depth + 1));
    return list;
  }
  if (given instanceof Set) return setOf(given);
  if (typeof given !== "object" || Object.getPrototypeOf(given) !== Object.prototype)
    throw new Error(`Unsupported type passed: ${Object.prototype.toString.call(given)}`);
  const map: Record<string, Value> = {};
  for (const name of Object.keys(given)) {
    const member = (given as Readonly<Record<string, unknown>>)[name];
    if (member !== undefined) define(map, name, valueOf(member, depth + 1));
  }
  return map;
}

function setOf(given: ReadonlySet<unknown>): ReadonlySet<string> {
  if (given.size === 0) throw validationError("One or more parameter values were invalid: An string set  may not be empty");
  for (const one of given) if (typeof one !== "string") throw new Error("this table has no sets but those of texts");
  return new Set(given) as ReadonlySet<string>;
}

/** Sets an own property with any name: `__proto__` is an attribute like any other. */
export function define<V>(map: Record<string, V>, name: string, value: V): void {
  if (name === "__proto__") Object.defineProperty(map, name, { value, enumerable: true, configurable: true, writable: true });
  else map[name] = value;
}

/** True if both are equal: maps and sets by their members, lists by their elements in order. */
export function isEqual(a: Value | undefined, b: Value | undefined): boolean {
  if (a === b) return true;
  if (isList(a)) return isList(b) && a.length === b.length && a.every((one, index) => isEqual(one, b[index]));
  if (isSet(a)) return isSet(b) && a.size === b.size && [...a].every((one) => b.has(one));
  if (!isMap(a) || !isMap(b)) return false;
  const names = Object.keys(a);
  return names.length === Object.keys(b).length && names.every((name) => Object.hasOwn(b, name) && isEqual(a[name], b[name]));
}

/** Below 0, 0 or above 0; undefined if the types differ or have no order. Strings compare by their UTF-8 bytes. */
export function order(a: Value, b: Value): number | undefined {
  if (typeof a === "number" && typeof b === "number") return a - b;
  if (typeof a !== "string" || typeof b !== "string") return undefined;
  if (a === b) return 0;
  return IS_ASCII.test(a) && IS_ASCII.test(b) ? (a < b ? -1 : 1) : Buffer.compare(Buffer.from(a), Buffer.from(b));
}

const IS_ASCII = /^[\u0000-\u007f]*$/;

/** The bytes of a text in UTF-8. */
export function bytesOf(text: string): number {
  return IS_ASCII.test(text) ? text.length : Buffer.byteLength(text);
}

/** The size of a value as DynamoDB counts it. */
export function sizeOf(value: Value): number {
  if (typeof value === "string") return bytesOf(value);
  if (typeof value === "number") return Math.ceil(digitsOf(Math.abs(value)) / 2) + 1 + (value < 0 ? 1 : 0);
  if (typeof value === "boolean" || value === null) return 1;
  if (isSet(value)) return [...value].reduce((sum, one) => sum + bytesOf(one), 0);
  if (isList(value)) return value.reduce<number>((sum, one) => sum + 1 + sizeOf(one), 3);
  return membersSize(value) + 3 + Object.keys(value).length;
}

/** The number of digits of a number that DynamoDB stores: no point, no exponent, no zeros at the end. */
function digitsOf(value: number): number {
  const text = String(value);
  if (!Number.isSafeInteger(value)) return text.replace(/[.]|e.*$|0+$/g, "").length;
  let digits = text.length;
  while (digits > 0 && text.charCodeAt(digits - 1) === ZERO) digits--;
  return digits;
}

const ZERO = "0".charCodeAt(0);

/** The size of an item: its names and its values. */
export function membersSize(map: ValueMap): number {
  let sum = 0;
  for (const name of Object.keys(map)) sum += bytesOf(name) + sizeOf(map[name] ?? null);
  return sum;
}

/** The wire form of a value. */
export function toWire(value: Value): WireValue {
  if (typeof value === "string") return { S: value };
  if (typeof value === "number") return { N: String(value) };
  if (typeof value === "boolean") return { BOOL: value };
  if (value === null) return { NULL: true };
  if (isSet(value)) return { SS: [...value] };
  return isList(value) ? { L: value.map(toWire) } : { M: itemToWire(value) };
}

/** The wire form of an item. */
export function itemToWire(item: ValueMap): WireItem {
  const wire: Record<string, WireValue> = {};
  for (const name of Object.keys(item)) define(wire, name, toWire(item[name] ?? null));
  return wire;
}
