/**
 * The lock as a state machine: (record, command, clocks) → the answer and the next record. Pure, and the only place
 * where the protocol's rules are decided. Stores carry out its decisions, and each form of a store must give the
 * same result. S1, R1, L1 and so on are the properties of docs/guarantees.md.
 */
import { acquire } from "./lock/acquire.js";
import { breakHold } from "./lock/break.js";
import { changeMode } from "./lock/change-mode.js";
import type { Command, Decision } from "./commands.js";
import { complete } from "./run/complete.js";
import { type Refusal, refuse } from "./errors.js";
import { LIMITS } from "./limits.js";
import { recordBytes, renewalUnits } from "./record-bytes.js";
import type { LockRecord, LockPolicy } from "./record.js";
import { release } from "./lock/release.js";
import { renew } from "./lock/renew.js";
import { reset } from "./run/reset.js";
import { start } from "./run/start.js";
import type { ClockReading } from "./time.js";
import { transfer } from "./lock/transfer.js";
import { notify, waitForCondition } from "./lock/condition.js";

/** Decides `command` on `record` (undefined: the key has no item). */
export function transition<C extends Command>(
  record: LockRecord | undefined,
  command: C,
  reading: ClockReading,
  policy: LockPolicy,
): Decision<C>;
export function transition(record: LockRecord | undefined, command: Command, reading: ClockReading, policy: LockPolicy): Decision {
  const decision = decided(record, command, reading, policy);
  const refusal = decision.next && (refuseGrowth(record, decision.next, command) ?? refuseHolder(record, decision.next, command, reading));
  return refusal ? { answer: refusal, events: [] } : decision;
}

/** Refuses a next record that is both above the size limit and larger than the present one. Shrinking is always allowed. */
function refuseGrowth(record: LockRecord | undefined, next: LockRecord, { key }: Command): Refusal | undefined {
  const bytes = recordBytes(next);
  const before = record ? recordBytes(record) : 0;
  if (bytes <= LIMITS.recordBytes || bytes <= before) return undefined;
  return refuse("key-full", {
    retryAfterMs: LIMITS.pollMaxMs,
    detail: `The holders and waiters of ${key} take ${before} of ${LIMITS.recordBytes} bytes, and this asks for ${bytes - before} more`,
  });
}

/**
 * Refuses one more holder whose heartbeats the key's item would not take beside those of the others. One that was offered the key is none: a
 * holder left for it, and a store writes its claim by the offer alone. Holders that join at once don't see each other, so a store may
 * exceed the bound by as many.
 */
function refuseHolder(
  record: LockRecord | undefined,
  next: LockRecord,
  { type, key }: Command,
  reading: ClockReading,
): Refusal | undefined {
  const holders = holdersOf(next);
  if (type !== "acquire" || !record || holders <= Math.max(1, holdersOf(record))) return undefined;
  const units = renewalUnits(next, reading);
  if (units <= LIMITS.renewalUnits) return undefined;
  return refuse("key-full", {
    retryAfterMs: LIMITS.pollMaxMs,
    detail: `The heartbeats of ${holders} leases of ${key} would take ${Math.ceil(units)} write units a second, and its item has ${LIMITS.renewalUnits} for them: ask for a longer lease`,
  });
}

function holdersOf({ holds, offers }: LockRecord): number {
  return Object.keys(holds).length + offers.length;
}

function decided(record: LockRecord | undefined, command: Command, reading: ClockReading, policy: LockPolicy): Decision {
  switch (command.type) {
    case "acquire":
      return acquire(record, command, reading, policy);
    case "renew":
      return renew(record, command, reading, policy);
    case "release":
      return release(record, command, reading, policy);
    case "wait":
      return waitForCondition(record, command, reading, policy);
    case "notify":
      return notify(record, command, reading, policy);
    case "transfer":
      return transfer(record, command, reading, policy);
    case "break":
      return breakHold(record, command, reading, policy);
    case "mode":
      return changeMode(record, command, reading, policy);
    case "start":
      return start(record, command, reading, policy);
    case "complete":
      return complete(record, command, reading, policy);
    case "reset":
      return reset(record, command, reading, policy);
  }
}
