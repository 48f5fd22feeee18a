/**
 * Conclude: the outcome of a run, recorded only by the lease that still holds it. Past its lease but not
 * taken over, it still does: ownership never changed. A zombie that wakes after a takeover is told so,
 * and what it found is not recorded.
 */
import { endedEvent } from "../lock/grant.js";
import { digestOf } from "../canonical.js";
import { change } from "../change.js";
import type { Complete, Decision, LeaseEvent } from "../commands.js";
import { endLease, holdOf } from "../lock/tombstones.js";
import { refuse } from "../errors.js";
import type { LockRecord, LockPolicy, Outcome, Run } from "../record.js";
import { completedTtlAtSec, isStored, isOver, refuseUnkept } from "./run.js";
import type { ClockReading } from "../time.js";
import { isLive } from "../lock/expiry.js";
import { leaseLost } from "../lock/views.js";

/** Decides an outcome: recorded, recorded before, or why not. */
export function complete(record: LockRecord | undefined, command: Complete, reading: ClockReading, policy: LockPolicy): Decision<Complete> {
  const { leaseId, principal, state, payload } = command;
  const hold = record && holdOf(record, leaseId);
  if (!record?.run || !hold) return completeWithoutHold(record, command, reading);
  if (hold.principal !== principal) return { answer: refuse("forbidden"), events: [] };
  if (payload && !isStored(payload)) return { answer: refuseUnkept(), events: [] };

  const run = completed(record.run, command, reading);
  const ending = isLive(hold, reading) ? "released" : "expired";
  const next = change(endLease(record, leaseId, ending, reading, { outcome: outcomeDigest(command) }), reading, {
    run,
    ttlAtSec: completedTtlAtSec(record, run.outcome?.keptUntilMs ?? 0, reading, policy),
  });
  const { owner, fencingToken } = hold;
  const recorded: LeaseEvent = { event: "recorded", leaseId, owner, principal, fencingToken, attempt: run.attempt, outcome: state };
  return { answer: { ok: true, how: "recorded" }, next, events: [endedEvent(leaseId, hold, ending, reading), recorded] };
}

/** The run after its attempt ended. A checkpoint is for the next attempt; when it is over, there is none. */
function completed(run: Run, { leaseId, principal, state, payload, omitted }: Complete, reading: ClockReading): Run {
  const { checkpoint, ...rest } = run;
  const isFinal = state !== "retry";
  const outcome: Outcome = {
    recordedBy: leaseId,
    principal,
    ...(payload && { payload }),
    ...(omitted && { omitted }),
    ...(isFinal && { keptUntilMs: reading.latestMs + run.keepResultMs }),
  };
  return { ...rest, state, outcome, ...(!isFinal && checkpoint && { checkpoint }) };
}

/**
 * What a lease that no longer holds the run is told; nothing changes. The same outcome sent again is
 * recorded, and told once more for a log that missed it; another one is refused, for what others were told
 * must not change; a zombie has lost.
 */
export function completeWithoutHold(record: LockRecord | undefined, command: Complete, reading: ClockReading): Decision<Complete> {
  const { leaseId, principal, state, payload, omitted } = command;
  const { run } = record ?? {};
  const replay: LeaseEvent = { event: "recorded", leaseId, owner: "", principal, outcome: state, repeated: true };
  if (run?.outcome?.recordedBy !== leaseId) {
    const before = record?.ended.find((ended) => ended.leaseId === leaseId);
    if (before?.outcome === outcomeDigest(command)) return { answer: { ok: true, how: "replayed" }, events: [replay] };
    return { answer: leaseLost(record, leaseId, reading), events: [] };
  }
  const { outcome } = run;
  if (outcome.principal !== principal) return { answer: refuse("forbidden"), events: [] };
  const recorded = isOver(run) ? run.state : "retry";
  const isSame = recorded === state && outcome.payload?.digest === payload?.digest && outcome.omitted === omitted;
  if (!isSame) return { answer: refuse("outcome-differs"), events: [] };
  const attempt = recorded === run.state ? { attempt: run.attempt } : {};
  return { answer: { ok: true, how: "replayed" }, events: [{ ...replay, ...attempt }] };
}

/** By what a lease's outcome is told from any other of its own: who said it, and what. */
export function outcomeDigest({ principal, state, payload, omitted }: Complete): string {
  return digestOf([principal, state, payload?.digest ?? null, omitted === true]).slice(0, 11);
}
