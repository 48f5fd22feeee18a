/**
 * Carries out one logical operation in bounded attempts. The same request is sent again after no response, or after an answer that asks for
 * it; the leaseId in the request makes that safe. Each attempt records when it was sent, because the reply's remaining time counts from
 * then.
 */
import { isA } from "../../core/brand.js";
import { type Backoff, backoffMs } from "../../core/backoff.js";
import { type Refusal, refuseLocally } from "../../core/errors.js";
import { type CallOptions, NoResponse } from "../../core/api/locks.js";
import { type Clock, type Instant, type Timer, elapsedMs, instantOf } from "../../core/time.js";
import { type InvocationContext, isCutShort } from "./invocation.js";
import { type StopSignal, LazyAbort } from "./lazy-abort.js";

/** The clock and randomness of retries. */
export interface Runtime {
  readonly clock: Clock;
  /** Returns 0 to 1, for jitter. */
  readonly random: () => number;
  /** The invocation that bounds the operation, if there is one. */
  readonly context?: InvocationContext | undefined;
}

/** Lets attempts through: see retry-gate.ts. */
export interface Gate {
  /** Resolves when the next attempt may be sent; undefined means at once. */
  turn(isRetry: boolean): Promise<void> | undefined;
  /** Reports an attempt without a usable answer. */
  failed(): void;
  /** Reports an answered attempt. */
  answered(): void;
}

/** The bounds and callbacks of an operation. */
export interface RetryBounds {
  /** The time limit of one attempt, in ms. */
  readonly attemptMs: number;
  /** The time limit of all attempts and pauses together, in ms. */
  readonly budgetMs: number;
  /** Cancels the whole operation. */
  readonly signal?: StopSignal | undefined;
  /** The gate that lets attempts through. */
  readonly gate?: Gate | undefined;
  /** Called when an attempt is sent. */
  readonly onSend?: ((sentAt: Instant) => void) | undefined;
  /** Called for each attempt without a usable answer. */
  readonly onFailedAttempt?: ((refusal: Refusal) => void) | undefined;
  /**
   * True for what must reach the service, such as an outcome: a refusal that is not the service's, of a gateway or for want of credentials, is
   * no final answer (decision 074). @default false
   */
  readonly untilDecided?: boolean | undefined;
  /** True to end with the first attempt, whatever it asks for; only another way, if there is one, is still tried. @default false */
  readonly once?: boolean | undefined;
}

/** An answer, and the time at which its attempt was sent. */
export interface Answered<A> {
  readonly answer: A;
  readonly sentAt: Instant;
  /** True if an earlier attempt of this operation got no response. */
  readonly ambiguous: boolean;
}

/** The shortest attempt that half of a budget gives, in ms: a shorter silence more often means a slow response than a lost one. */
export const SHORT_ATTEMPT_MS = 1000;

/** Returns the bounds of a call about a lease. An attempt is well below the lease and the budget, so that several fit into each. */
export function boundsFor(leaseMs: number, budgetMs: number): { readonly attemptMs: number; readonly budgetMs: number } {
  return { attemptMs: Math.min(leaseMs / 6, 3000, Math.max(SHORT_ATTEMPT_MS, budgetMs / 2)), budgetMs };
}

/** The reason of an attempt that its time limit cut off. */
export const TIMED_OUT = "no answer in time";
/** The number of times that an attempt goes again at once because its kept connection broke: each time, there is one fewer. */
const STALE_MAX = 8;
/** The pauses between attempts: the first, which doubles up to the longest, with full jitter. */
const PAUSES: Backoff = { firstMs: 50, longestMs: 1000 };

/**
 * Sends `attempt` until there is a final answer or the bounds are reached. The answer is then the refusal `unavailable`, or `not-configured`
 * if something else than the service answered. It is definite only if every attempt was definitely refused. It says so if the time limits of
 * an invocation alone were in the way.
 */
export async function retry<A extends { readonly ok: boolean }>(
  attempt: (options: CallOptions) => Promise<A | Refusal>,
  { attemptMs, budgetMs, signal, gate, onSend, onFailedAttempt, untilDecided = false, once = false }: RetryBounds,
  { clock, random, context }: Runtime,
): Promise<Answered<A | Refusal>> {
  const began = instantOf(clock);
  let ambiguous = false;
  let reason: string | undefined;
  /** The last sign that the address is wrong. What only times out afterwards is no outage. */
  let misled: Refusal | undefined;
  /** The answer of the attempt before, if others kept changing the key. A next attempt that only the budget cut off is no outage. */
  let lostRace: Refusal | undefined;
  for (let tries = 0; ; tries++) {
    const turn = gate?.turn(tries > 0);
    if (turn) await turn;
    const sentAt = instantOf(clock);
    const leftMs = budgetMs - elapsedMs(began, sentAt);
    if (turn && (leftMs <= 0 || signal?.aborted)) {
      return { answer: honest(refuseLocally("unavailable", { detail: TIMED_OUT }), ambiguous), sentAt, ambiguous };
    }
    onSend?.(sentAt);
    let outcome = await bounded(attempt, Math.min(attemptMs, leftMs), signal, clock);
    // It may have arrived all the same, so the operation is indefinite from here on.
    for (let again = 0; again < STALE_MAX && isStale(outcome) && !signal?.aborted; again++) {
      ambiguous = true;
      const restMs = budgetMs - elapsedMs(began, instantOf(clock));
      outcome = await bounded(attempt, Math.min(attemptMs, restMs), signal, clock);
    }
    if (isA(outcome, NoResponse)) ambiguous = true;
    else if (!isAgain(outcome) && !(untilDecided && isUndecided(outcome))) {
      gate?.answered();
      ambiguous ||= "definite" in outcome && !outcome.definite;
      return { answer: honest(outcome, ambiguous), sentAt, ambiguous };
    } else if (!outcome.definite) ambiguous = true;
    reason = reasonOf(outcome) ?? reason;
    let failed = isA(outcome, NoResponse) ? unanswered(outcome, reason) : outcome;
    if (failed.code === "not-configured") misled = failed;
    else if (misled && isTimeout(outcome)) failed = misled;
    else if (lostRace && isTimeout(outcome) && leftMs <= attemptMs) failed = lostRace;
    lostRace = failed.code === "contended" ? failed : undefined;
    if (!signal?.aborted) {
      gate?.failed();
      onFailedAttempt?.(failed);
    }

    // The jitter comes on top of the service's time: all whom it refused at one moment would come back at one moment.
    const pauseMs = (failed.retryAfterMs ?? 0) + random() * backoffMs(PAUSES, tries);
    const goneMs = elapsedMs(began, instantOf(clock));
    const isLast = once && outcome.hasOtherWay !== true;
    if (isLast || signal?.aborted || goneMs + pauseMs >= budgetMs) {
      const invocationEnds = reason === undefined && isCutShort(goneMs, context);
      return { answer: honest({ ...failed, ...(invocationEnds && { invocationEnds }) }, ambiguous), sentAt, ambiguous };
    }
    await pause(pauseMs, clock, signal);
  }
}

function isStale(outcome: unknown): boolean {
  return isA(outcome, NoResponse) && outcome.isStale;
}

function isTimeout(outcome: unknown): boolean {
  return isA(outcome, NoResponse) && outcome.message === TIMED_OUT;
}

function unanswered({ message, retryAfterMs, httpStatus, isStranger }: NoResponse, detail = message): Refusal {
  if (isStranger) return refuseLocally("not-configured", { definite: false, retry: "same", detail, httpStatus, undecided: true });
  return refuseLocally("unavailable", { detail, httpStatus, ...(retryAfterMs !== undefined && { retryAfterMs }) });
}

/** Returns the reason of a failed attempt; undefined if a time limit cut it off, because an earlier attempt's reason says more. */
function reasonOf(outcome: NoResponse | Refusal): string | undefined {
  if (isTimeout(outcome)) return undefined;
  return isA(outcome, NoResponse) ? outcome.message : outcome.detail;
}

/** Makes a refusal indefinite if an earlier attempt may have happened. */
function honest<A extends { readonly ok: boolean }>(answer: A | Refusal, ambiguous: boolean): A | Refusal {
  return ambiguous && !answer.ok ? { ...answer, definite: false } : answer;
}

/** A time limit that ends later than this, in ms, ends in a process that stood still: its loop was blocked, or it was frozen. */
const LATE_MS = 50;
/** The time, in ms, in which such a process can still get an answer: perhaps its request was not even sent. */
const HEAR_MS = 500;

/**
 * Runs `task` once after `delayMs`, and after the answers that have arrived by then. Timers run before arrived data is read, so without
 * this, an answer to a process that stood still would look like a service that gave none. A negative time was lost in that way too.
 */
export function timeLimit(delayMs: number, task: () => void, clock: Clock): Timer {
  const began = instantOf(clock);
  let timer = clock.after(delayMs, () => {
    timer = clock.after(elapsedMs(began, instantOf(clock)) > delayMs + LATE_MS ? HEAR_MS : 0, task);
  });
  return { cancel: () => timer.cancel() };
}

/** Resolves after `delayMs`, or at once when `signal` aborts. */
export function pause(delayMs: number, clock: Clock, signal?: StopSignal): Promise<void> {
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

/** Resolves when `work` has settled, or after `mostMs`; the work goes on. */
export async function atMost(mostMs: number, work: Promise<unknown>, clock: Clock): Promise<void> {
  const settled = new LazyAbort();
  const settle = (): void => settled.abort();
  work.then(settle, settle);
  await pause(mostMs, clock, settled);
}

/** True if the service asks for the same request again, or could not decide at the moment. */
export function isAgain(answer: { readonly ok: boolean }): answer is Refusal {
  if (answer.ok) return false;
  const { code, retry } = answer as Refusal;
  return retry === "same" || code === "throttled" || code === "clock-skew";
}

/**
 * True if the service decided nothing about the lease: it asks for the request again, or it was not reached. Straight on the table, missing
 * rights and credentials are of the second kind.
 */
export function isUndecided(answer: { readonly ok: boolean }): answer is Refusal {
  if (answer.ok) return false;
  const { code, undecided = code === "not-configured" } = answer as Refusal;
  return undecided || isAgain(answer);
}

/** Makes one attempt and abandons it after `attemptMs`. It is then unknown if the attempt happened. */
async function bounded<A>(
  attempt: (options: CallOptions) => Promise<A>,
  attemptMs: number,
  signal: StopSignal | undefined,
  clock: Clock,
): Promise<A | NoResponse> {
  const options = new LazyAbort();
  let abandon = (): void => undefined;
  const abandoned = new Promise<NoResponse>((resolve) => {
    abandon = () => {
      // The reason tells a time limit, which has none, from a caller that gives up.
      options.abort(signal?.reason);
      resolve(new NoResponse(TIMED_OUT));
    };
  });
  const timer = timeLimit(attemptMs, abandon, clock);
  signal?.addEventListener("abort", abandon, { once: true });
  if (signal?.aborted) abandon();
  try {
    const answered = attempt(options).catch((error: unknown) => {
      if (isA(error, NoResponse)) return error;
      throw error;
    });
    return await Promise.race([answered, abandoned]);
  } finally {
    timer.cancel();
    signal?.removeEventListener("abort", abandon);
  }
}
