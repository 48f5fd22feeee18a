/**
 * Within one process, those who want the same key in the same way, whoever they are, stand in one line and
 * share one place in the key's queue: ten thousand callers are one waiter. Whoever is done hands the key to the
 * next in line, each with a fencing token of its own, so many times in a row; then the others' turn comes.
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
import type { Held } from "../../core/commands.js";
import { refuse } from "../../core/errors.js";
import { isAlone } from "../../core/lock/compatibility.js";
import type { LeaseRef } from "../../core/api/locks.js";
import type { Timer } from "../../core/time.js";
import type { AcquireDeps, AcquireParams } from "./acquire.js";
import { abortError, cancel, ensureFresh, tryOnce } from "./acquire.js";
import type { Answered } from "../transport/retry.js";
import { boundsFor } from "../transport/retry.js";
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
    const { signal, owner, ...request } = params;
    const { mode = "exclusive", limit = 1, scope } = request;
    const wait = new Wait(waitMs, deps);
    if (waitMs <= 0) return { answered: await once(params, wait, deps) };
    if (scope !== undefined || !isAlone({ mode, limit })) return { answered: await untilGranted(params, wait, deps) };
    const name = JSON.stringify(request);
    const queue = this.#queues.get(name) ?? new LocalQueue(request, () => void this.#queues.delete(name));
    this.#queues.set(name, queue);
    return queue.join(owner, wait, signal, deps);
  }
}

async function once(params: AcquireParams, wait: Wait, deps: AcquireDeps): Promise<Answered<Held>> {
  const { answer, ...when } = await tryOnce(params, wait.bounds(params.leaseMs, params.signal), deps);
  if (answer.ok) return { answer, ...when };
  const what = `acquire ${params.key}`;
  throw answer.code === "locked" ? timeoutOf(what, answer) : errorOf(answer, what);
}

/** What all of a line want. */
type Request = Omit<AcquireParams, "signal" | "owner">;

/** One caller in line. */
interface LocalWaiter {
  readonly owner: string;
  readonly deps: AcquireDeps;
  /** How many came before it. */
  readonly order: number;
  /** When its time is over, by the monotonic clock. */
  readonly dueMs: number;
  readonly leftMs: () => number;
  readonly resolve: (grant: LocalGrant) => void;
  readonly reject: (error: Error) => void;
}

/** The request for the key on behalf of a line. */
interface Asking {
  readonly giveUp: AbortController;
  /** Resolves when it was granted, refused or cleaned up after. */
  readonly ended: Promise<void>;
}

class LocalQueue {
  readonly #params: Request;
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

  constructor(params: Request, onEmpty: () => void) {
    this.#params = params;
    this.#onEmpty = onEmpty;
  }

  join(owner: string, wait: Wait, signal: AbortSignal | undefined, deps: AcquireDeps): Promise<LocalGrant> {
    return new Promise<LocalGrant>((resolve, reject) => {
      const settle = (): void => signal?.removeEventListener("abort", abort);
      const waiter: LocalWaiter = {
        owner,
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
    const { owner, deps } = first;
    const giveUp = new AbortController();
    const news = new Wait(Number.POSITIVE_INFINITY, deps, () => this.#tell());
    this.#news = news;
    this.#localHandoffs = 0;
    const ended = untilGranted({ ...this.#params, owner, signal: giveUp.signal }, news, deps)
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

  /** The lease to the first in line; whether there was one. If all have left, nobody ever held it. */
  async #give(answered: Answered<Held>, deps: AcquireDeps): Promise<boolean> {
    const { first } = this.#standing;
    if (!first) {
      await cancel(answered.answer.lease, deps);
      return false;
    }
    this.#remove(first);
    this.#isHeld = true;
    this.#news = undefined;
    first.resolve({ answered, handoff: this.#handoff() });
    return true;
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
        const { leaseMs } = this.#params;
        const { deps, owner } = next;
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
    const what = `acquire ${this.#params.key}`;
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
