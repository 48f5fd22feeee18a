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
import type { Held } from "../core/commands.js";
import { refuse } from "../core/errors.js";
import { isAlone } from "../core/holding.js";
import type { LeaseRef } from "../core/lock-api.js";
import type { Timer } from "../core/time.js";
import type { Acquiring, Wanted } from "./acquire.js";
import { abortError, cancel, refreshed, tryOnce } from "./acquire.js";
import type { Answered } from "./call.js";
import { boundsFor } from "./call.js";
import { errorOf, LockUnavailableError, timeoutOf } from "./errors.js";
import { handOver } from "./hand-over.js";
import { Heap } from "./heap.js";
import { untilGranted } from "./in-queue.js";
import { capBudgetMs } from "./invocation.js";
import { Wait } from "./wait.js";

/** Hand-overs in a row before the others' turn. */
const MOST_IN_A_ROW = 8;
/** A hand-over is worth this long; after it the key is freed for whoever comes. */
const HAND_OVER_BUDGET_MS = 5000;
/** Callers that are told in one turn of the event loop: some milliseconds of it. */
const TOLD_AT_ONCE = 100;

/** What becomes of a hold when its holder is done. */
export interface Succession {
  /** Hands the hold on; false when nobody here takes it, and it is to be released. */
  handOn(from: LeaseRef): Promise<boolean>;
  /** The hold ended otherwise. */
  over(): void;
}

/** A lease, and what becomes of it after its holder. */
export interface Turn {
  readonly answered: Answered<Held>;
  readonly succession?: Succession;
}

/** The lines of one client, by what is wanted. */
export class Lines {
  readonly #lines = new Map<string, Line>();

  /**
   * Waits for the key; with 0 ms, asks once.
   * @throws LockTimeoutError after `waitMs`, LockUnavailableError in an outage, AbortError when the signal aborts; then nothing is held.
   */
  async turn(wanted: Wanted, waitMs: number, deps: Acquiring): Promise<Turn> {
    const { signal, owner, ...request } = wanted;
    const { mode = "exclusive", limit = 1, scope } = request;
    const wait = new Wait(waitMs, deps);
    if (waitMs <= 0) return { answered: await once(wanted, wait, deps) };
    if (scope !== undefined || !isAlone({ mode, limit })) return { answered: await untilGranted(wanted, wait, deps) };
    const name = JSON.stringify(request);
    const line = this.#lines.get(name) ?? new Line(request, () => void this.#lines.delete(name));
    this.#lines.set(name, line);
    return line.turn(owner, wait, signal, deps);
  }
}

async function once(wanted: Wanted, wait: Wait, deps: Acquiring): Promise<Answered<Held>> {
  const { answer, ...when } = await tryOnce(wanted, wait.bounds(wanted.leaseMs, wanted.signal), deps);
  if (answer.ok) return { answer, ...when };
  const what = `acquire ${wanted.key}`;
  throw answer.code === "locked" ? timeoutOf(what, answer) : errorOf(answer, what);
}

/** What all of a line want. */
type Request = Omit<Wanted, "signal" | "owner">;

/** One caller in line. */
interface Local {
  readonly owner: string;
  readonly deps: Acquiring;
  /** How many came before it. */
  readonly order: number;
  /** When its time is over, by the monotonic clock. */
  readonly dueMs: number;
  readonly leftMs: () => number;
  readonly resolve: (turn: Turn) => void;
  readonly reject: (error: Error) => void;
}

/** The request for the key on behalf of a line. */
interface Asking {
  readonly giveUp: AbortController;
  /** Resolves when it was granted, refused or cleaned up after. */
  readonly ended: Promise<void>;
}

class Line {
  readonly #wanted: Request;
  readonly #onEmpty: () => void;
  readonly #standing = new Heap<Local>(({ order }) => order);
  readonly #byTime = new Heap<Local>(({ dueMs }) => dueMs);
  #arrived = 0;
  #alarm: { readonly timer: Timer; readonly dueMs: number } | undefined;
  #asking: Asking | undefined;
  /** How the request for the key, or the hand-over, fares; undefined while a caller of this line holds the key. */
  #news: Wait | undefined;
  /** Those who came before it are all told the same. */
  #verdict: { readonly error: Error; readonly before: number } | undefined;
  #isHeld = false;
  #inARow = 0;

  constructor(wanted: Request, onEmpty: () => void) {
    this.#wanted = wanted;
    this.#onEmpty = onEmpty;
  }

  turn(owner: string, wait: Wait, signal: AbortSignal | undefined, deps: Acquiring): Promise<Turn> {
    return new Promise<Turn>((resolve, reject) => {
      const settle = (): void => signal?.removeEventListener("abort", abort);
      const local: Local = {
        owner,
        deps,
        order: this.#arrived++,
        dueMs: deps.clock.monotonicMs() + wait.leftMs(),
        leftMs: () => wait.leftMs(),
        resolve(turn) {
          settle();
          resolve(turn);
        },
        reject(error) {
          settle();
          reject(error);
        },
      };
      const abort = (): void => {
        if (signal) this.#leave(local, abortError(signal));
      };
      signal?.addEventListener("abort", abort, { once: true });
      this.#standing.add(local);
      this.#byTime.add(local);
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
    this.#inARow = 0;
    const ended = untilGranted({ ...this.#wanted, owner, signal: giveUp.signal }, news, deps)
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
  async #give(answered: Answered<Held>, deps: Acquiring): Promise<boolean> {
    const { first } = this.#standing;
    if (!first) {
      await cancel(answered.answer.lease, deps);
      return false;
    }
    this.#remove(first);
    this.#isHeld = true;
    this.#news = undefined;
    first.resolve({ answered, succession: this.#succession() });
    return true;
  }

  #succession(): Succession {
    let isOver = false;
    const over = (): void => {
      if (isOver) return;
      isOver = true;
      this.#isHeld = false;
      this.#ask();
    };
    return {
      handOn: async (from) => {
        const { first: next } = this.#standing;
        if (isOver || !next || this.#inARow >= MOST_IN_A_ROW) return false;
        const { leaseMs } = this.#wanted;
        const { deps, owner } = next;
        const news = new Wait(Number.POSITIVE_INFINITY, deps);
        news.heard(refuse("locked"));
        this.#news = news;
        const budgetMs = capBudgetMs(Math.min(leaseMs, HAND_OVER_BUDGET_MS), deps.context);
        const bounds = { ...news.bounds(leaseMs, undefined), ...boundsFor(leaseMs, budgetMs) };
        const handed = await handOver(from, { leaseMs, owner }, bounds, deps);
        if (!handed.answer.ok) return false;
        isOver = true;
        this.#inARow++;
        let isGiven = false;
        try {
          const { answer, ...when } = await refreshed({ ...handed, answer: handed.answer }, bounds, deps);
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
    const what = `acquire ${this.#wanted.key}`;
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
  #remove(local: Local): boolean {
    const stood = this.#standing.delete(local) && this.#byTime.delete(local);
    // An alarm for nobody would keep the process from ending.
    if (!this.#byTime.first) this.#setAlarm();
    return stood;
  }

  /** Out of the line; the last one takes the place in the queue with it, before it is told if anybody answers. */
  #leave(local: Local, error: Error): void {
    if (!this.#remove(local)) return;
    if (!this.#asking || this.#standing.size > 0) return local.reject(error);
    const { giveUp, ended } = this.#asking;
    local.deps.track(ended);
    giveUp.abort(error);
    if (error instanceof LockUnavailableError) local.reject(error);
    else void ended.then(() => local.reject(error));
  }
}
