/**
 * One wait: the time left, and its error at the end. The end cuts every pause, and the request after it asks for the key: what was free
 * before the end is granted (L9, docs/guarantees.md; decision 055). If the service answered "held" within the last second, the wait ends in a timeout,
 * otherwise in an outage. The two must never be confused: in an outage callers may go on without the lock, and while another client holds
 * it they may not (decision 073).
 */
import type { Waiting } from "../../core/commands.js";
import { type ErrorCode, type Refusal, refuseLocally } from "../../core/errors.js";
import { type Clock, type Instant, elapsedMs, instantOf } from "../../core/time.js";
import type { StopSignal } from "../wire/lazy-abort.js";
import { type RetryBounds, boundsFor, pause, TIMED_OUT } from "../wire/retry.js";
import { LockError, errorOf, timeoutOf } from "../wire/errors.js";
import { type InvocationContext, ANSWER_MS, capBudgetMs, firstAnswerMs, isCutShort } from "../wire/invocation.js";

/** If no request was answered for this long, the wait ends as an outage. One attempt that fails after an answer is not one yet. */
const SILENCE_MS = 1000;
/** The longest time by which an id is made to look older than it is. The service takes none that was made a quarter of an hour ago. */
const OLDEST_MS = 600_000;

/** The refusals that don't say that anybody holds the key. */
const HOLDERLESS: ReadonlySet<ErrorCode> = new Set(["contended", "key-full"]);

export interface WaitDeps {
  readonly clock: Clock;
  readonly context?: InvocationContext | undefined;
}

/** The end of a wait that serves several callers, or has several times. */
export interface WaitEnd {
  /** The time in ms until the end. */
  leftMs(): number;
  /** Cuts the pause in place of the caller's signal. The request after that is the last for a caller, and asks for the key. */
  readonly hurry?: StopSignal;
  /** Called when the last request was answered without a grant. Returns true if the wait goes on, for others. */
  goesOn?(): boolean;
  /** Called with each answer after which the wait goes on. */
  answered?(answer: Waiting | Refusal): void;
}

/** A wait that starts now: of `waitMs`, unless it is given an end of its own. */
export class Wait {
  readonly #waitMs: number;
  readonly #deps: WaitDeps;
  readonly #end: WaitEnd;
  readonly #began: Instant;
  #answer: Waiting | Refusal | undefined;
  #failure: Refusal | undefined;
  #silentSince: Instant | undefined;
  /** The part of the silence for which the service may have held a request. A request that failed sooner was not held for longer. */
  #heldMs = 0;
  /** True if an attempt may have been carried out without a response. */
  #ambiguous = false;
  #wasCutShort = false;

  constructor(waitMs: number, deps: WaitDeps, end: WaitEnd = { leftMs: () => waitMs - this.#ageMs() }) {
    this.#waitMs = waitMs;
    this.#deps = deps;
    this.#end = end;
    this.#began = instantOf(deps.clock);
  }

  /** The time in ms until the end. */
  leftMs(): number {
    return this.#end.leftMs();
  }

  /** The time in ms that this wait has lasted outside a full queue. Those who came first get the next places in it. */
  outsideMs(): number {
    const answer = this.#answer;
    return answer?.ok === false && answer.code === "queue-full" ? Math.min(this.#ageMs(), OLDEST_MS) : 0;
  }

  /** True if the time is over: the next request is the last, and asks for the key. */
  isEnding(): boolean {
    return this.#end.hurry?.aborted ?? this.leftMs() <= 0;
  }

  /** Tells the end that the last request was answered without a grant. @throws the error of {@link over}, unless the wait goes on for others */
  end(what: string): void {
    if (!this.#end.goesOn?.()) throw this.over(what);
  }

  /** Resolves after `delayMs`, or at the end of the wait, or when `signal` aborts. */
  pause(delayMs: number, signal: StopSignal | undefined): Promise<void> {
    return pause(Math.min(delayMs, Math.max(0, this.leftMs())), this.#deps.clock, this.#end.hurry ?? signal);
  }

  /**
   * The time in ms for which an answer is awaited, even after the end: that of the first request, and of the last one. In an outage there is
   * none.
   */
  awaitedMs(): number {
    if (!this.#answer) return Math.max(0, firstAnswerMs(this.#waitMs, this.#deps.context) - this.#ageMs());
    return this.#failure || this.#isSilent() ? 0 : ANSWER_MS;
  }

  /** True if the wait ended at a failed attempt too soon after an answer to call it an outage. */
  get wasCutShort(): boolean {
    return this.#wasCutShort;
  }

  /** Returns the bounds of the next request, which the service may hold for `heldMs` before it answers. */
  bounds(leaseMs: number, signal: StopSignal | undefined, heldMs = 0): RetryBounds {
    const budgetMs = capBudgetMs(Math.max(this.leftMs(), this.awaitedMs()), this.#deps.context);
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
    this.#end.answered?.(answer);
  }

  /**
   * Returns the error for a wait that is over. `leftMs` and `context` are those of the caller that it is for, if this wait serves several.
   * A silence after a caller's end says nothing: a process that stood still comes here long after it. So does one that its invocation ended.
   */
  over(what: string, leftMs = this.leftMs(), context = this.#deps.context): LockError {
    const answer = this.#answer;
    const failure = this.#failure ?? refuseLocally("unavailable", { detail: TIMED_OUT });
    const invocationEnds = failure.detail === TIMED_OUT && isCutShort(this.#unansweredMs(), context);
    if (!answer || (this.#isSilent(leftMs) && !invocationEnds))
      return errorOf({ ...failure, definite: failure.definite && !this.#ambiguous, invocationEnds }, what);
    const cause = !answer.ok && HOLDERLESS.has(answer.code) ? new LockError(answer.detail, answer) : undefined;
    return timeoutOf(what, { ...answer, cause }, this.#ageMs());
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
