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

function ordered(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(ordered);
  if (typeof value !== "object" || value === null) return value;
  const members = value as Readonly<Record<string, unknown>>;
  const names = Object.keys(members).sort();
  return Object.fromEntries(names.map((name) => [name, ordered(members[name])]));
}
