/**
 * One wait: how long is left of it, and how it ends when nothing is left. A service that last said "held" makes the end
 * a time-out; one that did not answer makes it an outage. The two must never be mixed up: callers may go on without
 * the lock in an outage, and may not while another holds it.
 */
import type { Waiting } from "../../core/commands.js";
import { refuse } from "../../core/errors.js";
import type { Refusal } from "../../core/errors.js";
import type { Clock, Instant } from "../../core/time.js";
import { elapsedMs, instantOf } from "../../core/time.js";
import type { RetryBounds } from "../transport/retry.js";
import { boundsFor } from "../transport/retry.js";
import type { LockError } from "../errors.js";
import { errorOf, timeoutOf } from "../errors.js";
import type { InvocationContext } from "../invocation.js";
import { capBudgetMs, firstAnswerMs } from "../invocation.js";

/** A request that is out for so long without an answer makes the end of the wait an outage, whatever was said before. */
const SILENCE_MS = 1000;

/** What a wait needs of its client. */
interface WaitDeps {
  readonly clock: Clock;
  readonly context?: InvocationContext | undefined;
}

/** A wait of `waitMs`, from now. */
export class Wait {
  readonly #waitMs: number;
  readonly #deps: WaitDeps;
  readonly #began: Instant;
  readonly #onAnswer: () => void;
  #answer: Waiting | Refusal | undefined;
  #failure: Refusal | undefined;
  #silentSince: Instant | undefined;
  /** An attempt may have been carried out, and nobody knows. */
  #ambiguous = false;
  #wasCutShort = false;

  /** @param onAnswer told of every answer that leaves the key to be waited for */
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

  /** For how much longer the first answer is worth waiting for, in ms; 0 when there was an answer. */
  undecidedMs(): number {
    return this.#answer ? 0 : Math.max(0, firstAnswerMs(this.#waitMs, this.#deps.context) - this.#ageMs());
  }

  /** The last attempt ended with the wait, too soon to tell an outage from an answer on its way. */
  get wasCutShort(): boolean {
    return this.#wasCutShort;
  }

  /** The bounds of the next request, which the service may hold for `heldMs` before it answers. */
  bounds(leaseMs: number, signal: AbortSignal | undefined, heldMs = 0): RetryBounds {
    const budgetMs = capBudgetMs(Math.max(this.leftMs(), this.undecidedMs()), this.#deps.context);
    const { attemptMs } = boundsFor(leaseMs, budgetMs);
    return {
      attemptMs: attemptMs + heldMs,
      budgetMs,
      signal,
      onSend: (sentAt) => void (this.#silentSince ??= sentAt),
      onFailedAttempt: (refusal) => this.#failed(refusal),
    };
  }

  /** Notes an answer that leaves the key to be waited for. */
  heard(answer: Waiting | Refusal): void {
    this.#answer = answer;
    this.#failure = this.#silentSince = undefined;
    this.#onAnswer();
  }

  /** The error for a wait that is over. */
  over(what: string): LockError {
    const answer = this.#answer;
    const isSilent = this.#silentSince !== undefined && this.#elapsedMs(this.#silentSince) >= SILENCE_MS;
    if (!answer || this.#failure || isSilent) {
      const failure = this.#failure ?? refuse("unavailable", { detail: "no answer in time" });
      return errorOf({ ...failure, definite: failure.definite && !this.#ambiguous }, what);
    }
    return timeoutOf(what, answer, this.#ageMs());
  }

  #failed(refusal: Refusal): void {
    this.#ambiguous ||= !refusal.definite;
    this.#wasCutShort =
      this.#answer !== undefined && !this.#failure && this.leftMs() <= 0 && this.#elapsedMs(this.#silentSince ?? this.#began) < SILENCE_MS;
    if (!this.#wasCutShort) this.#failure = refusal;
  }

  #ageMs(): number {
    return this.#elapsedMs(this.#began);
  }

  #elapsedMs(since: Instant): number {
    return elapsedMs(since, instantOf(this.#deps.clock));
  }
}
