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
import { isA } from "../../core/brand.js";
import type { Ended, Held, Notifying, Waiting } from "../../core/commands.js";
import { type Refusal, refuseLocally } from "../../core/errors.js";
import type { LeaseId } from "../../core/lease-id.js";
import type { CallOptions, LeaseRef, NotifyRequest } from "../../core/api/locks.js";
import * as DEFAULTS from "../../core/request-defaults.js";
import { conditionChars } from "../../core/request-limits.js";
import { errorOf, isUnanswered, LockError, LockLostError, LockTimeoutError, endedError } from "../wire/errors.js";
import { capBudgetMs, capLeaseMs, capWaitMs } from "../wire/invocation.js";
import type { WaitOptions } from "./lease-types.js";
import { CHECKS, checkOptions, text } from "../wire/checks.js";
import type { LazyAbort, StopSignal } from "../wire/lazy-abort.js";
import { type Answered, type RetryBounds, boundsFor, retry } from "../wire/retry.js";
import { type AskDeps, type AcquireParams, abortError, cancel, ensureFresh, throwIfAborted, withFreshLeaseId } from "../ask/fresh-id.js";
import { pollUntilTurn, untilGranted } from "../ask/until-granted.js";
import { type WaitEnd, Wait } from "../ask/wait.js";

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
export interface ConditionDeps extends AskDeps {
  /** Runs the wait with a signal that aborts when this one does, or when the client is closed. */
  readonly run: (signal: AbortSignal | undefined, wait: (giveUp: LazyAbort) => Promise<void>) => Promise<void>;
}

/** Refuses a waiting answer: a granted lease never waits, so a queued lease of the same id is another one. */
export function stillMine(answer: Held | Waiting | Refusal): Held | Refusal {
  return answer.ok && "state" in answer ? refuseLocally("lease-lost", { reason: "never", detail: "not held" }) : answer;
}

/** Refuses what can't be the name of a condition. */
export const CONDITION = text(1, conditionChars);

/** @throws InvalidRequestError naming the invalid argument of a wait. */
export function checkWait(condition: string, options: WaitOptions): void {
  CONDITION("condition", condition);
  const { waitMs, signal } = CHECKS;
  checkOptions("wait", options, { waitMs, takeBackMs: waitMs, signal });
}

/** Sends a notify when those before it have been answered, and repeats it until it is. */
export type SendNotify = (request: Omit<NotifyRequest, "sequence">, bounds: RetryBounds) => Promise<Notifying | Refusal>;

/** Returns the notify of a lease. It numbers the requests: the service takes a lower one than the last for a repeat. */
export function notifierOf(deps: AskDeps): SendNotify {
  let last: Promise<unknown> = Promise.resolve();
  let sequence = 0;
  return async (request, bounds) => {
    const numbered = { ...request, sequence: ++sequence };
    const reply = last.then(() => retry((call) => deps.api.notify(numbered, call), bounds, deps));
    last = reply.catch(() => undefined);
    return (await reply).answer;
  };
}

/** A wait whose time counts until the notify, and another time from then on. */
class ConditionWait implements WaitEnd {
  readonly wait: Wait;
  /** Begins the time to take the key back, and returns its wait. */
  readonly takeBack: () => Wait;
  readonly #untilNotify: Wait;
  #takingBack: Wait | undefined;

  constructor(waitMs: number, takeBackMs: number, deps: AskDeps) {
    const cappedMs = capWaitMs(waitMs, deps.context);
    this.#untilNotify = new Wait(cappedMs, deps);
    this.wait = new Wait(cappedMs, deps, this);
    this.takeBack = () => (this.#takingBack = new Wait(capWaitMs(takeBackMs, deps.context), deps));
  }

  get isNotified(): boolean {
    return this.#takingBack !== undefined;
  }

  answered(answer: Waiting | Refusal): void {
    if (!("condition" in answer || this.#takingBack)) this.takeBack();
  }

  leftMs(): number {
    return (this.#takingBack ?? this.#untilNotify).leftMs();
  }
}

/** A lease that is to wait. */
interface Waits {
  readonly lease: WaitingLease;
  /** The lease's id until it waits. */
  readonly ref: LeaseRef;
  readonly condition: string;
}

/** The parts of one wait, which its steps share. */
interface WaitParts extends Waits {
  /** The acquire by which the key is taken back. */
  readonly params: Omit<AcquireParams, "signal">;
  /** The place in the wait set, and in the queue after a notify. */
  readonly place: { readonly key: string; leaseId: LeaseId };
  readonly waiting: ConditionWait;
  readonly bounds: RetryBounds;
  /** Aborts when the caller gives up, or the lease ends. */
  readonly stop: StopSignal;
  readonly what: string;
  readonly deps: AskDeps;
}

/**
 * Frees the key that `ref` holds, and resolves when the lease holds it again after a notify, by the acquire `to`.
 * @throws LockTimeoutError without a notify in `waitMs`; the lease holds again. LockLostError, LockUnavailableError or an AbortError:
 *   nothing is held. LockError if the service refuses the wait: the lease holds on.
 */
export async function waitForCondition(
  { lease, ref, condition }: Waits,
  to: Omit<AcquireParams, "key" | "signal">,
  { waitMs = DEFAULTS.waitMs, takeBackMs = DEFAULTS.takeBackMs, signal }: WaitOptions,
  deps: ConditionDeps,
): Promise<void> {
  const { ending } = lease;
  const { key } = ref;
  await deps.run(signal, async (stop) => {
    const end = (): void => stop.abort(ending.reason);
    ending.addEventListener("abort", end);
    const params = { key, ...to, leaseMs: capLeaseMs(to.leaseMs, deps.context) };
    const bounds = boundsFor(params.leaseMs, capBudgetMs(CALL_BUDGET_MS, deps.context));
    const waiting = new ConditionWait(waitMs, takeBackMs, deps);
    const what = `wait for ${condition} of ${key}`;
    try {
      await untilHeldAgain({ lease, ref, condition, params, place: { key, leaseId: "" }, waiting, bounds, stop, what, deps });
    } catch (error) {
      throw lease.isWaiting ? endedBy(error, lease, key) : error;
    } finally {
      ending.removeEventListener("abort", end);
    }
  });
}

async function untilHeldAgain(parts: WaitParts): Promise<void> {
  const { lease, ref, condition, params, place, bounds, stop, deps } = parts;
  const { key, ...to } = params;
  throwIfAborted(stop);
  lease.suspend();
  const free = (leaseId: LeaseId, call: CallOptions) =>
    deps.api.waitForCondition({ ...ref, condition, to: { ...to, leaseId: (place.leaseId = leaseId) } }, call);
  const { answer, ambiguous } = await withFreshLeaseId({ key }, bounds, deps, free);
  if (answer.ok) {
    lease.freed();
    let failure: Error | undefined;
    try {
      if (await pollUntilGranted(parts, answer)) return;
    } catch (error) {
      failure = error as Error;
    }
    return takeBack(parts, failure, await cancelPlace(parts));
  }
  // An earlier attempt was carried out, and its place is gone by now: the notify may have come.
  const isGone = answer.code === "lease-lost" && answer.reason === "released" && ambiguous;
  if (!isGone) throw await endedByRefusal(parts, answer, ambiguous);
  lease.freed();
  return takeBack(parts);
}

/**
 * Polls until the lease has the key, and goes on by it. Returns false if the place is gone: then a notify may have come.
 * @throws whatever else ends the wait
 */
async function pollUntilGranted(
  { lease, params, place, waiting: { wait }, bounds, stop, what, deps }: WaitParts,
  joined: Waiting,
): Promise<boolean> {
  const ask = (call: CallOptions) => deps.api.acquire({ ...params, leaseId: place.leaseId, waitMs: 0 }, call);
  const answered = await pollUntilTurn({ place, first: joined, ask }, { ...params, signal: stop }, wait, deps);
  const granted = answered.answer.ok ? await ensureFresh(answered as Answered<Held>, bounds, deps) : answered;
  if (granted.answer.ok && !lease.ending.aborted) {
    lease.resume(granted as Answered<Held>);
    return true;
  }
  if (wait.wasCutShort) throw wait.over(what);
  const refused = !granted.answer.ok && errorOf(granted.answer, what, { key: place.key });
  if (refused && (isUnanswered(refused) || refused.retry === "never" || refused.code === "newer-format")) throw refused;
  return false;
}

/** Cancels the place. The answer tells whether it held the key. */
async function cancelPlace({ place, bounds, deps }: WaitParts): Promise<Ended | Refusal> {
  return (await retry((call) => deps.api.release(place, call), { ...bounds, untilDecided: true }, deps)).answer;
}

/** Ends a wait that the service refused, and returns its error. The lease goes on, unless it is lost or nobody answered. */
async function endedByRefusal(parts: WaitParts, answer: Refusal, ambiguous: boolean): Promise<LockError> {
  const { lease, ref, params, bounds, what, deps } = parts;
  const loss = { key: params.key };
  const refused = errorOf(answer, what, loss);
  if (isUnanswered(refused)) await cancel(ref, deps, ambiguous);
  else if (!isA(refused, LockLostError)) {
    // First no late duplicate may free the key, and none may have come since.
    const ended = await cancelPlace(parts);
    if (!ended.ok) return errorOf(ended, what, loss);
    const renewed = await retry((call) => deps.api.renew({ ...ref, leaseMs: params.leaseMs }, call), bounds, deps);
    if (!renewed.answer.ok) return errorOf(renewed.answer, what, loss);
    lease.resume(renewed as Answered<Held>);
  }
  return refused;
}

/** Takes the key back after a wait that ended without it: by `failure`, if there is one, and with the place cancelled by `ended`. */
async function takeBack({ lease, params, waiting, stop, what, deps }: WaitParts, failure?: Error, ended?: Ended | Refusal): Promise<void> {
  const { ending } = lease;
  const isTimeout = isA(failure, LockTimeoutError) && !waiting.isNotified;
  // The place held the key, or may have. The notify has gone to no other place, so only the end of the lease ends the wait now.
  const hadKey = ended?.ok && ended.state !== "never";
  const until = hadKey ? ending : stop;
  if (until.aborted) throw abortError(stop);
  if (failure !== undefined && !isTimeout && !hadKey) throw failure;
  const granted = await untilGranted({ ...params, signal: until }, waiting.takeBack(), deps);
  if (ending.aborted) {
    await cancel(granted.answer.lease, deps);
    throw abortError(ending);
  }
  lease.resume(granted);
  if (isTimeout && ended?.ok && !hadKey) throw new LockTimeoutError(`${what}: no notify in ${failure.waitedMs} ms`, failure);
}

/** Ends the lease, which holds nothing now. Returns the error for the caller: a loss, unless the caller itself gave up. */
function endedBy(error: unknown, lease: WaitingLease, key: string): unknown {
  const isLate = isA(error, LockTimeoutError);
  let loss = endedError(key, "released");
  if (isA(error, LockLostError)) loss = error;
  else if (isA(error, LockError)) loss = new LockLostError(error.message, isLate ? "taken" : "deadline", { key, cause: error });
  lease.endWait(loss);
  return isLate ? loss : error;
}
