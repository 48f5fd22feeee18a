/**
 * The callers of one process that wait for the same key stand in one local queue and share one place in the key's queue,
 * whatever their owner, meta or invocation: ten thousand callers are one waiter. A caller that is done hands the key to
 * the next, each with a fencing token of its own, so many times in a row. Then waiters of other processes get their turn.
 *
 *   asking ──granted──▶ held by the first in line ──released──▶ handed on to the next, or freed
 *      ▲                                                                       │
 *      └──────────────────── as long as somebody stands in line ◀──────────────┘
 *
 * Only who wants a key for itself: readers and permits hold beside each other, a scope past the queue.
 *
 * The line asks without an end of its own; each caller has its own time, and ends as it would have ended alone. However
 * many they are, an arrival and a leave cost a few steps, and a crowd whose time is over is told in portions, between
 * which everything else of the process goes on.
 */
import { canonicalJson } from "../../core/canonical.js";
import type { Held, LeaseView } from "../../core/commands.js";
import { refuse } from "../../core/errors.js";
import { isAlone } from "../../core/lock/compatibility.js";
import type { LeaseRef } from "../../core/api/locks.js";
import type { Timer } from "../../core/time.js";
import type { AcquireDeps, AcquireParams } from "./acquire.js";
import { abortError, cancel, ensureFresh, tryOnce } from "./acquire.js";
import type { Answered } from "../transport/retry.js";
import { boundsFor, retry } from "../transport/retry.js";
import { errorOf, LockUnavailableError, timeoutOf } from "../errors.js";
import { transferHold } from "./transfer.js";
import { Heap } from "./heap.js";
import { untilGranted } from "./wait-in-queue.js";
import { capBudgetMs } from "../invocation.js";
import { Wait } from "./wait.js";

/** Hand-overs in a row before the others' turn. */
const LOCAL_HANDOFFS_MAX = 8;
/** A hand-over is worth this long; after it the key is freed for whoever comes. */
const HANDOFF_BUDGET_MS = 5000;
/** Renewals of one grant for callers that leave before they get it. */
const RENEWALS_MAX = 5;
/** Callers that are told in one turn of the event loop: some milliseconds of it. */
const TOLD_AT_ONCE = 100;

/** What becomes of a hold when its holder is done. */
export interface Handoff {
  /** Hands the hold on; false when nobody here takes it, and it is to be released. */
  handOff(from: LeaseRef): Promise<boolean>;
  /** The hold ended otherwise. */
  over(): void;
}

/** A lease, and what becomes of it after its holder. */
export interface LocalGrant {
  readonly answered: Answered<Held>;
  readonly handoff?: Handoff;
}

/** The lines of one client, by what is wanted. */
export class LocalQueues {
  readonly #queues = new Map<string, LocalQueue>();

  /**
   * Waits for the key; with 0 ms, asks once.
   * @throws LockTimeoutError after `waitMs`, LockUnavailableError in an outage, AbortError when the signal aborts; then nothing is held.
   */
  async join(params: AcquireParams, waitMs: number, deps: AcquireDeps): Promise<LocalGrant> {
    const { key, mode = "exclusive", limit = 1, permits, priority, scope } = params;
    const wait = new Wait(waitMs, deps);
    if (waitMs <= 0) return { answered: await once(params, wait, deps) };
    if (scope !== undefined || !isAlone({ mode, limit })) return { answered: await untilGranted(params, wait, deps) };
    const name = JSON.stringify([key, permits, priority]);
    const queue = this.#queues.get(name) ?? new LocalQueue(key, () => void this.#queues.delete(name));
    this.#queues.set(name, queue);
    return queue.join(params, wait, deps);
  }
}

async function once(params: AcquireParams, wait: Wait, deps: AcquireDeps): Promise<Answered<Held>> {
  const { answer, ...when } = await tryOnce(params, wait.bounds(params.leaseMs, params.signal), deps);
  if (answer.ok) return { answer, ...when };
  const what = `acquire ${params.key}`;
  throw answer.code === "locked" ? timeoutOf(what, answer) : errorOf(answer, what);
}

/** One caller in line. */
interface LocalWaiter {
  /** Its own owner, meta and length of lease: the request for the key, and each handoff, carries those of one caller. */
  readonly params: AcquireParams;
  readonly deps: AcquireDeps;
  /** How many came before it. */
  readonly order: number;
  /** When its time is over, by the monotonic clock. */
  readonly dueMs: number;
  readonly leftMs: () => number;
  readonly resolve: (grant: LocalGrant) => void;
  readonly reject: (error: Error) => void;
}

/** True if the lease is as its next holder asked for it: as long at least, and with its meta. */
function suits({ leaseMs, meta = {} }: LeaseView, params: AcquireParams): boolean {
  return leaseMs >= params.leaseMs && canonicalJson(meta) === canonicalJson(params.meta ?? {});
}

/** The lease renewed with the caller's own length and meta. Undefined if it is lost, or the service doesn't answer. */
async function renewedFor({ answer: { lease } }: Answered<Held>, { params, deps }: LocalWaiter): Promise<Answered<Held> | undefined> {
  const { key, leaseId } = lease;
  const { leaseMs, meta = {} } = params;
  const bounds = boundsFor(leaseMs, capBudgetMs(Math.min(lease.leaseMs, HANDOFF_BUDGET_MS), deps.context));
  const { answer, ...when } = await retry((options) => deps.api.renew({ key, leaseId, leaseMs, meta }, options), bounds, deps);
  return answer.ok ? { answer, ...when } : undefined;
}

/** The request for the key on behalf of a line. */
interface Asking {
  readonly giveUp: AbortController;
  /** Resolves when it was granted, refused or cleaned up after. */
  readonly ended: Promise<void>;
}

class LocalQueue {
  readonly #key: string;
  readonly #onEmpty: () => void;
  readonly #standing = new Heap<LocalWaiter>(({ order }) => order);
  readonly #byTime = new Heap<LocalWaiter>(({ dueMs }) => dueMs);
  #arrived = 0;
  #alarm: { readonly timer: Timer; readonly dueMs: number } | undefined;
  #asking: Asking | undefined;
  /** How the request for the key, or the hand-over, fares; undefined while a caller of this line holds the key. */
  #news: Wait | undefined;
  /** Those who came before it are all told the same. */
  #verdict: { readonly error: Error; readonly before: number } | undefined;
  #isHeld = false;
  #localHandoffs = 0;

  constructor(key: string, onEmpty: () => void) {
    this.#key = key;
    this.#onEmpty = onEmpty;
  }

  join(params: AcquireParams, wait: Wait, deps: AcquireDeps): Promise<LocalGrant> {
    const { signal } = params;
    return new Promise<LocalGrant>((resolve, reject) => {
      const settle = (): void => signal?.removeEventListener("abort", abort);
      const waiter: LocalWaiter = {
        params,
        deps,
        order: this.#arrived++,
        dueMs: deps.clock.monotonicMs() + wait.leftMs(),
        leftMs: () => wait.leftMs(),
        resolve(grant) {
          settle();
          resolve(grant);
        },
        reject(error) {
          settle();
          reject(error);
        },
      };
      const abort = (): void => {
        if (signal) this.#leave(waiter, abortError(signal));
      };
      signal?.addEventListener("abort", abort, { once: true });
      this.#standing.add(waiter);
      this.#byTime.add(waiter);
      if (signal?.aborted) abort();
      this.#setAlarm();
      this.#ask();
    });
  }

  /** Asks for the key on behalf of all who stand in line, unless one of them has it. */
  #ask(): void {
    if (this.#asking || this.#isHeld || this.#verdict) return;
    const { first } = this.#standing;
    if (!first) return this.#onEmpty();
    const { params, deps } = first;
    const giveUp = new AbortController();
    const news = new Wait(Number.POSITIVE_INFINITY, deps, () => this.#tell());
    this.#news = news;
    this.#localHandoffs = 0;
    const ended = untilGranted({ ...params, signal: giveUp.signal }, news, deps)
      .then(
        async (answered) => void (await this.#give(answered, deps)),
        (error: unknown) => {
          // Those who came while the last one left are asked for anew.
          if (!giveUp.signal.aborted) this.#verdict = { error: error as Error, before: this.#arrived };
        },
      )
      .finally(() => {
        this.#asking = undefined;
        this.#tell();
        this.#ask();
      });
    this.#asking = { giveUp, ended };
  }

  /**
   * Gives the lease to the first in line, renewed where it isn't as that caller asked for it. Returns false if all have
   * left, or the renewal fails: then the lease is cancelled, and no caller ever held it.
   */
  async #give(answered: Answered<Held>, deps: AcquireDeps): Promise<boolean> {
    for (let renewals = 0; ; renewals++) {
      const { first } = this.#standing;
      if (first && suits(answered.answer.lease, first.params)) {
        this.#remove(first);
        this.#isHeld = true;
        this.#news = undefined;
        first.resolve({ answered, handoff: this.#handoff() });
        return true;
      }
      const renewed = first && renewals < RENEWALS_MAX ? await renewedFor(answered, first) : undefined;
      if (!renewed) {
        await cancel(answered.answer.lease, deps);
        return false;
      }
      answered = renewed;
    }
  }

  #handoff(): Handoff {
    let isOver = false;
    const over = (): void => {
      if (isOver) return;
      isOver = true;
      this.#isHeld = false;
      this.#ask();
    };
    return {
      handOff: async (from) => {
        const { first: next } = this.#standing;
        if (isOver || !next || this.#localHandoffs >= LOCAL_HANDOFFS_MAX) return false;
        const { deps, params } = next;
        const { leaseMs, owner } = params;
        const news = new Wait(Number.POSITIVE_INFINITY, deps);
        news.heard(refuse("locked"));
        this.#news = news;
        const budgetMs = capBudgetMs(Math.min(leaseMs, HANDOFF_BUDGET_MS), deps.context);
        const bounds = { ...news.bounds(leaseMs, undefined), ...boundsFor(leaseMs, budgetMs) };
        const handed = await transferHold(from, { leaseMs, owner }, bounds, deps);
        if (!handed.answer.ok) return false;
        isOver = true;
        this.#localHandoffs++;
        let isGiven = false;
        try {
          const { answer, ...when } = await ensureFresh({ ...handed, answer: handed.answer }, bounds, deps);
          isGiven = answer.ok && (await this.#give({ answer, ...when }, deps));
        } finally {
          // Also when the transport throws: nobody here has the key, so that the line must ask for it.
          if (!isGiven) {
            this.#isHeld = false;
            this.#ask();
          }
        }
        return true;
      },
      over,
    };
  }

  /** Tells callers how their wait ended, as many as one turn bears. The rest is told in the turns that follow. */
  #tell(): void {
    for (let told = 0; told < TOLD_AT_ONCE && (this.#tellVerdict() || this.#tellTime()); told++);
    this.#setAlarm();
  }

  /** Whether there was somebody left to be told the verdict. */
  #tellVerdict(): boolean {
    if (!this.#verdict) return false;
    const { error, before } = this.#verdict;
    const { first } = this.#standing;
    if (first && first.order < before) {
      this.#leave(first, error);
      return true;
    }
    this.#verdict = undefined;
    this.#ask();
    return false;
  }

  /** Whether somebody's time was over. */
  #tellTime(): boolean {
    const { first } = this.#byTime;
    if (!first || first.leftMs() > 0 || this.#undecidedMs() > 0) return false;
    const what = `acquire ${this.#key}`;
    this.#leave(first, this.#news?.over(what) ?? timeoutOf(what, {}));
    return true;
  }

  /** One timer for all: for whoever's time is over first. */
  #setAlarm(): void {
    const { first } = this.#byTime;
    if (!first) {
      this.#alarm?.timer.cancel();
      this.#alarm = undefined;
      return;
    }
    const { clock } = first.deps;
    const leftMs = first.leftMs();
    // A timer may be early by a fraction of a millisecond: one that found nothing to do must not come again at once.
    const delayMs = this.#verdict ? 0 : leftMs > 0 ? Math.max(1, leftMs) : this.#undecidedMs();
    const dueMs = clock.monotonicMs() + delayMs;
    if (this.#alarm && this.#alarm.dueMs <= dueMs) return;
    this.#alarm?.timer.cancel();
    const timer = clock.after(delayMs, () => {
      this.#alarm = undefined;
      this.#tell();
    });
    this.#alarm = { timer, dueMs };
  }

  /** While the service has said nothing yet, nobody's time is over: see {@link Wait}. */
  #undecidedMs(): number {
    return this.#news?.undecidedMs() ?? 0;
  }

  /** Whether it still stood in line. */
  #remove(waiter: LocalWaiter): boolean {
    const stood = this.#standing.delete(waiter) && this.#byTime.delete(waiter);
    // An alarm for nobody would keep the process from ending.
    if (!this.#byTime.first) this.#setAlarm();
    return stood;
  }

  /** Out of the line; the last one takes the place in the queue with it, before it is told if anybody answers. */
  #leave(waiter: LocalWaiter, error: Error): void {
    if (!this.#remove(waiter)) return;
    if (!this.#asking || this.#standing.size > 0) return waiter.reject(error);
    const { giveUp, ended } = this.#asking;
    waiter.deps.track(ended);
    giveUp.abort(error);
    if (error instanceof LockUnavailableError) waiter.reject(error);
    else void ended.then(() => waiter.reject(error));
  }
}
