/**
 * Waits for a condition of a key that is held:
 *
 * 1. One request frees the key and joins the wait set under a new leaseId. Before it is sent, the lease counts as not held.
 * 2. Poll, as in the queue, until a notify has put that id into the queue and it has got the key.
 * 3. If the time is over before a notify, cancel the id, take the key back with another one, and report the timeout then.
 * 4. If the signal aborts, or the time to take the key back is over, cancel the id: nothing is held, and a notify goes to the next.
 * 5. If the service refuses the wait, cancel the id, so that no late duplicate frees the key, and renew the lease.
 *
 * A cancel that finds that the id held the key came after the notify. Then the key is taken back and the wait ends as notified, whatever
 * else ended it, so the notify is not lost.
 */
import type { Ended, Held, Notifying, Waiting } from "../../core/commands.js";
import type { Refusal } from "../../core/errors.js";
import type { LeaseId } from "../../core/lease-id.js";
import type { CallOptions, LeaseRef, NotifyRequest } from "../../core/api/locks.js";
import * as DEFAULTS from "../../core/request-defaults.js";
import { conditionChars } from "../../core/request-limits.js";
import { errorOf, LockError, LockLostError, LockTimeoutError, LockUnavailableError, releasedError } from "../errors.js";
import { capBudgetMs, capLeaseMs, capWaitMs } from "../invocation.js";
import type { WaitOptions } from "../lease/contract.js";
import { CHECKS, checkOptions, checkText } from "../options.js";
import type { LazyAbort, StopSignal } from "../transport/lazy-abort.js";
import type { Answered, RetryBounds } from "../transport/retry.js";
import { boundsFor, retry } from "../transport/retry.js";
import type { AcquireDeps, AcquireParams } from "./acquire.js";
import { abortError, cancel, ensureFresh, throwIfAborted, withFreshLeaseId } from "./acquire.js";
import { polls, untilGranted } from "./wait-in-queue.js";
import { Wait } from "./wait.js";

/** The budget of the request that frees the key, and of a cancel, in ms. */
const CALL_BUDGET_MS = 5000;

/** A lease, as a wait changes it. */
export interface WaitingLease {
  /** Stops treating the lease as held, without ending it. */
  suspend(): void;
  /** Goes on: with this grant, or without one as before. */
  resume(granted?: Answered<Held>): void;
  /** The key is free: other callers of this process may ask for it. */
  freed(): void;
  /** Ends the lease. */
  endWait(error: LockLostError): void;
  /** True from {@link suspend} to {@link resume}. */
  readonly isWaiting: boolean;
  /** Aborts when the lease ends, for any reason. */
  readonly ending: StopSignal;
}

/** The dependencies of a wait. */
export interface ConditionDeps extends AcquireDeps {
  /** Runs the wait with a signal that aborts when this one does, or when the client is closed. */
  readonly run: (signal: AbortSignal | undefined, wait: (giveUp: LazyAbort) => Promise<void>) => Promise<void>;
}

/** @throws InvalidRequestError unless it is the name of a condition */
export function checkCondition(condition: string): void {
  checkText("condition", condition, 1, conditionChars);
}

/** @throws InvalidRequestError naming the invalid argument of a wait. */
export function checkWait(condition: string, options: WaitOptions): void {
  checkCondition(condition);
  const { waitMs, signal } = CHECKS;
  checkOptions("wait", options, { waitMs, takeBackMs: waitMs, signal });
}

/** Sends a notify when those before it have been answered, and repeats it until it is. */
export type Notify = (request: Omit<NotifyRequest, "sequence">, bounds: RetryBounds) => Promise<Notifying | Refusal>;

/** Returns the notify of a lease. It numbers the requests: the service takes a lower one than the last for a repeat. */
export function notifierOf(deps: AcquireDeps): Notify {
  let last: Promise<unknown> = Promise.resolve();
  let sequence = 0;
  return async (request, bounds) => {
    const numbered = { ...request, sequence: ++sequence };
    const told = last.then(() => retry((call) => deps.api.notify(numbered, call), bounds, deps));
    last = told.catch(() => undefined);
    return (await told).answer;
  };
}

/** A wait whose time counts until the notify, and another time from then on. */
class ConditionWait extends Wait {
  /** Begins the time to take the key back, and returns its wait. */
  readonly takeBack: () => Wait;
  #takingBack: Wait | undefined;

  constructor(waitMs: number, takeBackMs: number, deps: AcquireDeps) {
    super(capWaitMs(waitMs, deps.context), deps);
    this.takeBack = () => (this.#takingBack = new Wait(capWaitMs(takeBackMs, deps.context), deps));
  }

  get isNotified(): boolean {
    return this.#takingBack !== undefined;
  }

  override answered(answer: Waiting | Refusal): void {
    super.answered(answer);
    if (!("condition" in answer || this.#takingBack)) this.takeBack();
  }

  override leftMs(): number {
    return this.#takingBack?.leftMs() ?? super.leftMs();
  }
}

/**
 * Frees the key that `ref` holds, and resolves when the lease holds it again after a notify.
 * @throws LockTimeoutError without a notify in `waitMs`; the lease holds again. LockLostError, LockUnavailableError or an AbortError:
 *   nothing is held. LockError if the service refuses the wait: the lease holds on.
 */
export async function waitForCondition(
  lease: WaitingLease,
  ref: LeaseRef,
  condition: string,
  options: WaitOptions,
  to: Omit<AcquireParams, "key" | "signal">,
  deps: ConditionDeps,
): Promise<void> {
  const { ending } = lease;
  await deps.run(options.signal, async (giveUp) => {
    const end = (): void => giveUp.abort(ending.reason);
    ending.addEventListener("abort", end);
    try {
      await untilHeldAgain(lease, ref, condition, options, { ...to, leaseMs: capLeaseMs(to.leaseMs, deps.context) }, giveUp, deps);
    } catch (error) {
      throw lease.isWaiting ? endedBy(error, lease, ref.key) : error;
    } finally {
      ending.removeEventListener("abort", end);
    }
  });
}

// Over 60 lines: the ways in which a wait ends share what it has begun.
async function untilHeldAgain(
  lease: WaitingLease,
  ref: LeaseRef,
  condition: string,
  { waitMs = DEFAULTS.waitMs, takeBackMs = DEFAULTS.takeBackMs }: WaitOptions,
  to: Omit<AcquireParams, "key" | "signal">,
  stop: StopSignal,
  deps: AcquireDeps,
): Promise<void> {
  const { key } = ref;
  const { leaseMs } = to;
  const params = { key, ...to };
  const what = `wait for ${condition} of ${key}`;
  const wait = new ConditionWait(waitMs, takeBackMs, deps);
  const bounds = boundsFor(leaseMs, capBudgetMs(CALL_BUDGET_MS, deps.context));
  const place = { key, leaseId: "" };
  const { ending } = lease;
  const hasAborted = ({ aborted }: StopSignal): boolean => aborted;
  const cancelPlace = async (): Promise<Ended | Refusal> => (await retry((call) => deps.api.release(place, call), bounds, deps)).answer;

  throwIfAborted(stop);
  lease.suspend();
  const free = (leaseId: LeaseId, call: CallOptions) =>
    deps.api.waitForCondition({ ...ref, condition, to: { ...to, leaseId: (place.leaseId = leaseId) } }, call);
  const { answer, ambiguous } = await withFreshLeaseId({ key }, bounds, deps, free);
  let failure: unknown;
  let ended: Ended | Refusal | undefined;
  if (answer.ok) {
    lease.freed();
    try {
      const ask = (call: CallOptions) => deps.api.acquire({ ...params, leaseId: place.leaseId, waitMs: 0 }, call);
      const answered = await polls(place, answer, { ...params, signal: stop }, wait, deps, ask);
      const granted = answered.answer.ok ? await ensureFresh(answered as Answered<Held>, bounds, deps) : answered;
      if (granted.answer.ok && !hasAborted(ending)) return void lease.resume(granted as Answered<Held>);
      // Any other refusal says only that the place is gone. Then a notify may have come.
      if (wait.wasCutShort) throw wait.over(what);
      const refused = !granted.answer.ok && errorOf(granted.answer, what);
      if (refused && (refused instanceof LockUnavailableError || refused.retry === "never")) throw refused;
    } catch (error) {
      failure = error;
    }
    ended = await cancelPlace();
  } else if (answer.code === "lease-lost" && answer.reason === "released" && ambiguous) {
    // An earlier attempt was carried out, and its place is gone by now: the notify may have come.
    lease.freed();
  } else {
    const refused = errorOf(answer, what);
    if (refused instanceof LockUnavailableError) await cancel(ref, deps, ambiguous);
    else if (!(refused instanceof LockLostError)) {
      // The lease goes on. First no late duplicate may free the key, and none may have come since.
      ended = await cancelPlace();
      if (!ended.ok) throw errorOf(ended, what);
      const renewed = await retry((call) => deps.api.renew({ ...ref, leaseMs }, call), bounds, deps);
      if (!renewed.answer.ok) throw errorOf(renewed.answer, what);
      lease.resume(renewed as Answered<Held>);
    }
    throw refused;
  }

  // It held the key, or may have: then its notify has gone to no other.
  const held = ended?.ok && ended.state !== "never";
  const isOver = failure instanceof LockTimeoutError && !wait.isNotified;
  const isDone = !held && (hasAborted(stop) || !(failure === undefined || isOver));
  if (isDone || hasAborted(ending)) throw hasAborted(stop) ? abortError(stop) : failure;
  const granted = await untilGranted({ ...params, signal: held ? ending : stop }, wait.takeBack(), deps);
  if (hasAborted(ending)) {
    await cancel(granted.answer.lease, deps);
    throw abortError(ending);
  }
  lease.resume(granted);
  if (isOver && ended?.ok && !held)
    throw new LockTimeoutError(`${what}: no notify in ${(failure as LockTimeoutError).waitedMs} ms`, failure as LockTimeoutError);
}

/** Ends the lease, which holds nothing now. Returns the error for the caller: a loss, unless the caller itself gave up. */
function endedBy(error: unknown, lease: WaitingLease, key: string): unknown {
  const isLate = error instanceof LockTimeoutError;
  let loss = releasedError(key);
  if (error instanceof LockLostError) loss = error;
  else if (error instanceof LockError) loss = new LockLostError(error.message, isLate ? "taken" : "deadline", error);
  lease.endWait(loss);
  return isLate ? loss : error;
}
