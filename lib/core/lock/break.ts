/**
 * Break: an operator ends a hold, named by its token, so that a repeated break spares the next holder. All reentrant
 * holds of its scope end with it. Without force, the holder keeps its remaining time and can't renew. With force, no
 * margin is kept, and from then on only the fencing token protects the resource.
 */
import { change, touchedTtlAtSec } from "../change.js";
import type { Break, Decision, LeaseEvent } from "../commands.js";
import { endLease } from "./tombstones.js";
import { refuse } from "../errors.js";
import { isReclaimable } from "./expiry.js";
import { endedEvent } from "./grant.js";
import { advanceIfQueued } from "./queue.js";
import type { Hold, LockRecord, LockPolicy } from "../record.js";
import type { ClockReading } from "../time.js";

/** Decides a break: the hold is over now, or in `breakInMs`. */
export function breakHold(record: LockRecord | undefined, command: Break, reading: ClockReading, policy: LockPolicy): Decision<Break> {
  const { key, fencingToken } = command;
  if (!record) return { answer: refuse("not-found", { detail: `Nobody holds ${key}` }), events: [] };
  const reentrantHolds = Object.entries(record.holds).filter(([, hold]) => hold.fencingToken === fencingToken);
  if (reentrantHolds.length === 0) return notThere(record, command);

  let broken = record;
  let breakInMs = 0;
  const events: LeaseEvent[] = [];
  for (const [leaseId, hold] of reentrantHolds) {
    const breaking = breakingOf(hold, command, reading);
    if (!breaking) {
      broken = endLease(broken, leaseId, "broken", reading, { fencingToken });
      events.push(endedEvent(leaseId, hold, "broken", reading));
      continue;
    }
    const isRepeated = breaking.broken === hold.broken && breaking.expiresAtMs === hold.expiresAtMs;
    if (!isRepeated) broken = { ...broken, holds: { ...broken.holds, [leaseId]: breaking } };
    breakInMs = Math.max(breakInMs, breaking.expiresAtMs + breaking.marginMs - reading.earliestMs);
    const { owner, principal } = hold;
    events.push({ event: "breaking", leaseId, owner, principal, fencingToken, ...(isRepeated && { repeated: true }) });
  }
  const answer = { ok: true, breakInMs } as const;
  if (broken === record) return { answer, events };
  const now = advanceIfQueued(broken, reading);
  const next = change(now.record, reading, { ttlAtSec: touchedTtlAtSec(record, reading, policy) });
  return { answer, next, events: [...events, ...now.events] };
}

/** Returns the hold as it goes on until its end, or undefined if it is over now. */
function breakingOf(hold: Hold, { drainMs = Infinity }: Break, reading: ClockReading): Hold | undefined {
  const endsInMs = hold.expiresAtMs - reading.latestMs;
  const byForce = drainMs < endsInMs;
  if (isReclaimable(hold, reading) || drainMs === 0 || (hold.broken === "forced" && endsInMs <= 0)) return undefined;
  if (byForce) return { ...hold, broken: "forced", expiresAtMs: reading.latestMs + drainMs, marginMs: 0 };
  return { ...hold, broken: hold.broken ?? "drain" };
}

/** Answers for a hold that is not there: it was broken before (a replay, logged again), followed by another, or is over. */
function notThere(record: LockRecord, { key, fencingToken }: Break): Decision<Break> {
  const broken = record.tombstones.find((entry) => entry.fencingToken === fencingToken);
  if (broken) {
    const { leaseId, ending } = broken;
    const replay: LeaseEvent = { event: "ended", leaseId, owner: "", principal: "", fencingToken, reason: ending, repeated: true };
    return { answer: { ok: true, breakInMs: 0 }, events: [replay] };
  }
  const isFollowed = Object.keys(record.holds).length > 0 || fencingToken < record.fencingToken;
  const why = isFollowed
    ? refuse("other-hold", { detail: `${key} was granted to another since` })
    : refuse("not-found", { detail: `Nobody holds ${key}` });
  return { answer: why, events: [] };
}
