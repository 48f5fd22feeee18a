/** One wait for all callers of a local queue. It has no end: the end of each caller cuts the pause, as if that caller were alone. */
import { type Clock, type Instant, elapsedMs, instantOf } from "../../core/time.js";
import { LazyAbort } from "../wire/lazy-abort.js";
import { type WaitDeps, type WaitEnd, Wait } from "./wait.js";

/** A wait without an end, whose pauses are cut. */
export class SharedWait implements WaitEnd {
  readonly wait: Wait;
  readonly #clock: Clock;
  readonly #onEnd: () => void;
  #hurry = new LazyAbort();
  /** The time until which the last request is awaited of the callers whose end cut the pause, and when the one before it was answered. */
  #awaitedUntilMs = 0;
  #ended: Instant | undefined;

  /** @param onEnd called when a last request was answered without a grant */
  constructor(deps: WaitDeps, onEnd: () => void = () => undefined) {
    this.wait = new Wait(Number.POSITIVE_INFINITY, deps, this);
    this.#clock = deps.clock;
    this.#onEnd = onEnd;
  }

  leftMs(): number {
    return Number.POSITIVE_INFINITY;
  }

  get hurry(): LazyAbort {
    return this.#hurry;
  }

  goesOn(): boolean {
    this.#hurry = new LazyAbort();
    this.#ended = instantOf(this.#clock);
    this.#onEnd();
    return true;
  }

  /** The time in ms for which the last request of a caller is awaited whose wait ended `overMs` ago. The first such caller cuts the pause. */
  lastMs(overMs: number): number {
    if (this.#ended && elapsedMs(this.#ended, instantOf(this.#clock)) <= overMs) return 0;
    const nowMs = this.#clock.monotonicMs();
    if (!this.#hurry.aborted) this.#awaitedUntilMs = nowMs + this.wait.awaitedMs();
    this.#hurry.abort();
    return Math.max(0, this.#awaitedUntilMs - nowMs);
  }
}
