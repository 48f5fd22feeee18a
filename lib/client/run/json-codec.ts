/**
 * Values of runs as JSON and back. What JSON has is kept as it is, so that a caller with curl reads it; what
 * it lacks is kept under a tag: `undefined` in a list, numbers that are not finite, bigint, Date, Error.
 * Members that are undefined are left out, as with JSON, and an object with a toJSON comes back as that made it.
 * Everything else is refused, naming where it is: a function, a cycle, and every other object of a class, whose
 * content JSON would drop without a word (a Map, bytes, URLSearchParams, a Response).
 */
import { isShallow, JSON_DEPTH } from "../../core/canonical.js";

/** Marks what JSON has no form for. An object of the user's own with this member is tagged itself. */
const TAG = "~type";

/** A value that can't be kept. */
export class UnkeepableError extends TypeError {
  override readonly name = "UnkeepableError";
}

/** `value` as JSON; undefined is none. @throws UnkeepableError naming the member that JSON has no form for. */
export function toJson(value: unknown, path = "value"): unknown {
  const json = jsonOf(value, path, JSON_DEPTH);
  // Tags nest too: what the service would refuse is refused here, before the end of the work depends on it.
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
    return Array.from(value, (item: unknown, index) =>
      item === undefined ? tagged("undefined") : jsonOf(item, `${path}[${index}]`, depth - 1),
    );
  }
  if (value instanceof Date) return tagged("date", Number.isNaN(value.getTime()) ? null : value.toISOString());
  if (value instanceof Error) return tagged("error", errorToJson(value));
  // Bytes first: a Buffer has a toJSON, but comes back as an object of numbers.
  if (ArrayBuffer.isView(value)) throw unkeepable(value, path);
  const { toJSON } = value as { readonly toJSON?: unknown };
  if (typeof toJSON === "function") return jsonOf(toJSON.call(value), path, depth - 1);
  if (!isPlain(value)) throw unkeepable(value, path);
  const members = Object.entries(value).flatMap(([name, member]) => {
    const json = jsonOf(member, `${path}.${name}`, depth - 1);
    return json === undefined ? [] : [[name, json] as const];
  });
  const json = Object.fromEntries(members);
  return Object.hasOwn(json, TAG) ? tagged("object", json) : json;
}

/** An object of no class, of this realm or another: its members are all there is to it. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function unkeepable(value: object, path: string): UnkeepableError {
  return new UnkeepableError(`${path}: a ${classOf(value)} can't be kept; make text, a list or a plain object of it`);
}

/** The name of the object's class, as far as it tells one. */
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

/** What {@link toJson} made of a value, as that value. */
export function fromJson(json: unknown): unknown {
  if (typeof json !== "object" || json === null) return json;
  if (Array.isArray(json)) return json.map(fromJson);
  const { [TAG]: tag, value } = json as Readonly<Record<string, unknown>>;
  switch (tag) {
    case "undefined":
      return undefined;
    case "number":
      return typeof value === "string" ? Number(value) : membersFromJson(json);
    case "bigint":
      return typeof value === "string" && /^-?\d+$/.test(value) ? BigInt(value) : membersFromJson(json);
    case "date":
      return value === null || typeof value === "string" ? new Date(value ?? Number.NaN) : membersFromJson(json);
    case "error":
      return errorFromJson(value);
    case "object":
      return membersFromJson(typeof value === "object" && value !== null ? value : json);
    default:
      return membersFromJson(json);
  }
}

function membersFromJson(json: object): unknown {
  return Object.fromEntries(Object.entries(json).map(([name, member]) => [name, fromJson(member)]));
}

function tagged(type: string, value?: unknown): unknown {
  return { [TAG]: type, ...(value !== undefined && { value }) };
}

/** What is kept of an error: its name and the beginning of its message. No stack: it is for people, not for every replay. */
export interface KeptError {
  readonly name: string;
  readonly message: string;
}

/** An error keeps this much of its message. */
const MESSAGE_CHARS = 800;

/** `error` as it is kept; whatever was thrown. */
export function errorToJson(error: unknown): KeptError {
  const { name, message }: { name: unknown; message: unknown } = error instanceof Error ? error : { name: "Error", message: error };
  return { name: cut(name), message: cut(message) };
}

function cut(said: unknown): string {
  const text = textOf(said);
  return text.length > MESSAGE_CHARS ? `${text.slice(0, MESSAGE_CHARS)}…` : text;
}

/** Whatever was thrown, as text: the end of a run must not hang on it. */
function textOf(said: unknown): string {
  try {
    return String(said);
  } catch {
    return typeof said;
  }
}

/** A kept error as an error. One that was recorded over HTTP may be any JSON. */
export function errorFromJson(json: unknown): Error {
  const { name, message } = (typeof json === "object" && json !== null ? json : {}) as Partial<KeptError>;
  const said = message ?? json ?? "failed";
  const error = new Error(typeof said === "string" ? said : JSON.stringify(json));
  if (typeof name === "string") error.name = name;
  return error;
}
