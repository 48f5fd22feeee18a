/**
 * The outage that a client met last. For a few seconds, calls that may do without the locks (`whenUnavailable`) are not held up by it again:
 * they get its error at once. After that, one of them at a time asks, and its answer ends the outage.
 */
import { isA } from "../../core/brand.js";
import { type Clock, type Instant, elapsedMs, instantOf } from "../../core/time.js";
import { LockError, LockUnavailableError } from "./errors.js";

/** The time for which no call asks after one that got no answer, in ms. */
export const OUTAGE_LASTS_MS = 3000;

interface Noticed {
  readonly error: LockUnavailableError;
  readonly at: Instant;
  /** The time that the call would have waited for an answer, in ms. */
  readonly patienceMs: number;
}

/** The outage of one client's way to the locks. */
export class Outage {
  readonly #clock: Clock;
  #noticed: Noticed | undefined;
  #isProbed = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Asks, unless a call that was at least as patient got no answer lately: what a hasty call takes for an outage may be a slow answer.
   * @throws LockUnavailableError of that call, or of this one; what `ask` throws
   */
  async ask<A>(patienceMs: number, ask: () => Promise<A>): Promise<A> {
    const noticed = this.#noticed;
    const isMine = noticed !== undefined && patienceMs <= noticed.patienceMs;
    const isOver = noticed === undefined || elapsedMs(noticed.at, instantOf(this.#clock)) >= OUTAGE_LASTS_MS;
    if (isMine && (!isOver || this.#isProbed)) throw noticed.error;
    if (isMine) this.#isProbed = true;
    try {
      const answer = await ask();
      this.#noticed = undefined;
      return answer;
    } catch (error) {
      this.#note(error, patienceMs);
      throw error;
    } finally {
      if (isMine) this.#isProbed = false;
    }
  }

  /** A throttled key says nothing about other keys. */
  #note(error: unknown, patienceMs: number): void {
    if (isA(error, LockUnavailableError)) {
      if (error.code === "unavailable") this.#noticed = { error, at: instantOf(this.#clock), patienceMs };
    } else if (isA(error, LockError)) this.#noticed = undefined;
  }
}
