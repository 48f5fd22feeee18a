/**
 * Crowds: readers and permits that come, renew and go at the same time. None of them can object to another, as long as nobody takes what
 * those before it in the queue need. So such a change touches its own lease and adds to sums. It commutes: a store may write it over
 * whatever the others have written since, on condition that the core would still decide it, and needs no unchanged version.
 *
 * A grant beside others takes the next token, not the clock's. So it depends on no token that another grant takes meanwhile.
 */
import { LIMITS } from "../limits.js";
import type { LockRecord } from "../record.js";
import type { ClockReading } from "../time.js";
import { nextToken } from "./grant.js";

/** True if readers alone or permits alone hold the key. It may be offered to others too. */
export function isCrowd({ holds, limit, waitSet, run }: LockRecord): boolean {
  const [first] = Object.values(holds);
  if (!first || waitSet || run) return false;
  // Leases that hold a key together have one mode.
  return limit > 1 || first.mode === "shared";
}

/**
 * Returns the token of a grant beside others: the next one, or the clock's if the last grant is long ago. Never below a token that was
 * lost when a table was restored from a backup, because no restore takes as little time as {@link LIMITS.nextTokenMs}.
 */
export function tokenBeside(record: LockRecord, reading: ClockReading): number {
  return isLately(record, reading) ? record.fencingToken + 1 : nextToken(record, reading);
}

/** True if the last token is recent enough to count on from. */
export function isLately({ fencingToken }: LockRecord, { latestMs }: ClockReading): boolean {
  return fencingToken >= latestMs - LIMITS.nextTokenMs;
}
