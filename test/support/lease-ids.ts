/** Lease ids for tests: as unguessable as a client's, with a time that the test chooses. */
import { randomBytes } from "node:crypto";
import { type LeaseId, leaseIdFrom } from "../../lib/core/lease-id.js";

/** Matches lease ids in text. */
export const LEASE_ID = /[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/gi;

/** Matches lease ids in text, also as the table stores them. */
export const ANY_LEASE_ID = new RegExp(`${LEASE_ID.source}|(?<![\\w-])-[\\w-]{21}(?![\\w-])`, "i");

/** Creates an id whose timestamp is `timeMs`. */
export function leaseIdAt(timeMs: number): LeaseId {
  return leaseIdFrom(timeMs, randomBytes(10));
}
