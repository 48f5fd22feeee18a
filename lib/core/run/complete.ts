/**
 * Complete: records the outcome of a run, only for the lease that still holds it. A lease that expired but was not
 * taken over still holds the run, since ownership never changed. A zombie that wakes after a takeover is refused, and
 * its result is not recorded.
 */
import { endedEvent } from "../lock/grant.js";
import { digestOf } from "../canonical.js";
import { change } from "../change.js";
import type { Complete, Decision, LeaseEvent } from "../commands.js";
import { endLease, holdOf } from "../lock/tombstones.js";
import { refuse } from "../errors.js";
import { isSameLeaseId } from "../lease-id.js";
import type { Hold, LockRecord, LockPolicy, Outcome, Run } from "../record.js";
import { completedTtlAtSec, isStored, isOver, refuseUnkept } from "./run.js";
import type { ClockReading } from "../time.js";
import { isLive } from "../lock/expiry.js";
import { errorNameOf, leaseLost } from "../lock/views.js";

/** Decides a completion: recorded, replayed or refused. */
export function complete(record: LockRecord | undefined, command: Complete, reading: ClockReading, policy: LockPolicy): Decision<Complete> {
  const { leaseId, principal, payload } = command;
  const hold = record && holdOf(record, leaseId);
  if (!record?.run || !hold) return completeWithoutHold(record, command, reading);
  if (hold.principal !== principal) return { answer: refuse("forbidden"), events: [] };
  if (payload && !isStored(payload)) return { answer: refuseUnkept(), events: [] };

  const run = completed(record.run, hold, command, reading);
  const ending = isLive(hold, reading) ? "released" : "expired";
  const next = change(endLease(record, leaseId, ending, reading, { outcome: outcomeDigest(command) }), reading, {
    run,
    ttlAtSec: completedTtlAtSec(record, run.outcome.keptUntilMs ?? 0, reading, policy),
  });
  const { owner, fencingToken } = hold;
  const recorded: LeaseEvent = { ...recordedEvent(command), owner, fencingToken, attempt: run.attempt };
  return { answer: { ok: true, how: "recorded" }, next, events: [endedEvent(leaseId, hold, ending, reading), recorded] };
}

/** Returns the run after its attempt ended. Its checkpoint stays for a retry only. */
function completed(
  run: Run,
  { owner, grantedAtMs: startedAtMs }: Hold,
  { leaseId, principal, state, payload, omitted }: Complete,
  reading: ClockReading,
): Run & { readonly outcome: Outcome } {
  const { checkpoint, ...rest } = run;
  const isFinal = state !== "retry";
  const outcome: Outcome = {
    recordedBy: leaseId,
    principal,
    owner,
    startedAtMs,
    endedAtMs: reading.latestMs,
    ...(payload && { payload }),
    ...(omitted && { omitted }),
    ...(isFinal && { keptUntilMs: reading.latestMs + run.keepResultMs }),
  };
  return { ...rest, state, outcome, ...(!isFinal && checkpoint && { checkpoint }) };
}

/**
 * Answers a lease that no longer holds the run; nothing changes. The same outcome sent again is a replay, and is logged
 * again for a log that missed it. A different outcome is refused, because other callers may have read the first. A
 * zombie has lost its lease.
 */
export function completeWithoutHold(record: LockRecord | undefined, command: Complete, reading: ClockReading): Decision<Complete> {
  const { leaseId, principal, state, payload, omitted } = command;
  const { run } = record ?? {};
  const replay: LeaseEvent = { ...recordedEvent(command), repeated: true };
  if (!run?.outcome || !isSameLeaseId(run.outcome.recordedBy, leaseId)) {
    const before = record?.tombstones.find((ended) => isSameLeaseId(ended.leaseId, leaseId));
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

function recordedEvent({ leaseId, principal, state, payload }: Complete): LeaseEvent {
  const errorName = state === "succeeded" ? undefined : errorNameOf(payload?.text);
  return { event: "recorded", leaseId, owner: "", principal, outcome: state, ...(errorName !== undefined && { errorName }) };
}

/** Returns the digest that identifies a lease's outcome: its principal and its content. */
export function outcomeDigest({ principal, state, payload, omitted }: Complete): string {
  // Stryker disable next-line EqualityOperator: either way, an outcome without its value has another digest than one with it
  return digestOf([principal, state, payload?.digest ?? null, omitted === true]).slice(0, 11);
}
