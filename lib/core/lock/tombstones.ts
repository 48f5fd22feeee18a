/**
 * Tombstones: ended leases stay in the record with how they ended (S7), the latest first. An id that drops out raises
 * the low watermark, and no new lease is granted at or below it. Tombstones alone are not enough: a duplicate that
 * arrives after eight further ends would be granted as new.
 *
 * The low watermark never rises so far ahead that no new id fits above it: an id ahead of the clock keeps its tombstone
 * until its time has come. Cancelled ids can be any distance ahead, and any caller may cancel. So the record keeps at
 * most four of them. If there are more, it drops the furthest ahead, since only a request that is as late could still
 * use it.
 * By a clock that is behind, honest ids are ahead too. If the other clock says so, the first of them to end is dropped.
 */
import type { LeaseId } from "../lease-id.js";
import { leaseIdTimeMs } from "../lease-id.js";
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
  const ended = record.tombstones.find((entry) => entry.leaseId === leaseId);
  if (ended) return ended.ending;
  return leaseId <= record.lowWatermark ? "forgotten" : undefined;
}

/** Returns the time that a new id must be above, in epoch ms; 0 without a low watermark. */
export function lowWatermarkMs({ lowWatermark }: LockRecord): number {
  return lowWatermark === "" ? 0 : leaseIdTimeMs(lowWatermark);
}

/** Returns the hold of `leaseId`, if the record has it: live, or expired but not taken over yet. */
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
  return { ...record, holds, ...keepTombstones([{ leaseId, ending, ...known }, ...record.tombstones], record.lowWatermark, reading) };
}

/**
 * Adds a tombstone for a `leaseId` that never held, so that a late acquire is refused. Leaves the record unchanged if
 * the id is the furthest ahead of too many cancelled ones.
 */
export function cancelLease(record: LockRecord, leaseId: LeaseId, ending: Ending, reading: ClockReading): LockRecord {
  const all: readonly Tombstone[] = [{ leaseId, ending }, ...record.tombstones];
  const ahead = all.filter((entry) => mayBeMadeUp(entry) && !mayRaiseLowWatermark(entry.leaseId, reading));
  if (ahead.length <= LIMITS.tombstonesAheadMax) return { ...record, ...keepTombstones(all, record.lowWatermark, reading) };
  const leaving = firstForgotten(ahead, reading);
  return leaving.leaseId === leaseId ? record : { ...record, tombstones: all.filter((entry) => entry !== leaving) };
}

/** True if the id may never have held. Then its time may be any. */
function mayBeMadeUp({ ending }: Tombstone): boolean {
  return ending === "cancelled" || ending === "unknown";
}

/** The tombstone to drop of too many that are ahead by the earliest clock: the furthest that is ahead by both clocks, else the first to end. */
function firstForgotten(ahead: readonly Tombstone[], { latestMs }: ClockReading): Tombstone {
  const byBoth = ahead.filter(({ leaseId }) => !mayRaiseLowWatermark(leaseId, { earliestMs: latestMs, latestMs }));
  const first = ahead.at(-1);
  return byBoth.length === 0 && first ? first : highestOf(byBoth);
}

/** Drops one tombstone if there are too many, and returns the rest with the low watermark after it. */
function keepTombstones(
  all: readonly Tombstone[],
  lowWatermark: LeaseId,
  reading: ClockReading,
): Pick<LockRecord, "tombstones" | "lowWatermark"> {
  if (all.length <= LIMITS.tombstonesMax) return { tombstones: all, lowWatermark };
  const oldest = all.findLast(({ leaseId }) => mayRaiseLowWatermark(leaseId, reading));
  // No tombstone may raise the watermark, as for a function whose clock is behind. Ids beyond the limit of which nobody
  // knows that they held are dropped without raising it.
  const madeUp = all.filter(mayBeMadeUp);
  const isForgotten = !oldest && madeUp.length > LIMITS.tombstonesAheadMax;
  const leaving = oldest ?? (isForgotten ? firstForgotten(madeUp, reading) : lowestOf(all));
  const raised = isForgotten || leaving.leaseId <= lowWatermark ? lowWatermark : leaving.leaseId;
  return { tombstones: all.filter((entry) => entry !== leaving), lowWatermark: raised };
}

function highestOf(entries: readonly Tombstone[]): Tombstone {
  return entries.reduce((highest, entry) => (entry.leaseId > highest.leaseId ? entry : highest));
}

function lowestOf(entries: readonly Tombstone[]): Tombstone {
  return entries.reduce((lowest, entry) => (entry.leaseId < lowest.leaseId ? entry : lowest));
}
