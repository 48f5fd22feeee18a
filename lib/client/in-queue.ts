/**
 * Waiting in a key's queue:
 *
 *  1. ask for the key with a wish to wait: granted, or a place in the queue;
 *  2. come again when it is worth it, by what the queue's pace was lately, and in time for the place to be kept;
 *  3. a visit only looks; whose turn it is asks, and so does who may expect that it is;
 *  4. whoever gives up, for whatever reason, leaves: no place and no lease stays behind.
 *
 * A key whose queue is full, or that this one may not queue for, is asked for again and again, less and less often.
 */
import type { Held, Waiting } from "../core/commands.js";
import type { ErrorCode, Refusal } from "../core/errors.js";
import type { LeaseId } from "../core/lease-id.js";
import type { CallOptions } from "../core/lock-api.js";
import { elapsedMs, instantOf } from "../core/time.js";
import type { Acquiring, Wanted } from "./acquire.js";
import { abortError, cancel, NEW_ID_TRIES, refreshed, tryOnce, underNewId } from "./acquire.js";
import type { Answered, CallBounds } from "./call.js";
import { attemptMsFor, call, pause } from "./call.js";
import { errorOf, timeoutOf } from "./errors.js";

/** Asking again where there is no queue: the first pause, doubled each time up to the longest, with jitter. */
const FIRST_POLL_MS = 40;
const LONGEST_POLL_MS = 1000;

/** What another id, or another time, may mend: also that an id lost its place while so many leases ended that it is too old for another. */
const AGAIN: ReadonlySet<ErrorCode> = new Set(["locked", "queue-full", "key-full", "lease-over"]);

/** The bounds of one request, and how long there is left to wait. */
interface Waits extends CallBounds {
  readonly leftMs: () => number;
}

/** Waits until the key is granted. @throws LockTimeoutError when nothing is left, AbortError when the signal aborts. */
export async function untilGranted(wanted: Wanted, leftMs: () => number, deps: Acquiring): Promise<Answered<Held>> {
  const { key, signal } = wanted;
  const { clock, random } = deps;
  for (let polls = 0; ; polls++) {
    const answered = leftMs() > 0 ? await inQueue(wanted, leftMs, deps) : await tryOnce(wanted, attemptMsFor(wanted.leaseMs), deps);
    const { answer } = answered;
    if (answer.ok) return { ...answered, answer };
    if (!AGAIN.has(answer.code)) throw errorOf(answer, `acquire ${key}`);
    if (leftMs() <= 0) throw timeoutOf(`acquire ${key}: still held by another`, answer);
    const pollMs = Math.min(LONGEST_POLL_MS, FIRST_POLL_MS * 2 ** Math.min(polls, 10));
    // Jitter on both: those who wait for one lease's end must not all come at that instant.
    const freeMs = (answer.retryAfterMs ?? pollMs) + FIRST_POLL_MS * random();
    await pause(Math.min(freeMs, pollMs * (0.5 + 0.5 * random()), leftMs()), clock, signal);
  }
}

/** One place after another, until the key is granted with enough of the lease left, or the time is over; or why there was no place. */
async function inQueue(wanted: Wanted, leftMs: () => number, deps: Acquiring): Promise<Answered<Held | Refusal>> {
  const { signal, leaseMs } = wanted;
  for (let tries = 1; ; tries++) {
    const bounds = { attemptMs: attemptMsFor(leaseMs), budgetMs: Math.max(leftMs(), attemptMsFor(leaseMs)), signal };
    const answered = await ownTurn(wanted, { ...bounds, leftMs }, deps);
    const { answer } = answered;
    if (!answer.ok) return answered;
    const fresh = await refreshed({ ...answered, answer }, bounds, deps);
    if (fresh.answer.ok && signal?.aborted) {
      await cancel(fresh.answer.lease, deps);
      throw abortError(signal);
    }
    if (fresh.answer.ok || tries === NEW_ID_TRIES) return fresh;
  }
}

/** The key at once, or from a place in its queue: then how long that took tells the pace. */
async function ownTurn(wanted: Wanted, bounds: Waits, deps: Acquiring): Promise<Answered<Held | Refusal>> {
  const { signal: _signal, ...request } = wanted;
  const { key } = request;
  const began = instantOf(deps.clock);
  let leaseId: LeaseId = "";
  const ask = (id: LeaseId, options: CallOptions) => deps.api.acquire({ ...request, leaseId: (leaseId = id), waitMs: 0 }, options);
  const { answer, ...when } = await underNewId(wanted, bounds, deps, ask);
  if (!isWaiting(answer)) return { answer, ...when };

  const place = { key, leaseId };
  try {
    const answered = await visits(place, answer, bounds, deps, (options) => ask(leaseId, options));
    if (answered.answer.ok) deps.paces.learn(key, elapsedMs(began, instantOf(deps.clock)) / answer.position);
    else await cancel(place, deps);
    return answered;
  } catch (error) {
    await cancel(place, deps);
    throw error;
  }
}

/** Visits until the place has become a lease. @throws when the wait is over. */
async function visits(
  place: { readonly key: string; readonly leaseId: LeaseId },
  first: Waiting,
  { leftMs, ...bounds }: Waits,
  deps: Acquiring,
  ask: (options: CallOptions) => Promise<Held | Waiting | Refusal>,
): Promise<Answered<Held | Refusal>> {
  const { clock, random } = deps;
  const { signal } = bounds;
  let seen: Waiting = first;
  for (let idle = 0; ; idle++) {
    const delayMs = deps.paces.delayMs(place.key, seen, idle) * (0.9 + 0.2 * random());
    await pause(Math.min(delayMs, seen.comeWithinMs, Math.max(0, leftMs())), clock, signal);
    if (signal?.aborted) throw abortError(signal);
    if (leftMs() <= 0) throw timeoutOf(`acquire ${place.key}: still in its queue, at place ${seen.position}`, seen);
    // The first look of who is next is likely to find its turn: then the look is the claim.
    const asks = seen.retryAfterMs === 0 || (seen.position === 1 && idle === 0);
    const budgetMs = Math.max(leftMs(), bounds.attemptMs);
    const attempt = asks ? ask : (options: CallOptions) => deps.api.check(place, options);
    const { answer, ...when } = await call(attempt, { ...bounds, budgetMs }, deps);
    if (isWaiting(answer)) {
      if (answer.position < seen.position) idle = -1;
      seen = answer;
    } else if (!answer.ok && answer.code === "lease-lost" && !asks) {
      // Not heard of in time, it lost its place: it asks for another, under the same id.
      seen = { ...seen, retryAfterMs: 0 };
    } else {
      return { answer, ...when };
    }
  }
}

function isWaiting(answer: Held | Waiting | Refusal): answer is Waiting {
  return answer.ok && "state" in answer;
}
