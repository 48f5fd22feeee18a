/**
 * A run of a durable execution: work once for a key, whichever executions are started for it, and as often as they are.
 *
 *  1. step "lease id"  the id is in the history before it is used, so a crash leaves no lease behind
 *  2. step "start"     the answer is the lease, or the outcome of an earlier run
 *  3. if it runs:      the condition "in progress", which looks at the run ever less often; nothing runs between two looks. Then 1 again
 *  4. the work         side effects are in the steps of the run
 *  5. step "outcome"   only the lease that still holds the run can record it
 */
import { isA } from "../core/brand.js";
import type { DurableContext } from "@aws/durable-execution-sdk-js";
import { type Backoff, backoffMs } from "../core/backoff.js";
import type { OutcomeInput, Replayed } from "../core/api/runs.js";
import type { Recorded } from "../core/commands.js";
import type { Refusal } from "../core/errors.js";
import * as LIMITS from "../core/request-limits.js";
import { errorOf, FinalError, timeoutOf } from "../client/wire/errors.js";
import type { LockClient } from "../client/calls/lock-client.js";
import { withDefaults, optionsAndWork } from "../client/calls/options.js";
import { type Checks, checkOptions, checkResult, checkWork, ms } from "../client/wire/checks.js";
import { fingerprintOf } from "../client/calls/run/fingerprint.js";
import { type RunResult, failureOf, firstResult, replayed, successOf } from "../client/calls/run/outcome.js";
import { type RunOptions, inputToJson, RUN } from "../client/calls/run/run-options.js";
import { sessionOf } from "../client/calls/session.js";
import { type DurableSteps, type Stale, checkLasting, ExecutionLease, LEASE_MS } from "./execution-lease.js";

/** Options of a run in a durable function. */
export interface DurableRunOptions extends Omit<RunOptions, "heartbeat" | "progressMs" | "signal"> {
  /**
   * The lease's length in ms: if the execution is stopped, another may take the run over after this. It must outlast the pauses in which
   * nothing renews it: between two steps, before a step's next attempt, and until Lambda runs an invocation again that crashed.
   * @default 180 000 (1 000 – 86 400 000)
   */
  readonly leaseMs?: number | undefined;
  /**
   * The time to wait for the outcome of another execution's run, in ms; 0 asks once. No invocation runs meanwhile but for a look: after
   * 1, 2, 4 seconds and so on, and once a minute in the end. @default 3 600 000, at most a year
   */
  readonly waitMs?: number | undefined;
}

/** One attempt at the work of a key, by an execution. */
export interface DurableRun extends DurableSteps {
  /** The key, the same in all attempts. Pass it to every API that takes an idempotency key; an earlier attempt may have called it already. */
  readonly idempotencyKey: string;
  /** The number of the attempt; 1 is the first. An execution that goes on after a crash is in the same attempt. */
  readonly attempt: number;
  /** True if the execution before this one never reported an outcome, so its effects are unknown. */
  readonly takeover: boolean;
  /** Strictly increases with every attempt, and is the same in every invocation of the execution. */
  readonly fencingToken: number;
}

/** Work that is done once for a key. */
export type DurableRunWork<T> = (run: DurableRun) => Promise<T>;

/** The start, as the history keeps it. */
type Begun = Pick<DurableRun, "attempt" | "takeover" | "fencingToken">;
type Asked = Begun | { readonly replay: Replayed } | { readonly isRunning: true } | { readonly refusal: Refusal } | Stale;
/** The operations of the SDK's context that a run uses. */
type Context = Pick<DurableContext, "step" | "wait" | "waitForCondition">;
type Settings = DurableRunOptions & typeof DEFAULTS;
/** A wait for another's run, as the history keeps it. */
interface Waited {
  readonly seconds: number;
  readonly isOver: boolean;
  /** The reason why no look can say more. */
  readonly refusal?: Refusal;
}

const DEFAULTS = { leaseMs: LEASE_MS, waitMs: 3_600_000 };
const { signal: _signal, heartbeat: _heartbeat, progressMs: _progressMs, whenUnavailable: _whenUnavailable, ...OF_RUN } = RUN;
const OPTIONS: Checks<DurableRunOptions> = { ...OF_RUN, waitMs: ms(0, LIMITS.sleepMaxMs) };
/** The pauses between two looks at another's run. */
const LOOKS: Backoff = { firstMs: 1000, longestMs: 60_000 };

/**
 * Runs `work` in this execution, unless the work of the key has an outcome: then that is returned, or thrown. While another execution or
 * process is at it, this one waits suspended. If that one fails or ends without an outcome, this one is the next attempt.
 * @throws RunFailedError for a final failure; LockTimeoutError if the run is still in progress after `waitMs`; LockLostError if the run was
 *   taken over, whatever `work` returned; LockUnavailableError if there was no response in six attempts; LockError for a refusal. What
 *   `work` throws is recorded, and thrown.
 */
export async function withDurableRun<T>(
  ctx: Pick<DurableContext, "step" | "wait" | "waitForCondition">,
  locks: LockClient,
  key: string,
  ...rest: [work: DurableRunWork<T>] | [options: DurableRunOptions, work: DurableRunWork<T>]
): Promise<RunResult<T>> {
  const [options, work] = optionsAndWork(rest);
  const session = sessionOf("locks", locks);
  const name = session.keyOf(key);
  checkWork("withDurableRun", "work", work);
  checkOptions("withDurableRun", options, OPTIONS);
  // Within a step, the error would be tried again.
  inputToJson(options.payload, "payload");
  checkLasting(session);
  const given = withDefaults<DurableRunOptions>(DEFAULTS, options) as Settings;
  return asRun(new ExecutionLease<Context>(ctx, session, { kind: "runs", key: name, leaseMs: given.leaseMs }), given, work);
}

async function asRun<T>(lease: ExecutionLease<Context>, options: Settings, work: DurableRunWork<T>): Promise<RunResult<T>> {
  const { key, steps } = lease;
  const begun = await begin(lease, options);
  if ("replay" in begun) return replayed(key, begun.replay, options);
  let value: T;
  try {
    value = checkResult(await work({ idempotencyKey: key, ...begun, ...steps }));
  } catch (error) {
    const recorded = await record(lease, failureOf(causeOf(error), options.isFinal));
    if (!recorded.ok && recorded.code === "lease-lost")
      throw errorOf(recorded, `run ${key}: failed, and was taken over`, { key, cause: error });
    throw error;
  }
  const success = successOf(value);
  const recorded = await record(lease, success.outcome);
  if (!recorded.ok)
    throw errorOf(recorded, `run ${key}: the work is done, and ${recorded.definite ? "" : "perhaps "}not recorded`, { key });
  return firstResult(key, begun.attempt, success, options);
}

/** Starts the run, or returns its outcome. Waits for another's run. @throws LockTimeoutError if that is still in progress after the wait */
async function begin(lease: ExecutionLease<Context>, options: Settings): Promise<Begun | { readonly replay: Replayed }> {
  const { waitMs } = options;
  const mostSeconds = Math.ceil(waitMs / 1000);
  for (let seconds = 0; ;) {
    const asked = await lease.asked(() => started(lease, options));
    if (!("isRunning" in asked)) return asked;
    if (seconds >= mostSeconds) throw timeoutOf(`run ${lease.key}`, {}, waitMs);
    seconds = await waited(lease, seconds, mostSeconds);
  }
}

async function started(lease: ExecutionLease<Context>, options: Settings): Promise<Exclude<Asked, { readonly refusal: Refusal }>> {
  const { ctx, key } = lease;
  const asked = await ctx.step(`${key}: start`, ({ attempt }) => start(lease, options, attempt));
  if ("refusal" in asked) throw errorOf(asked.refusal, `run ${key}`);
  return asked;
}

async function start(lease: ExecutionLease<Context>, options: Settings, attemptOfStep: number): Promise<Asked> {
  const { key, ref, session } = lease;
  const { payload, keepResultMs, maxAttempts } = options;
  const { leaseMs, owner } = session.acquireParams(key, options);
  const fingerprint = payload === undefined ? undefined : fingerprintOf(payload);
  const params = { ...ref, leaseMs, owner, keepResultMs, maxAttempts, fingerprint };
  const answer = await lease.send((call) => session.deps.api.start(params, call), attemptOfStep, { decided: "run-in-progress" });
  if (answer.ok && answer.state !== "running") return { replay: answer };
  if (answer.ok) return { attempt: answer.attempt, takeover: answer.takeover, fencingToken: answer.lease.fencingToken };
  if (answer.code === "run-in-progress") return { isRunning: true };
  return answer.retry === "new-lease" ? { stale: answer } : { refusal: answer };
}

/** Waits until the run is over, or these seconds are. Returns the seconds waited in all. @throws LockError if it may not look */
async function waited(lease: ExecutionLease<Context>, seconds: number, mostSeconds: number): Promise<number> {
  const { ctx, key } = lease;
  const pauseOf = (looks: number): number => backoffMs(LOOKS, looks - 1) / 1000;
  const lookAgain = async (before: Waited, looks: number): Promise<Waited> => {
    // The start has just looked.
    if (looks === 1) return before;
    return { seconds: Math.min(mostSeconds, before.seconds + pauseOf(looks - 1)), ...(await look(lease)) };
  };
  const after = await ctx.waitForCondition<Waited>(`${key}: in progress`, (before, { attempt }) => lookAgain(before, attempt), {
    initialState: { seconds, isOver: false },
    waitStrategy: (now, looks) =>
      now.isOver || now.seconds >= mostSeconds
        ? { shouldContinue: false }
        : { shouldContinue: true, delay: { seconds: Math.min(pauseOf(looks), mostSeconds - now.seconds) } },
  });
  if (after.refusal) throw errorOf(after.refusal, `run ${key}`);
  return after.seconds;
}

/** Looks at the run. It isn't over if nobody says: the next look may. */
async function look(lease: ExecutionLease<Context>): Promise<Omit<Waited, "seconds">> {
  const { key, session } = lease;
  const { answer } = await lease.retried((options) => session.deps.api.run({ key }, options));
  if (answer.ok) return { isOver: !("run" in answer) || answer.run.state !== "running" };
  if (answer.code === "not-found") return { isOver: true };
  return answer.retry === "never" ? { isOver: true, refusal: answer } : { isOver: false };
}

function record(lease: ExecutionLease<Context>, outcome: OutcomeInput): Promise<Recorded | Refusal> {
  const { ctx, key, ref, session } = lease;
  lease.leave();
  return ctx.step(`${key}: outcome`, ({ attempt }) =>
    lease.send((options) => session.deps.api.complete({ ...ref, outcome }, options), attempt, { untilDecided: true }),
  );
}

/** Returns what the body of a step threw, as far as the history keeps it. */
function causeOf(error: unknown): unknown {
  const { errorType, cause } = (error ?? {}) as { readonly errorType?: unknown; readonly cause?: unknown };
  if (errorType !== "StepError" || !(cause instanceof Error)) return error;
  return cause.name === "FinalError" && !isA(cause, FinalError) ? new FinalError(cause.message) : cause;
}
