/**
 * The callers of one process that wait for the same key stand in one local queue and share one place in the key's queue, whatever their
 * owner, meta or invocation: ten thousand callers are one waiter (decision 019 has what it earns). After a release, the key goes to the next local caller, with a new
 * fencing token each time. After a number of local handoffs in a row, waiters of other processes get their turn. Each priority has a local
 * queue of its own, and no hold is handed on while a caller of a higher priority waits: the key's queue serves that one first.
 *
 *   asking ──granted──▶ held by the first waiter ──released──▶ handoff to the next, or freed
 *      ▲                                                                      │
 *      └──────────────── while there are local waiters ◀──────────────────────┘
 *
 * Only exclusive requests of mutexes use the local queue: readers and permits can hold together, and a scope bypasses the queue.
 *
 * The queue's request has no time limit; each caller has its own, and its wait ends as it would have ended alone: after a last request for
 * the key. Joining and leaving take a few steps in a queue of any length. Callers whose time is over are settled in batches, between which
 * the process's other work continues.
 */
import { canonicalJson } from "../../core/canonical.js";
import type { Held } from "../../core/commands.js";
import { type Refusal, refuseLocally } from "../../core/errors.js";
import { isAlone } from "../../core/lock/compatibility.js";
import { priorityMax } from "../../core/request-limits.js";
import type { LeaseRef } from "../../core/api/locks.js";
import type { Timer } from "../../core/time.js";
import { type AskDeps, type AcquireParams, abortError, cancel, ensureFresh, transferHold, tryOnce } from "./fresh-id.js";
import { LazyAbort } from "../wire/lazy-abort.js";
import { type Answered, type RetryBounds, boundsFor, timeLimit } from "../wire/retry.js";
import { isUnanswered, timeoutOf } from "../wire/errors.js";
import { Heap } from "./heap.js";
import { SharedWait } from "./shared-wait.js";
import { untilGranted } from "./until-granted.js";
import { type InvocationContext, capBudgetMs, remainingMs } from "../wire/invocation.js";
import { Wait } from "./wait.js";

/** The number of local handoffs in a row before other processes get their turn. */
const LOCAL_HANDOFFS_MAX = 8;
/** The budget of a handoff, in ms. After it, the key is freed for any waiter. */
const HANDOFF_BUDGET_MS = 5000;
/** Changes of one grant for callers that leave before they get it. */
const CHANGES_MAX = 5;
/** The priorities above the default. */
const PRIORITIES: readonly number[] = Array.from({ length: priorityMax }, (_, index) => index + 1);
/** The number of callers settled in one turn of the event loop, which takes some milliseconds. */
const SETTLED_PER_TURN = 100;

/** The handoff of a hold when its holder is done. */
export interface Handoff {
  /**
   * Hands the hold to the next local waiter, within the invocation of the one who releases it. Returns false if there is none, and the
   * hold is to be released.
   */
  handOff(from: LeaseRef, context: InvocationContext | undefined): Promise<boolean>;
  /** Reports that the hold ended in another way. */
  over(): void;
}

/** A lease and its handoff. */
export interface LocalGrant {
  readonly answered: Answered<Held>;
  readonly handoff?: Handoff;
}

/** The local queues of one client, by the parameters that its callers have in common. */
export class LocalQueues {
  readonly #queues = new Map<string, LocalQueue>();
  readonly #onEmpty = ({ name }: LocalQueue): void => void this.#queues.delete(name);

  /**
   * Waits for the key; with 0 ms, asks once.
   * @throws LockTimeoutError after `waitMs`, LockUnavailableError in an outage, AbortError if the signal aborts; then nothing is held.
   */
  async join(params: AcquireParams, waitMs: number, deps: AskDeps): Promise<LocalGrant> {
    // A handoff gives the hold the owner, length and meta of its next caller. Callers that differ in anything else don't share a place.
    const { owner: _owner, leaseMs: _leaseMs, meta: _meta, signal: _signal, ...others } = params;
    const { mode = "exclusive", limit = 1, permits = 1, priority = 0, scope, ...shared } = others;
    const wait = new Wait(waitMs, deps);
    if (waitMs <= 0) return { answered: await askOnce(params, wait, deps) };
    if (scope !== undefined || !isAlone({ mode, limit })) return { answered: await untilGranted(params, wait, deps) };
    const nameOf = (rank: number): string => JSON.stringify({ ...shared, permits, priority: rank });
    const isOutranked = (): boolean => PRIORITIES.some((rank) => rank > priority && this.#queues.get(nameOf(rank))?.hasWaiters);
    const name = nameOf(priority);
    const queue = this.#queues.get(name) ?? new LocalQueue(params.key, name, isOutranked, this.#onEmpty);
    this.#queues.set(name, queue);
    return queue.join(params, wait, deps);
  }
}

async function askOnce(params: AcquireParams, wait: Wait, deps: AskDeps): Promise<Answered<Held>> {
  const { answer, ...when } = await tryOnce(params, wait.bounds(params.leaseMs, params.signal), deps);
  if (answer.ok) return { answer, ...when };
  throw timeoutOf(`acquire ${params.key}`, answer);
}

/** One caller in the queue. */
interface LocalWaiter {
  /** The caller's own owner, meta and lease length. The request for the key, and each handoff, carries those of one caller. */
  readonly params: AcquireParams;
  readonly deps: AskDeps;
  /** The number of callers that joined before it. */
  readonly order: number;
  /** The end of its wait, by the monotonic clock. */
  readonly dueMs: number;
  readonly leftMs: () => number;
  readonly resolve: (grant: LocalGrant) => void;
  readonly reject: (error: Error) => void;
}

const orderOf = ({ order }: LocalWaiter): number => order;
const dueMsOf = ({ dueMs }: LocalWaiter): number => dueMs;

/** A grant, and the parameters of the caller for whom it was made. */
interface MadeGrant {
  readonly answered: Answered<Held>;
  readonly params: AcquireParams;
}

/** True if a hold of `made` fits a caller that asked for `params`. */
function suits(made: AcquireParams, params: AcquireParams): boolean {
  if (made === params) return true;
  const { leaseMs, owner, meta = {} } = made;
  return owner === params.owner && leaseMs >= params.leaseMs && canonicalJson(meta) === canonicalJson(params.meta ?? {});
}

/** Transfers the hold to this caller, with its owner, length and meta. */
function transferTo({ params, deps }: LocalWaiter, from: LeaseRef, bounds: RetryBounds): Promise<Answered<Held | Refusal>> {
  const { leaseMs, owner, meta = {} } = params;
  return transferHold(from, { leaseMs, owner, meta }, bounds, deps);
}

/** Returns the bounds of a handoff within this invocation. */
function handoffBounds(leaseMs: number, context: InvocationContext | undefined): RetryBounds {
  return boundsFor(leaseMs, capBudgetMs(Math.min(leaseMs, HANDOFF_BUDGET_MS), context));
}

/** The request for the key on behalf of the queue. */
interface Asking {
  readonly giveUp: LazyAbort;
  /** Resolves when the request was granted, refused or cleaned up. */
  readonly ended: Promise<void>;
}

/** The handoff of one grant. */
class LocalHandoff implements Handoff {
  readonly #queue: LocalQueue;
  /** True if the hold went to the next waiter, or ended. */
  isOver = false;

  constructor(queue: LocalQueue) {
    this.#queue = queue;
  }

  async handOff(from: LeaseRef, context: InvocationContext | undefined): Promise<boolean> {
    return !this.isOver && this.#queue.handOff(from, this, context);
  }

  over(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.#queue.freed();
  }
}

class LocalQueue {
  readonly #onEmpty: (queue: LocalQueue) => void;
  readonly #waiters = new Heap(orderOf);
  readonly #byTime = new Heap(dueMsOf);
  #arrived = 0;
  #timer: { readonly timer: Timer; readonly dueMs: number } | undefined;
  #asking: Asking | undefined;
  /** The state of the request for the key, or of the handoff; undefined while a caller of this queue holds the key. */
  #pendingWait: SharedWait | undefined;
  /** The error for all callers that joined before it. */
  #failure: { readonly error: Error; readonly before: number } | undefined;
  #isHeld = false;
  /** The caller that left last. */
  #lastToLeave: LocalWaiter | undefined;
  #localHandoffs = 0;

  constructor(
    readonly key: string,
    readonly name: string,
    /** True if callers of a higher priority wait in this process. */
    readonly isOutranked: () => boolean,
    onEmpty: (queue: LocalQueue) => void,
  ) {
    this.#onEmpty = onEmpty;
  }

  get hasWaiters(): boolean {
    return this.#waiters.size > 0;
  }

  join(params: AcquireParams, wait: Wait, deps: AskDeps): Promise<LocalGrant> {
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
      this.#waiters.add(waiter);
      this.#byTime.add(waiter);
      if (signal?.aborted) abort();
      this.#setTimer();
      this.#ask();
    });
  }

  /** Asks for the key on behalf of all waiters, unless one of them holds it. */
  #ask(): void {
    if (this.#asking || this.#isHeld || this.#failure) return;
    const { first } = this.#waiters;
    if (!first) return this.#onEmpty(this);
    const { params } = first;
    const deps: AskDeps = { ...first.deps, context: { getRemainingTimeInMillis: () => this.#remainingMs() } };
    const giveUp = new LazyAbort();
    const shared = new SharedWait(deps, () => this.#settleBatch());
    this.#pendingWait = shared;
    this.#localHandoffs = 0;
    const ended = untilGranted({ ...params, signal: giveUp }, shared.wait, deps)
      .then(
        async (answered) => {
          // It was answered: if the grant is spoilt, waits that are over end before the key is asked for again.
          this.#pendingWait = undefined;
          await this.#give({ answered, params }, deps, giveUp);
        },
        (error: unknown) => {
          // Callers that joined while the last waiter left get a new request.
          if (!giveUp.aborted) this.#failure = { error: error as Error, before: this.#arrived };
        },
      )
      .finally(() => {
        this.#asking = undefined;
        this.#settleBatch();
        this.#ask();
      });
    this.#asking = { giveUp, ended };
  }

  /** The time of the queue's request, in ms: no invocation bounds it while callers wait. Its cancel has the time of the last one to leave. */
  #remainingMs(): number {
    const last = this.#waiters.first ? undefined : this.#lastToLeave;
    return last?.deps.context ? remainingMs(last.deps.context) : Number.POSITIVE_INFINITY;
  }

  /**
   * Gives the lease to the first waiter, by a transfer if it was made for another that has left. Returns false if all have left, or if the
   * transfer fails or is given up: then the lease is cancelled, and no caller ever held it.
   */
  async #give(granted: MadeGrant, deps: AskDeps, giveUp?: LazyAbort): Promise<boolean> {
    for (let changes = 0; ; changes++) {
      const { first } = this.#waiters;
      const { answered, params } = granted;
      if (first && suits(params, first.params)) {
        this.#remove(first);
        this.#isHeld = true;
        this.#pendingWait = undefined;
        first.resolve({ answered, handoff: new LocalHandoff(this) });
        return true;
      }
      const { lease } = answered.answer;
      const bounds = { ...handoffBounds(lease.leaseMs, first?.deps.context), signal: giveUp };
      const handed = first && changes < CHANGES_MAX ? await transferTo(first, lease, bounds).catch(() => undefined) : undefined;
      if (!first || !handed?.answer.ok) {
        await cancel(lease, deps);
        return false;
      }
      granted = { answered: { ...handed, answer: handed.answer }, params: first.params };
    }
  }

  /** Hands the hold of `from` to the next waiter. Returns false if there is none, and the hold is to be released. */
  async handOff(from: LeaseRef, handoff: LocalHandoff, context: InvocationContext | undefined): Promise<boolean> {
    const { first: next } = this.#waiters;
    if (!next || this.#localHandoffs >= LOCAL_HANDOFFS_MAX || this.isOutranked()) return false;
    const { deps, params } = next;
    const shared = new SharedWait(deps);
    shared.wait.answered(refuseLocally("locked"));
    this.#pendingWait = shared;
    const bounds = { ...shared.wait.bounds(params.leaseMs, undefined), ...handoffBounds(params.leaseMs, context) };
    const handed = await transferTo(next, from, bounds);
    if (!handed.answer.ok) return false;
    handoff.isOver = true;
    this.#localHandoffs++;
    let isGiven = false;
    try {
      const { answer, ...when } = await ensureFresh({ ...handed, answer: handed.answer }, bounds, deps);
      isGiven = answer.ok && (await this.#give({ answered: { answer, ...when }, params }, deps));
    } finally {
      // Also if the transport throws: no caller here has the key, so the queue must ask for it.
      if (!isGiven) this.freed();
      this.#settleBatch();
    }
    return true;
  }

  /** Asks for the key again: no caller of this queue holds it. */
  freed(): void {
    this.#isHeld = false;
    this.#ask();
  }

  /** Settles callers whose wait ended, one batch per turn of the event loop. */
  #settleBatch(): void {
    for (let settled = 0; settled < SETTLED_PER_TURN && (this.#rejectFailed() || this.#rejectOverdue()); settled++);
    this.#setTimer();
  }

  /** Settles one caller with the verdict. Returns true if there was one left. */
  #rejectFailed(): boolean {
    if (!this.#failure) return false;
    const { error, before } = this.#failure;
    const { first } = this.#waiters;
    if (first && first.order < before) {
      this.#leave(first, error);
      return true;
    }
    this.#failure = undefined;
    this.#ask();
    return false;
  }

  /** Settles the caller whose time is over first. Returns true if there was one. */
  #rejectOverdue(): boolean {
    const { first } = this.#byTime;
    if (!first || this.#leftMs(first) > 0) return false;
    const what = `acquire ${this.key}`;
    this.#leave(first, this.#pendingWait?.wait.over(what, first.leftMs(), first.deps.context) ?? timeoutOf(what, {}));
    return true;
  }

  /** Sets one timer for the whole queue, for the wait that ends first. */
  #setTimer(): void {
    const { first } = this.#byTime;
    if (!first) {
      this.#timer?.timer.cancel();
      this.#timer = undefined;
      return;
    }
    const { clock } = first.deps;
    const delayMs = this.#failure ? 0 : this.#leftMs(first);
    const dueMs = clock.monotonicMs() + delayMs;
    if (this.#timer && this.#timer.dueMs <= dueMs) return;
    this.#timer?.timer.cancel();
    const settle = (): void => {
      this.#timer = undefined;
      this.#settleBatch();
    };
    const timer = timeLimit(delayMs, settle, clock);
    this.#timer = { timer, dueMs };
  }

  /** The time, in ms, until this caller is told that its wait is over: what is left of the wait, or the time of its last request. */
  #leftMs({ leftMs }: LocalWaiter): number {
    const waitLeftMs = leftMs();
    return waitLeftMs > 0 ? waitLeftMs : (this.#pendingWait?.lastMs(-waitLeftMs) ?? 0);
  }

  /** Removes a waiter. Returns true if it was in the queue. */
  #remove(waiter: LocalWaiter): boolean {
    const stood = this.#waiters.delete(waiter) && this.#byTime.delete(waiter);
    // A timer without waiters would keep the process from ending.
    if (!this.#byTime.first) this.#setTimer();
    return stood;
  }

  /**
   * Removes the waiter and rejects it. The last waiter also gives up the place in the key's queue, and is rejected after that if the
   * service answers.
   */
  #leave(waiter: LocalWaiter, error: Error): void {
    if (!this.#remove(waiter)) return;
    this.#lastToLeave = waiter;
    if (!this.#asking || this.#waiters.size > 0) return waiter.reject(error);
    const { giveUp, ended } = this.#asking;
    waiter.deps.track(ended);
    giveUp.abort(error);
    this.#pendingWait?.hurry.abort();
    if (isUnanswered(error)) waiter.reject(error);
    else void ended.then(() => waiter.reject(error));
  }
}
