/**
 * Converts the values of runs to JSON and back. Values that JSON can represent are stored unchanged, so that a caller with curl can read
 * them. Others are stored under a tag: `undefined` in a list, numbers that are not finite, bigint, Date, Error. As in JSON, undefined
 * members are left out, and an object with a toJSON method comes back as the result of that method. Everything else is refused with its
 * path: functions, cycles, and other class instances, whose content JSON would silently drop (a Map, bytes, URLSearchParams, a Response).
 */
import { brand } from "../../../core/brand.js";
import { isShallow, JSON_DEPTH } from "../../../core/canonical.js";

/** Marks a value that JSON can't represent. A user's object with this member is tagged itself. */
const TAG = "~type";

/** A value that can't be stored. */
export class UnkeepableError extends TypeError {
  static {
    brand(this, "UnkeepableError");
  }
  override readonly name = "UnkeepableError";
}

/** Returns `value` as JSON; undefined stays undefined. @throws UnkeepableError naming the member that JSON can't represent. */
export function toJson(value: unknown, path = "value"): unknown {
  const json = jsonOf(value, path, JSON_DEPTH);
  // Tags add nesting too. Refuse here what the service would refuse, before the end of the work depends on it.
  if (!isShallow(json)) throw new UnkeepableError(`${path}: is nested more than ${JSON_DEPTH} deep`);
  return json;
}

function jsonOf(value: unknown, path: string, depth: number): unknown {
  if (depth < 0) throw new UnkeepableError(`${path}: is nested more than ${JSON_DEPTH} deep, or in itself`);
  switch (typeof value) {
    case "undefined":
    case "string":
    case "boolean":
      return value;
    case "number":
      return Number.isFinite(value) && !Object.is(value, -0) ? value : tagged("number", Object.is(value, -0) ? "-0" : String(value));
    case "bigint":
      return tagged("bigint", String(value));
    case "object":
      return value === null ? null : objectToJson(value, path, depth);
    default:
      throw new UnkeepableError(`${path}: a ${typeof value} can't be kept`);
  }
}

function objectToJson(value: object, path: string, depth: number): unknown {
  if (Array.isArray(value)) {
    return Array.from(value, (item: unknown, index) => {
      // A payload can have a million numbers: none of them needs its path.
      // Stryker disable next-line ConditionalExpression,LogicalOperator,ArithmeticOperator: the line below gives the same value, less quickly
      if (depth > 0 && (typeof item === "number" || typeof item === "string")) return jsonOf(item, "", depth - 1);
      return item === undefined ? tagged("undefined") : jsonOf(item, `${path}[${index}]`, depth - 1);
    });
  }
  if (value instanceof Date) return tagged("date", Number.isNaN(value.getTime()) ? null : value.toISOString());
  if (value instanceof Error) return tagged("error", errorToJson(value));
  // Check bytes first: a Buffer has a toJSON method, but would come back as an object of numbers.
  if (ArrayBuffer.isView(value)) throw unkeepable(value, path);
  const { toJSON } = value as { readonly toJSON?: unknown };
  if (typeof toJSON === "function") return jsonOf(toJSON.call(value), path, depth - 1);
  if (!isPlain(value)) throw unkeepable(value, path);
  const json: Record<string, unknown> = {};
  // No list of entries: a payload can have a million members.
  for (const name of Object.keys(value)) {
    const member = jsonOf((value as Readonly<Record<string, unknown>>)[name], `${path}.${name}`, depth - 1);
    if (member === undefined) continue;
    // Stryker disable next-line ConditionalExpression: every member may be defined, an assignment is quicker
    if (name === "__proto__") Object.defineProperty(json, name, { value: member, enumerable: true });
    else json[name] = member;
  }
  return Object.hasOwn(json, TAG) ? tagged("object", json) : json;
}

/** True for an object without a class, of this realm or another: its members are its whole content. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function unkeepable(value: object, path: string): UnkeepableError {
  return new UnkeepableError(`${path}: a ${classOf(value)} can't be kept; make a plain object of it`);
}

function classOf(value: object): string {
  try {
    const { constructor } = value as { readonly constructor?: unknown };
    const name =
      typeof constructor === "function" && constructor !== Object ? constructor.name : Object.prototype.toString.call(value).slice(8, -1);
    return name === "" ? "nameless class" : name;
  } catch {
    return "nameless class";
  }
}

/** Returns the value from which {@link toJson} made this JSON. */
export function fromJson(json: unknown): unknown {
  if (typeof json !== "object" || json === null) return json;
  if (Array.isArray(json)) return json.map(fromJson);
  const { [TAG]: tag, value } = json as Readonly<Record<string, unknown>>;
  if (tag === "undefined") return undefined;
  if (tag === "number" && typeof value === "string") return Number(value);
  if (tag === "bigint" && typeof value === "string" && /^-?\d+$/.test(value)) return BigInt(value);
  if (tag === "date" && (value === null || typeof value === "string")) return new Date(value ?? Number.NaN);
  if (tag === "error") return errorFromJson(value);
  const members = tag === "object" && typeof value === "object" && value !== null ? value : json;
  return Object.fromEntries(Object.entries(members).map(([name, member]) => [name, fromJson(member)]));
}

function tagged(type: string, value?: unknown): unknown {
  return { [TAG]: type, ...(value !== undefined && { value }) };
}

/** The stored form of an error: its name and the beginning of its message. The stack is left out: it doesn't belong in every replay. */
export interface KeptError {
  readonly name: string;
  readonly message: string;
}

const MESSAGE_CHARS = 800;

/** Returns the stored form of any thrown value. */
export function errorToJson(error: unknown): KeptError {
  const { name, message }: { name: unknown; message: unknown } = error instanceof Error ? error : { name: "Error", message: error };
  return { name: cut(name), message: cut(message) };
}

function cut(thrown: unknown): string {
  const text = textOf(thrown);
  return text.length > MESSAGE_CHARS ? `${text.slice(0, MESSAGE_CHARS)}…` : text;
}

/** Returns any thrown value as text: a failing conversion must not stop the run from being recorded. */
function textOf(thrown: unknown): string {
  try {
    return String(thrown);
  } catch {
    return typeof thrown;
  }
}

/** Returns a stored error as an Error. One recorded over HTTP can be any JSON. */
export function errorFromJson(json: unknown): Error {
  const { name, message } = (typeof json === "object" && json !== null ? json : {}) as Partial<KeptError>;
  const content = message ?? json ?? "failed";
  const error = new Error(typeof content === "string" ? content : JSON.stringify(json));
  if (typeof name === "string") error.name = name;
  return error;
}
