/**
 * Time to turn for a service that really does its I/O: it moves only while a request pauses, so whatever
 * the machine takes to read and write, a wait is over at the very millisecond at which it was due.
 */
import { vi } from "vitest";
import type { Timer } from "../../lib/core/time.js";
import { VirtualClock } from "../../lib/testing/virtual-clock.js";

/** The time limit for a request to pause, in ms of real time. */
const PATIENCE = { timeout: 4_000, interval: 1 };

/** A clock that knows who waits for it. What runs in the background is nobody's pause. */
export class PausingClock extends VirtualClock {
  readonly #pauses = new Set<{ readonly dueMs: number }>();

  override after(delayMs: number, task: () => void): Timer {
    const pause = { dueMs: this.monotonicMs() + Math.max(0, delayMs) };
    const timer = super.after(delayMs, () => {
      this.#pauses.delete(pause);
      task();
    });
    this.#pauses.add(pause);
    const cancel = (): void => {
      this.#pauses.delete(pause);
      timer.cancel();
    };
    return { cancel };
  }

  override inBackground(delayMs: number, task: () => void): Timer {
    return super.after(delayMs, task);
  }

  /** Resolves when `count` requests pause. @throws when they don't. */
  async untilPaused(count = 1): Promise<void> {
    await vi.waitFor(() => {
      if (this.#pauses.size < count) throw new Error(`${this.#pauses.size} of ${count} requests pause`);
    }, PATIENCE);
  }

  /** Lets `ms` pass while `count` requests wait, and goes on waiting. @throws when one was answered before. */
  async passWaiting(ms: number, count = 1): Promise<void> {
    const untilMs = this.monotonicMs() + ms;
    for (;;) {
      await this.untilPaused(count);
      const nextMs = this.#nextMs();
      if (nextMs > untilMs) return this.advance(untilMs - this.monotonicMs());
      await this.advance(nextMs - this.monotonicMs());
    }
  }

  /** Lets time pass, pause by pause, until `promise` settles; says for how long. @throws when no pause comes. */
  async passUntil<T>(promise: Promise<T>): Promise<{ readonly answer: T; readonly passedMs: number }> {
    const beganMs = this.monotonicMs();
    let done = false;
    const mark = (): void => void (done = true);
    promise.then(mark, mark);
    const isDone = (): boolean => done;
    while (!isDone()) {
      await vi.waitFor(() => {
        if (!isDone() && this.#pauses.size === 0) throw new Error("nobody answers, and nobody pauses");
      }, PATIENCE);
      if (!isDone()) await this.advance(this.#nextMs() - this.monotonicMs());
    }
    return { answer: await promise, passedMs: this.monotonicMs() - beganMs };
  }

  #nextMs(): number {
    return Math.min(...Array.from(this.#pauses, ({ dueMs }) => dueMs));
  }
}
