/** Lease ids for tests: as unguessable as a client's, made at a time that the test says. */
import { randomBytes } from "node:crypto";
import { leaseIdFrom } from "../../lib/core/lease-id.js";
import type { LeaseId } from "../../lib/core/lease-id.js";

/** Where text may be a lease id. */
export const LEASE_ID = /[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/gi;

/** A new id that says it was made at `timeMs`. */
export function leaseIdAt(timeMs: number): LeaseId {
  return leaseIdFrom(timeMs, randomBytes(10));
}
