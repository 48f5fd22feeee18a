/**
 * A virtual clock. Advancing it runs the timers that fall due, in order of their due times, and after each of them everything that it
 * started. Nothing waits in real time.
 */
import type { Clock, Timer } from "../core/time.js";

interface Due {
  readonly dueMs: number;
  readonly order: number;
  readonly task: () => void;
}

/** A clock that stands still until it is advanced. */
export class VirtualClock implements Clock {
  #trueMs: number;
  #wallOffsetMs = 0;
  #order = 0;
  readonly #due = new Set<Due>();

  /** @param startMs the epoch time at which the clock starts; @default 1 January 2027 */
  constructor(startMs: number = Date.UTC(2027, 0, 1)) {
    this.#trueMs = startMs;
  }

  /** The time of day, in whole ms as a machine's is. */
  wallMs(): number {
    return Math.floor(this.#trueMs + this.#wallOffsetMs);
  }

  monotonicMs(): number {
    return this.#trueMs;
  }

  after(delayMs: number, task: () => void): Timer {
    const due: Due = { dueMs: this.#trueMs + Math.max(0, delayMs), order: this.#order++, task };
    this.#due.add(due);
    return { cancel: () => void this.#due.delete(due) };
  }

  inBackground(delayMs: number, task: () => void): Timer {
    return this.after(delayMs, task);
  }

  /** Advances the clock by `ms`. Every timer that is due by then runs on time. */
  async advance(ms: number): Promise<void> {
    const untilMs = this.#trueMs + ms;
    await settled();
    for (let next = this.#first(untilMs); next; next = this.#first(untilMs)) {
      this.#run(next);
      await settled();
    }
    this.#trueMs = untilMs;
  }

  /** Advances the clock by `ms` as if this process were frozen: timers that fall due run only afterwards, late. */
  async freeze(ms: number): Promise<void> {
    this.#trueMs += ms;
    await this.advance(0);
  }

  /** Moves only the clients' wall clock, as a correction of the machine's time would. The service's time stays true. */
  jumpWall(ms: number): void {
    this.#wallOffsetMs += ms;
  }

  /** Advances the clock until `promise` settles, at most by `limitMs`. @throws Error if it doesn't settle in that time. */
  async settle<T>(promise: Promise<T>, limitMs = 120_000): Promise<T> {
    let done = false;
    const isDone = (): boolean => done;
    const mark = (): void => void (done = true);
    promise.then(mark, mark);
    const untilMs = this.#trueMs + limitMs;
    await settled();
    for (let idleTurns = 0; !isDone();) {
      const next = this.#first(untilMs);
      // Work can take several turns of the event loop without a timer.
      if (next) this.#run(next);
      else if (++idleTurns > IDLE_TURNS_MAX) throw new Error(`nothing settles it within ${limitMs} ms`);
      await settled();
    }
    return promise;
  }

  #first(untilMs: number): Due | undefined {
    let first: Due | undefined;
    for (const due of this.#due) {
      if (due.dueMs <= untilMs && (!first || due.dueMs < first.dueMs || (due.dueMs === first.dueMs && due.order < first.order)))
        first = due;
    }
    return first;
  }

  #run(due: Due): void {
    this.#trueMs = Math.max(this.#trueMs, due.dueMs);
    this.#due.delete(due);
    due.task();
  }
}

/** The turns of the event loop for which `settle` waits without a timer. */
const IDLE_TURNS_MAX = 1000;

/** Resolves when every promise that can settle without a timer has settled. */
function settled(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}
