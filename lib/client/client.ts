/**
 * The lock client at work, whatever it speaks to. It owns the leases it handed out; each has a keep-alive
 * of its own, and no state outlives it.
 */
import type { Held, LeaseState } from "../core/commands.js";
import type { Refusal } from "../core/errors.js";
import type { CallOptions } from "../core/lock-api.js";
import { DEFAULTS, LIMITS } from "../core/limits.js";
import type { Acquiring, Wanted } from "./acquire.js";
import { abortError, cancel, refreshed, tryOnce, untilGranted } from "./acquire.js";
import type { Answered } from "./call.js";
import { attemptMsFor, call } from "./call.js";
import { errorOf, InvalidRequestError, LockError, LockLostError } from "./errors.js";
import { handOver } from "./hand-over.js";
import type { Detached } from "./handle.js";
import { fromHandle } from "./handle.js";
import type { InvocationContext } from "./invocation.js";
import { CANCEL_IN_INVOCATION_MS, capLeaseMs, capWaitMs } from "./invocation.js";
import { keepAlive } from "./keep-alive.js";
import type { Lease } from "./lease.js";
import { HeldLease } from "./lease.js";
import type { ClientOptions, LockClient, LockClientEvent } from "./lock-client.js";
import type { AcquireOptions, LeaseOptions } from "./options.js";
import { checkAcquire, checkKey, checkLease, checkMs, checkNames, checkTryAcquire } from "./options.js";
import { Registry } from "./registry.js";

/** What a release says of a hold that did not last until then. Who was granted treats `unknown` and `never` as lost. */
const LOST: ReadonlySet<LeaseState> = new Set(["lost", "unknown", "never"]);
/** Ends of a lease that its own side meant. */
const GIVEN_UP: ReadonlySet<LockLostError["reason"]> = new Set(["released", "transferred", "closed"]);
/** One operation other than acquiring is given this long, and each of its attempts half of it. */
const CALL_BUDGET_MS = 10_000;

/** A client that speaks to `deps.api`. */
export function createClient(deps: Acquiring, options: ClientOptions = {}): LockClient {
  return createView(deps, options, new Registry());
}

/** The client, or a view of it for one invocation. */
function createView(deps: Acquiring, options: ClientOptions, registry: Registry, context?: InvocationContext): LockClient {
  const { api } = deps;
  const { prefix = "", owner: defaultOwner = "", onEvent } = options;

  function emit(type: LockClientEvent["type"], lease: HeldLease, error?: unknown): void {
    try {
      onEvent?.({ type, key: lease.key, fencingToken: lease.fencingToken, ...(error !== undefined && { error }) });
    } catch {
      // The listener's own: no key may stay held, and no process end, because a metric failed.
    }
  }

  /** The key with the client's prefix. What isn't text isn't made into it: never a lock called `undefined`. */
  function keyOf(name: unknown): string {
    const key = typeof name === "string" ? prefix + name : name;
    checkKey(key);
    return key;
  }

  function wantedOf(key: string, { leaseMs = DEFAULTS.leaseMs, owner = defaultOwner, meta }: LeaseOptions): Wanted {
    if (registry.isClosed) throw closedError();
    return { key, leaseMs: capLeaseMs(leaseMs, context), owner, meta };
  }

  /** The reply as a living lease. One that can't be kept is given back, and nobody ever held it. */
  async function hand(answered: Answered<Held>, { heartbeat = true, maxHoldMs }: LeaseOptions): Promise<Lease> {
    const lease = new HeldLease(answered.answer.lease, answered.sentAt, { ...deps, onEnd: ended });
    keepAlive(
      lease,
      { heartbeat, maxHoldMs, context, onRenewFailed: (error) => emit("renew-failed", lease, error), giveBack: () => void released(lease) },
      deps,
    );
    if (registry.isClosed || !lease.isHeld()) await released(lease);
    if (registry.isClosed) throw closedError();
    lease.assertHeld();
    registry.add(lease);
    emit("acquired", lease);
    return lease;
  }

  function ended(lease: HeldLease): void {
    if (!registry.delete(lease)) return;
    const reason: unknown = lease.signal.reason;
    const wasReleased = reason instanceof LockLostError && GIVEN_UP.has(reason.reason);
    emit(wasReleased ? "released" : "lost", lease, wasReleased ? undefined : reason);
  }

  async function ask<A extends { readonly ok: true }>(what: string, attempt: (options: CallOptions) => Promise<A | Refusal>): Promise<A> {
    const { answer } = await call(attempt, { attemptMs: CALL_BUDGET_MS / 2, budgetMs: CALL_BUDGET_MS }, deps);
    if (!answer.ok) throw errorOf(answer, what);
    return answer;
  }

  /** Releases; a release that nobody answered is told and costs nothing: the lease ends by itself. */
  async function released(lease: HeldLease): Promise<LeaseState | undefined> {
    try {
      return await lease.release();
    } catch (error) {
      emit("release-failed", lease, error);
      return undefined;
    }
  }

  /** The detached lease, under an id that only this process knows. */
  async function takeOver({ key, leaseId, leaseMs: detachedMs }: Detached, { leaseMs, owner, signal }: Wanted): Promise<Answered<Held>> {
    const bounds = { attemptMs: attemptMsFor(detachedMs), budgetMs: capWaitMs(Math.min(detachedMs, CALL_BUDGET_MS), context), signal };
    const handed = await handOver({ key, leaseId }, { leaseMs, ...(owner !== "" && { owner }) }, bounds, deps);
    const { answer, ...rest } = handed.answer.ok ? await refreshed({ ...handed, answer: handed.answer }, bounds, deps) : handed;
    if (answer.ok && !signal?.aborted) return { ...rest, answer };
    if (answer.ok) await cancel(answer.lease, deps);
    if (signal?.aborted) throw abortError(signal);
    throw errorOf(answer as Refusal, `attach ${key}`);
  }

  const client: LockClient = {
    async tryAcquire(name, options = {}) {
      const key = keyOf(name);
      checkTryAcquire(options);
      const wanted = wantedOf(key, options);
      return registry.run(options.signal, async (signal) => {
        const answered = await tryOnce({ ...wanted, signal }, capWaitMs(Math.min(wanted.leaseMs, CALL_BUDGET_MS), context), deps);
        const { answer } = answered;
        if (answer.ok) return hand({ ...answered, answer }, options);
        if (answer.code !== "locked") throw errorOf(answer, `acquire ${key}`);
        return null;
      });
    },

    async acquire(name, options = {}) {
      const key = keyOf(name);
      checkAcquire(options);
      const wanted = wantedOf(key, options);
      const waitMs = capWaitMs(options.waitMs ?? DEFAULTS.waitMs, context);
      return registry.run(options.signal, async (signal) => hand(await untilGranted({ ...wanted, signal }, waitMs, deps), options));
    },

    async withLock<T>(
      key: string,
      ...rest: [work: (lease: Lease) => Promise<T> | T] | [AcquireOptions, (lease: Lease) => Promise<T> | T]
    ): Promise<T> {
      const [options, work] = rest.length === 1 ? [{}, rest[0]] : rest;
      if (typeof work !== "function")
        throw new InvalidRequestError("withLock: the last argument is the function to run under the lock", "work");
      const lease = (await client.acquire(key, options)) as HeldLease;
      let result: T;
      try {
        result = await work(lease);
        // Work that released or handed over by itself knew what it did.
        if (lease.wasLost) lease.assertHeld();
      } catch (error) {
        // Whatever the work came to, it ran without the lock at the end: that is what the caller must know.
        const reported = lease.wasLost ? lossOf(lease, error) : error;
        await released(lease);
        throw reported;
      }
      const state = await released(lease);
      if (state !== undefined && LOST.has(state)) throw new LockLostError(`${lease.key}: was taken or broken while the work ran`, "broken");
      return result;
    },

    async attach(handle, options = {}) {
      const { key, leaseId, leaseMs } = fromHandle(handle);
      checkNames("attach", options, ["leaseMs", "owner", "heartbeat", "maxHoldMs"]);
      checkLease(options);
      const wanted = wantedOf(key, { leaseMs, ...options });
      return registry.run(undefined, async (signal) => hand(await takeOver({ key, leaseId, leaseMs }, { ...wanted, signal }), options));
    },

    forInvocation: (invocation) =>
      createView({ ...deps, cancelBudgetMs: CANCEL_IN_INVOCATION_MS }, options, new Registry(registry), invocation),

    async inspect(name) {
      const key = keyOf(name);
      const found = await ask(`inspect ${key}`, (attempt) => api.inspect({ key }, attempt));
      if (!("inspection" in found))
        throw new LockError("inspect: the service answered 304 to an unconditional look", {
          code: "internal",
          definite: true,
          retry: "same",
        });
      return found.inspection;
    },

    async list(options = {}) {
      checkNames("list", options, ["prefix", "owner", "max", "cursor"]);
      const { prefix: within = "", ...query } = options;
      checkMs("max", query.max, 1, LIMITS.listMax);
      const { items, cursor } = await ask("list", (attempt) => api.list({ prefix: prefix + within, ...query }, attempt));
      return { items, ...(cursor !== undefined && { cursor }) };
    },

    async forceRelease(name, options) {
      const key = keyOf(name);
      const { reason, fencingToken, drainMs } = options;
      checkNames("forceRelease", options, ["reason", "fencingToken", "drainMs"]);
      checkMs("drainMs", drainMs, 0, LIMITS.drainMaxMs);
      if (typeof reason !== "string" || reason === "" || reason.length > LIMITS.reasonChars)
        throw new InvalidRequestError(`reason: must be text of 1 to ${LIMITS.reasonChars} characters`, "reason");
      if (!Number.isSafeInteger(fencingToken) || fencingToken < 0)
        throw new InvalidRequestError("fencingToken: must be the token of the hold to end, as inspect() shows it", "fencingToken");
      const { breakInMs } = await ask(`forceRelease ${key}`, (attempt) => api.breakHold({ key, reason, fencingToken, drainMs }, attempt));
      return { breakInMs };
    },

    async health() {
      const { status, version, serverTimeMs } = await ask("health", (attempt) => api.health({}, attempt));
      return { status, version, serverTimeMs };
    },

    async close() {
      const { leases, cleaned } = registry.close(closedError());
      for (const lease of leases) lease.abandon();
      await Promise.all([cleaned, ...leases.map(released)]);
    },

    [Symbol.asyncDispose]: () => client.close(),
  };
  return client;
}

function closedError(): LockError {
  return new LockError("the client is closed", { code: "closed", definite: true, retry: "never" });
}

/** The loss, with what the work threw (if it wasn't the loss itself) as its cause. */
function lossOf(lease: HeldLease, error: unknown): LockLostError {
  const loss: unknown = lease.signal.reason;
  if (error instanceof LockLostError) return error;
  return loss instanceof LockLostError
    ? new LockLostError(loss.message, loss.reason, error)
    : new LockLostError(`${lease.key}: lost`, "deadline", error);
}
