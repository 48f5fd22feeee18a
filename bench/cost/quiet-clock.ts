/**
 * Time that passes only while no message is in transit. Requests are real but take only the simulated latency, so an
 * hour of heartbeats passes in a second and gives the same counts in every run.
 */
import type { Timer } from "../../lib/core/time.js";
import { VirtualClock } from "../../lib/testing/virtual-clock.js";

/** Turns of the event loop after which all follow-up requests of a response have been sent. */
const SETTLING_TURNS = 3;

/** A clock that waits for messages in transit. */
export class QuietClock extends VirtualClock {
  readonly #due = new Set<{ readonly atMs: number }>();
  #underWay = 0;
  #quiet: () => void = () => undefined;

  override after(delayMs: number, task: () => void): Timer {
    const due = { atMs: this.monotonicMs() + Math.max(0, delayMs) };
    const timer = super.after(delayMs, () => {
      this.#due.delete(due);
      task();
    });
    this.#due.add(due);
    const cancel = (): void => {
      this.#due.delete(due);
      timer.cancel();
    };
    return { cancel };
  }

  /** Resolves in `ms` of this clock. */
  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void this.after(ms, resolve));
  }

  /** Records that a message is in transit. Time stops until {@link arrived}. */
  sent(): void {
    this.#underWay++;
  }

  /** Records that the message arrived or was answered. */
  arrived(): void {
    if (--this.#underWay === 0) this.#quiet();
  }

  /** Lets time pass until `promise` settles. @throws Error if no timer is due, or after `limitMs`. */
  override async settle<T>(promise: Promise<T>, limitMs = Number.POSITIVE_INFINITY): Promise<T> {
    let done = false;
    const isDone = (): boolean => done;
    const mark = (): void => void (done = true);
    promise.then(mark, mark);
    const untilMs = this.monotonicMs() + limitMs;
    for (;;) {
      await this.#untilQuiet();
      if (isDone()) return promise;
      const nextMs = Math.min(...Array.from(this.#due, ({ atMs }) => atMs));
      if (!(nextMs < untilMs)) throw new Error(`nothing settles it within ${limitMs} ms`);
      await this.advance(nextMs - this.monotonicMs());
    }
  }

  async #untilQuiet(): Promise<void> {
    for (let turns = 0; turns < SETTLING_TURNS; turns++) {
      if (this.#underWay > 0) {
        await new Promise<void>((resolve) => void (this.#quiet = resolve));
        turns = -1;
      } else {
        await new Promise((resolve) => void setImmediate(resolve));
      }
    }
  }
}
