/**
 * Time to turn. Timers run in order of their due time when time is turned past them, each followed by
 * everything it set going; nothing ever waits for real.
 */
import type { Clock, Timer } from "../core/time.js";

interface Due {
  readonly dueMs: number;
  readonly order: number;
  readonly task: () => void;
}

/** A clock that stands still until it is turned. */
export class VirtualClock implements Clock {
  #trueMs: number;
  #wallOffsetMs = 0;
  #order = 0;
  readonly #due = new Set<Due>();

  /** @param startMs the epoch time at which it stands; @default 1 January 2027 */
  constructor(startMs: number = Date.UTC(2027, 0, 1)) {
    this.#trueMs = startMs;
  }

  wallMs(): number {
    return this.#trueMs + this.#wallOffsetMs;
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

  /** Lets `ms` pass: every timer due by then runs on time. */
  async advance(ms: number): Promise<void> {
    const untilMs = this.#trueMs + ms;
    await settled();
    for (let next = this.#first(untilMs); next; next = this.#first(untilMs)) {
      this.#trueMs = Math.max(this.#trueMs, next.dueMs);
      this.#run(next);
      await settled();
    }
    this.#trueMs = untilMs;
  }

  /** Lets `ms` pass with this process frozen: timers that fell due run only afterwards, late. */
  async freeze(ms: number): Promise<void> {
    this.#trueMs += ms;
    await this.advance(0);
  }

  /** Moves the clients' wall clock alone, as a correction of their machine's time would; the service's stays true. */
  jumpWall(ms: number): void {
    this.#wallOffsetMs += ms;
  }

  /** Lets time pass until `promise` settles, at most `limitMs`. @throws Error when it doesn't. */
  async settle<T>(promise: Promise<T>, limitMs = 120_000): Promise<T> {
    let done = false;
    const isDone = (): boolean => done;
    const mark = (): void => void (done = true);
    promise.then(mark, mark);
    const untilMs = this.#trueMs + limitMs;
    await settled();
    while (!isDone()) {
      const next = this.#first(untilMs);
      if (!next) throw new Error(`nothing settles it within ${limitMs} ms`);
      this.#trueMs = Math.max(this.#trueMs, next.dueMs);
      this.#run(next);
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
    this.#due.delete(due);
    due.task();
  }
}

/** Resolves when every promise that could go on by itself has. */
function settled(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}
