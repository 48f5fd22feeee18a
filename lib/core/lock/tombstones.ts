/**
 * How leases end, and what is remembered of them (S7). The latest to end stay in a ring with how they
 * ended; an id that leaves the ring raises the floor, and no new lease is granted at or below it. The
 * ring alone resurrects: a duplicate later than eight ends would be granted as new.
 *
 * The floor never stands so far ahead that no new id fits above it: an id that is ahead of the clock stays in the
 * ring until its time has come. Cancelled ids can be any distance ahead, and anybody may cancel: at most four of
 * them are kept, and of more the furthest ahead is forgotten, since only a request that is as late could still use it.
 */
import type { LeaseId } from "../lease-id.js";
import { leaseIdTimeMs } from "../lease-id.js";
import { mayRaiseLowWatermark } from "./expiry.js";
import { LIMITS } from "../limits.js";
import type { Tombstone, Ending, Hold, LockRecord } from "../record.js";
import type { ClockReading } from "../time.js";

/** The record as it is before anything happened to its key. */
export const EMPTY_RECORD: LockRecord = {
  version: 0,
  fencingToken: 0,
  fenceFloor: 0,
  limit: 1,
  holds: {},
  offers: [],
  waiters: [],
  ended: [],
  floor: "",
  ttlAtSec: 0,
};

/** How `leaseId` ended; `forgotten` when all that is known is that it is at or below the floor. */
export function endingOf(record: LockRecord, leaseId: LeaseId): Ending | "forgotten" | undefined {
  const ended = record.ended.find((entry) => entry.leaseId === leaseId);
  if (ended) return ended.ending;
  return leaseId <= record.floor ? "forgotten" : undefined;
}

/** The time that a new id must be above; 0 while there is no floor. */
export function lowWatermarkMs({ floor }: LockRecord): number {
  return floor === "" ? 0 : leaseIdTimeMs(floor);
}

/** The hold called `leaseId`, if the record has it: living or run out, but taken by nobody yet. */
export function holdOf(record: LockRecord, leaseId: LeaseId): Hold | undefined {
  return Object.hasOwn(record.holds, leaseId) ? record.holds[leaseId] : undefined;
}

/** `record` without the hold called `leaseId`, which from now on never holds again. `known` is what a repeat is recognised by. */
export function endLease(
  record: LockRecord,
  leaseId: LeaseId,
  ending: Ending,
  reading: ClockReading,
  known: Pick<Tombstone, "fencingToken" | "outcome"> = {},
): LockRecord {
  const { [leaseId]: _gone, ...holds } = record.holds;
  return { ...record, holds, ...keepTombstones([{ leaseId, ending, ...known }, ...record.ended], record.floor, reading) };
}

/** `record` with `leaseId` as one that never holds, whatever arrives late; unchanged where it is the furthest ahead of too many. */
export function cancelLease(record: LockRecord, leaseId: LeaseId, ending: Ending, reading: ClockReading): LockRecord {
  const all: readonly Tombstone[] = [{ leaseId, ending }, ...record.ended];
  const ahead = all.filter((entry) => entry.ending === "cancelled" && !mayRaiseLowWatermark(entry.leaseId, reading));
  if (ahead.length <= LIMITS.tombstonesAheadMax) return { ...record, ...keepTombstones(all, record.floor, reading) };
  const furthest = highestOf(ahead);
  return furthest.leaseId === leaseId ? record : { ...record, ended: all.filter((entry) => entry !== furthest) };
}

/** What stays in the ring of these, the latest first, and the floor after it. */
function keepTombstones(all: readonly Tombstone[], floor: LeaseId, reading: ClockReading): Pick<LockRecord, "ended" | "floor"> {
  if (all.length <= LIMITS.tombstonesMax) return { ended: all, floor };
  const oldest = all.findLast(({ leaseId }) => mayRaiseLowWatermark(leaseId, reading));
  // All of them ahead, as to a function whose clock is behind: more cancelled ids than are kept are no floor's to follow.
  const cancelled = all.filter(({ ending }) => ending === "cancelled");
  const isForgotten = !oldest && cancelled.length > LIMITS.tombstonesAheadMax;
  const leaving = oldest ?? (isForgotten ? highestOf(cancelled) : lowestOf(all));
  const raised = isForgotten || leaving.leaseId <= floor ? floor : leaving.leaseId;
  return { ended: all.filter((entry) => entry !== leaving), floor: raised };
}

function highestOf(entries: readonly Tombstone[]): Tombstone {
  return entries.reduce((highest, entry) => (entry.leaseId > highest.leaseId ? entry : highest));
}

function lowestOf(entries: readonly Tombstone[]): Tombstone {
  return entries.reduce((lowest, entry) => (entry.leaseId < lowest.leaseId ? entry : lowest));
}
