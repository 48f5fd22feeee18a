/** Renew: a live lease is extended, never shortened (S5); an ended one stays ended (S7). */
import { change, ttlAtSec } from "../change.js";
import type { Decision, Renew } from "../commands.js";
import { holdOf } from "./tombstones.js";
import { refuse } from "../errors.js";
import { isHeadDead, advanceQueue } from "./queue.js";
import type { Hold, LockRecord, LockPolicy, Run } from "../record.js";
import { isStored, isLater, outlivedBy, refuseUnkept, renewedTtlAtSec, withProlonged } from "../run/run.js";
import type { ClockReading } from "../time.js";
import { isLive } from "./expiry.js";
import { leaseLost, leaseView } from "./views.js";

/** Decides a renewal: extended, or the reason why the lease is over. */
export function renew(record: LockRecord | undefined, command: Renew, reading: ClockReading, policy: LockPolicy): Decision<Renew> {
  return extend(record, command, reading, policy, isHeadDead);
}

/** Extends a lease, and leaves a queue whose first waiter is dead to other writes: the result of a write that did only that. */
export function extendOnly(record: LockRecord, command: Renew, reading: ClockReading, policy: LockPolicy): Decision<Renew> {
  return extend(record, command, reading, policy, () => false);
}

function extend(
  record: LockRecord | undefined,
  command: Renew,
  reading: ClockReading,
  policy: LockPolicy,
  mustAdvance: typeof isHeadDead,
): Decision<Renew> {
  const { key, leaseId, principal, meta, checkpoint } = command;
  const hold = record && holdOf(record, leaseId);
  if (!record || !hold) return { answer: leaseLost(record, leaseId, reading), events: [] };
  if (hold.principal !== "" && hold.principal !== principal) return { answer: refuse("forbidden"), events: [] };
  if (hold.broken) return { answer: refuse("lease-lost", { reason: "broken", detail: "An operator is ending this hold" }), events: [] };
  if (!isLive(hold, reading)) return { answer: refuse("lease-lost", { reason: "expired" }), events: [] };
  if (checkpoint && !isStored(checkpoint)) return { answer: refuseUnkept(), events: [] };

  const times = extension(hold, command.leaseMs ?? hold.leaseMs, reading, policy);
  const extended: Hold = { ...hold, principal, ...times, ...(meta && { meta }) };
  const run = record.run && checkpointed(record.run, command);
  const renewed = { ...record, holds: { ...record.holds, [leaseId]: extended } };
  const now = mustAdvance(record, reading) ? advanceQueue(renewed, reading) : { record: renewed, events: [] };
  const next = change(now.record, reading, {
    ...(run && { run }),
    ttlAtSec: run ? renewedTtlAtSec(record, extended, policy) : Math.max(record.ttlAtSec, ttlAtSec(extended, policy)),
  });
  const lease = leaseView(key, leaseId, extended, next, reading);
  const outlived = outlivedBy(run?.checkpoint, next.ttlAtSec);
  const isLonger = times !== hold && times.marginMs === policy.marginMs(times.leaseMs);
  const commutes = isLonger && now.events.length === 0 && !run && !meta && hold.principal === principal;
  const answer = { ok: true, how: "renewed", lease, ...(outlived && { outlived }) } as const;
  return { answer, next, events: now.events, ...(commutes && { commutes }) };
}

/** Returns the run with the request's checkpoint, or with the stored one after its own item was kept for longer. */
function checkpointed(run: Run, { checkpoint, prolonged }: Renew): Run {
  const { checkpoint: saved } = run;
  if (checkpoint && (!saved || isLater(saved, checkpoint))) return { ...run, checkpoint };
  return saved && prolonged ? { ...run, checkpoint: withProlonged(saved, prolonged) } : run;
}

/** Returns the times of a renewal. A length that would end before the present expiry changes nothing. */
function extension(
  hold: Hold,
  leaseMs: number,
  reading: ClockReading,
  policy: LockPolicy,
): Pick<Hold, "expiresAtMs" | "leaseMs" | "marginMs"> {
  const expiresAtMs = reading.latestMs + leaseMs;
  if (expiresAtMs < hold.expiresAtMs) return hold;
  return { expiresAtMs, leaseMs, marginMs: Math.max(hold.marginMs, policy.marginMs(leaseMs)) };
}
