/**
 * Compatibility of holds:
 *
 *                 held exclusively   held shared            permits out, limit n
 *   exclusive     locked             locked                 limit-mismatch
 *   shared        locked             joins                  limit-mismatch
 *   permit of n   limit-mismatch     limit-mismatch         joins if it fits
 *
 * A request under the scope that holds is nested and takes no further permit; exclusive inside shared is locked.
 *
 * A lease that ran out excludes others until its margin has passed. After that it counts as absent.
 */
import type { Acquire } from "../commands.js";
import { holdOf } from "./tombstones.js";
import { isLapsed, isLive, isReclaimable } from "./expiry.js";
import type { LeaseId } from "../lease-id.js";
import type { Hold, LockRecord, Mode } from "../record.js";
import type { ClockReading } from "../time.js";

export type HoldEntry = readonly [leaseId: LeaseId, hold: Hold];

/** A lease, or the offer of one. */
export type Occupant = Pick<Hold, "mode" | "permits" | "scope">;

/** Returns the leases that still exclude others. */
export function standing(record: LockRecord, reading: ClockReading): readonly HoldEntry[] {
  return Object.entries(record.holds).filter(([, hold]) => !isReclaimable(hold, reading));
}

/** Returns everything that excludes others: leases, and offers that have not lapsed. */
export function occupantsOf(record: LockRecord, reading: ClockReading): readonly Occupant[] {
  return [...standing(record, reading).map(([, hold]) => hold), ...record.offers.filter((offer) => !isLapsed(offer, reading))];
}

/** Returns the live leases of `scope`, which have one token, one mode and the same permits; none without a scope. */
export function reentrantHoldsOf(record: LockRecord, scope: string | undefined, reading: ClockReading): readonly HoldEntry[] {
  if (scope === undefined) return [];
  return Object.entries(record.holds).filter(([, hold]) => hold.scope === scope && isLive(hold, reading));
}

/** Returns the number of reentrant holds of the lease's own scope; 1 without a scope. */
export function holdCount(record: LockRecord, hold: Hold, reading: ClockReading): number {
  return Math.max(1, reentrantHoldsOf(record, hold.scope, reading).length);
}

/** Returns the total of permits in use. Reentrant holds of one scope share theirs. */
export function permitsOut(occupants: readonly Occupant[]): number {
  const byScope = new Map<string, number>();
  let out = 0;
  for (const { scope, permits } of occupants) {
    if (scope === undefined) {
      out += permits;
      continue;
    }
    const counted = byScope.get(scope) ?? 0;
    out += Math.max(0, permits - counted);
    byScope.set(scope, Math.max(counted, permits));
  }
  return out;
}

/** True if `wanted`, of the record's limit and outside the scopes of `others`, may hold beside them. */
export function isCompatible(
  record: LockRecord,
  others: readonly Occupant[],
  wanted: Pick<Acquire, "mode" | "permits">,
  reading: ClockReading,
): boolean {
  const [first] = others;
  if (!first) return true;
  if (wanted.mode === "shared") return first.mode === "shared" && !isUpgrading(record, reading);
  return first.mode === "exclusive" && permitsOut(others) + wanted.permits <= record.limit;
}

/** True if a reader that still holds waits to become the writer. New readers would delay it. */
export function isUpgrading(record: LockRecord, reading: ClockReading): boolean {
  const { upgrading } = record;
  if (!upgrading) return false;
  const hold = holdOf(record, upgrading.leaseId);
  return hold !== undefined && !isReclaimable(hold, reading) && upgrading.untilMs > reading.earliestMs;
}

/** True if a grant of this mode and limit excludes all others. Its token then becomes the fence floor. */
export function isAlone({ mode, limit }: { readonly mode: Mode; readonly limit: number }): boolean {
  return mode === "exclusive" && limit === 1;
}
