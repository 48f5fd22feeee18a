/**
 * `holdfast/durable`: a lock in a durable function of AWS Lambda. It needs the package `@aws/durable-execution-sdk-js`, of which it uses the
 * context that the function has anyway. The lock belongs to the execution: each invocation that replays it has the same lease and the same
 * fencing token.
 *
 *  1. step "lease id"  the id is in the history before it is used, so a crash leaves no lease behind
 *  2. step "acquire"   without a wait
 *  3. if it is held:   a callback, and the step "sleep", which queues for the key; the function ends, and runs again when it has the key
 *  4. the work         side effects are in the steps of the lock
 *  5. step "release"
 *
 * Between two steps nobody renews the lease: heartbeats that outlive a step would keep the lock of an execution that was stopped, as long as
 * its sandbox is warm. So each step first confirms the lease. A step that the history has runs nothing, and needs no lease.
 */
import type { DurableContext, Duration, StepConfig } from "@aws/durable-execution-sdk-js";
import type { LeaseState } from "./core/commands.js";
import type { Refusal } from "./core/errors.js";
import type { AcquireRequest, CallOptions } from "./core/api/locks.js";
import type { LeaseId } from "./core/lease-id.js";
import * as LIMITS from "./core/request-limits.js";
import { errorOf, InvalidRequestError, LockLostError, timeoutOf } from "./client/errors.js";
import type { Lease } from "./client/lease/lease.js";
import type { LockClient } from "./client/lock-client.js";
import type { LeaseOptions } from "./client/options.js";
import { checkAcquire, checkMs, checkNames, checkWork, refused, withDefaults } from "./client/options.js";
import type { Session } from "./client/session.js";
import { CALL_BUDGET_MS, sessionOf } from "./client/session.js";
import type { Answered } from "./client/transport/retry.js";
import { boundsFor, retry } from "./client/transport/retry.js";
import { runHolding } from "./client/wrap/reentrancy-guard.js";

/** Options of a lock in a durable function. */
export interface DurableLockOptions extends Omit<LeaseOptions, "heartbeat" | "maxHoldMs"> {
  /**
   * The lease's length in ms. It must outlast the pauses in which nothing renews it: between two steps, before a step's next attempt, and
   * until Lambda runs an invocation again that crashed. @default 180 000 (1 000 – 86 400 000)
   */
  readonly leaseMs?: number | undefined;
  /** The time to wait for the key, in ms; 0 asks once. No invocation runs meanwhile. @default 3 600 000, at most a year */
  readonly waitMs?: number | undefined;
}

/** The lease, as the body of a step has it. */
export type StepLease = Pick<Lease, "key" | "fencingToken" | "fenceFloor" | "signal" | "isHeld" | "assertHeld" | "remainingMs">;

/** The lock of an execution. */
export interface DurableLock {
  /** The key, with the client's prefix. */
  readonly key: string;
  /** The same in every invocation of the execution. */
  readonly fencingToken: number;
  /**
   * Runs `body` as a step of the execution, under the lock: it confirms the lease, keeps it alive until `body` settles, and hands it out. A
   * step that the history has already returns its result, and runs nothing.
   * @throws LockLostError if the lease ended before the step or during it, whatever `body` returned, and the step isn't tried again; the
   *   SDK's StepError if `body` failed for good
   */
  step<T>(name: string, body: (lease: StepLease) => Promise<T>, config?: StepConfig<T>): Promise<T>;
  /**
   * Suspends the execution and keeps the lock: a step first makes the lease longer than `duration` by a minute. At most a day less a minute.
   * @throws LockLostError if the lease has ended; InvalidRequestError for a longer time
   */
  wait(name: string, duration: Duration): Promise<void>;
}

/** Work of an execution under its lock. */
export type DurableWork<T> = (lock: DurableLock) => Promise<T>;

/** The answer to a request for the key, as the history keeps it. `stale`: the id is not new enough. */
type Asked = { readonly fencingToken: number } | { readonly refusal: Refusal } | { readonly stale: Refusal } | "locked" | "asleep";
/** The news from the agent that wakes the execution. */
interface Told {
  readonly fencingToken: number;
}
/** The operations of the SDK's context that a lock uses. */
type Context = Pick<DurableContext, "step" | "wait" | "createCallback">;
/** The part of an acquire that differs between the one at once and the one asleep. */
type AcquireMore = { readonly leaseMs: number } & Pick<AcquireRequest, "waitMs" | "wake">;
type Settings = DurableLockOptions & typeof DEFAULTS;

const DEFAULTS = { leaseMs: 180_000, waitMs: 3_600_000 };
const OPTIONS = ["leaseMs", "owner", "meta", "mode", "limit", "permits", "priority", "waitMs"];
/** The shortest lease of an execution that is woken: a second telling, a sweep after the first, still finds it. */
const WOKEN_LEASE_MS = 180_000;
/** The time that a lease outlasts a wait: Lambda starts the function again, and it begins its next step. */
const RESUME_MS = 60_000;
/** The number of ids that are tried if the service refuses them as not new. */
const NEW_ID_TRIES = 5;
/** The attempts of a step, and the pause before the second, which doubles up to the longest, with full jitter: as the SDK's own. */
const RETRIES = { attempts: 6, firstSeconds: 5, longestSeconds: 60 };
/** The ends of a lease of which the work must learn. One that ran out, and that nobody took, did no harm. */
const LOST: ReadonlySet<LeaseState | undefined> = new Set(["lost", "unknown", "never"] as const);

/**
 * Acquires the key for the whole execution, runs `work`, and releases. While the key is held, the execution waits in the key's queue without
 * a running invocation: the service's agent wakes it. So `locks` is a client over HTTP, of a service that has an agent, unless `waitMs` is 0.
 * @throws LockTimeoutError if the key is still held after `waitMs`; LockLostError if the lease was lost, whatever `work` returned;
 *   LockUnavailableError if there was no response in six attempts; LockError for a refusal. Nothing is held then.
 */
export async function withDurableLock<T>(
  ctx: Pick<DurableContext, "step" | "wait" | "createCallback">,
  locks: LockClient,
  key: string,
  ...rest: [work: DurableWork<T>] | [options: DurableLockOptions, work: DurableWork<T>]
): Promise<T> {
  const [options, work] = rest.length === 1 ? [{}, rest[0]] : rest;
  const session = sessionOf("locks", locks);
  const name = session.keyOf(key);
  checkWork("withDurableLock", "work", work);
  checkNames("withDurableLock", options, OPTIONS);
  checkAcquire(options);
  const given = withDefaults<DurableLockOptions>(DEFAULTS, options) as Settings;
  checkMs("waitMs", given.waitMs, 0, LIMITS.sleepMaxMs);
  checkSession(session, given.waitMs);
  return new Execution(ctx, session, name, given).run(work);
}

/** @throws InvalidRequestError unless the lock can outlive an invocation, and who waits can be woken */
function checkSession({ context, deps }: Session, waitMs: number): void {
  if (context)
    throw new InvalidRequestError(
      "locks: must be the client itself: a view for one invocation ends its leases with it, and this one lasts",
      "locks",
    );
  if (deps.transport === "dynamodb" && waitMs > 0)
    throw new InvalidRequestError(
      "locks: must be a client over HTTP: only the service has an agent that wakes who waits; or give waitMs: 0",
      "locks",
    );
}

/** One execution's lock, in one of its invocations. */
class Execution {
  readonly #ctx: Context;
  readonly #session: Session;
  readonly #key: string;
  readonly #options: Settings;
  #leaseId: LeaseId = "";

  constructor(ctx: Context, session: Session, key: string, options: Settings) {
    this.#ctx = ctx;
    this.#session = session;
    this.#key = key;
    this.#options = options;
  }

  async run<T>(work: DurableWork<T>): Promise<T> {
    const fencingToken = await this.#acquire();
    const lock: DurableLock = {
      key: this.#key,
      fencingToken,
      step: (name, body, config) => this.#step(name, body, config),
      wait: (name, duration) => this.#wait(name, duration),
    };
    let result: T;
    try {
      result = await work(lock);
    } catch (error) {
      await this.#end("release");
      throw error;
    }
    if (LOST.has(await this.#end("release"))) throw new LockLostError(`${this.#key}: was taken or broken while the work ran`, "broken");
    return result;
  }

  /** Returns the token once the key is granted. @throws the error for what happened instead: nothing is held then */
  async #acquire(): Promise<number> {
    let aboveMs = 0;
    for (let tries = 1; ; tries++) {
      this.#leaseId = await this.#ctx.step(`${this.#key}: lease id`, async () => this.#session.deps.ids.next(aboveMs));
      try {
        const asked = await this.#ask();
        if (typeof asked === "object" && "fencingToken" in asked) return asked.fencingToken;
        if (typeof asked === "object" && "refusal" in asked) throw errorOf(asked.refusal, `acquire ${this.#key}`);
        if (typeof asked !== "object") throw timeoutOf(`acquire ${this.#key}`, {}, this.#options.waitMs);
        if (tries === NEW_ID_TRIES) throw errorOf(asked.stale, `acquire ${this.#key}`);
        aboveMs = asked.stale.leaseIdAboveMs ?? 0;
      } catch (error) {
        await this.#end("give up");
        throw error;
      }
    }
  }

  /** Asks for the key, and waits for it asleep if it is held. Returns `locked` if it still is. */
  async #ask(): Promise<Asked> {
    const { waitMs, leaseMs } = this.#options;
    const asked = await this.#ctx.step(`${this.#key}: acquire`, ({ attempt }) => this.#request({ leaseMs }, attempt));
    if (asked !== "locked" || waitMs === 0) return asked;
    const seconds = Math.ceil(waitMs / 1000);
    const [told, callbackId] = await this.#ctx.createCallback<Told>(`${this.#key}: turn`, {
      timeout: { seconds },
      serdes: { deserialize: async (news) => JSON.parse(news ?? "") as Told },
    });
    const sleeping = { leaseMs: Math.max(leaseMs, WOKEN_LEASE_MS), waitMs: seconds * 1000, wake: { callbackId } };
    const queued = await this.#ctx.step(`${this.#key}: sleep`, ({ attempt }) => this.#request(sleeping, attempt));
    if (typeof queued === "object" && !("fencingToken" in queued)) return queued;
    try {
      return { fencingToken: (await told).fencingToken };
    } catch (error) {
      if (!ENDS_OF_A_WAIT.has((error as { errorType?: unknown }).errorType)) throw error;
      return "locked";
    }
  }

  /** Sends an acquire. @throws LockError if a later attempt of the step may get another answer, and there is one */
  async #request(more: AcquireMore, attempt: number): Promise<Asked> {
    const { deps } = this.#session;
    const params = { ...this.#session.acquireParams(this.#key, this.#options), leaseId: this.#leaseId, ...more };
    const { answer } = await this.#retried((options) => deps.api.acquire(params, options));
    if (answer.ok) return "state" in answer ? (answer.asleep ? "asleep" : "locked") : { fencingToken: answer.lease.fencingToken };
    if (answer.code === "locked") return "locked";
    if (answer.retry === "new-lease") {
      deps.ids.correct(answer);
      return { stale: answer };
    }
    if (answer.retry === "never" || attempt >= RETRIES.attempts) return { refusal: answer };
    throw errorOf(answer, `acquire ${this.#key}`);
  }

  async #step<T>(name: string, body: (lease: StepLease) => Promise<T>, config: StepConfig<T> = {}): Promise<T> {
    const { retryStrategy = (_error: Error, attempt: number) => this.#retryOf(attempt) } = config;
    try {
      return await this.#ctx.step(name, () => this.#underLease(body), {
        ...config,
        retryStrategy: (error, attempt) => (this.#isLoss(error) ? { shouldRetry: false } : retryStrategy(error, attempt)),
      });
    } catch (error) {
      const { cause } = error as { readonly cause?: unknown };
      // The history keeps an error's name and message. What ended the lease is in the message.
      throw this.#isLoss(cause) ? new LockLostError(cause.message, "expired", error) : error;
    }
  }

  /** Runs `body` while the lease is kept alive in this process. */
  async #underLease<T>(body: (lease: StepLease) => Promise<T>): Promise<T> {
    const session = this.#session;
    const { leaseMs } = this.#options;
    const { answer, ...when } = await this.#renewed(leaseMs);
    if (!answer.ok) throw errorOf(answer, this.#key);
    // A wait has made the lease long for once. Heartbeats renew by its own length, or by what is left.
    const view = { ...answer.lease, leaseMs: Math.min(answer.lease.leaseMs, Math.max(leaseMs, answer.lease.remainingMs)) };
    const lease = await session.adopt({ answer: { ...answer, lease: view }, ...when }, {});
    const use = { key: lease.key, mode: lease.mode, permits: lease.permits, limit: this.#options.limit };
    try {
      const result = await runHolding({ uses: [use], of: session.deps.api, lease, isHeld: () => lease.isHeld() }, () => body(lease));
      lease.assertHeld();
      return result;
    } catch (error) {
      lease.assertHeld();
      throw error;
    } finally {
      lease.abandon();
    }
  }

  async #wait(name: string, duration: Duration): Promise<void> {
    const { days = 0, hours = 0, minutes = 0, seconds = 0 }: Partial<Record<"days" | "hours" | "minutes" | "seconds", number>> = duration;
    const leaseMs = (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000 + RESUME_MS;
    if (!(leaseMs <= LIMITS.leaseMaxMs))
      throw refused("duration", leaseMs - RESUME_MS, `it is at most ${LIMITS.leaseMaxMs - RESUME_MS} ms`);
    const lost = await this.#ctx.step(`${name}: lengthen the lease`, async () => {
      const { answer } = await this.#renewed(leaseMs);
      if (answer.ok) return null;
      if (answer.code !== "lease-lost") throw errorOf(answer, this.#key);
      return answer;
    });
    if (lost) throw errorOf(lost, this.#key);
    await this.#ctx.wait(name, duration);
  }

  /** Ends the lease, whatever became of it. Returns its last state; undefined if that got no response: the lease then ends by itself. */
  async #end(what: "release" | "give up"): Promise<LeaseState | undefined> {
    const { deps } = this.#session;
    try {
      return await this.#ctx.step(`${this.#key}: ${what}`, async () => {
        const ref = { key: this.#key, leaseId: this.#leaseId };
        const { answer } = await this.#retried((options) => deps.api.release(ref, options));
        if (!answer.ok) throw errorOf(answer, `${what} ${this.#key}`);
        return answer.state;
      });
    } catch {
      return undefined;
    }
  }

  #renewed(leaseMs: number) {
    const ref = { key: this.#key, leaseId: this.#leaseId };
    return this.#retried((options) => this.#session.deps.api.renew({ ...ref, leaseMs }, options));
  }

  #retried<A extends { readonly ok: true }>(attempt: (options: CallOptions) => Promise<A | Refusal>): Promise<Answered<A | Refusal>> {
    return retry(attempt, boundsFor(this.#options.leaseMs, CALL_BUDGET_MS), this.#session.deps);
  }

  #retryOf(attempt: number) {
    const seconds = Math.min(RETRIES.longestSeconds, RETRIES.firstSeconds * 2 ** (attempt - 1));
    return { shouldRetry: attempt < RETRIES.attempts, delay: { seconds: Math.max(1, Math.round(seconds * this.#session.deps.random())) } };
  }

  /** True for the loss of this lock, also after the history has kept it. */
  #isLoss(error: unknown): error is Error {
    return error instanceof Error && error.name === "LockLostError" && error.message.startsWith(`${this.#key}: `);
  }
}

/** The errors of a callback that timed out, or was told that the lease lost its place. */
const ENDS_OF_A_WAIT: ReadonlySet<unknown> = new Set(["CallbackTimeoutError", "CallbackExternalError"]);
