/**
 * Keys: the names of locks. `key(...)` encodes any parts injectively in the alphabet that survives a URL path, an IAM
 * pattern and a log line unescaped.
 */
import { createHash } from "node:crypto";
import * as LIMITS from "./request-limits.js";

const KEY = /^[A-Za-z0-9._:~-]{1,200}$/;
const SEPARATOR = "_";
const ESCAPE = "~";
const HASH_CHARS = 64;

/** A part of a key. `key()` rejects undefined, null, empty text, NaN and objects, and names the position. */
export type KeyPart = string | number | bigint;

/** True if `text` is a valid key: 1–200 characters of `A-Z a-z 0-9 . _ : ~ -`, not `.` or `..`. */
export function isKey(text: string): boolean {
  return KEY.test(text) && text !== "." && text !== "..";
}

/**
 * Builds the key of these parts, as the SDK's `key()` says (decision 084 has the normal form).
 * @throws TypeError naming the part that is missing, empty, not a number or not text
 */
export function key(...parts: readonly KeyPart[]): string {
  if (parts.length === 0) throw new TypeError("key(): needs at least one part");
  const whole = parts.map((part, index) => encodePart(part, index)).join(SEPARATOR);
  return whole === "." || whole === ".." ? whole.replaceAll(".", escapeByte(0x2e)) : bounded(whole);
}

/**
 * Builds a key that {@link key} makes of no parts, and is injective as well: after `first` stands `~` and `mark`, which must not begin as a
 * hexadecimal number does.
 */
export function markedKey(first: KeyPart, mark: string, ...parts: readonly KeyPart[]): string {
  const [encoded, ...others] = [first, ...parts].map((part, index) => encodePart(part, index));
  return bounded([encoded, ESCAPE + mark, ...others].join(SEPARATOR));
}

/** Returns the key `inner` below `first`, as {@link key} makes it of `first` and the parts of `inner`, unless `inner` was cut. */
export function keyWithin(first: KeyPart, inner: string): string {
  return bounded(encodePart(first, 0) + SEPARATOR + inner);
}

/** Returns the text of a key, cut to `mostChars` if it has so many or more. */
export function bounded(whole: string, mostChars = LIMITS.keyChars): string {
  if (whole.length < mostChars) return whole;
  const hash = createHash("sha256").update(whole).digest("hex");
  return whole.slice(0, mostChars - HASH_CHARS - ESCAPE.length) + ESCAPE + hash;
}

/** Returns the key of `name` for callers whose keys begin with `prefix`. A name that begins with it is the key, as lists return it. */
export function prefixed(prefix: string, name: string): string {
  return name.startsWith(prefix) ? name : prefix + bounded(name, LIMITS.keyChars - prefix.length);
}

/** Splits a key made by {@link key} into model and id: the text before and after its first `_`. */
export function partsOfKey(text: string): { readonly model: string; readonly id: string } {
  const at = text.indexOf(SEPARATOR);
  return at < 0 ? { model: "", id: text } : { model: text.slice(0, at), id: text.slice(at + 1) };
}

function encodePart(part: unknown, index: number): string {
  const text = Number.isFinite(part) ? String(part) : typeof part === "bigint" ? part.toString() : part;
  if (typeof text !== "string") throw new TypeError(`key(): part ${index + 1} is ${describe(part)}; a part is text or a number`);
  if (text === "") throw new TypeError(`key(): part ${index + 1} is empty`);
  if (!text.isWellFormed()) throw new TypeError(`key(): part ${index + 1} has half a surrogate pair`);
  return text.normalize("NFC").replace(/[^A-Za-z0-9.:-]/gu, (char) => Array.from(new TextEncoder().encode(char), escapeByte).join(""));
}

function escapeByte(byte: number): string {
  return ESCAPE + byte.toString(16).toUpperCase().padStart(2, "0");
}

function describe(part: unknown): string {
  if (part === null || part === undefined) return String(part);
  if (typeof part === "number") return String(part);
  return typeof part === "object" ? "an object" : `a ${typeof part}`;
}
