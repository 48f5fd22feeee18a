/**
 * The lists of an item that its record doesn't show as they are stored:
 *
 *  - `q`, `qi`: a place of the queue that its waiter left stays, empty and with a mark. So nobody else's place moves, and those who leave
 *    their places at the same time don't race each other. A write of the whole queue drops it.
 *  - `rl`: the leases that ended and have no tombstone yet. The next write of the whole record makes tombstones of them, and so does the
 *    write of one that joins a crowd once there are many.
 *
 * No decision depends on them.
 */
import { EMPTY_RECORD, endLease } from "../../core/lock/tombstones.js";
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

/** An item: its record, and the lists that the record doesn't show. */
export interface Stored {
  readonly record: LockRecord;
  readonly lists: Lists;
}

/** Returns the item of a record that is written as a whole: no place is left, and nobody is listed. */
export function wholly(record: LockRecord): Stored {
  return { record, lists: { places: record.waiters.map(({ leaseId }) => leaseId), listed: [] } };
}

/** The item of a key that has none. */
export const NOTHING: Stored = wholly(EMPTY_RECORD);

/** Returns the bytes of these entries of `rl`. */
export function listBytes(entries: readonly string[]): number {
  return entries.reduce((sum, entry) => sum + 1 + entry.length, 0);
}

/** True if a waiter has left a place that is still stored. */
export function hasLeftPlaces({ lists }: Stored): boolean {
  return lists.places.includes(LEFT);
}

/** Makes tombstones of the listed leases, in the order in which they ended. */
export function withListed(record: LockRecord, listed: readonly string[], endedAtMs: number): LockRecord {
  const reading = { earliestMs: endedAtMs, latestMs: endedAtMs };
  return listed.reduce((now, id, index) => {
    if (id === LEFT) return now;
    return endLease(now, leaseIdOf(id), listed[index + 1] === LEFT ? "cancelled" : "released", reading);
  }, record);
}
