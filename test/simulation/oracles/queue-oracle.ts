/**
 * The oracle of queues. It checks L2 and L4 by the writes to the table and the times of polls. A waiter counts as live while it polls as
 * instructed. Nothing is guaranteed to the others.
 */
import { LIMITS } from "../../../lib/core/limits.js";
import type { LockRecord, Waiter } from "../../../lib/core/record.js";
import type { LockRequests } from "./lock-requests.js";
import { clash, holdersIn, isKeptFor, offeredIn } from "./sharing.js";
import type { Bench } from "./verdict.js";

/** An answer to a queued request. */
export interface Told {
  /** 0: send an acquire now. */
  readonly retryAfterMs: number;
  readonly pollWithinMs: number;
  /** True if the answer came from a poll by GET, which writes nothing. */
  readonly byLook: boolean;
}

/** Both directions of the network, the table's pauses and a timer's resolution, without faults. */
const ON_THE_WAY_MS = 100;
/** The time for which a waiter is excused after a late poll or answer. By then, every offer that stood at the time has ended. */
const EXCUSED_MS = 20_000;

/** An offer to a waiter that sleeps stands for this long at least, however long its write took: two sweeps. */
const WAKE_MS = 120_000;
/** The errors of the clocks, and the time that a write may take, by which a sleeper may lose its place before its time. */
const EARLY_MS = 30_000;

/** The times of a waiter's polls, and when the next is due. */
interface Visits {
  /** 0 until the first answer. */
  dueMs: number;
  excusedUntilMs: number;
  /** Requests in a handler, and the time by which each must be finished. */
  readonly underWay: Set<number>;
}

/** Checks the queues of one history. */
export class QueueOracle {
  readonly #visits = new Map<string, Visits>();
  /** The latest aliveUntilMs of each waiter, and its earlier values. */
  readonly #heardUntil = new Map<string, { untilMs: number; readonly before: Set<number> }>();
  readonly #priorities = new Map<string, number>();
  readonly #arrivals = new Map<string, number>();
  /** The waiters that sleep: the time until which each keeps its place, and the time of its offer. */
  readonly #asleep = new Map<string, { readonly untilMs: number; offeredAtMs?: number }>();
  #arrived = 0;

  constructor(private readonly bench: Bench) {}

  /** Records an acquire's priority. */
  asked(leaseId: string, priority: number): void {
    this.#priorities.set(leaseId, priority);
  }

  /** Records a request to sleep for this long, as it reaches a handler. */
  asleep(leaseId: string, sleepMs: number): void {
    if (!this.#asleep.has(leaseId)) this.#asleep.set(leaseId, { untilMs: this.bench.now() + sleepMs });
  }

  /** Records a poll that reaches a handler, which may hold it for `keepMs`. Returns a function that takes the answer. */
  visiting(leaseId: string, keepMs: number): (told: Told | undefined) => void {
    const visits = this.#visits.get(leaseId) ?? { dueMs: 0, excusedUntilMs: 0, underWay: new Set() };
    this.#visits.set(leaseId, visits);
    const sinceMs = this.bench.now();
    if (visits.dueMs > 0 && sinceMs > visits.dueMs) visits.excusedUntilMs = sinceMs + EXCUSED_MS;
    const untilMs = sinceMs + keepMs + ON_THE_WAY_MS;
    visits.underWay.add(untilMs);
    return (told) => {
      const nowMs = this.bench.now();
      visits.underWay.delete(untilMs);
      if (nowMs > untilMs) visits.excusedUntilMs = nowMs + EXCUSED_MS;
      if (told) visits.dueMs = nowMs + ON_THE_WAY_MS + (told.byLook && told.retryAfterMs === 0 ? 0 : told.pollWithinMs);
    };
  }

  /** Records a keep-alive of a waiter. No write may undo it while the waiter keeps its place. */
  heard({ leaseId, aliveUntilMs }: Waiter): void {
    this.bench.coverage.reports++;
    if (this.#heardUntil.get(leaseId)?.before.has(aliveUntilMs))
      this.bench.fail("L2", "a waiter was heard of, and by an earlier report of its own it was not");
    this.#heardOf(leaseId, aliveUntilMs);
  }

  /** Checks a write of the record. `asked`: the requests about locks that reached the service. */
  written(key: string, before: LockRecord | undefined, next: LockRecord, asked: LockRequests): void {
    const { waiters: waited = [], offers: offered = [], holds: held = {} } = before ?? {};
    if (waited.length + offered.length + next.waiters.length + next.offers.length === 0) return;
    const wasQueued = new Set(waited.map(({ leaseId }) => leaseId));
    for (const { leaseId, aliveUntilMs } of next.waiters) {
      if (!wasQueued.has(leaseId)) this.#arrive(leaseId);
      if (this.#heardUntil.get(leaseId)?.before.has(aliveUntilMs))
        this.bench.fail("L2", `${key}: a waiter was heard of, and by this write it was not`);
      this.#heardOf(leaseId, aliveUntilMs);
    }

    const wasOffered = new Set(offered.map(({ leaseId }) => leaseId));
    const tokens = new Set(Object.values(held).map(({ fencingToken }) => fencingToken));
    for (const { leaseId } of next.offers) if (!wasOffered.has(leaseId)) this.#chosen(key, leaseId, next, "offers");
    for (const [leaseId, { fencingToken }] of Object.entries(next.holds)) {
      if (held[leaseId] || tokens.has(fencingToken) || asked.isHandedOn(leaseId)) continue;
      if (wasOffered.has(leaseId)) this.bench.coverage.claims++;
      else this.#chosen(key, leaseId, next);
    }
    if (next.offers.length > 0 && !clash(holdersIn(next)) && clash([...holdersIn(next), ...offeredIn(next)]))
      this.bench.fail("L2", `${key}: granted although it is kept for another, whose turn it is`);
    // A waiter that asked to leave may be gone.
    for (const leaseId of [...wasQueued, ...wasOffered]) if (!asked.has("release", leaseId)) this.#goesOn(key, leaseId, next);
    const placed = next.waiters.filter(({ asleep, condition }) => !asleep && condition === undefined).length;
    if (placed > Math.max(LIMITS.waitersMax, waited.length)) this.bench.fail("L4", `${key}: ${placed} wait, more than there are places`);
    if (before && isHeardOf(before, next)) this.bench.fail("L4", `${key}: somebody was heard of, and all others lose their races by it`);
  }

  #heardOf(leaseId: string, untilMs: number): void {
    const heard = this.#heardUntil.get(leaseId);
    if (!heard) this.#heardUntil.set(leaseId, { untilMs, before: new Set() });
    else if (heard.untilMs !== untilMs) {
      heard.before.add(heard.untilMs);
      heard.untilMs = untilMs;
    }
  }

  #arrive(leaseId: string): void {
    this.bench.coverage.queued++;
    this.#arrivals.set(leaseId, ++this.#arrived);
  }

  /** Checks the order: no earlier waiter of at least the same priority still waits, unless what it needs is still there for it. */
  #chosen(key: string, leaseId: string, next: LockRecord, how: "offers" | "grants" = "grants"): void {
    if (how === "offers") this.bench.coverage.offers++;
    const sleeper = this.#asleep.get(leaseId);
    if (sleeper && how === "offers") sleeper.offeredAtMs = this.bench.now();
    const arrival = this.#arrivals.get(leaseId) ?? Number.POSITIVE_INFINITY;
    const priority = this.#priorities.get(leaseId) ?? 0;
    const overtaken = next.waiters.find((waiter) => {
      if (isKeptFor(waiter, next)) return false;
      const its = this.#priorities.get(waiter.leaseId) ?? 0;
      return its > priority || (its === priority && (this.#arrivals.get(waiter.leaseId) ?? 0) < arrival);
    });
    if (overtaken) this.bench.fail("L2", `${key}: ${how} to who came later than one that still waits`);
  }

  /** Checks that a live waiter stays in the queue until it gets an offer, and that the offer lasts until the waiter's next poll. */
  #goesOn(key: string, leaseId: string, { waiters, offers, holds }: LockRecord): void {
    if (holds[leaseId] || [...waiters, ...offers].some((still) => still.leaseId === leaseId)) return;
    this.bench.coverage.skipped++;
    // Its place is over. A late copy of the write that queued it may queue it again, with a time that has passed: nothing is taken back by that.
    this.#heardUntil.delete(leaseId);
    if (this.#sleepsOn(leaseId)) this.bench.fail("L8", `${key}: a sleeper lost its place, or its offer, before its time`);
    if (this.#lives(leaseId)) this.bench.fail("L2", `${key}: a waiter that visits as it is told lost its place`);
  }

  #sleepsOn(leaseId: string): boolean {
    const { untilMs, offeredAtMs } = this.#asleep.get(leaseId) ?? { untilMs: 0 };
    return this.bench.now() < (offeredAtMs === undefined ? untilMs - EARLY_MS : offeredAtMs + WAKE_MS);
  }

  #lives(leaseId: string): boolean {
    const visits = this.#visits.get(leaseId);
    const nowMs = this.bench.now();
    if (!visits || nowMs < visits.excusedUntilMs || [...visits.underWay].some((untilMs) => nowMs > untilMs)) return false;
    return nowMs <= visits.dueMs || (visits.dueMs === 0 && visits.underWay.size > 0);
  }
}

/** True if a change of the record is only a waiter's keep-alive. */
function isHeardOf(before: LockRecord, next: LockRecord): boolean {
  const isSame = <T extends { readonly leaseId: string }>(some: readonly T[], others: readonly T[]): boolean =>
    some.length === others.length && some.every(({ leaseId }, at) => leaseId === others[at]?.leaseId);
  return (
    isEqual(before.holds, next.holds) &&
    isEqual(before.tombstones, next.tombstones) &&
    isEqual(before.upgrading, next.upgrading) &&
    isSame(before.offers, next.offers) &&
    isSame(before.waiters, next.waiters) &&
    before.waiters.some(({ aliveUntilMs }, place) => aliveUntilMs !== next.waiters[place]?.aliveUntilMs)
  );
}

function isEqual(one: unknown, other: unknown): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}
