/**
 * Acquiring, whatever becomes of the messages:
 *
 *  1. a new leaseId for every try; the same id for every attempt of a try;
 *  2. granted, now or by an attempt whose reply was lost: the lease;
 *  3. locked: an answer. An id with an attempt that was never answered is cancelled first, so that no
 *     late duplicate of it becomes a ghost;
 *  4. a try that ends without an answer is cancelled, and reported as unavailable.
 */
import type { Held, Waiting } from "../../core/commands.js";
import type { Refusal } from "../../core/errors.js";
import { refuse } from "../../core/errors.js";
import type { LeaseId } from "../../core/lease-id.js";
import type { CallOptions, Kind, LeaseRef } from "../../core/api/locks.js";
import type { Meta, Mode } from "../../core/record.js";
import type { ServiceApi } from "../../core/api/runs.js";
import { deadlineFrom, deadlineLeftMs } from "../lease/deadline.js";
import type { Answered, RetryBounds, Runtime } from "../transport/retry.js";
import { atMost, retry } from "../transport/retry.js";
import { errorOf, LockError } from "../errors.js";
import type { RenewalBatcher } from "../lease/renewal-batcher.js";
import type { InvocationContext } from "../invocation.js";
import { capBudgetMs } from "../invocation.js";
import type { LeaseIds } from "./lease-ids.js";
import type { WaitEstimator } from "./wait-estimator.js";
import type { RetryGate } from "../transport/retry-gate.js";

/** What an acquire needs of the world. */
export interface AcquireDeps extends Runtime {
  readonly api: ServiceApi;
  readonly ids: LeaseIds;
  readonly waitEstimator: WaitEstimator;
  /** What sends heartbeats together, where that is possible. */
  readonly renewalBatcher?: RenewalBatcher | undefined;
  /** Where heartbeats wait while they fail. */
  readonly gate: RetryGate;
  /** The invocation that every call ends before, if there is one. */
  readonly context?: InvocationContext | undefined;
  /** Told of work that goes on after its caller was answered: closing waits for it. */
  readonly track: (work: Promise<unknown>) => void;
}

/** What is shared by all views of a client, and what each of them adds. */
export type OuterDeps = Omit<AcquireDeps, "waitEstimator" | "renewalBatcher" | "gate" | "context" | "track">;

/** One try's parameters, defaults filled in. */
export interface AcquireParams {
  readonly key: string;
  readonly leaseMs: number;
  readonly owner: string;
  readonly meta?: Meta | undefined;
  readonly mode?: Mode | undefined;
  readonly limit?: number | undefined;
  readonly permits?: number | undefined;
  readonly scope?: string | undefined;
  readonly priority?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Tries whose leaseId the service would not take as new before the error is the caller's. */
export const NEW_ID_TRIES = 5;
/** A cancel is worth this long; the lease it may leave behind ends by itself. */
const CANCEL_BUDGET_MS = 2000;
/** A cancel keeps its caller for this long. A service that answers needs less, and one that doesn't may not keep anybody. */
export const CANCEL_HOLDS_MS = 250;

/**
 * Asks once under an id of its own, corrected and made again where the service would not take it as new. An
 * id that was refused after an attempt stayed without an answer is cancelled first.
 */
export async function withFreshLeaseId<A extends { readonly ok: true }>(
  { kind, key, signal }: Pick<LeaseRef, "kind" | "key"> & Pick<AcquireParams, "signal">,
  bounds: RetryBounds,
  deps: AcquireDeps,
  ask: (leaseId: LeaseId, options: CallOptions) => Promise<A | Refusal>,
): Promise<Answered<A | Refusal>> {
  let aboveMs = 0;
  for (let tries = 1; ; tries++) {
    if (signal?.aborted) throw abortError(signal);
    const leaseId = deps.ids.next(aboveMs);
    const answered = await retry((options) => ask(leaseId, options), bounds, deps);
    const { answer } = answered;
    if (answer.ok) return answered;
    await cancelAmbiguous({ ...answered, answer }, { kind, key, leaseId }, signal, deps);
    if (answer.retry !== "new-lease" || tries === NEW_ID_TRIES) {
      if (signal?.aborted) throw abortError(signal);
      return answered;
    }
    deps.ids.correct(answer);
    aboveMs = answer.leaseIdAboveMs ?? aboveMs;
  }
}

/** Asks once: the lease's reply and when its request was sent, or the refusal: `locked`, or nearly over. */
export async function tryOnce(
  params: AcquireParams,
  within: RetryBounds,
  deps: AcquireDeps,
  acquire: (request: Omit<AcquireParams, "signal"> & { readonly leaseId: LeaseId }, options: CallOptions) => Promise<Held | Refusal> = (
    ...asked
  ) => atOnce(deps.api.acquire(...asked)),
): Promise<Answered<Held | Refusal>> {
  const { signal, ...request } = params;
  const { key } = request;
  const bounds = { ...within, signal };
  const ask = (leaseId: LeaseId, options: CallOptions) => acquire({ ...request, leaseId }, options);
  for (let tries = 1; ; tries++) {
    const answered = await withFreshLeaseId(params, bounds, deps, ask);
    const { answer } = answered;
    if (!answer.ok) {
      if (answer.code !== "locked") throw errorOf(answer, `acquire ${key}`);
      return answered;
    }
    const fresh = await ensureFresh({ ...answered, answer }, bounds, deps);
    if (fresh.answer.ok && signal?.aborted) {
      await cancel(fresh.answer.lease, deps);
      throw abortError(signal);
    }
    if (fresh.answer.ok || tries === NEW_ID_TRIES) return fresh;
  }
}

/** The answer to who doesn't wait: a place in the queue, which only an id that was there before has, is none. */
async function atOnce(asked: Promise<Held | Waiting | Refusal>): Promise<Held | Refusal> {
  const answer = await asked;
  return answer.ok && "state" in answer ? refuse("locked", { retryAfterMs: answer.retryAfterMs }) : answer;
}

/**
 * A grant with at least one renewal interval left. One whose answer took too long is renewed before
 * anyone gets it; if that fails too, it is given back and nobody ever held it.
 */
export async function ensureFresh(
  answered: Answered<Held>,
  bounds: RetryBounds,
  deps: AcquireDeps,
  kind: Kind = "locks",
): Promise<Answered<Held | Refusal>> {
  const { key, leaseId, leaseMs, renewAfterMs } = answered.answer.lease;
  const isFresh = ({ answer, sentAt }: Answered<Held>): boolean =>
    deadlineLeftMs(deadlineFrom(answer.lease, sentAt), deps.clock) >= renewAfterMs;
  if (isFresh(answered)) return answered;
  const { signal, attemptMs } = bounds;
  const renewal = { attemptMs, budgetMs: capBudgetMs(Math.min(bounds.budgetMs, leaseMs), deps.context), signal };
  const renewed = await retry((options) => deps.api.renew({ kind, key, leaseId, leaseMs }, options), renewal, deps);
  if (renewed.answer.ok && isFresh({ ...renewed, answer: renewed.answer })) return renewed;
  await cancel({ kind, key, leaseId }, deps);
  return { ...renewed, answer: refuse("unavailable", { definite: true, detail: "the lease was nearly over when the answer came" }) };
}

/**
 * Makes sure that this id holds nothing, now or by a late duplicate; best effort, bounded. Resolves when that was
 * answered, or soon where nobody answers: then it goes on, and closing waits for it.
 * @param isOutage nobody answered so far, so the caller is not kept at all
 */
export async function cancel({ kind, key, leaseId }: LeaseRef, deps: AcquireDeps, isOutage = false): Promise<void> {
  const budgetMs = capBudgetMs(CANCEL_BUDGET_MS, deps.context);
  const cancelled = retry((options) => deps.api.release({ kind, key, leaseId }, options), { attemptMs: budgetMs / 2, budgetMs }, deps);
  deps.track(cancelled);
  if (!isOutage) await atMost(CANCEL_HOLDS_MS, cancelled, deps.clock);
}

/** Cancels an id that was refused after an attempt stayed without an answer. */
export async function cancelAmbiguous(
  { answer, ambiguous }: Answered<Refusal>,
  ref: LeaseRef,
  signal: AbortSignal | undefined,
  deps: AcquireDeps,
): Promise<void> {
  if (ambiguous) await cancel(ref, deps, answer.code === "unavailable" && !signal?.aborted);
}

/** An AbortError, with the signal's reason as its cause; or the client's own reason to give up. */
export function abortError(signal: AbortSignal): Error {
  const { reason } = signal as { readonly reason: unknown };
  if (reason instanceof LockError || (reason instanceof Error && reason.name === "AbortError")) return reason;
  return Object.assign(new DOMException("The acquire was aborted", "AbortError"), { cause: reason });
}
