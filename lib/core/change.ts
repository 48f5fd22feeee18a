/** Changes of a record: every change raises the version, and extends the record's life by its last use. */
import type { Hold, LockRecord, LockPolicy } from "./record.js";
import { type ClockReading, toSecondsUp } from "./time.js";

/**
 * Returns `record` with these fields and the next version (S2). A record that was collected restarts above every
 * version it had: it changed less than once a millisecond, and the clock has moved on.
 */
export function change(record: LockRecord, reading: ClockReading, fields: Partial<Omit<LockRecord, "version">>): LockRecord {
  return { ...record, ...fields, version: (record.version === 0 ? reading.latestMs : record.version) + 1 };
}

/** Returns the time from which a record with `hold` may be collected, in epoch seconds. */
export function ttlAtSec(hold: Pick<Hold, "expiresAtMs" | "marginMs">, policy: LockPolicy): number {
  return toSecondsUp(hold.expiresAtMs + hold.marginMs + policy.retentionMs);
}

/** Returns the time from which a record that was only touched now may be collected: never earlier than before. */
export function touchedTtlAtSec(record: LockRecord, reading: ClockReading, policy: LockPolicy): number {
  return Math.max(record.ttlAtSec, toSecondsUp(reading.latestMs + policy.retentionMs));
}

/**
 * Returns the time that a keep-alive of the wait set gives a record, or undefined if more than half of the retention is left: a keep-alive
 * leaves the version alone, so it changes the time seldom. In the queue a waiter needs none, since it waits for a lease that does the same.
 */
export function keptTtlAtSec({ ttlAtSec }: LockRecord, { latestMs }: ClockReading, { retentionMs }: LockPolicy): number | undefined {
  return ttlAtSec * 1000 > latestMs + retentionMs / 2 ? undefined : toSecondsUp(latestMs + retentionMs);
}
