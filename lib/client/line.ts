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
 */
import type { Held } from "../core/commands.js";
import { isAlone } from "../core/holding.js";
import type { LeaseRef } from "../core/lock-api.js";
import type { Instant, Timer } from "../core/time.js";
import { elapsedMs, instantOf } from "../core/time.js";
import type { Acquiring, Wanted } from "./acquire.js";
import { abortError, cancel, refreshed } from "./acquire.js";
import type { Answered } from "./call.js";
import { attemptMsFor } from "./call.js";
import { LockTimeoutError, timeoutOf } from "./errors.js";
import { handOver } from "./hand-over.js";
import { untilGranted } from "./in-queue.js";

/** Hand-overs in a row before the others' turn. */
const MOST_IN_A_ROW = 8;
/** A hand-over is worth this long; after it the key is freed for whoever comes. */
const HAND_OVER_BUDGET_MS = 5000;

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

  /** Waits for the key. @throws LockTimeoutError after `waitMs`, AbortError when the signal aborts; then nothing is held. */
  async turn(wanted: Wanted, waitMs: number, deps: Acquiring): Promise<Turn> {
    const { signal, owner, ...request } = wanted;
    const { mode = "exclusive", limit = 1, scope } = request;
    if (waitMs <= 0 || scope !== undefined || !isAlone({ mode, limit }))
      return { answered: await untilGranted(wanted, leftOf(waitMs, deps), deps) };
    const name = JSON.stringify(request);
    const line = this.#lines.get(name) ?? new Line(request, deps, () => void this.#lines.delete(name));
    this.#lines.set(name, line);
    return line.turn(owner, leftOf(waitMs, deps), signal);
  }
}

/** How long is left of `waitMs`, from now. */
function leftOf(waitMs: number, { clock }: Pick<Acquiring, "clock">): () => number {
  const began: Instant = instantOf(clock);
  return () => waitMs - elapsedMs(began, instantOf(clock));
}

/** What all of a line want. */
type Request = Omit<Wanted, "signal" | "owner">;

/** One caller in line. */
interface Local {
  readonly owner: string;
  readonly leftMs: () => number;
  readonly resolve: (turn: Turn) => void;
  readonly reject: (error: Error) => void;
}

class Line {
  readonly #wanted: Request;
  readonly #deps: Acquiring;
  readonly #onEmpty: () => void;
  #standing: readonly Local[] = [];
  #asking: AbortController | undefined;
  /** Tells the last one in line that it left, when the place in the queue is gone. */
  #leaving: (() => void) | undefined;
  #isHeld = false;
  #inARow = 0;

  constructor(wanted: Request, deps: Acquiring, onEmpty: () => void) {
    this.#wanted = wanted;
    this.#deps = deps;
    this.#onEmpty = onEmpty;
  }

  turn(owner: string, leftMs: () => number, signal: AbortSignal | undefined): Promise<Turn> {
    const { clock } = this.#deps;
    return new Promise<Turn>((resolve, reject) => {
      const settle = (): void => {
        timer.cancel();
        signal?.removeEventListener("abort", abort);
      };
      const local: Local = {
        owner,
        leftMs,
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
      // A timer may be early, by a fraction of a millisecond or, of a wait of months, by weeks.
      const untilOver = (): Timer =>
        clock.after(Math.max(1, leftMs()), () => (leftMs() > 0 ? (timer = untilOver()) : this.#timeOut(local)));
      let timer = untilOver();
      signal?.addEventListener("abort", abort, { once: true });
      this.#standing = [...this.#standing, local];
      if (signal?.aborted) abort();
      this.#ask();
    });
  }

  /** Asks for the key on behalf of all who stand in line, unless one of them has it. */
  #ask(): void {
    if (this.#asking || this.#isHeld) return;
    const [first] = this.#standing;
    if (!first) return this.#onEmpty();
    const asking = new AbortController();
    this.#asking = asking;
    this.#inARow = 0;
    const leftMs = (): number => Math.max(...this.#standing.map((local) => local.leftMs()));
    void untilGranted({ ...this.#wanted, owner: first.owner, signal: asking.signal }, leftMs, this.#deps)
      .then(
        async (answered) => void (await this.#give(answered)),
        (error: unknown) => {
          // Who came while the last one left is asked for anew; so is who has time left.
          if (asking.signal.aborted) return;
          const isTold = (local: Local): boolean => !(error instanceof LockTimeoutError) || local.leftMs() <= 0;
          const told = this.#standing.filter(isTold);
          this.#standing = this.#standing.filter((local) => !told.includes(local));
          for (const local of told) local.reject(error as Error);
        },
      )
      .finally(() => {
        this.#asking = undefined;
        this.#leaving?.();
        this.#leaving = undefined;
        this.#ask();
      });
  }

  /** The lease to the first in line; whether there was one. If all have left, nobody ever held it. */
  async #give(answered: Answered<Held>): Promise<boolean> {
    const [first, ...rest] = this.#standing;
    if (!first) {
      await cancel(answered.answer.lease, this.#deps);
      return false;
    }
    this.#standing = rest;
    this.#isHeld = true;
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
        const [next] = this.#standing;
        if (isOver || !next || this.#inARow >= MOST_IN_A_ROW) return false;
        const { leaseMs } = this.#wanted;
        const bounds = { attemptMs: attemptMsFor(leaseMs), budgetMs: Math.min(leaseMs, HAND_OVER_BUDGET_MS) };
        const handed = await handOver(from, { leaseMs, owner: next.owner }, bounds, this.#deps);
        if (!handed.answer.ok) return false;
        isOver = true;
        this.#inARow++;
        const { answer, ...when } = await refreshed({ ...handed, answer: handed.answer }, bounds, this.#deps);
        const isGiven = answer.ok && (await this.#give({ answer, ...when }));
        if (!isGiven) {
          this.#isHeld = false;
          this.#ask();
        }
        return true;
      },
      over,
    };
  }

  #timeOut(local: Local): void {
    // Of the last in line the wait itself says how it ended.
    if (this.#asking && this.#standing.every((other) => other.leftMs() <= 0)) return;
    this.#leave(local, timeoutOf(`acquire ${this.#wanted.key}: still held by another`, {}));
  }

  /** Out of the line; the last one takes the place in the queue with it, before it is told. */
  #leave(local: Local, error: Error): void {
    if (!this.#standing.includes(local)) return;
    this.#standing = this.#standing.filter((other) => other !== local);
    if (!this.#asking || this.#standing.length > 0) return local.reject(error);
    this.#leaving = () => local.reject(error);
    this.#asking.abort(error);
  }
}
