/**
 * What may be said about a record: to a lease's holder, to those who wait for it, and to anyone who
 * looks. Refusals and inspections never carry a leaseId, a principal or the raw record.
 */
import { digestOf } from "../canonical.js";
import type { LeaseView } from "../commands.js";
import type { HolderView, LostReason, Refusal } from "../errors.js";
import { refuse } from "../errors.js";
import { endingOf } from "./tombstones.js";
import { isLapsed, isLongOver, isReclaimable, isWaiting } from "./expiry.js";
import { holdCount } from "./compatibility.js";
import type { LeaseId } from "../lease-id.js";
import { leaseIdTimeMs } from "../lease-id.js";
import { DEFAULTS, FOREVER_MS, renewAfterMs } from "../limits.js";
import { recordBytes } from "../record-bytes.js";
import type { Hold, LockRecord, Mode, Run } from "../record.js";
import type { ClockReading } from "../time.js";

const encoder = new TextEncoder();

/** The lease as its holder sees it. With the later clock: believing for too short is the safe error. */
export function leaseView(key: string, leaseId: LeaseId, hold: Hold, record: LockRecord, reading: ClockReading): LeaseView {
  return {
    key,
    leaseId,
    owner: hold.owner,
    mode: hold.mode,
    permits: hold.permits,
    holdCount: holdCount(record, hold, reading),
    fencingToken: hold.fencingToken,
    ...((hold.mode === "shared" || record.limit > 1) && { fenceFloor: record.fenceFloor }),
    leaseMs: hold.leaseMs,
    remainingMs: Math.max(0, Math.min(hold.expiresAtMs - reading.latestMs, hold.leaseMs)),
    renewAfterMs: renewAfterMs(hold.leaseMs, recordBytes(record)),
    version: record.version,
    serverTimeMs: reading.latestMs,
    ...(hold.meta && { meta: hold.meta }),
  };
}

function holderView(hold: Hold, reading: ClockReading): HolderView {
  return {
    owner: hold.owner,
    mode: hold.mode,
    permits: hold.permits,
    fencingToken: hold.fencingToken,
    heldMs: Math.max(0, reading.latestMs - hold.grantedAtMs),
    remainingMs: Math.max(0, Math.min(hold.expiresAtMs - reading.latestMs, hold.leaseMs)),
  };
}

/** Those who keep others out now, the oldest grant first. */
export function holdersOf(record: LockRecord, reading: ClockReading): readonly HolderView[] {
  return Object.values(record.holds)
    .filter((hold) => !isReclaimable(hold, reading))
    .sort((a, b) => a.fencingToken - b.fencingToken)
    .map((hold) => holderView(hold, reading));
}

/** The first of `views`, as many as take at most `maxBytes` as JSON; never none of some. */
export function withinBytes<T>(views: readonly T[], maxBytes: number): readonly T[] {
  let bytes = 0;
  const end = views.findIndex((view) => (bytes += encoder.encode(JSON.stringify(view)).length) > maxBytes);
  return end < 0 ? views : views.slice(0, Math.max(1, end));
}

/** How long until the first of the present holds may be taken over or offers withdrawn, if nobody does anything. */
export function freeInMs({ holds, offers, waiters }: LockRecord, { earliestMs }: ClockReading): number {
  const times = [
    ...Object.values(holds).map(({ expiresAtMs, marginMs }) => expiresAtMs + marginMs),
    ...offers.map(({ offeredAtMs }) => offeredAtMs + DEFAULTS.offerWindowMs),
  ];
  // Who waits for a key that nobody has will not do so for ever.
  const [first] = waiters;
  if (times.length === 0 && first) times.push(first.aliveUntilMs);
  return Math.max(0, Math.min(...times) - earliestMs);
}

/** The refusal for a lease that is not held any more, and why as far as it is known. */
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
  // Eight leases of the key have ended since; whatever this one did, others were there after it.
  if (ending === "forgotten") return "taken";
  // A release was asked for; whether it came in time is not known.
  if (ending === "unknown") return "released";
  return ending ?? (isLongOver(leaseId, reading) ? "expired" : "never");
}

/** A waiter as others may see it. */
export interface WaiterView {
  readonly owner: string;
  readonly mode: Mode;
  readonly priority: number;
  /** 1 is next. */
  readonly position: number;
  readonly waitingMs: number;
}

/** What anyone in the namespace may know about a key. */
export interface Inspection {
  readonly key: string;
  readonly version: number;
  readonly mode: Mode;
  /** How many permits may be out at once, of a semaphore that is in use. */
  readonly limit?: number;
  readonly fencingToken: number;
  readonly holders: readonly HolderView[];
  readonly waiters: readonly WaiterView[];
}

/** Who holds the key and who waits; a key nobody ever used is free. */
export function inspection(key: string, record: LockRecord | undefined, reading: ClockReading): Inspection {
  const holders = record ? holdersOf(record, reading) : [];
  const waiters = record ? waitersOf(record, reading) : [];
  return {
    key,
    version: record?.version ?? 0,
    mode: holders[0]?.mode ?? "exclusive",
    ...(record && record.limit > 1 && holders.length + waiters.length > 0 && { limit: record.limit }),
    fencingToken: record?.fencingToken ?? 0,
    holders,
    waiters,
  };
}

/** Those whose turn it is and who have not come yet, then the queue; without those that were not heard of in time. */
function waitersOf({ offers, waiters }: LockRecord, reading: ClockReading): readonly WaiterView[] {
  const live = [...offers.filter((offer) => !isLapsed(offer, reading)), ...waiters.filter((waiter) => isWaiting(waiter, reading))];
  return live.map(({ leaseId, owner, mode, priority }, index) => ({
    owner,
    mode,
    priority,
    position: index + 1,
    waitingMs: Math.max(0, reading.latestMs - leaseIdTimeMs(leaseId)),
  }));
}

/** An entity tag over who holds and who waits: a heartbeat does not change it. */
export function inspectionTag({ fencingToken, limit, holders, waiters }: Inspection): string {
  const who = holders.map(({ owner, mode, permits, fencingToken: token }) => [owner, mode, permits, token]);
  const next = waiters.map(({ owner, mode, priority }) => [owner, mode, priority]);
  return `"${fencingToken}.${digestOf([limit, who, next]).slice(0, 8)}"`;
}

/** What anyone in the namespace may know about a run. Values are JSON, and only in a look at one run. */
export interface RunView {
  readonly key: string;
  readonly version: number;
  /** `interrupted`: its runner's lease ran out; the next start is a takeover. */
  readonly state: "running" | "interrupted" | "succeeded" | "failed";
  /** Of a failed one: the next start runs it again. */
  readonly retryable?: boolean;
  readonly attempt: number;
  readonly fencingToken: number;
  /** Of a running one: whose it is, since when, and for how long without a renewal. */
  readonly owner?: string;
  readonly heldMs?: number;
  readonly remainingMs?: number;
  /** Of one that is over: for how long its outcome is still kept. */
  readonly keptForMs?: number | "forever";
  readonly checkpoint?: unknown;
  readonly result?: unknown;
  readonly error?: unknown;
  readonly resultOmitted?: true;
}

/** The run as it stands, without its values; a running one whose lease may be taken over is interrupted. */
export function runView(key: string, record: LockRecord, run: Run, reading: ClockReading): RunView {
  const [holder] = holdersOf(record, reading);
  const common = { key, version: record.version, attempt: run.attempt, fencingToken: record.fencingToken };
  if (holder) {
    const { owner, heldMs, remainingMs } = holder;
    return { ...common, state: "running", owner, heldMs, remainingMs };
  }
  if (run.state === "running" || run.state === "interrupted") return { ...common, state: "interrupted" };
  if (run.state === "retry") return { ...common, state: "failed", retryable: true };
  const { keptUntilMs = 0, omitted } = run.outcome ?? {};
  const keptForMs = run.keepResultMs >= FOREVER_MS ? "forever" : Math.max(0, keptUntilMs - reading.latestMs);
  return {
    ...common,
    state: run.state,
    ...(run.state === "failed" && { retryable: false }),
    keptForMs,
    ...(omitted && { resultOmitted: omitted }),
  };
}

/** An entity tag over the run's state, attempt and checkpoint: a heartbeat does not change it. */
export function runTag({ state, attempt, fencingToken }: RunView, { checkpoint }: Run): string {
  return `"${[state, attempt, fencingToken, ...(checkpoint ? [checkpoint.digest.slice(0, 8)] : [])].join(".")}"`;
}
