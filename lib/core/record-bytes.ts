/**
 * How many bytes a record takes in the table: an upper bound, by DynamoDB's own rules, of what a store writes of it.
 * Every write of a key is paid by this size, so it has a bound (transition.ts). The bytes that a release, a break, a
 * cancel or a renewal without new meta may add are counted from the start: none of them makes a record larger.
 */
import { LIMITS } from "./limits.js";
import type { Hold, LockRecord, Payload, Run, Waiter } from "./record.js";

const encoder = new TextEncoder();

/** The longest primary key, the ring when it is full, and every other attribute that is no holder's, waiter's or run's. */
const FIXED_BYTES = 1222;
/** A hold, less its owner, scope and meta. */
const HOLD_BYTES = 142;
const SCOPE_BYTES = 3;
const META_BYTES = 3;
/** A waiter that wants the key for itself, less its owner; and what else there may be to say of one. */
const WAITER_BYTES = 137;
const SHARED_BYTES = 6;
const PERMITS_BYTES = 5;
const PRIORITY_BYTES = 5;
/** A run, less its fingerprint, its checkpoint and what came of it; and a payload, less its digest and text. */
const RUN_BYTES = 113;
const PAYLOAD_BYTES = 42;

/** The queue's bound on size can't be met by count alone when owners are longer than this. */
export const SHORT_OWNER_BYTES = Math.floor(LIMITS.queueBytes / LIMITS.waitersMax) - WAITER_BYTES;

/** The bytes of a text in the table. */
export function bytesOf(text: string): number {
  return encoder.encode(text).length;
}

/** The most bytes that `record` takes in the table, its key included. */
export function recordBytes({ holds, offers, waiters, run }: LockRecord): number {
  const held = Object.values(holds).reduce((sum, hold) => sum + holdBytes(hold), 0);
  // An offer takes less than the waiter that it is made to.
  return FIXED_BYTES + held + waitersBytes(offers) + waitersBytes(waiters) + (run ? runBytes(run) : 0);
}

/** The most bytes that these waiters take. */
export function waitersBytes(waiters: readonly Pick<Waiter, "owner" | "mode" | "permits" | "priority">[]): number {
  return waiters.reduce((sum, { owner, mode, permits, priority }) => {
    const said = (mode === "shared" ? SHARED_BYTES : 0) + (permits > 1 ? PERMITS_BYTES : 0) + (priority > 0 ? PRIORITY_BYTES : 0);
    return sum + WAITER_BYTES + bytesOf(owner) + said;
  }, 0);
}

/** Whether a queue might not fit beside the rest of the record: then nobody is queued without a look at it. */
export function isCrowded(record: LockRecord): boolean {
  return recordBytes({ ...record, waiters: [] }) > LIMITS.recordBytes - LIMITS.queueBytes;
}

function holdBytes({ owner, scope, meta }: Hold): number {
  const said = (scope === undefined ? 0 : SCOPE_BYTES + bytesOf(scope)) + (meta ? META_BYTES + bytesOf(JSON.stringify(meta)) : 0);
  return HOLD_BYTES + bytesOf(owner) + said;
}

function runBytes({ fingerprint, checkpoint, outcome }: Run): number {
  return RUN_BYTES + bytesOf(fingerprint) + payloadBytes(checkpoint) + payloadBytes(outcome?.payload);
}

function payloadBytes(payload: Payload | undefined): number {
  return payload ? PAYLOAD_BYTES + bytesOf(payload.digest) + bytesOf(payload.text ?? "") : 0;
}
