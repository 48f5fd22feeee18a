/** Canonical JSON: the same text for the same value, whatever the order of its members. */
import { createHash } from "node:crypto";

/** The deepest nesting that the service accepts. It bounds every recursion over a value. */
export const JSON_DEPTH = 100;

/** True if `value` is nested at most {@link JSON_DEPTH} deep. */
export function isShallow(value: unknown, depth = JSON_DEPTH): boolean {
  if (typeof value !== "object" || value === null) return true;
  return depth > 0 && Object.values(value).every((member) => isShallow(member, depth - 1));
}

/** Returns the JSON text of `value` with every object's members sorted. Check {@link isShallow} first. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(ordered(value));
}

/** SHA-256 of the value's canonical JSON, in base64url. */
export function digestOf(value: unknown): string {
  return createHash("sha256").update(canonicalJson(value)).digest("base64url");
}

/** A part of a value with more members than this, counted with theirs, is written in pieces: about a millisecond of work. */
const PIECE_MEMBERS = 2000;

/** Yields the canonical JSON of a JSON value in pieces, between which other work can be done. The value must not change meanwhile. */
export function* canonicalPieces(value: unknown): Generator<string, void> {
  if (typeof value !== "object" || value === null || membersLeft(value, PIECE_MEMBERS) > 0) return void (yield canonicalJson(value));
  if (Array.isArray(value)) return yield* listPieces(value);
  let before = "{";
  for (const [name, member] of Object.entries(sorted(value))) {
    yield `${before}${JSON.stringify(name)}:`;
    yield* canonicalPieces(member);
    before = ",";
  }
  yield "}";
}

function* listPieces(list: readonly unknown[]): Generator<string, void> {
  let before = "[";
  for (let at = 0; at < list.length; before = ",") {
    let end = at;
    while (end < list.length && end - at < PIECE_MEMBERS && !isObject(list[end])) end++;
    if (end > at) yield before + JSON.stringify(list.slice(at, end)).slice(1, -1);
    else {
      yield before;
      yield* canonicalPieces(list[end++]);
    }
    at = end;
  }
  yield "]";
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

/** Returns what is left of `most` after all members of the value, and theirs, are counted; 0 or less as soon as there are so many. */
function membersLeft(value: object, most: number): number {
  let left = most;
  for (const member of Object.values(value) as unknown[]) {
    left = typeof member === "object" && member !== null ? membersLeft(member, left - 1) : left - 1;
    // Stryker disable next-line ConditionalExpression,EqualityOperator: it would only count on
    if (left <= 0) return left;
  }
  return left;
}

function ordered(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(ordered);
  if (typeof value !== "object" || value === null) return value;
  return sorted(value, ordered);
}

/** Returns an object with its members sorted by name, each as `change` makes it. */
function sorted(value: object, change: (member: unknown) => unknown = (member) => member): Readonly<Record<string, unknown>> {
  const members = value as Readonly<Record<string, unknown>>;
  const names = Object.keys(members).sort();
  return Object.fromEntries(names.map((name) => [name, change(members[name])]));
}
