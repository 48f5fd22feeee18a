/**
 * Waits for a condition of a key that is held:
 *
 * 1. One request frees the key and joins the wait set under a new leaseId. Before it is sent, the lease counts as not held.
 * 2. Poll, as in the queue, until a notify has put that id into the queue and it has got the key.
 * 3. If the time is over before a notify, cancel the id, take the key back with another one, and report the timeout then.
 * 4. If the signal aborts, cancel the id: nothing is held.
 *
 * A cancel that finds that the id held the key came after the notify. Then the wait ends as notified, and the notify is not lost.
 */
import type { Held, Notifying, Waiting } from "../../core/commands.js";
import type { Refusal } from "../../core/errors.js";
import type { LeaseId } from "../../core/lease-id.js";
import type { CallOptions, LeaseRef, NotifyRequest } from "../../core/api/locks.js";
import * as DEFAULTS from "../../core/request-defaults.js";
import { conditionChars } from "../../core/request-limits.js";
import { errorOf, LockLostError, LockTimeoutError, LockUnavailableError, releasedError } from "../errors.js";
import { capBudgetMs, capWaitMs } from "../invocation.js";
import type { WaitOptions } from "../lease/contract.js";
import { checkMs, checkNames, checkSignal, checkText } from "../options.js";
import { LazyAbort } from "../transport/lazy-abort.js";
import type { StopSignal } from "../transport/lazy-abort.js";
import type { Answered, RetryBounds } from "../transport/retry.js";
import { boundsFor, retry } from "../transport/retry.js";
import type { AcquireDeps, AcquireParams } from "./acquire.js";
import { abortError, cancel, ensureFresh, withFreshLeaseId } from "./acquire.js";
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
  /** Aborts when the lease ends, for any reason. */
  readonly ending: StopSignal;
}

/** The dependencies of a wait. */
export interface ConditionDeps extends AcquireDeps {
  /** Runs the wait with a signal that also aborts when the client is closed. */
  readonly run: <T>(signal: StopSignal, wait: (signal: StopSignal) => Promise<T>) => Promise<T>;
}

/** @throws InvalidRequestError naming the invalid argument of a wait. */
export function checkWait(condition: string, options: WaitOptions): void {
  checkText("condition", condition, 1, conditionChars);
  checkNames("wait", options, ["waitMs", "signal"]);
  checkMs("waitMs", options.waitMs, 0, Number.MAX_SAFE_INTEGER);
  checkSignal(options.signal);
}

/** Sends the notifies of a lease one after the other, with numbers: the service takes a lower one than the last for a repeat. */
export class Notifier {
  readonly #deps: AcquireDeps;
  #sequence = 0;
  #last: Promise<unknown> = Promise.resolve();

  constructor(deps: AcquireDeps) {
    this.#deps = deps;
  }

  /** Sends a notify when those before it have been answered, and repeats it until it is. */
  async notify(request: Omit<NotifyRequest, "sequence">, bounds: RetryBounds): Promise<Notifying | Refusal> {
    checkText("condition", request.condition, 1, conditionChars);
    const numbered = { ...request, sequence: ++this.#sequence };
    const told = this.#last.then(() => retry((call) => this.#deps.api.notify(numbered, call), bounds, this.#deps));
    this.#last = told.catch(() => undefined);
    return (await told).answer;
  }
}

/** A wait whose time counts only until the notify. */
class ConditionWait extends Wait {
  #isNotified = false;

  override answered(answer: Waiting | Refusal): void {
    super.answered(answer);
    this.#isNotified ||= !("condition" in answer);
  }

  override leftMs(): number {
    return this.#isNotified ? Number.POSITIVE_INFINITY : super.leftMs();
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
  { waitMs = DEFAULTS.waitMs, signal }: WaitOptions,
  params: AcquireParams,
  deps: ConditionDeps,
): Promise<void> {
  const either = firstOf(lease.ending, signal);
  if (either.signal.aborted) throw abortError(either.signal);
  const wait = (stop: StopSignal): Promise<void> => untilHeldAgain(lease, ref, condition, waitMs, { ...params, signal: stop }, deps);
  await deps.run(either.signal, wait).finally(either.forget);
}

// Over 60 lines: the ways in which a wait ends share what it has begun.
async function untilHeldAgain(
  lease: WaitingLease,
  ref: LeaseRef,
  condition: string,
  waitMs: number,
  { signal: stop, ...params }: AcquireParams & { readonly signal: StopSignal },
  deps: AcquireDeps,
): Promise<void> {
  const { key, leaseMs } = params;
  const { context } = deps;
  const what = `wait for ${condition} of ${key}`;
  const wait = new ConditionWait(capWaitMs(waitMs, context), deps);
  const bounds = boundsFor(leaseMs, capBudgetMs(CALL_BUDGET_MS, context));
  const { mode: _mode, limit: _limit, permits: _permits, key: _key, ...to } = params;
  const place = { key, leaseId: "" };

  lease.suspend();
  const free = (leaseId: LeaseId, call: CallOptions) =>
    deps.api.waitForCondition({ ...ref, condition, to: { ...to, leaseId: (place.leaseId = leaseId) } }, call);
  const { answer, ambiguous } = await withFreshLeaseId({ key }, bounds, deps, free);
  let failure: unknown;
  let isNotified = false;
  if (answer.ok) {
    lease.freed();
    try {
      const ask = (call: CallOptions) => deps.api.acquire({ ...params, leaseId: place.leaseId, waitMs: 0 }, call);
      const answered = await polls(place, answer, { ...params, signal: stop }, wait, deps, ask);
      const granted = answered.answer.ok ? await ensureFresh({ ...answered, answer: answered.answer }, bounds, deps) : answered;
      if (granted.answer.ok && !stop.aborted) return void lease.resume({ ...granted, answer: granted.answer });
      if (!granted.answer.ok) refuseToGoOn(granted.answer, what, wait);
    } catch (error) {
      failure = error;
    }
    const cancelled = retry((call) => deps.api.release(place, call), bounds, deps);
    deps.track(cancelled);
    const { answer: ended } = await cancelled;
    // Only a place that certainly never held the key has left its notify to others.
    isNotified = !(ended.ok && ended.state === "never");
  } else if (answer.code === "lease-lost" && answer.reason === "released" && ambiguous) {
    // An earlier attempt was carried out, and its place is gone by now: the notify may have come.
    lease.freed();
    isNotified = true;
  } else if (!ambiguous && answer.code !== "lease-lost") {
    lease.resume();
    throw errorOf(answer, what);
  } else failure = errorOf(answer, what);

  const isOver = failure !== undefined && !(failure instanceof LockTimeoutError) && !(stop.aborted && isNotified);
  if (lease.ending.aborted || isOver || (stop.aborted && !isNotified)) {
    const error = stop.aborted ? abortError(stop) : failure;
    lease.endWait(failure instanceof LockLostError ? failure : releasedError(key));
    if (!answer.ok) await cancel(ref, deps, answer.code === "unavailable");
    throw error;
  }
  await takeBack(lease, { ...params, signal: stop.aborted ? lease.ending : stop }, deps);
  if (failure instanceof LockTimeoutError && !isNotified) throw notNotified(what, failure);
}

/** Throws the error of a poll, unless it says only that the place is gone. Then a notify may have come, and the key is taken back. */
function refuseToGoOn(answer: Refusal, what: string, wait: Wait): void {
  const error = wait.wasCutShort ? wait.over(what) : errorOf(answer, what);
  if (wait.wasCutShort || error instanceof LockUnavailableError || answer.retry === "never") throw error;
}

/** Takes the key back as an ordinary waiter. @throws if the lease or the client ends meanwhile, or without any response */
async function takeBack(lease: WaitingLease, params: AcquireParams, deps: AcquireDeps): Promise<void> {
  try {
    const granted = await untilGranted(params, new Wait(capWaitMs(Number.POSITIVE_INFINITY, deps.context), deps), deps);
    if (lease.ending.aborted) await cancel(granted.answer.lease, deps);
    lease.resume(granted);
  } catch (error) {
    lease.endWait(releasedError(params.key));
    throw error;
  }
}

function notNotified(what: string, { code, waitedMs }: LockTimeoutError): LockTimeoutError {
  return new LockTimeoutError(`${what}: no notify in ${waitedMs} ms`, { code, definite: true, retry: "later", waitedMs });
}

/** Returns a signal that aborts with the first of these. Call `forget` when it is no longer needed. */
function firstOf(...signals: readonly (StopSignal | AbortSignal | undefined)[]): {
  readonly signal: StopSignal;
  readonly forget: () => void;
} {
  const first = new LazyAbort();
  const forwards = signals.map((signal) => {
    const forward = (): void => first.abort(signal?.reason);
    if (signal?.aborted) forward();
    signal?.addEventListener("abort", forward, { once: true });
    return () => signal?.removeEventListener("abort", forward);
  });
  return { signal: first, forget: () => forwards.forEach((stop) => stop()) };
}
