/**
 * Granting: the steps that every grant shares. They check a new id, check a repeated id, take over expired leases, and
 * make a hold with a token above every earlier one.
 */
import type { Acquire, LeaseEvent } from "../commands.js";
import { type Details, DETAILS } from "../details.js";
import { endLease, endingOf } from "./tombstones.js";
import { type Named, given, pick } from "../members.js";
import { type Refusal, refuse } from "../errors.js";
import { type LeaseId, leaseIdTimeMs } from "../lease-id.js";
import { LIMITS } from "../limits.js";
import type { Hold, LockRecord, LockPolicy } from "../record.js";
import type { ClockReading } from "../time.js";
import { isLive, isReclaimable } from "./expiry.js";
import { freeInMs, holdersOf, withinBytes } from "./views.js";

/** Refuses a `leaseId` that can't become a new lease of this key. Also used for the new id of a transfer. */
export function refuseNewLease(record: LockRecord, leaseId: LeaseId, reading: ClockReading): Refusal | undefined {
  if (endingOf(record, leaseId)) return leaseOver(record);
  const timeMs = leaseIdTimeMs(leaseId);
  if (timeMs > reading.latestMs + LIMITS.leaseIdAheadMs || timeMs < reading.latestMs - LIMITS.leaseIdBehindMs) {
    return refuse("lease-id-time", {
      serverTimeMs: reading.latestMs,
      detail: `By its time, the leaseId was made ${inWords(timeMs - reading.latestMs)}; a new one is needed`,
    });
  }
  return undefined;
}

/** The largest unit comes first. */
const UNITS = [
  ["days", 86_400_000],
  ["hours", 3_600_000],
  ["minutes", 60_000],
  ["s", 1000],
] as const;

/** `949 days ago`, `12 s ahead of the service's clock`. */
function inWords(fromNowMs: number): string {
  const [unit, unitMs] = UNITS.find(([, ms]) => Math.abs(fromNowMs) >= 2 * ms) ?? UNITS[3];
  return `${Math.round(Math.abs(fromNowMs) / unitMs)} ${unit} ${fromNowMs < 0 ? "ago" : "ahead of the service's clock"}`;
}

function leaseOver(record: LockRecord): Refusal {
  return refuse("lease-over", record.lowWatermark === "" ? {} : { leaseIdAboveMs: leaseIdTimeMs(record.lowWatermark) });
}

/** Refuses a repeated id whose lease belongs to another principal, is over, or has other parameters. */
export function refuseReplay(
  record: LockRecord,
  hold: Hold,
  { principal, requestHash }: Pick<Acquire, "principal" | "requestHash">,
  reading: ClockReading,
): Refusal | undefined {
  if (hold.principal !== "" && hold.principal !== principal) return refuse("forbidden");
  if (!isLive(hold, reading)) return leaseOver(record);
  if (hold.requestHash !== "" && hold.requestHash !== requestHash) {
    return refuse("lease-reused", { detail: "This leaseId holds the key with other parameters" });
  }
  return undefined;
}

/** Refuses a request while others hold the key, with the holders and the time until the first of them may be gone. */
export function refuseLocked(record: LockRecord, reading: ClockReading, detail?: string): Refusal {
  const all = holdersOf(record, reading);
  const holders = withinBytes(all, LIMITS.holdersBytes);
  const omitted = all.length - holders.length;
  return refuse("locked", {
    retryAfterMs: freeInMs(record, reading),
    holders,
    ...(omitted > 0 && { holdersOmitted: omitted }),
    ...(detail !== undefined && { detail }),
  });
}

/** Removes the leases whose expiry and margin have passed, and leaves a tombstone of each. */
export function takeOver(record: LockRecord, reading: ClockReading): { rest: LockRecord; ended: readonly LeaseEvent[] } {
  const ended: LeaseEvent[] = [];
  let rest = record;
  for (const [leaseId, hold] of Object.entries(record.holds)) {
    if (!isReclaimable(hold, reading)) continue;
    rest = endLease(rest, leaseId, hold.broken ? "broken" : "taken", reading, hold.broken && { fencingToken: hold.fencingToken });
    ended.push(endedEvent(leaseId, hold, hold.broken ? "broken" : "taken", reading));
  }
  return { rest, ended };
}

/** Returns the log event of a hold's end. */
export function endedEvent(leaseId: LeaseId, hold: Hold, reason: NonNullable<LeaseEvent["reason"]>, reading: ClockReading): LeaseEvent {
  const { owner, principal, fencingToken, grantedAtMs, expiresAtMs } = hold;
  const heldMs = Math.max(0, reading.latestMs - grantedAtMs);
  const lapsedMs = Math.max(0, reading.latestMs - expiresAtMs);
  return { event: "ended", leaseId, owner, principal, fencingToken, heldMs, ...(lapsedMs > 0 && { lapsedMs }), reason };
}

/** Returns a grant's token: above every earlier one, and above every one that was collected with its item. */
export function nextToken({ fencingToken }: LockRecord, { latestMs, likelyMs = latestMs }: ClockReading): number {
  return Math.max(fencingToken + 1, likelyMs);
}

/** Returns the hold that `command` gets now. */
export function newHold(
  record: LockRecord,
  command: Details & Pick<Acquire, "principal" | "leaseMs" | "requestHash"> & Partial<Pick<Acquire, "mode" | "permits" | "scope">>,
  reading: ClockReading,
  policy: LockPolicy,
): Hold {
  const { principal, leaseMs, requestHash, mode = "exclusive", permits = 1, scope } = command;
  return given<Named<Omit<Hold, "unknown" | "broken" | "notified">>>({
    ...pick(command, DETAILS),
    principal,
    mode,
    permits,
    scope,
    fencingToken: nextToken(record, reading),
    leaseMs,
    grantedAtMs: reading.latestMs,
    expiresAtMs: reading.latestMs + leaseMs,
    marginMs: policy.marginMs(leaseMs),
    requestHash,
  });
}
