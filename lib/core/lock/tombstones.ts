/**
 * Tombstones: the record stores ended leases and their endings (S7), the latest first. When an id is dropped, the low watermark rises to
 * it, and no new lease is granted at or below the watermark. Tombstones alone are not enough: a duplicate that arrives after eight further
 * ends would be granted as new.
 *
 * The low watermark never rises so far ahead that no new id fits above it: an id ahead of the clock keeps its tombstone until its time has
 * come. Cancelled ids can be any distance ahead, and any caller may cancel. So the record stores at most four ids that are ahead of both
 * clocks. If there are more, it drops the one furthest ahead, since only a request that is equally late could still use it.
 *
 * If one clock is far behind the other, honest ids lie between the two, and may be ahead of the true time for all that this function knows.
 * Then the lowest id is dropped if one of them held a lease. Such an id isn't ahead, so the lowest isn't either. If none held, the cancel
 * is refused.
 */
import { type LeaseId, isSameLeaseId } from "../lease-id.js";
import { mayRaiseLowWatermark } from "./expiry.js";
import { LIMITS } from "../limits.js";
import type { Tombstone, Ending, Hold, LockRecord } from "../record.js";
import type { ClockReading } from "../time.js";

/** The record of a key before its first use. */
export const EMPTY_RECORD: LockRecord = {
  version: 0,
  fencingToken: 0,
  fenceFloor: 0,
  limit: 1,
  holds: {},
  offers: [],
  waiters: [],
  tombstones: [],
  lowWatermark: "",
  ttlAtSec: 0,
};

/** Returns how `leaseId` ended; `forgotten` if the record shows only that it is at or below the low watermark. */
export function endingOf(record: LockRecord, leaseId: LeaseId): Ending | "forgotten" | undefined {
  const ended = record.tombstones.find((entry) => isSameLeaseId(entry.leaseId, leaseId));
  if (ended) return ended.ending;
  return leaseId <= record.lowWatermark ? "forgotten" : undefined;
}

/**
 * Returns the hold of `leaseId`, if the record has it: live, or expired but not taken over yet. A member is found by the hash of its name,
 * so the time doesn't tell how much of an id was guessed.
 */
export function holdOf(record: LockRecord, leaseId: LeaseId): Hold | undefined {
  return Object.hasOwn(record.holds, leaseId) ? record.holds[leaseId] : undefined;
}

/** Ends the hold of `leaseId`, which never holds again. `known` identifies a repeat of the request that ended it. */
export function endLease(
  record: LockRecord,
  leaseId: LeaseId,
  ending: Ending,
  reading: ClockReading,
  known: Pick<Tombstone, "fencingToken" | "outcome"> = {},
): LockRecord {
  const { [leaseId]: _gone, ...holds } = record.holds;
  // A lease that held isn't ahead of the true time, and the lowest id isn't either.
  const all = [{ leaseId, ending, ...known }, ...record.tombstones];
  return { ...record, holds, ...(dropOldest(all, record, reading) ?? raiseWatermark(all, record, lowestOf(all))) };
}

/**
 * Adds a tombstone for a `leaseId` that never held, so that a late acquire is refused. Leaves the record unchanged if the id is the
 * furthest ahead of too many cancelled ones. Returns nothing if no tombstone may be dropped for it. That happens only if the clocks differ.
 */
export function cancelLease(record: LockRecord, leaseId: LeaseId, ending: Ending, reading: ClockReading): LockRecord | undefined {
  const all: readonly Tombstone[] = [{ leaseId, ending }, ...record.tombstones];
  const kept = dropOldest(all, record, reading) ?? (all.every(mayBeMadeUp) ? undefined : raiseWatermark(all, record, lowestOf(all)));
  if (!kept) return undefined;
  const next = { ...record, ...kept };
  return endingOf(next, leaseId) ? next : record;
}

/** The part of a record that tells which leases have ended. */
type Ended = Pick<LockRecord, "tombstones" | "lowWatermark">;

/**
 * Drops a tombstone if there are too many: the cancelled id that is furthest ahead of both clocks, or else the first to end of those to
 * which the low watermark may rise. Returns nothing if the earliest clock says of all of them that the low watermark may not.
 */
function dropOldest(all: readonly Tombstone[], record: LockRecord, reading: ClockReading): Ended | undefined {
  const { lowWatermark } = record;
  const byLatest = { ...reading, earliestMs: reading.latestMs };
  const ahead = all.filter((entry) => mayBeMadeUp(entry) && !mayRaiseLowWatermark(entry.leaseId, byLatest));
  if (ahead.length > LIMITS.tombstonesAheadMax) return { tombstones: all.filter((entry) => entry !== highestOf(ahead)), lowWatermark };
  if (all.length <= LIMITS.tombstonesMax) return { tombstones: all, lowWatermark };
  const oldest = all.findLast(({ leaseId }) => mayRaiseLowWatermark(leaseId, reading));
  return oldest && raiseWatermark(all, record, oldest);
}

/** Drops this tombstone, and raises the low watermark to its id. */
function raiseWatermark(all: readonly Tombstone[], { lowWatermark }: LockRecord, leaving: Tombstone): Ended {
  const { leaseId } = leaving;
  // Stryker disable next-line EqualityOperator: of two equal ids, either is the higher
  return { tombstones: all.filter((entry) => entry !== leaving), lowWatermark: leaseId > lowWatermark ? leaseId : lowWatermark };
}

/** True if the id may never have held a lease. Then its time may have any value. */
function mayBeMadeUp({ ending }: Tombstone): boolean {
  return ending === "cancelled" || ending === "unknown";
}

function highestOf(entries: readonly Tombstone[]): Tombstone {
  // Stryker disable next-line EqualityOperator: no two tombstones have the same id
  return entries.reduce((highest, entry) => (entry.leaseId > highest.leaseId ? entry : highest));
}

function lowestOf(entries: readonly Tombstone[]): Tombstone {
  // Stryker disable next-line EqualityOperator: no two tombstones have the same id
  return entries.reduce((lowest, entry) => (entry.leaseId < lowest.leaseId ? entry : lowest));
}
