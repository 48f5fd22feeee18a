/**
 * Views of a record: for the holder of a lease, for waiters, and for any caller of the namespace. Refusals and
 * inspections never contain a leaseId, a principal or the raw record.
 */
import { digestOf } from "../canonical.js";
import type { LeaseView } from "../commands.js";
import { DETAILS, PUBLIC_DETAILS } from "../details.js";
import { type Named, given, pick } from "../members.js";
import { type HolderView, type LostReason, type Refusal, refuse } from "../errors.js";
import { endingOf } from "./tombstones.js";
import { isLapsed, isLongOver, isReclaimable, isWaiting, offerEndsAtMs } from "./expiry.js";
import { holdCount } from "./compatibility.js";
import { liveMembers } from "./wait-set.js";
import { type LeaseId, leaseIdTimeMs } from "../lease-id.js";
import { FOREVER_MS } from "../limits.js";
import { renewAfterMs } from "../renewal.js";
import { recordBytes } from "../record-bytes.js";
import type { Ending, Hold, LockRecord, Mode, Offer, Run, Waiter } from "../record.js";
import type { ClockReading } from "../time.js";

const encoder = new TextEncoder();

/** Returns the lease as its holder sees it. By the latest clock: a holder that stops too early is the safe error. */
export function leaseView(key: string, leaseId: LeaseId, hold: Hold, record: LockRecord, reading: ClockReading): LeaseView {
  return given<Named<LeaseView>>({
    key,
    leaseId,
    ...pick(hold, DETAILS),
    mode: hold.mode,
    permits: hold.permits,
    holdCount: holdCount(record, hold, reading),
    fencingToken: hold.fencingToken,
    fenceFloor: hold.mode === "shared" || record.limit > 1 ? record.fenceFloor : undefined,
    leaseMs: hold.leaseMs,
    remainingMs: Math.max(0, Math.min(hold.expiresAtMs - reading.latestMs, hold.leaseMs)),
    renewAfterMs: renewAfterMs(hold.leaseMs, recordBytes(record)),
    version: record.version,
    serverTimeMs: reading.latestMs,
  });
}

/** A holder as an inspection shows it: with what a person needs to judge its lease. */
export interface InspectedHolder extends HolderView {
  /** The lease's length, in ms. */
  readonly leaseMs: number;
  /** An operator broke the hold: it can't be renewed, and ends when its remaining time is over. */
  readonly breaking?: true;
}

function holderView(hold: Hold, reading: ClockReading): HolderView {
  return given<Named<HolderView>>({
    ...pick(hold, PUBLIC_DETAILS),
    mode: hold.mode,
    permits: hold.permits,
    fencingToken: hold.fencingToken,
    heldMs: Math.max(0, reading.latestMs - hold.grantedAtMs),
    remainingMs: Math.max(0, Math.min(hold.expiresAtMs - reading.latestMs, hold.leaseMs)),
  });
}

/** Returns the holders that exclude others now, the oldest grant first. */
export function holdersOf(record: LockRecord, reading: ClockReading): readonly HolderView[] {
  return liveHolds(record, reading).map((hold) => holderView(hold, reading));
}

function inspectedHolders(record: LockRecord, reading: ClockReading): readonly InspectedHolder[] {
  return liveHolds(record, reading).map((hold) => ({
    ...holderView(hold, reading),
    leaseMs: hold.leaseMs,
    ...(hold.broken && { breaking: true }),
  }));
}

function liveHolds({ holds }: LockRecord, reading: ClockReading): readonly Hold[] {
  return Object.values(holds)
    .filter((hold) => !isReclaimable(hold, reading))
    .sort((a, b) => a.fencingToken - b.fencingToken);
}

/** Returns the first of `views` that take at most `maxBytes` as JSON together; always at least one. */
export function withinBytes<T>(views: readonly T[], maxBytes: number): readonly T[] {
  let bytes = 0;
  const end = views.findIndex((view) => (bytes += encoder.encode(JSON.stringify(view)).length) > maxBytes);
  return end < 0 ? views : views.slice(0, Math.max(1, end));
}

/** Returns the time in ms until the first hold may be taken over or the first offer lapses, if no request comes before. */
export function freeInMs({ holds, offers, waiters }: LockRecord, { earliestMs }: ClockReading): number {
  const times = [...Object.values(holds).map(({ expiresAtMs, marginMs }) => expiresAtMs + marginMs), ...offers.map(offerEndsAtMs)];
  // Only a waiter is left. It keeps the key from others no longer than it is alive.
  const [first] = waiters;
  if (times.length === 0 && first) times.push(first.aliveUntilMs);
  return Math.max(0, Math.min(...times) - earliestMs);
}

/** Refuses a lease that is no longer held, with the reason as far as it is known. */
export function leaseLost(record: LockRecord | undefined, leaseId: LeaseId, reading: ClockReading): Refusal {
  const reason = lostReason(record, leaseId, reading);
  return refuse("lease-lost", { reason, detail: LOST[reason] });
}

const LOST: Readonly<Record<LostReason, string>> = {
  expired: "The lease ran out before it was renewed",
  taken: "The lease ran out and the key was granted to another since",
  broken: "An operator ended this hold",
  released: "The lease was released",
  transferred: "The hold was handed to another lease",
  never: "This leaseId never held the key",
};

function lostReason(record: LockRecord | undefined, leaseId: LeaseId, reading: ClockReading): LostReason {
  const ending = record && endingOf(record, leaseId);
  if (ending === "cancelled") return "never";
  // Eight leases of the key have ended since. Whatever happened to this one, others held the key after it.
  if (ending === "forgotten") return "taken";
  // A release was requested. It is not known if it came before the expiry.
  if (ending === "unknown") return "released";
  return ending ?? (isLongOver(leaseId, reading) ? "expired" : "never");
}

/** A waiter as others may see it. */
export interface WaiterView {
  readonly owner: string;
  readonly mode: Mode;
  /** The permits of a semaphore that it waits for. Absent: the key is no semaphore. */
  readonly permits?: number;
  readonly priority: number;
  /** 1 is next. */
  readonly position: number;
  readonly waitingMs: number;
  /** The key is reserved for it, until it claims the key or its time for that is over. */
  readonly offered?: true;
  /** It sleeps: an agent of the service claims the key for it, and wakes it. */
  readonly asleep?: true;
}

/** Everything that any caller of the namespace may see of a key. */
export interface Inspection {
  readonly key: string;
  readonly version: number;
  readonly mode: Mode;
  /** The number of permits of a semaphore that is in use. */
  readonly limit?: number;
  readonly fencingToken: number;
  readonly holders: readonly InspectedHolder[];
  readonly waiters: readonly WaiterView[];
  /** The leases that wait for a condition, in the order of their arrival. Absent: none. */
  readonly waitSet?: readonly MemberView[];
  /** The last leases of the key that ended, the latest end first. Absent: none that the record remembers, and from lists. */
  readonly recent?: readonly EndedView[];
  /** The holds whose lease is over and that nobody has taken over since, the oldest grant first. Absent: none, and from lists. */
  readonly lapsed?: readonly LapsedView[];
  /** The outcome of a break of each hold, the oldest grant first. Absent: nobody holds the key, and from lists. */
  readonly ifBroken?: readonly BreakView[];
}

/** A hold whose lease ran out, as others may see it. */
export interface LapsedView {
  readonly owner: string;
  readonly fencingToken: number;
  /** Time from the grant to the end of the lease, in ms. */
  readonly heldMs: number;
  /** Time since the end of the lease, in ms. */
  readonly endedAgoMs: number;
}

/** The outcome of a break of a hold, for the key as it is. */
export interface BreakView {
  readonly fencingToken: number;
  /** The time in ms after which the hold is over at the latest, if it is broken without force. */
  readonly breakInMs: number;
  /** The positions of the waiters that get the key when the hold is over, as the other holders and the queue are now. */
  readonly next: readonly number[];
}

/** A lease that ended, as others may see it: when its leaseId was made, and how it ended. */
export interface EndedView {
  readonly askedAgoMs: number;
  readonly ending: Ending;
}

/** A lease that waits for a condition, as others may see it. */
export interface MemberView {
  readonly owner: string;
  readonly condition: string;
  readonly waitingMs: number;
}

/** Returns the holders and waiters of the key; a key that was never used is free. */
export function inspection(key: string, record: LockRecord | undefined, reading: ClockReading): Inspection {
  const holders = record ? inspectedHolders(record, reading) : [];
  const waiters = record ? waitersOf(record, reading) : [];
  const waitSet = record ? membersOf(record, reading) : [];
  return {
    key,
    version: record?.version ?? 0,
    mode: holders[0]?.mode ?? "exclusive",
    ...(record && record.limit > 1 && holders.length + waiters.length > 0 && { limit: record.limit }),
    fencingToken: record?.fencingToken ?? 0,
    holders,
    waiters,
    ...(waitSet.length > 0 && { waitSet }),
  };
}

/** Returns the last leases of the key that ended, the latest end first. They are no part of the entity tag. */
export function endedLeases({ tombstones }: LockRecord, reading: ClockReading): readonly EndedView[] {
  return tombstones.map(({ leaseId, ending }) => ({ askedAgoMs: Math.max(0, reading.latestMs - leaseIdTimeMs(leaseId)), ending }));
}

/** Returns the holds whose lease is over and that nobody has taken over since. They are no part of the entity tag. */
export function lapsedHolds({ holds }: LockRecord, reading: ClockReading): readonly LapsedView[] {
  return Object.values(holds)
    .filter((hold) => isReclaimable(hold, reading))
    .sort((a, b) => a.fencingToken - b.fencingToken)
    .map(({ owner, fencingToken, grantedAtMs, expiresAtMs }) => ({
      owner,
      fencingToken,
      heldMs: Math.max(0, expiresAtMs - grantedAtMs),
      endedAgoMs: Math.max(0, reading.latestMs - expiresAtMs),
    }));
}

function membersOf(record: LockRecord, reading: ClockReading): readonly MemberView[] {
  return liveMembers(record, reading).map(({ leaseId, owner, condition }) => ({
    owner,
    condition,
    waitingMs: Math.max(0, reading.latestMs - leaseIdTimeMs(leaseId)),
  }));
}

/** Returns those that the key is offered to, then the queue, without any that were not seen in time. */
export function liveWaiters({ offers, waiters }: LockRecord, reading: ClockReading): readonly (Offer | Waiter)[] {
  return [...offers.filter((offer) => !isLapsed(offer, reading)), ...waiters.filter((waiter) => isWaiting(waiter, reading))];
}

function waitersOf(record: LockRecord, reading: ClockReading): readonly WaiterView[] {
  const { limit } = record;
  return liveWaiters(record, reading).map((waiter, index) => ({
    owner: waiter.owner,
    mode: waiter.mode,
    ...(limit > 1 && { permits: waiter.permits }),
    priority: waiter.priority,
    position: index + 1,
    waitingMs: Math.max(0, reading.latestMs - leaseIdTimeMs(waiter.leaseId)),
    ...("offeredAtMs" in waiter && { offered: true as const }),
    ...(waiter.asleep && { asleep: true as const }),
  }));
}

/** Returns an entity tag over holders and waiters, and which holds were broken. A heartbeat does not change it. */
export function inspectionTag({ fencingToken, limit, holders, waiters, waitSet }: Inspection): string {
  const who = holders.map(({ owner, mode, permits, fencingToken: token, breaking }) => [owner, mode, permits, token, breaking]);
  const next = waiters.map(({ owner, mode, priority }) => [owner, mode, priority]);
  const members = waitSet?.map(({ owner, condition }) => [owner, condition]);
  return `"${fencingToken}.${digestOf([limit, who, next, members]).slice(0, 8)}"`;
}

/** Everything that any caller of the namespace may see of a run. Only a read of a single run includes the values, as JSON. */
export interface RunView {
  readonly key: string;
  readonly version: number;
  /** `interrupted`: its lease ran out; the next start is a takeover. */
  readonly state: "running" | "interrupted" | "succeeded" | "failed";
  /** For a failed run: true if the next start runs it again. */
  readonly retryable?: boolean;
  readonly attempt: number;
  /** The attempt before this one ended without an outcome. */
  readonly takeover?: true;
  readonly fencingToken: number;
  /** The owner of the latest attempt. Absent: it is interrupted, and whose it was is not known any more. */
  readonly owner?: string;
  /** For a running run: the time since its start, and the time left without a renewal, in ms. */
  readonly heldMs?: number;
  readonly remainingMs?: number;
  /** The time since the end of the latest attempt, or of its lease if it is interrupted, in ms. */
  readonly endedAgoMs?: number;
  /** The time from the start of the latest attempt to its outcome, in ms. */
  readonly tookMs?: number;
  /** For a finished run: the time for which its outcome is still stored, in ms. */
  readonly keptForMs?: number | "forever";
  readonly checkpoint?: unknown;
  readonly result?: unknown;
  readonly error?: unknown;
  readonly resultOmitted?: true;
  /** For a failed run: the name of its error, also in lists. Absent: it has none, or its error is too large for the record. */
  readonly errorName?: string;
}

/** The longest name of an error in a view, in characters. */
const NAME_CHARS = 64;

/** Returns the name of a stored error, if its text is in the record. */
export function errorNameOf(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const { name } = (JSON.parse(text) ?? {}) as { readonly name?: unknown };
  return typeof name === "string" && name !== "" ? name.slice(0, NAME_CHARS) : undefined;
}

/** Returns the run's present state, without its values. A running run whose lease may be taken over is interrupted. */
export function runView(key: string, record: LockRecord, run: Run, reading: ClockReading): RunView {
  const [holder] = holdersOf(record, reading);
  const { attempt, takeover } = run;
  const common = { key, version: record.version, attempt, ...(takeover && { takeover }), fencingToken: record.fencingToken };
  if (holder) {
    const { owner, heldMs, remainingMs } = holder;
    return { ...common, state: "running", owner, heldMs, remainingMs };
  }
  if (run.state === "running" || run.state === "interrupted") {
    const [lapsed] = lapsedHolds(record, reading);
    return { ...common, state: "interrupted", ...(lapsed && { owner: lapsed.owner, endedAgoMs: lapsed.endedAgoMs }) };
  }
  const { outcome } = run;
  const { keptUntilMs = 0, omitted, payload } = outcome ?? {};
  const errorName = run.state === "succeeded" ? undefined : errorNameOf(payload?.text);
  const ended = outcome && {
    ...(errorName !== undefined && { errorName }),
    owner: outcome.owner,
    endedAgoMs: Math.max(0, reading.latestMs - outcome.endedAtMs),
    tookMs: Math.max(0, outcome.endedAtMs - outcome.startedAtMs),
  };
  if (run.state === "retry") return { ...common, state: "failed", retryable: true, ...ended };
  const keptForMs = run.keepResultMs >= FOREVER_MS ? "forever" : Math.max(0, keptUntilMs - reading.latestMs);
  return {
    ...common,
    state: run.state,
    ...(run.state === "failed" && { retryable: false }),
    ...ended,
    keptForMs,
    ...(omitted && { resultOmitted: omitted }),
  };
}

/** Returns an entity tag over the run's state, attempt and checkpoint. A heartbeat does not change it. */
export function runTag({ state, attempt, fencingToken }: RunView, { checkpoint }: Run): string {
  return `"${[state, attempt, fencingToken, ...(checkpoint ? [checkpoint.digest.slice(0, 8)] : [])].join(".")}"`;
}
