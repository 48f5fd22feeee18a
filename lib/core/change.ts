/** How a record changes: every change raises the version, and garbage collection waits for the last use. */
import type { Hold, LockRecord, LockPolicy } from "./record.js";
import { toSecondsUp } from "./time.js";
import type { ClockReading } from "./time.js";

/**
 * `record` with these fields and the next version (S2). A record that was collected starts again above
 * every version it had: it changed less than once a millisecond, and time went on.
 */
export function change(record: LockRecord, reading: ClockReading, fields: Partial<Omit<LockRecord, "version">>): LockRecord {
  return { ...record, ...fields, version: (record.version === 0 ? reading.latestMs : record.version) + 1 };
}

/** When a record that `hold` uses may be collected. */
export function ttlAtSec(hold: Pick<Hold, "expiresAtMs" | "marginMs">, policy: LockPolicy): number {
  return toSecondsUp(hold.expiresAtMs + hold.marginMs + policy.retentionMs);
}

/** When a record that was only touched now may be collected: never earlier than before. */
export function touchedTtlAtSec(record: LockRecord, reading: ClockReading, policy: LockPolicy): number {
  return Math.max(record.ttlAtSec, toSecondsUp(reading.latestMs + policy.retentionMs));
}
