/**
 * How leases end, and what is remembered of them (S7). The latest to end stay in a ring with how they
 * ended; an id that leaves the ring raises the floor, and no new lease is granted at or below it. The
 * ring alone resurrects: a duplicate later than eight ends would be granted as new.
 */
import type { LeaseId } from "./lease-id.js";
import { leaseIdTimeMs } from "./lease-id.js";
import { LIMITS } from "./limits.js";
import type { EndedLease, Ending, Hold, LockRecord } from "./record.js";

/** The record as it is before anything happened to its key. */
export const BLANK: LockRecord = {
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
export function floorTimeMs({ floor }: LockRecord): number {
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
  known: Pick<EndedLease, "fencingToken" | "outcome"> = {},
): LockRecord {
  const { [leaseId]: _gone, ...holds } = record.holds;
  const all: readonly EndedLease[] = [{ leaseId, ending, ...known }, ...record.ended];
  const leaving = all.slice(LIMITS.endedRemembered);
  const floor = leaving.reduce((highest, { leaseId: id }) => (id > highest ? id : highest), record.floor);
  return { ...record, holds, ended: all.slice(0, LIMITS.endedRemembered), floor };
}
