/**
 * One wait: the time left, and its error at the end. If the service answered "held" within the last second, the wait ends in a timeout,
 * otherwise in an outage. The two must never be confused: in an outage callers may go on without the lock, and while another client holds
 * it they may not.
 */
import type { Waiting } from "../../core/commands.js";
import { type Refusal, refuseLocally } from "../../core/errors.js";
import { type Clock, type Instant, elapsedMs, instantOf } from "../../core/time.js";
import type { StopSignal } from "../transport/lazy-abort.js";
import { type RetryBounds, boundsFor, TIMED_OUT } from "../transport/retry.js";
import { type LockError, errorOf, timeoutOf } from "../errors.js";
import { type InvocationContext, capBudgetMs, firstAnswerMs } from "../invocation.js";

/** If no request was answered for this long, the wait ends as an outage. One attempt that fails after an answer is not one yet. */
const SILENCE_MS = 1000;

/** The dependencies of a wait. */
interface WaitDeps {
  readonly clock: Clock;
  readonly context?: InvocationContext | undefined;
}

/** A wait of `waitMs` that starts now. */
export class Wait {
  readonly #waitMs: number;
  readonly #deps: WaitDeps;
  readonly #began: Instant;
  readonly #onAnswer: () => void;
  #answer: Waiting | Refusal | undefined;
  #failure: Refusal | undefined;
  #silentSince: Instant | undefined;
  /** The part of the silence for which the service may have held a request. A request that failed sooner was not held for longer. */
  #heldMs = 0;
  /** True if an attempt may have been carried out without a response. */
  #ambiguous = false;
  #wasCutShort = false;

  /** @param onAnswer called for every answer after which the wait goes on */
  constructor(waitMs: number, deps: WaitDeps, onAnswer: () => void = () => undefined) {
    this.#waitMs = waitMs;
    this.#deps = deps;
    this.#began = instantOf(deps.clock);
    this.#onAnswer = onAnswer;
  }

  /** The time left, in ms. */
  leftMs(): number {
    return this.#waitMs - this.#ageMs();
  }

  /** The time for which the first answer is still awaited, in ms; 0 after an answer. */
  undecidedMs(): number {
    return this.#answer ? 0 : Math.max(0, firstAnswerMs(this.#waitMs, this.#deps.context) - this.#ageMs());
  }

  /** True if the wait ended at a failed attempt too soon after an answer to call it an outage. */
  get wasCutShort(): boolean {
    return this.#wasCutShort;
  }

  /** Returns the bounds of the next request, which the service may hold for `heldMs` before it answers. */
  bounds(leaseMs: number, signal: StopSignal | undefined, heldMs = 0): RetryBounds {
    const budgetMs = capBudgetMs(Math.max(this.leftMs(), this.undecidedMs()), this.#deps.context);
    const { attemptMs } = boundsFor(leaseMs, budgetMs);
    return {
      attemptMs: attemptMs + heldMs,
      budgetMs,
      signal,
      onSend: (sentAt) => {
        this.#wasCutShort = false;
        if (this.#silentSince) return;
        this.#silentSince = sentAt;
        this.#heldMs = heldMs;
      },
      onFailedAttempt: (refusal) => this.#failed(refusal),
    };
  }

  /** Records an answer after which the wait goes on. */
  answered(answer: Waiting | Refusal): void {
    this.#answer = answer;
    this.#failure = this.#silentSince = undefined;
    this.#onAnswer();
  }

  /**
   * Returns the error for a wait that is over. `leftMs` is the time left of the caller that it is for, if this wait serves several.
   * A silence after a caller's end says nothing: a process that stood still comes here long after it.
   */
  over(what: string, leftMs = this.leftMs()): LockError {
    const answer = this.#answer;
    if (!answer || this.#isSilent(leftMs)) {
      const failure = this.#failure ?? refuseLocally("unavailable", { detail: TIMED_OUT });
      return errorOf({ ...failure, definite: failure.definite && !this.#ambiguous }, what);
    }
    return timeoutOf(what, answer, this.#ageMs());
  }

  /** Returns the error for a refusal that ends the wait. */
  endedBy(refusal: Refusal, what: string): LockError {
    return this.#wasCutShort ? this.over(what) : errorOf(refusal, what);
  }

  #failed(refusal: Refusal): void {
    if (refusal.code === "contended") {
      // The service answered: others use the key.
      this.#answer ??= refusal;
      this.#silentSince = undefined;
    }
    this.#ambiguous ||= !refusal.definite;
    this.#failure = refusal;
    this.#heldMs = Math.min(this.#heldMs, this.#unansweredMs());
    this.#wasCutShort = this.#answer !== undefined && !this.#isSilent();
  }

  #isSilent(leftMs = this.leftMs()): boolean {
    return this.#unansweredMs() + Math.min(0, leftMs) - this.#heldMs >= SILENCE_MS;
  }

  #unansweredMs(): number {
    return this.#silentSince ? this.#elapsedMs(this.#silentSince) : 0;
  }

  #ageMs(): number {
    return this.#elapsedMs(this.#began);
  }

  #elapsedMs(since: Instant): number {
    return elapsedMs(since, instantOf(this.#deps.clock));
  }
}
