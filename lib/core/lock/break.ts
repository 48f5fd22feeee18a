/**
 * Break: an operator ends a hold, named by its token, so that a repeated break spares the next holder. All reentrant
 * holds of its scope end with it. Without force, the holder keeps its remaining time and can't renew. With force, no
 * margin is kept, and from then on only the fencing token protects the resource.
 */
import { change, touchedTtlAtSec } from "../change.js";
import type { Break, Decision, LeaseEvent } from "../commands.js";
import { type HoldEntry, standing } from "./compatibility.js";
import { endLease } from "./tombstones.js";
import { refuse } from "../errors.js";
import { isReclaimable } from "./expiry.js";
import { endedEvent } from "./grant.js";
import { advanceIfQueued } from "./queue.js";
import type { Hold, LockRecord, LockPolicy, Offer, Waiter } from "../record.js";
import type { ClockReading } from "../time.js";
import { type BreakView, liveWaiters } from "./views.js";

/** Decides a break: the hold is over now, or in `breakInMs`. */
export function breakHold(record: LockRecord | undefined, command: Break, reading: ClockReading, policy: LockPolicy): Decision<Break> {
  const { key, fencingToken } = command;
  if (!record) return { answer: refuse("not-found", { detail: `Nobody holds ${key}` }), events: [] };
  const reentrantHolds = holdsUnder(record, fencingToken);
  if (reentrantHolds.length === 0) return notThere(record, command);

  const { breakInMs, broken, events } = ended(record, reentrantHolds, command, reading);
  const answer = { ok: true, breakInMs } as const;
  if (broken === record) return { answer, events };
  const now = advanceIfQueued(broken, reading);
  const next = change(now.record, reading, { ttlAtSec: touchedTtlAtSec(record, reading, policy) });
  return { answer, next, events: [...events, ...now.events] };
}

/** Returns what a break of each hold would do, the oldest grant first: by the rule of the break itself, on the record as it is. */
export function breaksOf(record: LockRecord, reading: ClockReading): readonly BreakView[] {
  const tokens = new Set(standing(record, reading).map(([, { fencingToken }]) => fencingToken));
  const waiters = liveWaiters(record, reading);
  const nextAfter = (holds: readonly HoldEntry[], fencingToken: number): readonly number[] => {
    const { offers } = advanceIfQueued(ended(record, holds, { fencingToken, drainMs: 0 }, reading).broken, reading).record;
    const isOffered = ({ leaseId }: Offer | Waiter): boolean => offers.some((offer) => offer.leaseId === leaseId);
    return waiters.flatMap((waiter, place) => (!("offeredAtMs" in waiter) && isOffered(waiter) ? [place + 1] : []));
  };
  // The queue moves alike for all holders of an equal share, of whom a semaphore has many; but for the one who waits to become the writer.
  const nextBy = new Map<string, readonly number[]>();
  return [...tokens]
    .sort((a, b) => a - b)
    .map((fencingToken) => {
      const holds = holdsUnder(record, fencingToken);
      const share = JSON.stringify(holds.map(([id, { mode, permits, scope }]) => [mode, permits, scope, id === record.upgrading?.leaseId]));
      const next = nextBy.get(share) ?? nextAfter(holds, fencingToken);
      nextBy.set(share, next);
      return { fencingToken, breakInMs: ended(record, holds, { fencingToken }, reading).breakInMs, next };
    });
}

function holdsUnder({ holds }: LockRecord, fencingToken: number): readonly HoldEntry[] {
  return Object.entries(holds).filter(([, hold]) => hold.fencingToken === fencingToken);
}

/** Ends these holds of one token, or says when they end at the latest. */
function ended(record: LockRecord, holds: readonly HoldEntry[], command: Pick<Break, "fencingToken" | "drainMs">, reading: ClockReading) {
  const { fencingToken } = command;
  let broken = record;
  let breakInMs = 0;
  const events: LeaseEvent[] = [];
  for (const [leaseId, hold] of holds) {
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
  return { broken, breakInMs, events };
}

/** Returns the hold as it goes on until its end, or undefined if it is over now. */
function breakingOf(hold: Hold, { drainMs = Infinity }: Pick<Break, "drainMs">, reading: ClockReading): Hold | undefined {
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
