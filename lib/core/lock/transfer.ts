/** Transfer: the hold goes to a new leaseId with a new token, so the old holder's writes are fenced. */
import { endedEvent, nextToken, refuseLocked, refuseNewLease } from "./grant.js";
import { holdCount, isAlone } from "./compatibility.js";
import { change, ttlAtSec } from "../change.js";
import type { Decision, Transfer } from "../commands.js";
import { endLease, endingOf, holdOf } from "./tombstones.js";
import { refuse } from "../errors.js";
import { isInRecord } from "./places.js";
import type { Hold, LockRecord, LockPolicy } from "../record.js";
import type { ClockReading } from "../time.js";
import { isLive } from "./expiry.js";
import { leaseLost, leaseView } from "./views.js";

/** Decides a transfer: the new lease with a new token, or a refusal. */
export function transfer(record: LockRecord | undefined, command: Transfer, reading: ClockReading, policy: LockPolicy): Decision<Transfer> {
  const { key, leaseId, principal, toLeaseId } = command;
  const hold = record && holdOf(record, leaseId);
  if (!record || !hold) return repeated(record, command, reading) ?? { answer: leaseLost(record, leaseId, reading), events: [] };
  if (hold.principal !== "" && hold.principal !== principal) return { answer: refuse("forbidden"), events: [] };
  if (hold.broken) return { answer: refuse("lease-lost", { reason: "broken" }), events: [] };
  if (!isLive(hold, reading)) return { answer: refuse("lease-lost", { reason: "expired" }), events: [] };
  if (holdCount(record, hold, reading) > 1)
    return { answer: refuseLocked(record, reading, "Another reentrant hold of the same scope remains"), events: [] };
  const over = isInRecord(record, toLeaseId) ? refuse("lease-reused") : refuseNewLease(record, toLeaseId, reading);
  if (over) return { answer: over, events: [] };

  const leaseMs = command.leaseMs ?? hold.leaseMs;
  const handed: Hold = {
    ...hold,
    principal: "",
    owner: command.toOwner ?? hold.owner,
    ...(command.toMeta && { meta: command.toMeta }),
    fencingToken: nextToken(record, reading),
    leaseMs,
    grantedAtMs: reading.latestMs,
    expiresAtMs: reading.latestMs + leaseMs,
    marginMs: policy.marginMs(leaseMs),
    requestHash: "",
  };
  const without = endLease(record, leaseId, "transferred", reading);
  const next = change(without, reading, {
    holds: { ...without.holds, [toLeaseId]: handed },
    fencingToken: handed.fencingToken,
    fenceFloor: isAlone({ mode: handed.mode, limit: record.limit }) ? handed.fencingToken : record.fenceFloor,
    ttlAtSec: Math.max(record.ttlAtSec, ttlAtSec(handed, policy)),
  });
  return {
    answer: { ok: true, how: "transferred", lease: leaseView(key, toLeaseId, handed, next, reading) },
    next,
    events: [
      endedEvent(leaseId, hold, "transferred", reading),
      { event: "transferred", leaseId: toLeaseId, owner: handed.owner, principal, fencingToken: handed.fencingToken },
    ],
  };
}

/** Replays a repeated transfer while its new lease lives: the same lease and token. Logged again, in case the log missed it. */
function repeated(
  record: LockRecord | undefined,
  { key, leaseId, toLeaseId, principal }: Transfer,
  reading: ClockReading,
): Decision<Transfer> | undefined {
  const handed = record && holdOf(record, toLeaseId);
  if (!record || !handed || endingOf(record, leaseId) !== "transferred" || !isLive(handed, reading)) return undefined;
  if (handed.principal !== "" && handed.principal !== principal) return { answer: refuse("forbidden"), events: [] };
  const { owner, fencingToken } = handed;
  return {
    answer: { ok: true, how: "replayed", lease: leaseView(key, toLeaseId, handed, record, reading) },
    events: [{ event: "transferred", leaseId: toLeaseId, owner, principal, fencingToken, repeated: true }],
  };
}
