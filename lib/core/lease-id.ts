/**
 * Lease ids: UUIDv7 (RFC 9562 §5.7) in lower case, so that comparing ids as strings compares the times at which they
 * were made. The client chooses them, which makes every call safe to send again.
 */

/** Matches a lower-case UUIDv7. */
export const LEASE_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** A lower-case UUIDv7. Secret: it proves the hold. */
export type LeaseId = string;

/** True if `text` is a lower-case UUIDv7. */
export function isLeaseId(text: string): boolean {
  return LEASE_ID.test(text);
}

/** Returns the id's own time, in epoch milliseconds. */
export function leaseIdTimeMs(leaseId: LeaseId): number {
  return Number.parseInt(leaseId.slice(0, 8) + leaseId.slice(9, 13), 16);
}

/** Returns the highest id whose time is `timeMs`. Ids compare as strings. */
export function highestLeaseIdAt(timeMs: number): LeaseId {
  return leaseIdFrom(timeMs, new Uint8Array(10).fill(0xff));
}

/**
 * Makes a new id for the time `timeMs` from 10 bytes of a cryptographically secure generator. The time is cut to 48
 * bits. The caller corrects it by its estimate of the service's clock.
 */
export function leaseIdFrom(timeMs: number, random: Uint8Array): LeaseId {
  const time = Math.floor(timeMs).toString(16).padStart(12, "0");
  const tail = Array.from(random.subarray(0, 10), (byte) => (byte + 0x100).toString(16).slice(1)).join("");
  const variant = ((Number.parseInt(tail[4] ?? "0", 16) & 0x3) | 0x8).toString(16);
  // A template would keep its parts in memory for as long as the id is kept.
  return [time.slice(0, 8), time.slice(8, 12), `7${tail.slice(1, 4)}`, variant + tail.slice(5, 8), tail.slice(8, 20)].join("-");
}

/**
 * True if both are the same id. An id that a request names is looked up by this: it takes as many steps wherever two ids differ, so the
 * time of an answer doesn't tell how much of an id was guessed.
 */
export function isSameLeaseId(one: LeaseId, other: LeaseId): boolean {
  let difference = one.length ^ other.length;
  for (let at = 0; at < one.length; at++) difference |= one.charCodeAt(at) ^ other.charCodeAt(at);
  return difference === 0;
}
