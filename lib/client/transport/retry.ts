/**
 * One logical operation as bounded attempts. The same request is sent again after silence or an answer
 * that says so: the leaseId in it makes that safe. Each attempt notes when it was sent, for that is
 * what the reply's remaining time counts from.
 */
import type { Backoff } from "../../core/backoff.js";
import { backoffMs } from "../../core/backoff.js";
import type { Refusal } from "../../core/errors.js";
import { refuse } from "../../core/errors.js";
import { NoResponse } from "../../core/api/locks.js";
import type { CallOptions } from "../../core/api/locks.js";
import type { Clock, Instant } from "../../core/time.js";
import { elapsedMs, instantOf } from "../../core/time.js";

/** What an attempt needs of the world. */
export interface Runtime {
  readonly clock: Clock;
  /** From 0 to 1, for jitter. */
  readonly random: () => number;
}

/** What lets attempts through: see retry-gate.ts. */
export interface Gate {
  /** Resolves when the next attempt may be sent; undefined: at once. */
  turn(isRetry: boolean): Promise<void> | undefined;
  /** An attempt brought no answer to go by. */
  failed(): void;
  /** An attempt was answered. */
  answered(): void;
}

/** The bounds of an operation. */
export interface RetryBounds {
  /** One attempt's longest, in ms. */
  readonly attemptMs: number;
  /** All attempts and pauses together, in ms. */
  readonly budgetMs: number;
  /** Gives the whole operation up. */
  readonly signal?: AbortSignal | undefined;
  /** Where attempts wait for each other's success. */
  readonly gate?: Gate | undefined;
  /** Told when an attempt is sent. */
  readonly onSend?: ((sentAt: Instant) => void) | undefined;
  /** Told of each attempt that brought no answer to go by. */
  readonly onFailedAttempt?: ((refusal: Refusal) => void) | undefined;
}

/** An answer, and when the attempt that it answers was sent. */
export interface Answered<A> {
  readonly answer: A;
  readonly sentAt: Instant;
  /** An earlier attempt of this operation stayed without an answer. */
  readonly ambiguous: boolean;
}

/** The least that half of a budget is worth: silence that is shorter is slowness more often than loss. */
const SHORT_ATTEMPT_MS = 1000;

/** The bounds of a call about a lease. One attempt is well below the lease and the budget, so that several fit into each. */
export function boundsFor(leaseMs: number, budgetMs: number): { readonly attemptMs: number; readonly budgetMs: number } {
  return { attemptMs: Math.min(leaseMs / 6, 3000, Math.max(SHORT_ATTEMPT_MS, budgetMs / 2)), budgetMs };
}

const TIMED_OUT = "no answer in time";
/** First pause between attempts; doubles, with full jitter. */
const PAUSES: Backoff = { firstMs: 50, longestMs: 1000 };
/** Longest pause between attempts. */

/**
 * Sends `attempt` until it is answered for good or the bounds are met; then the answer is the refusal
 * `unavailable`, definite only if every attempt was definitely refused.
 */
export async function retry<A extends { readonly ok: boolean }>(
  attempt: (options: CallOptions) => Promise<A | Refusal>,
  { attemptMs, budgetMs, signal, gate, onSend, onFailedAttempt }: RetryBounds,
  { clock, random }: Runtime,
): Promise<Answered<A | Refusal>> {
  const began = instantOf(clock);
  let ambiguous = false;
  let reason: string | undefined;
  for (let tries = 0; ; tries++) {
    const turn = gate?.turn(tries > 0);
    if (turn) await turn;
    const sentAt = instantOf(clock);
    const leftMs = budgetMs - elapsedMs(began, sentAt);
    if (turn && (leftMs <= 0 || signal?.aborted)) {
      return { answer: honest(refuse("unavailable", { detail: "no answer in time" }), ambiguous), sentAt, ambiguous };
    }
    onSend?.(sentAt);
    const outcome = await bounded(attempt, Math.min(attemptMs, leftMs), signal, clock);
    if (outcome instanceof NoResponse) ambiguous = true;
    else if (!isAgain(outcome)) {
      gate?.answered();
      return { answer: honest(outcome, ambiguous), sentAt, ambiguous };
    } else if (!outcome.definite) ambiguous = true;
    reason = reasonOf(outcome) ?? reason;
    const failed = outcome instanceof NoResponse ? refuse("unavailable", { detail: reason ?? outcome.message }) : outcome;
    if (!signal?.aborted) {
      gate?.failed();
      onFailedAttempt?.(failed);
    }

    const pauseMs = Math.max(failed.retryAfterMs ?? 0, random() * backoffMs(PAUSES, tries));
    if (signal?.aborted || elapsedMs(began, instantOf(clock)) + pauseMs >= budgetMs) {
      return { answer: honest(failed, ambiguous), sentAt, ambiguous };
    }
    await pause(pauseMs, clock, signal);
  }
}

/** The reason of a failed attempt: one that was cut off by a time limit has none, and an earlier attempt's tells more. */
function reasonOf(outcome: NoResponse | Refusal): string | undefined {
  if (outcome instanceof NoResponse) return outcome.message === TIMED_OUT ? undefined : outcome.message;
  return outcome.detail;
}

/** A refusal is definite only if no earlier attempt may have happened. */
function honest<A extends { readonly ok: boolean }>(answer: A | Refusal, ambiguous: boolean): A | Refusal {
  return ambiguous && !answer.ok ? { ...answer, definite: false } : answer;
}

/** Resolves after `delayMs`, or at once when `signal` aborts. */
export function pause(delayMs: number, clock: Clock, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const done = (): void => {
      timer.cancel();
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = clock.after(delayMs, done);
    signal?.addEventListener("abort", done, { once: true });
  });
}

/** Resolves when `work` has settled, after `mostMs` at the latest; it goes on meanwhile. */
export async function atMost(mostMs: number, work: Promise<unknown>, clock: Clock): Promise<void> {
  const settled = new AbortController();
  const settle = (): void => settled.abort();
  work.then(settle, settle);
  await pause(mostMs, clock, settled.signal);
}

/** The service's own word that the same request should be sent again, or that it could not decide just now. */
function isAgain(answer: { readonly ok: boolean }): answer is Refusal {
  if (answer.ok) return false;
  const { code, retry } = answer as Refusal;
  return retry === "same" || code === "throttled" || code === "clock-skew";
}

/** One attempt, given up after `attemptMs`: then nobody knows whether it happened. */
async function bounded<A>(
  attempt: (options: CallOptions) => Promise<A>,
  attemptMs: number,
  signal: AbortSignal | undefined,
  clock: Clock,
): Promise<A | NoResponse> {
  const giveUp = new AbortController();
  const abandon = (): void => giveUp.abort();
  const abandoned = new Promise<NoResponse>((resolve) =>
    giveUp.signal.addEventListener("abort", () => resolve(new NoResponse(TIMED_OUT)), { once: true }),
  );
  const timer = clock.after(Math.max(0, attemptMs), abandon);
  signal?.addEventListener("abort", abandon, { once: true });
  if (signal?.aborted) abandon();
  try {
    const answered = attempt({ signal: giveUp.signal }).catch((error: unknown) => {
      if (error instanceof NoResponse) return error;
      throw error;
    });
    return await Promise.race([answered, abandoned]);
  } finally {
    timer.cancel();
    signal?.removeEventListener("abort", abandon);
  }
}
