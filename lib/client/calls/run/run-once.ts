/**
 * Runs work once per key:
 *
 * 1. Start, under a new leaseId. The answer is the lease, the outcome of an earlier run, or a run in progress: wait for that one.
 * 2. Run the work while heartbeats keep its lease alive.
 * 3. Record the outcome (./record.ts). Only the lease that still holds the run can do so; a caller whose run was taken over gets an error.
 *
 * After a thrown error, the next caller can start at once; a final error is stored and replayed. Completed work is never repeated: a result
 * that can't be stored is left out of the record.
 */
import { unlessUnavailable } from "../unavailable.js";
import { type Backoff, backoffMs } from "../../../core/backoff.js";
import { brand, isA } from "../../../core/brand.js";
import * as LIMITS from "../../../core/request-limits.js";
import type { Replayed, Started } from "../../../core/api/runs.js";
import type { Held } from "../../../core/commands.js";
import type { Refusal } from "../../../core/errors.js";
import { elapsedMs, instantOf } from "../../../core/time.js";
import { ensureFresh, throwIfAborted, untilFresh, withFreshLeaseId } from "../../ask/fresh-id.js";
import type { Answered, RetryBounds } from "../../wire/retry.js";
import type { Stoppable } from "../../wire/lazy-abort.js";
import { awaited, runHolding } from "../surrounding.js";
import { errorOf, InvalidRequestError } from "../../wire/errors.js";
import { ANSWER_MS } from "../../wire/invocation.js";
import type { Session } from "../session.js";
import type { HeldLease } from "../../hold/lease.js";
import type { WhenUnavailable } from "../options.js";
import { type RunOptions, inputToJson } from "./run-options.js";
import { fingerprintOf } from "./fingerprint.js";
import { fromJson } from "./json-codec.js";
import { type RunResult, failureOf, firstResult, jsonBytes, replayed, successOf } from "./outcome.js";
import { record } from "./record.js";
import { Wait } from "../../ask/wait.js";

/** One attempt at the work of a key, as its function sees it. */
export interface Run {
  /**
   * The key, the same in all attempts. Pass it to every API that takes an idempotency key; an earlier attempt may have called it already.
   */
  readonly idempotencyKey: string;
  /** The number of the attempt; 1 is the first. */
  readonly attempt: number;
  /** True if the previous attempt never reported an outcome, so its effects are unknown. */
  readonly takeover: boolean;
  /** The last saved checkpoint, by this attempt or an earlier one. */
  readonly checkpoint: unknown;
  /** Strictly increases with every attempt. Pass it to the resource that you write to (see `fencedWrite`). */
  readonly fencingToken: number;
  /** Aborts when the lease is lost: another caller can run the work from then on. */
  readonly signal: AbortSignal;
  /** The time for which the lease may still be treated as held without a renewal, in ms; 0 if it is not held. */
  remainingMs(): number;
  /** True if the lease is held, computed at each call. */
  isHeld(): boolean;
  /** Call it before each side effect. @throws LockLostError if the lease is not held. */
  assertHeld(): void;
  /** Says that the work gets on, for a run with `progressMs`, as {@link saveCheckpoint} does too. Returns true if the lease is held. */
  progress(): boolean;
  /**
   * Saves the progress of the work, at most 8 KB as JSON, for the attempt that takes over.
   * @throws LockLostError if the lease has ended; InvalidRequestError if the value can't be stored.
   */
  saveCheckpoint(value: unknown): Promise<void>;
}

/** Work throws it that began nothing; its cause goes to the caller. The attempt is given back, and doesn't count. */
export class NotBegun extends Error {
  static {
    brand(this, "NotBegun");
  }
  override readonly name = "NotBegun";
}

/** The pauses between two starts, in ms: after a long poll, and otherwise the first, which doubles up to the longest. */
const AFTER_LONG_POLL_MS = 30;
const POLLS: Backoff = { firstMs: 40, longestMs: 1000 };

/** Runs `work` under `key`, or returns the outcome of an earlier run. */
export async function runOnce<T>(
  session: Session,
  key: string,
  options: RunOptions & WhenUnavailable,
  work: (run: Run) => Promise<T> | T,
): Promise<RunResult<T>> {
  return unlessUnavailable(session, options, key, {
    acquire: () =>
      awaited(session, [{ key, kind: "runs" }], () =>
        session.registry.run(options.signal, (signal) => begin(session, key, { ...options, signal })),
      ),
    under: (begun) => carriedOut(session, key, options, work, begun),
    alone: async (nothing): Promise<RunResult<T>> => ({ value: await work(nothing), replayed: false, attempt: 0 }),
  });
}

/** Runs the work that this caller began, or returns the outcome of an earlier run. */
async function carriedOut<T>(
  session: Session,
  key: string,
  options: RunOptions,
  work: (run: Run) => Promise<T> | T,
  begun: Answered<Started | Replayed>,
): Promise<RunResult<T>> {
  const { answer } = begun;
  if (answer.state !== "running") return replayed(key, answer, options);
  const lease = await session.holds.adopt({ ...begun, answer: { ok: true, how: answer.how, lease: answer.lease } }, options, {
    kind: "runs",
  });
  return session.registry.during(lease, false, async () => {
    const value = await perform(lease, answer, options, work, session);
    const success = successOf(value);
    const recorded = await record(lease, success.outcome, session);
    if (!recorded.ok)
      throw errorOf(recorded, `run ${key}: the work is done, and ${recorded.definite ? "" : "perhaps "}not recorded`, { key });
    return firstResult(key, answer.attempt, success, options);
  });
}

/** Starts the run, or waits for the outcome of a concurrent one. */
async function begin(session: Session, key: string, options: Stoppable<RunOptions>): Promise<Answered<Started | Replayed>> {
  const { deps } = session;
  const { clock, random } = deps;
  const { leaseMs, owner, signal } = { ...session.acquireParams(key, options), signal: options.signal };
  const { payload, keepResultMs, maxAttempts } = options;
  const fingerprint = payload === undefined ? undefined : fingerprintOf(payload);
  const request = { key, leaseMs, owner, keepResultMs, maxAttempts, fingerprint };
  const what = `run ${key}`;
  const wait = new Wait(session.waitMsOf(options), deps);
  for (let polls = 0; ; polls++) {
    const askedAt = instantOf(clock);
    let waitMs = 0;
    const start = (): Promise<Answered<Started | Replayed | Refusal>> => {
      // A long poll takes less than the rest of the wait, so that its answer arrives in time.
      waitMs = Math.max(0, Math.min(wait.leftMs() - ANSWER_MS, LIMITS.serverWaitMs));
      return withFreshLeaseId({ kind: "runs", key, signal }, wait.bounds(leaseMs, signal, waitMs), deps, (leaseId, attempt) =>
        deps.api.start({ ...request, leaseId, waitMs }, attempt),
      );
    };
    const started = await untilFresh(start, (begun) => fresh(begun, wait.bounds(leaseMs, signal), deps));
    const { answer } = started;
    if (answer.ok) return { ...started, answer };
    if (answer.code !== "run-in-progress") throw wait.endedBy(answer, what);
    wait.answered(answer);
    if (wait.isEnding()) throw wait.over(what);
    const wasLongPoll = waitMs > 0 && elapsedMs(askedAt, instantOf(clock)) >= waitMs / 2;
    const pollMs = wasLongPoll ? AFTER_LONG_POLL_MS : backoffMs(POLLS, polls);
    await wait.pause(pollMs * (0.5 + 0.5 * random()), signal);
    throwIfAborted(signal);
  }
}

/** Returns a result as it is, and a start with at least one renewal interval left: no work starts under a lease that is nearly over. */
async function fresh(
  { answer, ...when }: Answered<Started | Replayed>,
  bounds: RetryBounds,
  deps: Session["deps"],
): Promise<Answered<Started | Replayed | Refusal>> {
  if (answer.state !== "running") return { answer, ...when };
  const granted: Answered<Held> = { answer: { ok: true, how: "granted", lease: answer.lease }, ...when };
  const held = await ensureFresh(granted, bounds, deps, "runs");
  return { ...held, answer: held.answer.ok ? { ...answer, lease: held.answer.lease } : held.answer };
}

/** Runs the work. An error is recorded here and thrown again. */
async function perform<T>(
  lease: HeldLease,
  started: Started,
  { isFinal }: RunOptions,
  work: (run: Run) => Promise<T> | T,
  session: Session,
): Promise<T> {
  try {
    const these = { uses: [lease], of: session.deps.api, hold: lease };
    return await runHolding(these, () => work(runFor(lease, started)));
  } catch (error) {
    if (isA(error, NotBegun)) {
      await session.holds.tryRelease(lease);
      throw error.cause;
    }
    const recorded = await record(lease, failureOf(error, isFinal), session);
    if (recorded.ok) throw error;
    if (recorded.code === "lease-lost")
      throw errorOf(recorded, `run ${lease.key}: failed, and was taken over`, { key: lease.key, cause: error });
    session.holds.emit("release-failed", lease, errorOf(recorded, `run ${lease.key}`));
    throw error;
  }
}

function runFor(lease: HeldLease, { attempt, takeover, checkpoint }: Started): Run {
  let saved = fromJson(checkpoint);
  return {
    idempotencyKey: lease.key,
    attempt,
    takeover,
    get checkpoint() {
      return saved;
    },
    get fencingToken() {
      return lease.fencingToken;
    },
    signal: lease.signal,
    remainingMs: () => lease.remainingMs(),
    isHeld: () => lease.isHeld(),
    assertHeld: () => lease.assertHeld(),
    progress: () => lease.progress(),
    async saveCheckpoint(value) {
      const json = checkpointOf(value);
      await lease.save(json);
      saved = fromJson(json);
    },
  };
}

function checkpointOf(value: unknown): unknown {
  const json = inputToJson(value ?? null, "checkpoint");
  const bytes = jsonBytes(json);
  if (bytes <= LIMITS.checkpointBytes) return json;
  throw new InvalidRequestError(`checkpoint: is ${bytes} bytes as JSON, of at most ${LIMITS.checkpointBytes}`, "checkpoint");
}
