/**
 * A lock of a durable execution:
 *
 *  1. step "lease id"  the id is in the history before it is used, so a crash leaves no lease behind
 *  2. step "acquire"   without a wait
 *  3. if it is held:   a callback, and the step "sleep", which queues for the key; the function ends, and runs again when it has the key
 *  4. the work         side effects are in the steps of the lock
 *  5. step "release"
 */
import type { DurableContext } from "@aws/durable-execution-sdk-js";
import { errorOf, InvalidRequestError, timeoutOf } from "../client/wire/errors.js";
import type { LockClient } from "../client/calls/lock-client.js";
import { type KeptOptions, type LeaseOptions, checkKind, PARAMETERS, withDefaults, optionsAndWork } from "../client/calls/options.js";
import { assertEnded } from "../client/hold/holds.js";
import { type Checks, boolean, checkOptions, checkResult, checkWork, ms } from "../client/wire/checks.js";
import { sessionOf } from "../client/calls/session.js";
import type { AcquireRequest } from "../core/api/locks.js";
import type { Refusal } from "../core/errors.js";
import * as LIMITS from "../core/request-limits.js";
import { type DurableSteps, type Stale, checkLasting, ExecutionLease, LEASE_MS } from "./execution-lease.js";

/** Options of a lock in a durable function. */
export interface DurableLockOptions extends Omit<LeaseOptions, KeptOptions> {
  /**
   * The lease's length in ms. It must outlast the pauses in which nothing renews it: between two steps, before a step's next attempt, and
   * until Lambda runs an invocation again that crashed. @default 180 000 (1 000 – 86 400 000)
   */
  readonly leaseMs?: number | undefined;
  /**
   * True to tie the lease to the execution: the service's agent renews it while the execution runs, also suspended, and releases it within about
   * a minute of its end, also if somebody stops it. `leaseMs` is 180 000 at least then. @default false
   */
  readonly tied?: boolean | undefined;
  /** The time to wait for the key, in ms; 0 asks once. No invocation runs meanwhile. @default 3 600 000, at most a year */
  readonly waitMs?: number | undefined;
}

/** The lock of an execution. */
export interface DurableLock extends DurableSteps {
  /** The key, with the client's prefix. */
  readonly key: string;
  /** The same in every invocation of the execution. */
  readonly fencingToken: number;
}

/** Work of an execution under its lock. */
export type DurableWork<T> = (lock: DurableLock) => Promise<T>;

/** The grant, as the history keeps it. */
interface Granted {
  readonly fencingToken: number;
}
/** The answer to a request for the key, as the history keeps it. */
type Asked = Granted | { readonly refusal: Refusal } | Stale | "locked" | "asleep";
/** The operations of the SDK's context that a lock uses. */
type Context = Pick<DurableContext, "step" | "wait" | "createCallback" | "executionContext">;
/** The part of an acquire that differs between the one at once and the one asleep. */
type AcquireMore = { readonly leaseMs: number } & Pick<AcquireRequest, "waitMs" | "wake">;
type Settings = DurableLockOptions & typeof DEFAULTS;

const DEFAULTS = { leaseMs: LEASE_MS, waitMs: 3_600_000, tied: false };
const OPTIONS: Checks<DurableLockOptions> = { ...PARAMETERS, waitMs: ms(0, LIMITS.sleepMaxMs), tied: boolean };
/** The errors of a callback that timed out, or was told that the lease lost its place. */
const ENDS_OF_A_WAIT: ReadonlySet<unknown> = new Set(["CallbackTimeoutError", "CallbackExternalError"]);

/**
 * Acquires the key for the whole execution, runs `work`, and releases. While the key is held, the execution waits in the key's queue without
 * a running invocation: the service's agent wakes it. So `locks` is a client over HTTP, of a service that has an agent, unless `waitMs` is 0 and
 * the lease isn't tied.
 * @throws LockTimeoutError if the key is still held after `waitMs`; LockLostError if the lease was lost, whatever `work` returned;
 *   LockUnavailableError if there was no response in six attempts; LockError for a refusal. Nothing is held then.
 */
export async function withDurableLock<T>(
  ctx: Pick<DurableContext, "step" | "wait" | "createCallback" | "executionContext">,
  locks: LockClient,
  key: string,
  ...rest: [work: DurableWork<T>] | [options: DurableLockOptions, work: DurableWork<T>]
): Promise<T> {
  const [options, work] = optionsAndWork(rest);
  const session = sessionOf("locks", locks);
  const name = session.keyOf(key);
  checkWork("withDurableLock", "work", work);
  checkOptions("withDurableLock", options, OPTIONS);
  checkKind(options);
  const given = withDefaults<DurableLockOptions>(DEFAULTS, options) as Settings;
  if (given.tied) ms(LIMITS.agentLeaseMinMs, LIMITS.leaseMaxMs)("leaseMs", given.leaseMs);
  checkLasting(session);
  if (session.deps.transport === "dynamodb" && (given.waitMs > 0 || given.tied)) {
    const rule = given.tied
      ? "must be a client over HTTP: only the service has an agent that renews a tied lease"
      : "must be a client over HTTP: only the service has an agent that wakes who waits; or give waitMs: 0";
    throw new InvalidRequestError(`locks: ${rule}`, "locks");
  }
  const hold = { kind: "locks", key: name, leaseMs: given.leaseMs, limit: given.limit, isTied: given.tied } as const;
  return underLock(new ExecutionLease<Context>(ctx, session, hold), given, work);
}

async function underLock<T>(lease: ExecutionLease<Context>, options: Settings, work: DurableWork<T>): Promise<T> {
  const { fencingToken } = await lease.asked(() => granted(lease, options));
  let result: T;
  try {
    result = checkResult(await work({ key: lease.key, fencingToken, ...lease.steps }));
  } catch (error) {
    await lease.end("release");
    throw error;
  }
  assertEnded(lease.key, await lease.end("release"));
  return result;
}

/** Returns the grant, or that the id is not new enough. @throws the error for what happened instead */
async function granted(lease: ExecutionLease<Context>, options: Settings): Promise<Granted | Stale> {
  const asked = await askedOnce(lease, options);
  const what = `acquire ${lease.key}`;
  if (typeof asked !== "object") throw timeoutOf(what, {}, options.waitMs);
  if ("refusal" in asked) throw errorOf(asked.refusal, what);
  return asked;
}

/** Asks for the key, and waits for it asleep if it is held. Returns `locked` if it still is. */
async function askedOnce(lease: ExecutionLease<Context>, options: Settings): Promise<Asked> {
  const { waitMs, leaseMs } = options;
  const { ctx, key } = lease;
  const asked = await ctx.step(`${key}: acquire`, ({ attempt }) => request(lease, options, { leaseMs }, attempt));
  if (asked !== "locked" || waitMs === 0) return asked;
  const seconds = Math.ceil(waitMs / 1000);
  const [told, callbackId] = await ctx.createCallback<Granted | undefined>(`${key}: turn`, {
    timeout: { seconds },
    serdes: { deserialize: async (news) => grantIn(news) },
  });
  const sleeping = { leaseMs: Math.max(leaseMs, LIMITS.agentLeaseMinMs), waitMs: seconds * 1000, wake: { callbackId } };
  const queued = await ctx.step(`${key}: sleep`, ({ attempt }) => request(lease, options, sleeping, attempt));
  if (typeof queued === "object" && !("fencingToken" in queued)) return queued;
  try {
    return (await told) ?? "locked";
  } catch (error) {
    if (!ENDS_OF_A_WAIT.has((error as { errorType?: unknown }).errorType)) throw error;
    return "locked";
  }
}

async function request(lease: ExecutionLease<Context>, options: Settings, more: AcquireMore, attempt: number): Promise<Asked> {
  const { ctx, key, ref, session } = lease;
  const tie = options.tied && { tie: { executionArn: ctx.executionContext.durableExecutionArn } };
  const params = { ...session.acquireParams(key, options), leaseId: ref.leaseId, ...more, ...tie };
  const answer = await lease.send((call) => session.deps.api.acquire(params, call), attempt, { decided: "locked" });
  if (answer.ok) return "state" in answer ? (answer.asleep ? "asleep" : "locked") : { fencingToken: answer.lease.fencingToken };
  if (answer.code === "locked") return "locked";
  return answer.retry === "new-lease" ? { stale: answer } : { refusal: answer };
}

/** Returns the grant that the agent tells; undefined for other news, such as those of somebody who completes the callback by hand. */
function grantIn(news = ""): Granted | undefined {
  try {
    const { fencingToken } = JSON.parse(news) as Partial<Granted>;
    return typeof fencingToken === "number" ? { fencingToken } : undefined;
  } catch {
    return undefined;
  }
}
