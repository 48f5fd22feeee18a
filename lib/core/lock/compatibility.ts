/**
 * Who may hold a key together, and who keeps whom out:
 *
 *                 held exclusively   held shared            permits out, limit n
 *   exclusive     locked             locked                 limit-mismatch
 *   shared        locked             joins                  limit-mismatch
 *   permit of n   limit-mismatch     limit-mismatch         joins if it fits
 *
 * Under the scope that holds: nested, without another permit; but locked for exclusive inside shared.
 *
 * A lease that ran out keeps everybody out until its margin has passed; then it is as if it were not there.
 */
import type { Acquire } from "../commands.js";
import { holdOf } from "./tombstones.js";
import { isLapsed, isLive, isReclaimable } from "./expiry.js";
import type { LeaseId } from "../lease-id.js";
import type { Hold, LockRecord, Mode } from "../record.js";
import type { ClockReading } from "../time.js";

/** A lease with its id. */
export type HoldEntry = readonly [leaseId: LeaseId, hold: Hold];

/** What somebody has of the key: a lease, or the offer of one. */
export type Occupant = Pick<Hold, "mode" | "permits" | "scope">;

/** The leases that still keep others out. */
export function standing(record: LockRecord, reading: ClockReading): readonly HoldEntry[] {
  return Object.entries(record.holds).filter(([, hold]) => !isReclaimable(hold, reading));
}

/** All that keeps others out: leases, and offers that have not lapsed. */
export function occupantsOf(record: LockRecord, reading: ClockReading): readonly Occupant[] {
  return [...standing(record, reading).map(([, hold]) => hold), ...record.offers.filter((offer) => !isLapsed(offer, reading))];
}

/** The living leases that hold together under `scope`, the first granted first. None without a scope. */
export function reentrantHoldsOf(record: LockRecord, scope: string | undefined, reading: ClockReading): readonly HoldEntry[] {
  if (scope === undefined) return [];
  return Object.entries(record.holds)
    .filter(([, hold]) => hold.scope === scope && isLive(hold, reading))
    .sort(([, a], [, b]) => a.grantedAtMs - b.grantedAtMs);
}

/** How many levels the lease's own scope has; itself, without one. */
export function holdCount(record: LockRecord, hold: Hold, reading: ClockReading): number {
  return Math.max(1, reentrantHoldsOf(record, hold.scope, reading).length);
}

/** How many permits these have together: the levels of one scope have theirs in common. */
export function permitsOut(occupants: readonly Occupant[]): number {
  const byScope = new Map<string, number>();
  let out = 0;
  for (const { scope, permits } of occupants) {
    const counted = scope === undefined ? 0 : (byScope.get(scope) ?? 0);
    out += Math.max(0, permits - counted);
    if (scope !== undefined) byScope.set(scope, Math.max(counted, permits));
  }
  return out;
}

/** What an acquire finds that is not its own scope's. */
export type Verdict = "free" | "joins" | "held" | "other-limit";

/** Whether `wanted` may hold beside `others`. */
export function verdictOf(
  record: LockRecord,
  others: readonly Occupant[],
  wanted: Pick<Acquire, "mode" | "limit" | "permits">,
  reading: ClockReading,
): Verdict {
  const [first] = others;
  if (!first) return "free";
  if (record.limit !== wanted.limit) return "other-limit";
  const { mode } = first;
  if (wanted.mode === "shared") return mode === "shared" && !isUpgrading(record, reading) ? "joins" : "held";
  return mode === "exclusive" && permitsOut(others) + wanted.permits <= record.limit ? "joins" : "held";
}

/** Whether a reader that still holds waits to become the writer: later readers would keep it waiting. */
export function isUpgrading(record: LockRecord, reading: ClockReading): boolean {
  const { upgrading } = record;
  const hold = upgrading && holdOf(record, upgrading.leaseId);
  return hold !== undefined && !isReclaimable(hold, reading) && upgrading !== undefined && upgrading.untilMs > reading.earliestMs;
}

/** Whether a grant of this mode and limit has the key to itself: then its token is what all others compare. */
export function isAlone({ mode, limit }: { readonly mode: Mode; readonly limit: number }): boolean {
  return mode === "exclusive" && limit === 1;
}
