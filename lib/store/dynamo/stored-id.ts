/**
 * A leaseId as the table has it: its 128 bits in 22 characters in place of 36, since DynamoDB charges a write by its size. Stored ids compare as
 * leaseIds do: the characters are in the order of their codes.
 */
import type { LeaseId } from "../../core/lease-id.js";

const CHARACTERS = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";
/** The characters for each three hexadecimal digits, and the reverse. */
const PAIRS = Array.from({ length: 4096 }, (_, bits) => CHARACTERS.charAt(bits >> 6) + CHARACTERS.charAt(bits & 63));
const DIGITS = new Map(PAIRS.map((pair, bits) => [pair, bits.toString(16).padStart(3, "0")]));

/** Returns the id as it is stored. "" is before all ids, also here. */
export function storedId(leaseId: LeaseId): string {
  if (leaseId === "") return "";
  const digits = `${leaseId.replaceAll("-", "")}0`;
  let stored = "";
  for (let at = 0; at < digits.length; at += 3) stored += PAIRS[Number.parseInt(digits.slice(at, at + 3), 16)] ?? "";
  return stored;
}

/** Returns the leaseId that is stored so. */
export function leaseIdOf(stored: string): LeaseId {
  if (stored === "") return "";
  let digits = "";
  for (let at = 0; at < stored.length; at += 2) digits += DIGITS.get(stored.slice(at, at + 2)) ?? "";
  return [digits.slice(0, 8), digits.slice(8, 12), digits.slice(12, 16), digits.slice(16, 20), digits.slice(20, 32)].join("-");
}
