/**
 * The size of a record in the table: an upper bound of the bytes that a store writes for it, by DynamoDB's own rules.
 * DynamoDB charges every write of a key by this size, so it has a limit (transition.ts). The bytes that a release, a
 * break, a cancel or a renewal without new meta may add are counted from the start, so none of them makes a record
 * larger. Each number here is a sum over attributes of lib/store/dynamo/layout.ts: test/store/record-bytes.test.ts holds it to the items.
 */
import { DETAILS } from "./details.js";
import { LIMITS } from "./limits.js";
import { isLive } from "./lock/expiry.js";
import { given, pick } from "./members.js";
import type { Hold, LockRecord, Payload, Run, Waiter } from "./record.js";
import { renewAfterMs } from "./renewal.js";
import type { ClockReading } from "./time.js";

const encoder = new TextEncoder();

/** The bytes that one write unit of DynamoDB pays for. */
const WRITE_UNIT_BYTES = 1024;
/** The longest primary key, a full set of tombstones, and every attribute that no holder, waiter or run owns. */
const FIXED_BYTES = 1141;
/** A hold without its owner, scope and meta. */
const HOLD_BYTES = 128;
/** The token of a reader or a permit that joined others, which stands apart from its hold. */
const JOINED_BYTES = 25;
const SCOPE_BYTES = 3;
/** The name and the kind of a detail. */
const DETAIL_BYTES = 3;
/** A waiter for an exclusive lease, without its owner; then its optional attributes. */
const WAITER_BYTES = 96;
const SHARED_BYTES = 6;
const PERMITS_BYTES = 5;
const PRIORITY_BYTES = 5;
const CONDITION_BYTES = 2;
/** The marks of a waiter that sleeps, in its place and in its offer. */
const ASLEEP_BYTES = 8;
/** The number of those that sleep. */
const SLEEPERS_BYTES = 4;
/** A hold's last notify. Each member of the wait set has room for it, so a notify never makes a record larger. */
const NOTIFIED_BYTES = 32;
/** The order of a member of the wait set, and the attribute itself. */
const MEMBER_BYTES = 12;
/** A run without its fingerprint, checkpoint and outcome; and a payload without its digest and text. */
const RUN_BYTES = 99;
const PAYLOAD_BYTES = 42;
/** The owner of an outcome without its text, and two times: less than the hold that ends with it. */
const RECORDED_BYTES = 24;

/** The most bytes of a waiter for which the limit on the number of waiters also keeps the queue within its limit of bytes. */
const WAITER_SHARE_BYTES = Math.floor(LIMITS.queueBytes / LIMITS.waitersMax);
/** The longest owner, in bytes, of a waiter for an exclusive lease of that size. */
export const SHORT_OWNER_BYTES = WAITER_SHARE_BYTES - WAITER_BYTES;

/**
 * Returns how many waiters that don't sleep surely fit beside so many that do, if none of all is longer than its share: as many as have a
 * share left, or those for whom bytes are kept.
 */
export function placesBeside(asleep: number): number {
  return Math.max(LIMITS.waitersMax - asleep, Math.floor(LIMITS.pollersBytes / WAITER_SHARE_BYTES));
}

/** The size of a record without its queue above which a full queue might not fit. */
export const CROWDED_BYTES = LIMITS.recordBytes - LIMITS.queueBytes;

/** Returns the size of a text in the table, in bytes. */
export function bytesOf(text: string): number {
  return encoder.encode(text).length;
}

/** Returns the most bytes that `record` takes in the table, its key included. */
export function recordBytes({ holds, limit, offers, waiters, waitSet = [], run }: LockRecord): number {
  const held = Object.values(holds).reduce((sum, hold) => sum + holdBytes(hold, limit), 0);
  // An offer takes fewer bytes than its waiter.
  const members = waitersBytes(waitSet) + waitSet.length * (MEMBER_BYTES + NOTIFIED_BYTES);
  const sleepers = waiters.some(({ asleep }) => asleep) ? SLEEPERS_BYTES : 0;
  return FIXED_BYTES + held + waitersBytes(offers) + waitersBytes(waiters) + sleepers + members + (run ? runBytes(run) : 0);
}

/** The parts of a waiter on which its size depends. */
type Sized = Pick<Waiter, "owner" | "mode" | "permits" | "priority" | "condition" | "asleep">;

/** Returns the most bytes that these waiters take. */
export function waitersBytes(waiters: readonly Sized[]): number {
  return waiters.reduce((sum, { owner, mode, permits, priority, condition, asleep }) => {
    const said = (mode === "shared" ? SHARED_BYTES : 0) + (permits > 1 ? PERMITS_BYTES : 0) + (priority > 0 ? PRIORITY_BYTES : 0);
    const woken = condition === undefined ? 0 : CONDITION_BYTES + bytesOf(condition);
    return sum + WAITER_BYTES + bytesOf(owner) + said + woken + (asleep ? ASLEEP_BYTES : 0);
  }, 0);
}

/** True if a waiter takes more than its part of the queue's bytes. */
export function isLong(waiter: Sized): boolean {
  return waitersBytes([waiter]) > WAITER_SHARE_BYTES;
}

/** True if a full queue might not fit beside the rest of the record. Then no waiter is appended without a read. */
export function isCrowded(record: LockRecord): boolean {
  return recordBytes({ ...record, waiters: [] }) > CROWDED_BYTES;
}

/** Returns the most bytes that a hold takes on a key of this limit. */
export function holdBytes(hold: Hold, limit: number): number {
  const { mode, scope, notified } = hold;
  const { owner, ...optional } = pick(hold, DETAILS);
  const details = Object.values(given(optional)).reduce((sum, detail) => sum + DETAIL_BYTES + bytesOf(JSON.stringify(detail)), 0);
  const said = (scope === undefined ? 0 : SCOPE_BYTES + bytesOf(scope)) + details;
  const joined = limit > 1 || mode === "shared" ? JOINED_BYTES : 0;
  return HOLD_BYTES + bytesOf(owner) + said + joined + (notified ? NOTIFIED_BYTES : 0);
}

/** Returns the write units a second that the heartbeats of the live leases take. DynamoDB charges each by the size of the record. */
export function renewalUnits(record: LockRecord, reading: ClockReading): number {
  const bytes = recordBytes(record);
  const perMs = Object.values(record.holds)
    .filter((hold) => isLive(hold, reading))
    .reduce((sum, { leaseMs }) => sum + 1 / renewAfterMs(leaseMs, bytes), 0);
  return 1000 * perMs * Math.ceil(bytes / WRITE_UNIT_BYTES);
}

function runBytes({ fingerprint, checkpoint, outcome }: Run): number {
  const recorded = outcome ? RECORDED_BYTES + bytesOf(outcome.owner) + payloadBytes(outcome.payload) : 0;
  return RUN_BYTES + bytesOf(fingerprint) + payloadBytes(checkpoint) + recorded;
}

function payloadBytes(payload: Payload | undefined): number {
  return payload ? PAYLOAD_BYTES + bytesOf(payload.digest) + bytesOf(payload.text ?? "") : 0;
}
