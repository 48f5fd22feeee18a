/**
 * The lists of an item that its record doesn't show as they are stored:
 *
 *  - `q`, `qi`: a place of the queue that its waiter left stays, empty and with a mark. So nobody else's place moves, and those who leave
 *    their places at the same time don't race each other. A write of the whole queue drops it.
 *  - `rl`: the leases that ended and have no tombstone yet. The next write of the whole record makes tombstones of them, and so does the
 *    write of one that joins a crowd once there are many.
 *
 * No decision depends on them. They are known by the record that was read, and by no copy of it.
 */
import { endLease } from "../../core/lock/tombstones.js";
import type { LeaseId } from "../../core/lease-id.js";
import type { LockRecord } from "../../core/record.js";
import { leaseIdOf, storedId } from "./stored-id.js";

/** The mark of a place that was left, in `qi`; and after the leaseId of a waiter that left without the key, in `rl`. */
export const LEFT = "-";
/** The entry of a place that was left, in `q`. It is neither alive nor dead: no release offers it the key, and no renewal skips it. */
export const NO_ENTRY = {};

/**
 * Returns what stands for a waiter in `qi`: the end of its leaseId, which is random. The whole id is in its entry. Two that end alike are told
 * apart by a read.
 */
export function markOf(leaseId: LeaseId): string {
  return storedId(leaseId).slice(-MARK_CHARS);
}

const MARK_CHARS = 9;

/** The bytes of a place that was left. */
export const LEFT_BYTES = 6;

export interface Lists {
  /** The leaseId at each place of the queue, or {@link LEFT}. */
  readonly places: readonly string[];
  /** The leases that ended, as they are stored, in the order of their ends. */
  readonly listed: readonly string[];
}

const LISTS = new WeakMap<LockRecord, Lists>();

/** Returns the lists of the item with this record. A record that is written as a whole has no left place, and nobody is listed. */
export function listsOf(record: LockRecord): Lists {
  return LISTS.get(record) ?? { places: record.waiters.map(({ leaseId }) => leaseId), listed: [] };
}

/** Returns the record of an item with these lists. */
export function withLists(record: LockRecord, lists: Lists): LockRecord {
  LISTS.set(record, lists);
  return record;
}

/** Returns the bytes of these entries of `rl`. */
export function listBytes(entries: readonly string[]): number {
  return entries.reduce((sum, entry) => sum + 1 + entry.length, 0);
}

/** True if a waiter has left a place that is still stored. */
export function hasLeftPlaces(record: LockRecord): boolean {
  return listsOf(record).places.includes(LEFT);
}

/** Makes tombstones of the listed leases, in the order in which they ended. */
export function withListed(record: LockRecord, listed: readonly string[], endedAtMs: number): LockRecord {
  const reading = { earliestMs: endedAtMs, latestMs: endedAtMs };
  return listed.reduce((now, id, index) => {
    if (id === LEFT) return now;
    return endLease(now, leaseIdOf(id), listed[index + 1] === LEFT ? "cancelled" : "released", reading);
  }, record);
}
