/**
 * Acquires a key, whatever messages get lost:
 *
 * 1. Each try uses a new leaseId, and all attempts of a try use the same id.
 * 2. If it is granted, now or by an attempt whose reply was lost, the result is the lease.
 * 3. If it is locked, that is an answer. An id with an attempt that got no response is cancelled first, so that a late duplicate can't
 *    create a lease without an owner.
 * 4. A try that ends without an answer is cancelled and reported as unavailable.
 */
import { isA } from "../../core/brand.js";
import type { Held, Waiting } from "../../core/commands.js";
import { type Refusal, refuseLocally } from "../../core/errors.js";
import type { LeaseId } from "../../core/lease-id.js";
import type { AcquireParameters, CallOptions, Kind, LeaseRef } from "../../core/api/locks.js";
import type { ServiceApi } from "../../core/api/runs.js";
import type { Meta } from "../../core/details.js";
import { elapsedMs, instantOf } from "../../core/time.js";
import { deadlineFrom, deadlineLeftMs } from "./deadline.js";
import { type Answered, type RetryBounds, type Runtime, atMost, retry } from "../wire/retry.js";
import { errorOf, LockError } from "../wire/errors.js";
import { capBudgetMs } from "../wire/invocation.js";
import type { LeaseIds } from "./lease-ids.js";
import type { StopSignal } from "../wire/lazy-abort.js";

/** The dependencies of asking for a key. */
export interface AskDeps extends Runtime {
  readonly api: ServiceApi;
  readonly ids: LeaseIds;
  /** Registers work that goes on after its caller got an answer; closing waits for it. */
  readonly track: (work: Promise<unknown>) => void;
}

/** The parameters of one try, with the client's defaults filled in. */
export interface AcquireParams extends AcquireParameters {
  readonly key: string;
  readonly leaseMs: number;
  readonly owner: string;
  readonly signal?: StopSignal | undefined;
}

/** The number of tries with leaseIds that the service refuses as not new, before the error goes to the caller. */
const NEW_ID_TRIES = 5;
/** The budget of a cancel, in ms. A lease that it leaves behind ends by itself. */
const CANCEL_BUDGET_MS = 2000;
/** The longest time that a caller waits for a cancel, in ms. A healthy service needs less; an outage must not delay callers further. */
export const CANCEL_HOLDS_MS = 250;

/** Returns what is left of these bounds from now on: all requests of a call share its budget. */
function remaining(bounds: RetryBounds, { clock }: Runtime): () => RetryBounds {
  const began = instantOf(clock);
  return () => ({ ...bounds, budgetMs: bounds.budgetMs - elapsedMs(began, instantOf(clock)) });
}

/**
 * Asks once under a new leaseId. If the service refuses the id as not new, corrects the clock and asks again. An id that was refused after
 * an attempt without a response is cancelled first. After `lease-lost` no new id is tried: the hold that a transfer takes is gone.
 * @param ageMs the time for which the caller has waited outside a full queue, which the id's own time tells the service
 */
export async function withFreshLeaseId<A extends { readonly ok: true }>(
  { kind, key, signal }: Pick<LeaseRef, "kind" | "key"> & Pick<AcquireParams, "signal">,
  bounds: RetryBounds,
  deps: AskDeps,
  ask: (leaseId: LeaseId, options: CallOptions) => Promise<A | Refusal>,
  ageMs = 0,
): Promise<Answered<A | Refusal>> {
  let aboveMs = 0;
  const left = remaining(bounds, deps);
  for (let tries = 1; ; tries++) {
    throwIfAborted(signal);
    const leaseId = deps.ids.next(aboveMs, ageMs);
    const answered = await retry((options) => ask(leaseId, options), left(), deps);
    const { answer } = answered;
    if (answer.ok) return answered;
    if (answered.ambiguous) await cancel({ kind, key, leaseId }, deps, answer.code === "unavailable" && !signal?.aborted);
    if (answer.retry !== "new-lease" || answer.code === "lease-lost" || tries === NEW_ID_TRIES) {
      throwIfAborted(signal);
      return answered;
    }
    deps.ids.correct(answer);
    aboveMs = answer.leaseIdAboveMs ?? aboveMs;
  }
}

/** Asks once. Returns the lease's reply with the time its request was sent, or the refusal. */
export async function askOnce(
  params: AcquireParams,
  within: RetryBounds,
  deps: AskDeps,
  acquire: (request: Omit<AcquireParams, "signal"> & { readonly leaseId: LeaseId }, options: CallOptions) => Promise<Held | Refusal> = (
    ...request
  ) => atOnce(deps.api.acquire(...request)),
): Promise<Answered<Held | Refusal>> {
  const { signal, ...request } = params;
  const bounds = remaining({ ...within, signal }, deps);
  const ask = (leaseId: LeaseId, options: CallOptions) => acquire({ ...request, leaseId }, options);
  return untilFresh(
    () => withFreshLeaseId(params, bounds(), deps, ask),
    (granted) => ensureFresh(granted, bounds(), deps),
  );
}

/** Asks once, as `askOnce` does. @throws LockError for any refusal but `locked`, or if every grant was nearly over */
export async function tryOnce(...asked: Parameters<typeof askOnce>): Promise<Answered<Held | Refusal>> {
  const answered = await askOnce(...asked);
  const { answer } = answered;
  if (!answer.ok && answer.code !== "locked") throw errorOf(answer, `acquire ${asked[0].key}`);
  return answered;
}

/** Asks until there is a refusal, or a grant of which `ensure` finds enough left. */
export async function untilFresh<A extends { readonly ok: true }>(
  ask: () => Promise<Answered<A | Refusal>>,
  ensure: (granted: Answered<A>) => Promise<Answered<A | Refusal>>,
): Promise<Answered<A | Refusal>> {
  for (let tries = 1; ; tries++) {
    const answered = await ask();
    const { answer } = answered;
    if (!answer.ok) return answered;
    const fresh = await ensure({ ...answered, answer });
    if (fresh.answer.ok || tries === NEW_ID_TRIES) return fresh;
  }
}

/** Turns a place in the queue into the refusal `locked`: this caller doesn't wait. Only an id that is already in the queue gets a place. */
async function atOnce(reply: Promise<Held | Waiting | Refusal>): Promise<Held | Refusal> {
  const answer = await reply;
  return answer.ok && "state" in answer ? refuseLocally("locked", { retryAfterMs: answer.retryAfterMs }) : answer;
}

/**
 * Returns a grant with at least one renewal interval left. A grant whose answer took too long is renewed first; if that fails too, it is
 * cancelled and no caller ever gets it.
 * @throws an AbortError if the caller has given up by then; the grant is cancelled
 */
export async function ensureFresh(
  answered: Answered<Held>,
  bounds: RetryBounds,
  deps: AskDeps,
  kind: Kind = "locks",
): Promise<Answered<Held | Refusal>> {
  const { key, leaseId, leaseMs, renewAfterMs } = answered.answer.lease;
  const isFresh = ({ answer, sentAt }: Answered<Held>): boolean =>
    deadlineLeftMs(deadlineFrom(answer.lease, sentAt), deps.clock) >= renewAfterMs;
  const { signal, attemptMs } = bounds;
  let fresh: Answered<Held | Refusal> = answered;
  if (!isFresh(answered)) {
    const renewal = { attemptMs, budgetMs: capBudgetMs(Math.min(bounds.budgetMs, leaseMs), deps.context), signal };
    const renewed = await retry((options) => deps.api.renew({ kind, key, leaseId, leaseMs }, options), renewal, deps);
    const isHeld = renewed.answer.ok && isFresh({ ...renewed, answer: renewed.answer });
    fresh = isHeld
      ? renewed
      : { ...renewed, answer: refuseLocally("unavailable", { definite: true, detail: "the lease was nearly over" }) };
  }
  if (!fresh.answer.ok || signal?.aborted) await cancel({ kind, key, leaseId }, deps);
  throwIfAborted(signal);
  return fresh;
}

/**
 * Transfers the hold to a new id with a new token; detach and attach use it. The new id is made, corrected and cancelled as for an acquire.
 * Returns the refusal otherwise, and then the new id holds nothing.
 */
export function transferHold(
  { key, leaseId }: LeaseRef,
  to: { readonly owner?: string; readonly leaseMs: number; readonly meta?: Meta },
  bounds: RetryBounds,
  deps: AskDeps,
): Promise<Answered<Held | Refusal>> {
  return withFreshLeaseId({ key, signal: bounds.signal }, bounds, deps, (toLeaseId, options) =>
    deps.api.transfer({ key, leaseId, to: { leaseId: toLeaseId, ...to } }, options),
  );
}

/**
 * Makes sure that this id holds nothing, now or through a late duplicate; best effort, bounded. Resolves when that is confirmed, or soon
 * without a response; the cancel then goes on, and closing waits for it.
 * @param isOutage true if there was no response so far, so the caller doesn't wait at all
 */
export async function cancel({ kind, key, leaseId }: LeaseRef, deps: AskDeps, isOutage = false): Promise<void> {
  const budgetMs = capBudgetMs(CANCEL_BUDGET_MS, deps.context);
  const bounds = { attemptMs: budgetMs / 2, budgetMs, untilDecided: true };
  const cancelled = retry((options) => deps.api.release({ kind, key, leaseId }, options), bounds, deps);
  deps.track(cancelled);
  if (!isOutage) await atMost(CANCEL_HOLDS_MS, cancelled, deps.clock);
}

/** @throws the error of {@link abortError} if the signal has aborted. */
export function throwIfAborted(signal: StopSignal | undefined): void {
  if (signal?.aborted) throw abortError(signal);
}

/** Returns an AbortError with the signal's reason as its cause, or the client's own reason to cancel. */
export function abortError(signal: StopSignal): Error {
  const { reason } = signal;
  if (isA(reason, LockError) || (reason instanceof Error && reason.name === "AbortError")) return reason;
  return Object.assign(new DOMException("The acquire was aborted", "AbortError"), { cause: reason });
}
