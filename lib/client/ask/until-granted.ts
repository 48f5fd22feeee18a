/**
 * Waits in a key's queue:
 *
 * 1. Ask for the key with `waitMs`: the answer is a lease or a place in the queue.
 * 2. Poll at the pace of the latest leases, which the service knows (decision 061), and in time to keep the place.
 * 3. A poll only reads. The waiter asks for the lease when its turn has come or is expected.
 * 4. The end of the wait cuts every pause. The request that follows asks for the lease, and is the last.
 * 5. A waiter that gives up, for any reason, cancels: it leaves no place and no lease behind.
 *
 * If the queue is full, the key is requested again after the time that the service gives; if the caller may not use it, repeatedly with growing
 * pauses.
 */
import { type Backoff, backoffMs } from "../../core/backoff.js";
import { type Held, type Waiting, ASK_NOW_MS } from "../../core/commands.js";
import type { ErrorCode, Refusal } from "../../core/errors.js";
import type { LeaseId } from "../../core/lease-id.js";
import type { CallOptions } from "../../core/api/locks.js";
import { type AskDeps, type AcquireParams, cancel, ensureFresh, throwIfAborted, untilFresh, withFreshLeaseId } from "./fresh-id.js";
import { type Answered, retry } from "../wire/retry.js";
import { isUnanswered } from "../wire/errors.js";
import type { Wait } from "./wait.js";

/** The pauses without a queue: the first, which doubles each time up to the longest, with jitter. */
const POLLS: Backoff = { firstMs: 40, longestMs: 1000 };

/** The part by which a caller without a place asks later than it is told to, at most. Each of its requests costs as much as the queue is long. */
const SPREAD = 0.25;
/** The growth of the pauses between polls without news, and the first such pause of who is next, as a share of what the service tells. */
const IDLE_GROWTH = 1.5;
const MOST_GROWTHS = 20;
const NEXT_STEP = 0.3;
/** The longest pause for each place, since a holder may have crashed. */
const LONGEST_POLL_MS = 300;

/**
 * The refusals that a new id or a later time can resolve. `lease-over` and `lease-id-time` are among them: an id can lose its place and by
 * then be too old for another.
 */
const WAITABLE: ReadonlySet<ErrorCode> = new Set(["locked", "queue-full", "key-full", "lease-over", "lease-id-time"]);

/**
 * Waits until the key is granted, or `wait` or the signal ends.
 * @throws LockTimeoutError or LockUnavailableError, by the service's last answer; AbortError; LockError for a refusal
 */
export async function untilGranted(params: AcquireParams, wait: Wait, deps: AskDeps): Promise<Answered<Held>> {
  const { key, signal } = params;
  const { random } = deps;
  const what = `acquire ${key}`;
  for (let polls = 0; ; polls++) {
    const isLast = wait.isEnding();
    // One place after another, until the key is granted with enough of the lease left. A refusal means that there is no place.
    const answered = await untilFresh(
      () => ownTurn(params, wait, deps),
      (granted) => ensureFresh(granted, wait.bounds(params.leaseMs, signal), deps),
    );
    const { answer } = answered;
    if (answer.ok) return { ...answered, answer };
    throwIfAborted(signal);
    if (!WAITABLE.has(answer.code)) throw wait.endedBy(answer, what);
    wait.answered(answer);
    // A process that stood still may find the id of its place forgotten. The key was not asked for then: the last request is under a new id.
    if (wait.isEnding() && (isLast || answer.code !== "lease-over")) wait.end(what);
    const pollMs = backoffMs(POLLS, polls);
    const freeMs = answer.retryAfterMs ?? pollMs;
    // Jitter, so that waiters for the end of the same lease, or for the same place, don't all ask at that instant.
    const delayMs =
      answer.code === "queue-full"
        ? freeMs * (1 + SPREAD * random())
        : Math.min(freeMs + POLLS.firstMs * random(), pollMs * (0.5 + 0.5 * random()));
    await wait.pause(delayMs, signal);
    throwIfAborted(signal);
  }
}

/** Gets the key at once or from a place in its queue. */
async function ownTurn(params: AcquireParams, wait: Wait, deps: AskDeps): Promise<Answered<Held | Refusal>> {
  const { signal, ...request } = params;
  const { key, leaseMs } = request;
  let leaseId: LeaseId = "";
  const ask = (id: LeaseId, options: CallOptions) => deps.api.acquire({ ...request, leaseId: (leaseId = id), waitMs: 0 }, options);
  const { answer, ...when } = await withFreshLeaseId(params, wait.bounds(leaseMs, signal), deps, ask, wait.outsideMs());
  // The service took no new id's time, although each was corrected. So it won't take a later one's.
  if (!answer.ok && answer.code === "lease-id-time") throw wait.endedBy(answer, `acquire ${key}`);
  if (!isWaiting(answer)) return { answer, ...when };

  const place = { key, leaseId };
  try {
    const answered = await pollUntilTurn({ place, first: answer, ask: (options) => ask(leaseId, options) }, params, wait, deps);
    if (!answered.answer.ok) await cancel(place, deps, answered.answer.code === "unavailable" && !signal?.aborted);
    return answered;
  } catch (error) {
    await cancel(place, deps, isUnanswered(error) && !signal?.aborted);
    throw error;
  }
}

/** A place in a queue. */
interface Queued {
  readonly place: { readonly key: string; readonly leaseId: LeaseId };
  /** The answer to the request that got the place. */
  readonly first: Waiting;
  /** Asks for the lease. */
  readonly ask: (options: CallOptions) => Promise<Held | Waiting | Refusal>;
}

/** Polls until the place has become a lease. @throws when the wait is over. */
export async function pollUntilTurn(
  { place, first, ask }: Queued,
  { leaseMs, signal }: AcquireParams,
  wait: Wait,
  deps: AskDeps,
): Promise<Answered<Held | Refusal>> {
  const { random } = deps;
  let current: Waiting = first;
  let asks = true;
  for (let idle = 0; ; idle++) {
    wait.answered(current);
    // A poll that finds its turn after the end is not the last request.
    if (wait.isEnding() && (asks || current.retryAfterMs !== ASK_NOW_MS)) wait.end(`acquire ${place.key}`);
    // Nobody else asks when who is next does.
    const jitter = current.position === 1 ? 1 : 0.9 + 0.2 * random();
    await wait.pause(Math.min(pollAfterMs(current, idle) * jitter, current.pollWithinMs), signal);
    throwIfAborted(signal);
    // The first poll in position 1 probably finds its turn, so it asks for the lease.
    asks = wait.isEnding() || current.retryAfterMs === ASK_NOW_MS || (current.position === 1 && idle === 0);
    const attempt = asks ? ask : (options: CallOptions) => deps.api.check(place, options);
    const { answer, ...when } = await retry(attempt, wait.bounds(leaseMs, signal), deps);
    if (isWaiting(answer)) {
      if (answer.position < current.position) idle = -1;
      current = answer;
    } else if (!answer.ok && answer.code === "lease-lost" && !asks) {
      // It did not poll in time and lost its place; it asks for a new one under the same id.
      current = { ...current, retryAfterMs: ASK_NOW_MS };
    } else {
      return { answer, ...when };
    }
  }
}

/**
 * Returns the time until the next poll, in ms; `idle` is the number of consecutive polls without news. The service tells when the turn of this
 * place is likely to come. Whoever is next then asks at growing steps of the lease's length. Those behind it can't be next before all ahead of
 * them have had their turn, so each of their polls waits for that again.
 */
function pollAfterMs({ position, retryAfterMs }: Waiting, idle: number): number {
  const step = idle === 0 ? 1 : (position === 1 ? NEXT_STEP : 1) * IDLE_GROWTH ** Math.min(idle - 1, MOST_GROWTHS);
  return Math.min(retryAfterMs * step, LONGEST_POLL_MS * position);
}

function isWaiting(answer: Held | Waiting | Refusal): answer is Waiting {
  return answer.ok && "state" in answer;
}
