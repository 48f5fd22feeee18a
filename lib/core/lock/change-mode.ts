/**
 * Change of mode: the only reader becomes the writer, or the writer a reader, with a new token. The request names the
 * lease's token before the change, so that a late duplicate of an earlier change has no effect (S11). If two readers
 * ask, the first waits until the other leaves, and the second gets a conflict, so they don't deadlock.
 */
import { change, ttlAtSec } from "../change.js";
import type { ChangeMode, Decision, LeaseEvent } from "../commands.js";
import { holdOf } from "./tombstones.js";
import { type Refusal, refuse } from "../errors.js";
import { isLive } from "./expiry.js";
import { nextToken, refuseLocked, takeOver } from "./grant.js";
import { isUpgrading, occupantsOf } from "./compatibility.js";
import { DEFAULTS } from "../limits.js";
import { advanceQueue } from "./queue.js";
import type { Hold, LockRecord, LockPolicy } from "../record.js";
import type { ClockReading } from "../time.js";
import { leaseLost, leaseView } from "./views.js";

/** Decides a change of mode: the lease with a new token, or a refusal. */
export function changeMode(
  record: LockRecord | undefined,
  command: ChangeMode,
  reading: ClockReading,
  policy: LockPolicy,
): Decision<ChangeMode> {
  const { key, leaseId, principal, mode } = command;
  const hold = record && holdOf(record, leaseId);
  if (!record || !hold) return { answer: leaseLost(record, leaseId, reading), events: [] };
  const refusal = refuseChange(record, hold, command, reading);
  if (refusal) return { answer: refusal, events: [] };
  if (hold.mode === mode)
    return { answer: { ok: true, how: "replayed", lease: leaseView(key, leaseId, hold, record, reading) }, events: [] };
  if (occupantsOf(record, reading).length > 1) return othersRemain(record, command, reading);

  const { rest, ended } = takeOver(record, reading);
  const { upgrading: _done, ...present } = rest;
  const fencingToken = nextToken(record, reading);
  const { notified, owner } = hold;
  // The lease's notifies go on counting, so that a late duplicate of an earlier one wakes nobody.
  const counted = notified?.fencingToken === hold.fencingToken && { notified: { ...notified, fencingToken } };
  const changed: Hold = { ...hold, principal, mode, fencingToken, ...counted };
  const now = advanceQueue({ ...present, holds: { ...present.holds, [leaseId]: changed } }, reading);
  const next = change(now.record, reading, {
    fencingToken,
    fenceFloor: mode === "exclusive" ? fencingToken : present.fenceFloor,
    ttlAtSec: Math.max(present.ttlAtSec, ttlAtSec(changed, policy)),
  });
  const event: LeaseEvent = { event: "changed", leaseId, owner, principal, fencingToken, mode };
  const lease = leaseView(key, leaseId, changed, next, reading);
  return { answer: { ok: true, how: "changed", lease }, next, events: [...ended, event, ...now.events] };
}

function refuseChange(
  record: LockRecord,
  hold: Hold,
  { principal, mode, fencingToken }: ChangeMode,
  reading: ClockReading,
): Refusal | undefined {
  if (hold.principal !== "" && hold.principal !== principal) return refuse("forbidden");
  if (hold.broken) return refuse("lease-lost", { reason: "broken" });
  if (!isLive(hold, reading)) return refuse("lease-lost", { reason: "expired" });
  if (record.limit > 1) return refuse("limit-mismatch", { detail: "A permit of a semaphore has no mode to change" });
  if (hold.mode !== mode && hold.fencingToken !== fencingToken) return refuse("token-mismatch");
  return undefined;
}

/**
 * Refuses while other readers, or other reentrant holds of its scope, hold the key. The record notes the first reader
 * that asked, for as long as it repeats its request. Meanwhile no new reader is admitted.
 */
function othersRemain(record: LockRecord, { leaseId, mode }: ChangeMode, reading: ClockReading): Decision<ChangeMode> {
  if (mode === "shared") return { answer: refuseLocked(record, reading, "Another reentrant hold of the same scope remains"), events: [] };
  if (record.upgrading?.leaseId !== leaseId && isUpgrading(record, reading)) {
    const detail = "Another reader waits to become the writer, and this one is in its way: release it";
    return { answer: refuse("upgrade-conflict", { detail }), events: [] };
  }
  const next = change(record, reading, { upgrading: { leaseId, untilMs: reading.latestMs + DEFAULTS.waiterTtlMs } });
  return { answer: refuseLocked(record, reading, "Other readers hold the key"), next, events: [] };
}
