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
import type { Acquire } from "./commands.js";
import type { LeaseId } from "./lease-id.js";
import type { Hold, LockRecord, Mode } from "./record.js";
import type { ClockReading } from "./time.js";
import { isLive, isTakeable } from "./expiry.js";

/** A lease with its id. */
export type Holder = readonly [leaseId: LeaseId, hold: Hold];

/** The leases that still keep others out. */
export function standing(record: LockRecord, reading: ClockReading): readonly Holder[] {
  return Object.entries(record.holds).filter(([, hold]) => !isTakeable(hold, reading));
}

/** The living leases that hold together under `scope`, the first granted first. None without a scope. */
export function levelsOf(record: LockRecord, scope: string | undefined, reading: ClockReading): readonly Holder[] {
  if (scope === undefined) return [];
  return Object.entries(record.holds)
    .filter(([, hold]) => hold.scope === scope && isLive(hold, reading))
    .sort(([, a], [, b]) => a.grantedAtMs - b.grantedAtMs);
}

/** How many levels the lease's own scope has; itself, without one. */
export function holdCount(record: LockRecord, hold: Hold, reading: ClockReading): number {
  return Math.max(1, levelsOf(record, hold.scope, reading).length);
}

/** How many permits these leases have together: the levels of one scope have theirs in common. */
export function permitsOut(holders: readonly Holder[]): number {
  const byScope = new Map<string, number>();
  for (const [leaseId, { scope, permits }] of holders) {
    const whose = scope === undefined ? `lease ${leaseId}` : `scope ${scope}`;
    byScope.set(whose, Math.max(byScope.get(whose) ?? 0, permits));
  }
  return Array.from(byScope.values()).reduce((sum, permits) => sum + permits, 0);
}

/** What an acquire finds that is not its own scope's. */
export type Finding = "free" | "joins" | "held" | "other-limit";

/** Whether `wanted` may hold beside `others`, which are not takeable. */
export function findingOf(
  record: LockRecord,
  others: readonly Holder[],
  wanted: Pick<Acquire, "mode" | "limit" | "permits">,
  reading: ClockReading,
): Finding {
  const [first] = others;
  if (!first) return "free";
  if (record.limit !== wanted.limit) return "other-limit";
  const { mode } = first[1];
  if (wanted.mode === "shared") return mode === "shared" && !isUpgrading(record, others, reading) ? "joins" : "held";
  return mode === "exclusive" && permitsOut(others) + wanted.permits <= record.limit ? "joins" : "held";
}

/** Whether a reader that still holds waits to become the writer: later readers would keep it waiting. */
export function isUpgrading({ upgrading }: LockRecord, holders: readonly Holder[], reading: ClockReading): boolean {
  return upgrading !== undefined && upgrading.untilMs > reading.earlierMs && holders.some(([leaseId]) => leaseId === upgrading.leaseId);
}

/** Whether a grant of this mode and limit has the key to itself: then its token is what all others compare. */
export function isAlone({ mode, limit }: { readonly mode: Mode; readonly limit: number }): boolean {
  return mode === "exclusive" && limit === 1;
}
