/**
 * Break: an operator ends somebody's hold, named by its token so that a repeat spares the next holder.
 * Without force the holder keeps what it was promised and can't renew; by force only the fencing token
 * protects from then on, and no margin is kept.
 */
import { endedEvent } from "./grant.js";
import { change, touchedTtlAtSec } from "./change.js";
import type { Break, Decision, LeaseEvent } from "./commands.js";
import { endLease } from "./ending.js";
import { refuse } from "./errors.js";
import type { Hold, LockRecord, LockRules } from "./record.js";
import type { ClockReading } from "./time.js";
import { isTakeable } from "./views.js";

/** Decides a break: over now, or in how long. */
export function breakHold(record: LockRecord | undefined, command: Break, reading: ClockReading, rules: LockRules): Decision<Break> {
  const { key, fencingToken, drainMs } = command;
  if (!record) return { answer: refuse("not-found", { detail: `Nobody holds ${key}` }), events: [] };
  const found = Object.entries(record.holds).find(([, hold]) => hold.fencingToken === fencingToken);
  if (!found) return notThere(record, command);

  const [leaseId, hold] = found;
  const endsInMs = hold.expiresAtMs - reading.laterMs;
  const byForce = drainMs !== undefined && drainMs < endsInMs;
  if (isTakeable(hold, reading) || drainMs === 0 || (hold.broken === "forced" && endsInMs <= 0)) {
    const next = change(endLease(record, leaseId, "broken", { fencingToken }), reading, {
      ttlAtSec: touchedTtlAtSec(record, reading, rules),
    });
    return { answer: { ok: true, breakInMs: 0 }, next, events: [endedEvent(leaseId, hold, "broken", reading)] };
  }
  const breaking: Hold = byForce
    ? { ...hold, broken: "forced", expiresAtMs: reading.laterMs + drainMs, marginMs: 0 }
    : { ...hold, broken: hold.broken ?? "drain" };
  const answer = { ok: true, breakInMs: Math.max(0, breaking.expiresAtMs + breaking.marginMs - reading.earlierMs) } as const;
  const event: LeaseEvent = { event: "breaking", leaseId, owner: hold.owner, principal: hold.principal, fencingToken };
  if (!byForce && hold.broken) return { answer, events: [{ ...event, repeated: true }] };
  const next = change(record, reading, { holds: { ...record.holds, [leaseId]: breaking } });
  return { answer, next, events: [event] };
}

/** A hold that isn't there: broken before (the repeat of a break, told once more), followed by another, or over. */
function notThere(record: LockRecord, { key, fencingToken }: Break): Decision<Break> {
  const broken = record.ended.find((entry) => entry.fencingToken === fencingToken);
  if (broken) {
    const { leaseId, ending } = broken;
    const again: LeaseEvent = { event: "ended", leaseId, owner: "", principal: "", fencingToken, reason: ending, repeated: true };
    return { answer: { ok: true, breakInMs: 0 }, events: [again] };
  }
  const isFollowed = Object.keys(record.holds).length > 0 || fencingToken < record.fencingToken;
  const why = isFollowed
    ? refuse("other-hold", { detail: `${key} was granted to another since` })
    : refuse("not-found", { detail: `Nobody holds ${key}` });
  return { answer: why, events: [] };
}
