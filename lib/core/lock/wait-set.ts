/**
 * The wait set of a key: the leases that wait for a condition. It is beside the queue, so nothing that reads only the queue can hand the
 * key to a member. A notify moves members to the queue, and from then on they are waiters like all others.
 */
import { type LeaseId, isSameLeaseId } from "../lease-id.js";
import type { LockRecord, Member } from "../record.js";
import type { ClockReading } from "../time.js";
import { isWaiting } from "./expiry.js";

/** Returns the members of the wait set, in order. */
export function waitSetOf({ waitSet = [] }: LockRecord): readonly Member[] {
  return waitSet;
}

/** Returns the member `leaseId` of the wait set, if there is one. */
export function memberOf(record: LockRecord, leaseId: LeaseId): Member | undefined {
  return waitSetOf(record).find((member) => isSameLeaseId(member.leaseId, leaseId));
}

/** Returns the record with this wait set. */
export function withWaitSet(record: LockRecord, members: readonly Member[]): LockRecord {
  const { waitSet: _before, ...rest } = record;
  return members.length > 0 ? { ...rest, waitSet: members } : rest;
}

/** Returns the members that were seen in time, in order. */
export function liveMembers(record: LockRecord, reading: ClockReading): readonly Member[] {
  return waitSetOf(record).filter((member) => isWaiting(member, reading));
}
