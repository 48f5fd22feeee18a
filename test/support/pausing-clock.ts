/**
 * A simulated clock for a service that does real I/O. Time passes only while a request waits on the clock. So a wait
 * ends at exactly the millisecond at which it was due, however long the machine takes to read and write.
 */
import { vi } from "vitest";
import type { Timer } from "../../lib/core/time.js";
import { VirtualClock } from "../../lib/testing/virtual-clock.js";
import { PATIENCE } from "./patience.js";

/** A clock that counts the waiting requests. Background timers don't count. */
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

  /** Resolves when `count` requests wait on the clock. @throws if they don't. */
  async untilPaused(count = 1): Promise<void> {
    await vi.waitFor(() => {
      if (this.#pauses.size < count) throw new Error(`${this.#pauses.size} of ${count} requests pause`);
    }, PATIENCE);
  }

  /** Lets `ms` pass while `count` requests keep waiting. @throws if one of them was answered before. */
  async passWaiting(ms: number, count = 1): Promise<void> {
    const untilMs = this.monotonicMs() + ms;
    for (;;) {
      await this.untilPaused(count);
      const nextMs = this.#nextMs();
      if (nextMs > untilMs) return this.advance(untilMs - this.monotonicMs());
      await this.advance(nextMs - this.monotonicMs());
    }
  }

  /** Lets time pass, wait by wait, until `promise` settles, and returns the time passed. @throws if no request waits. */
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
