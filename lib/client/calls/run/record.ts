/**
 * Records the outcome of a run:
 *
 * 1. The work's hold ends, and its signal aborts. The service's lease stays: heartbeats keep it.
 * 2. The outcome is sent for as long as the caller waits. Only the lease that still holds the run can record it; one that was lost tries too,
 *    because nobody may have taken over.
 * 3. Without an answer of the service, the caller is told so. The outcome is sent on in the background until the lease is over, because somebody else would
 *    do the work again after that (decision 032). Closing the client ends it.
 */
import { type Backoff, backoffMs } from "../../../core/backoff.js";
import type { Recorded } from "../../../core/commands.js";
import type { Refusal } from "../../../core/errors.js";
import type { CallOptions } from "../../../core/api/locks.js";
import type { OutcomeInput } from "../../../core/api/runs.js";
import { backgroundClock, elapsedMs, instantOf } from "../../../core/time.js";
import type { AskDeps } from "../../ask/fresh-id.js";
import { capBudgetMs } from "../../wire/invocation.js";
import type { HeldLease } from "../../hold/lease.js";
import type { Session } from "../session.js";
import type { LazyAbort } from "../../wire/lazy-abort.js";
import { type Answered, isUndecided, pause, retry } from "../../wire/retry.js";

/** The time for which the caller waits, in ms. It is longer than that of a release, because an outcome carries a result. */
const CALLER_WAITS_MS = 10_000;
/** The time limit of an attempt, and of each try in the background, in ms. */
const ATTEMPT_MS = 3000;
/** The pauses between the tries in the background. */
const PAUSES: Backoff = { firstMs: 500, longestMs: 20_000 };

type SendOutcome = (options: CallOptions) => Promise<Recorded | Refusal>;

/**
 * Ends the run's hold and records its outcome. Resolves with the answer, or after 10 s with `unavailable`. Nothing goes on after an
 * invocation, so in one it resolves with `unavailable` only when the lease is over.
 */
export async function record(lease: HeldLease, outcome: OutcomeInput, { deps, registry }: Session): Promise<Recorded | Refusal> {
  const { kind, key, leaseId } = lease;
  const recording = lease.conclude();
  const send: SendOutcome = (options) => deps.api.complete({ kind, key, leaseId, outcome }, options);
  const first = retry(send, { attemptMs: ATTEMPT_MS, budgetMs: capBudgetMs(CALLER_WAITS_MS, deps.context), untilDecided: true }, deps);
  const last = registry
    .run(undefined, (giveUp) => sendUntilOver(recording, send, first, giveUp, deps))
    .finally(() => {
      recording.abandon();
    });
  deps.track(last);
  return deps.context ? last : (await first).answer;
}

/** Sends the outcome until there is an answer, the lease is over, or the client is closed. Resolves with the last answer. */
async function sendUntilOver(
  recording: HeldLease,
  send: SendOutcome,
  first: Promise<Answered<Recorded | Refusal>>,
  giveUp: LazyAbort,
  { clock, random, context }: AskDeps,
): Promise<Recorded | Refusal> {
  giveUp.addEventListener("abort", () => {
    recording.abandon();
  });
  const runtime = { random, clock: context ? clock : backgroundClock(clock) };
  const began = instantOf(clock);
  let { answer } = await first;
  for (let tries = 0; isUndecided(answer) && recording.isHeld(); tries++) {
    // A service that takes heartbeats and no outcome must not keep the key for ever.
    if (elapsedMs(began, instantOf(clock)) >= recording.leaseMs) recording.keeper?.end();
    await pause(Math.min(backoffMs(PAUSES, tries) * (0.5 + 0.5 * random()), recording.remainingMs()), runtime.clock, giveUp);
    if (giveUp.aborted) break;
    const before = answer;
    const bounds = { attemptMs: ATTEMPT_MS, budgetMs: capBudgetMs(ATTEMPT_MS, context), signal: giveUp, untilDecided: true };
    ({ answer } = await retry(send, bounds, runtime));
    if (!answer.ok) answer = { ...answer, definite: answer.definite && before.definite };
  }
  return answer;
}
