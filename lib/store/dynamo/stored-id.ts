/**
 * A leaseId as the table has it: its 128 bits in 22 characters in place of 36, since DynamoDB charges a write by its size. Stored ids compare as
 * leaseIds do: the characters are in the order of their codes.
 */
import type { LeaseId } from "../../core/lease-id.js";

/** Each is six bits, so two of them are three hexadecimal digits. */
const CHARACTERS = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";

/** An id as it is stored; "" too. */
const STORED = /^(?:[-\w]{22})?$/;

/** Returns the id as it is stored. "" is before all ids, also here. */
export function storedId(leaseId: LeaseId): string {
  const digits = leaseId && `${leaseId.replaceAll("-", "")}0`;
  let stored = "";
  for (let at = 0; at < digits.length; at += 3) {
    const bits = Number.parseInt(digits.slice(at, at + 3), 16);
    stored += CHARACTERS.charAt(bits >> 6) + CHARACTERS.charAt(bits & 63);
  }
  return stored;
}

/** Returns the leaseId that is stored so. @throws Error for another text, such as an id in full */
export function leaseIdOf(stored: string): LeaseId {
  if (!STORED.test(stored)) throw new Error("is no stored leaseId");
  let digits = "";
  for (let at = 0; at < stored.length; at += 2) {
    const bits = 64 * CHARACTERS.indexOf(stored.charAt(at)) + CHARACTERS.indexOf(stored.charAt(at + 1));
    digits += (4096 + bits).toString(16).slice(1);
  }
  return digits.replace(/(.{8})(.{4})(.{4})(.{4})(.{12})./, "$1-$2-$3-$4-$5");
}
