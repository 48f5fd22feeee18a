/**
 * Reset: an operator deletes a run that is over or was abandoned, so that the next start begins anew. It undoes no effects. With the run's
 * token, a repeated reset spares a run that began since.
 */
import { endedEvent } from "../lock/grant.js";
import { change, touchedTtlAtSec } from "../change.js";
import type { Decision, LeaseEvent, Reset } from "../commands.js";
import { EMPTY_RECORD, endLease } from "../lock/tombstones.js";
import { refuse } from "../errors.js";
import type { LockRecord, LockPolicy } from "../record.js";
import { isRunning } from "./run.js";
import type { ClockReading } from "../time.js";
import { freeInMs } from "../lock/views.js";

/** Decides a reset: the next start is a first attempt. Refused while the work runs. */
export function reset(
  record: LockRecord | undefined,
  { key, fencingToken }: Reset,
  reading: ClockReading,
  policy: LockPolicy,
): Decision<Reset> {
  if (!record) return { answer: refuse("not-found", { detail: `Nothing was run under ${key}` }), events: [] };
  if (isRunning(record, reading)) return { answer: refuse("run-in-progress", { retryAfterMs: freeInMs(record, reading) }), events: [] };
  const { run, ...rest } = record;
  if (!run) return { answer: { ok: true }, events: [{ event: "reset", leaseId: "", owner: "", principal: "", repeated: true }] };
  if (fencingToken !== undefined && fencingToken !== record.fencingToken)
    return { answer: refuse("other-hold", { detail: `${key} was started again since` }), events: [] };

  let without: LockRecord = rest;
  const ended: LeaseEvent[] = [];
  for (const [leaseId, hold] of Object.entries(record.holds)) {
    without = endLease(without, leaseId, "broken", reading, { fencingToken: hold.fencingToken });
    ended.push(endedEvent(leaseId, hold, "broken", reading));
  }
  const next = change(without, reading, { ttlAtSec: touchedTtlAtSec(EMPTY_RECORD, reading, policy) });
  const wasReset: LeaseEvent = {
    event: "reset",
    leaseId: run.outcome?.recordedBy ?? "",
    owner: "",
    principal: "",
    attempt: run.attempt,
  };
  return { answer: { ok: true }, next, events: [...ended, wasReset] };
}
