/**
 * The lock client at work, whatever it speaks to. It owns the leases it handed out; each has a keep-alive
 * of its own, and no state outlives it.
 */
import type { Held } from "../core/commands.js";
import type { Refusal } from "../core/errors.js";
import { DEFAULTS, LIMITS } from "../core/limits.js";
import { instantOf } from "../core/time.js";
import type { AcquireDeps, OuterDeps, AcquireParams } from "./acquire/acquire.js";
import { abortError, CANCEL_HOLDS_MS, cancel, ensureFresh, tryOnce } from "./acquire/acquire.js";
import type { Answered } from "./transport/retry.js";
import { atMost, boundsFor } from "./transport/retry.js";
import { refuseOwn } from "./wrap/reentrancy-guard.js";
import type { ElectOptions, Lead } from "./coordination/elect.js";
import { checkElect, elect } from "./coordination/elect.js";
import { errorOf, InvalidRequestError, LockError } from "./errors.js";
import { transferHold } from "./acquire/transfer.js";
import type { Detached } from "./lease/detached-lease.js";
import { fromHandle } from "./lease/detached-lease.js";
import { RenewalBatcher } from "./lease/renewal-batcher.js";
import { LocalQueues } from "./acquire/local-queue.js";
import { handleOf, segmentsOf } from "./coordination/lock-handles.js";
import { CALL_BUDGET_MS, closedError, Session } from "./session.js";
import type { InvocationContext } from "./invocation.js";
import { capWaitMs, checkContext, firstAnswerMs } from "./invocation.js";
import type { Lease } from "./lease/lease.js";
import type { HeldLease } from "./lease/lease.js";
import { listeners } from "./listeners.js";
import type { ClientOptions } from "./client-options.js";
import type { LockClient } from "./lock-client.js";
import type { AcquireOptions, SetOptions } from "./options.js";
import {
  checkAcquire,
  checkLease,
  checkMs,
  checkNames,
  checkPage,
  checkScope,
  checkSet,
  checkText,
  checkTryAcquire,
  checkWork,
} from "./options.js";
import type { LeaseSet, SetKey } from "./lease/lease-set.js";
import { leaseSetOf } from "./lease/lease-set.js";
import { trySet, untilSet, setParams } from "./acquire/sets.js";
import { runUnderLease } from "./wrap/run-under-lease.js";
import { WaitEstimator } from "./acquire/wait-estimator.js";
import { Registry } from "./registry.js";
import { RetryGate } from "./transport/retry-gate.js";
import type { Run, RunResult } from "./run/run-once.js";
import { runOnce } from "./run/run-once.js";
import type { RunOptions } from "./run/run-options.js";
import { checkRun } from "./run/run-options.js";
import { runsOf } from "./run/runs.js";
import { closedBySigterm } from "./sigterm.js";
import { checkWatch, watch } from "./coordination/watch.js";

/** A client that speaks to `deps.api`. */
export function createClient(deps: OuterDeps, options: ClientOptions = {}): LockClient {
  const { api, clock, random } = deps;
  const shared = {
    renewalBatcher: new RenewalBatcher(api, clock),
    gate: new RetryGate(clock, random),
    waitEstimator: new WaitEstimator(),
    localQueues: new LocalQueues(),
  };
  const client = createView({ ...deps, ...shared }, options, new Registry());
  return options.closeOnSigterm ? closedBySigterm(client) : client;
}

/** The client, or a view of it for one invocation. */
function createView(
  outer: Omit<AcquireDeps, "track">,
  options: ClientOptions,
  registry: Registry,
  { context, scope }: { readonly context?: InvocationContext | undefined; readonly scope?: string | undefined } = {},
): LockClient {
  const deps: AcquireDeps = { ...outer, context, track: (work) => registry.track(work) };
  const { api } = deps;
  const { prefix = "" } = options;
  const session = new Session(deps, options, registry, context, scope);

  /** The detached lease, under an id that only this process knows. */
  async function takeOver(
    { key, leaseId, leaseMs: detachedMs }: Detached,
    { leaseMs, owner, signal }: AcquireParams,
  ): Promise<Answered<Held>> {
    const bounds = { ...boundsFor(detachedMs, capWaitMs(Math.min(detachedMs, CALL_BUDGET_MS), context)), signal };
    const handed = await transferHold({ key, leaseId }, { leaseMs, ...(owner !== "" && { owner }) }, bounds, deps);
    const { answer, ...rest } = handed.answer.ok ? await ensureFresh({ ...handed, answer: handed.answer }, bounds, deps) : handed;
    if (answer.ok && !signal?.aborted) return { ...rest, answer };
    if (answer.ok) await cancel(answer.lease, deps);
    if (signal?.aborted) throw abortError(signal);
    throw errorOf(answer as Refusal, `attach ${key}`);
  }

  async function acquireSet(what: string, names: readonly SetKey[], options: SetOptions) {
    checkSet(what, options);
    const params = setParams(session, names, options);
    if (scope === undefined) params.uses.forEach((use) => refuseOwn(use, api));
    const lease = await untilSet(session, params, capWaitMs(options.waitMs ?? DEFAULTS.waitMs, context), options);
    return { lease, params };
  }

  const client: LockClient = {
    async tryAcquire(name, options = {}) {
      const key = session.keyOf(name);
      checkTryAcquire(options);
      if (scope === undefined) refuseOwn({ ...options, key }, api);
      const params = session.acquireParams(key, options);
      return registry.run(options.signal, async (signal) => {
        const within = boundsFor(params.leaseMs, Math.min(params.leaseMs, firstAnswerMs(0, context)));
        const answered = await tryOnce({ ...params, signal }, within, deps);
        const { answer } = answered;
        if (answer.ok) return session.adopt({ ...answered, answer }, options);
        if (answer.code !== "locked") throw errorOf(answer, `acquire ${key}`);
        return null;
      });
    },

    async acquire(name, options = {}) {
      const key = session.keyOf(name);
      checkAcquire(options);
      if (scope === undefined) refuseOwn({ ...options, key }, api);
      const params = session.acquireParams(key, options);
      const waitMs = capWaitMs(options.waitMs ?? DEFAULTS.waitMs, context);
      return registry.run(options.signal, async (signal) => {
        const began = instantOf(deps.clock);
        const { answered, handoff } = await deps.localQueues
          .join({ ...params, signal }, waitMs, deps)
          .catch((error: unknown) => session.refuseWait(error, key, began));
        const lease = await session.adopt(answered, options, { handoff });
        if (!signal.aborted) return lease;
        await atMost(CANCEL_HOLDS_MS, session.released(lease), deps.clock);
        throw abortError(signal);
      });
    },

    async withLock<T>(
      key: string,
      ...rest: [work: (lease: Lease) => Promise<T> | T] | [AcquireOptions, (lease: Lease) => Promise<T> | T]
    ): Promise<T> {
      const [options, work] = rest.length === 1 ? [{}, rest[0]] : rest;
      checkWork("withLock", "work", work);
      const lease = (await client.acquire(key, options)) as HeldLease;
      // A getter: upgrade and downgrade change the mode.
      const use = {
        key: lease.key,
        limit: options.limit,
        permits: lease.permits,
        get mode() {
          return lease.mode;
        },
      };
      return runUnderLease(session, lease, [use], () => work(lease));
    },

    async tryAcquireAll(names, options = {}) {
      checkSet("tryAcquireAll", options);
      const params = setParams(session, names, options);
      if (scope === undefined) params.uses.forEach((use) => refuseOwn(use, api));
      const lease = await trySet(session, params, options);
      return lease && leaseSetOf(lease, params);
    },

    async acquireAll(names, options = {}) {
      const { lease, params } = await acquireSet("acquireAll", names, options);
      return leaseSetOf(lease, params);
    },

    async withLocks<T>(
      names: readonly SetKey[],
      ...rest: [work: (set: LeaseSet) => Promise<T> | T] | [SetOptions, (set: LeaseSet) => Promise<T> | T]
    ): Promise<T> {
      const [options, work] = rest.length === 1 ? [{}, rest[0]] : rest;
      checkWork("withLocks", "work", work);
      const { lease, params } = await acquireSet("withLocks", names, options);
      const set = leaseSetOf(lease, params);
      return runUnderLease(session, lease, params.uses, () => work(set), set);
    },

    async runOnce<T>(
      name: string,
      ...rest: [work: (run: Run) => Promise<T> | T] | [RunOptions, (run: Run) => Promise<T> | T]
    ): Promise<RunResult<T>> {
      const [runOptions, work] = rest.length === 1 ? [{}, rest[0]] : rest;
      const key = session.keyOf(name);
      checkWork("runOnce", "work", work);
      checkRun(runOptions);
      return runOnce(session, key, runOptions, work);
    },

    runs: runsOf(session),

    async attach(handle, options = {}) {
      const { key, leaseId, leaseMs } = fromHandle(handle);
      checkNames("attach", options, ["leaseMs", "owner", "heartbeat", "maxHoldMs"]);
      checkLease(options);
      const params = session.acquireParams(key, { leaseMs, ...options });
      return registry.run(undefined, async (signal) =>
        session.adopt(await takeOver({ key, leaseId, leaseMs }, { ...params, signal }), options),
      );
    },

    forInvocation(invocation) {
      checkContext(invocation);
      return createView(deps, options, new Registry(registry), { context: invocation, scope });
    },

    scope(id) {
      checkScope(id);
      return createView(deps, options, new Registry(registry), { context, scope: id });
    },

    mutex: (name, defaults = {}) => handleOf(client, name, { ...defaults, mode: "exclusive", limit: 1 }),
    semaphore(name, defaults: Partial<AcquireOptions> = {}) {
      if (defaults.limit === undefined)
        throw new InvalidRequestError("limit: a semaphore needs one: how many permits may be out at once", "limit");
      return handleOf(client, name, { ...defaults, mode: "exclusive" });
    },
    readWrite: (name, defaults = {}) => ({
      read: handleOf(client, name, { ...defaults, mode: "shared" }),
      write: handleOf(client, name, { ...defaults, mode: "exclusive" }),
    }),
    segments: (name, count, defaults = {}) => segmentsOf(client, name, count, defaults, deps.random),

    async inspect(name) {
      const key = session.keyOf(name);
      const found = await session.ask(`inspect ${key}`, (attempt) => api.inspect({ key }, attempt));
      if (!("inspection" in found))
        throw new LockError("inspect: the service answered 304 to an unconditional look", {
          code: "internal",
          definite: true,
          retry: "same",
        });
      return found.inspection;
    },

    watch(name, options = {}) {
      const key = session.keyOf(name);
      checkWatch(options);
      return watch(session, key, options);
    },

    async elect(name: string, ...rest: [work: Lead] | [ElectOptions, Lead]) {
      const [electOptions, lead] = rest.length === 1 ? [{}, rest[0]] : rest;
      const key = session.keyOf(name);
      checkWork("elect", "lead", lead);
      checkElect(electOptions);
      return elect(session, key, electOptions, lead);
    },

    async list(options = {}) {
      checkNames("list", options, ["prefix", "owner", "max", "cursor"]);
      checkPage(options);
      const { prefix: within = "", ...query } = options;
      const { ok: _ok, ...listed } = await session.ask("list", (attempt) => api.list({ prefix: prefix + within, ...query }, attempt));
      return listed;
    },

    async forceRelease(name, options) {
      const key = session.keyOf(name);
      checkNames("forceRelease", options, ["reason", "fencingToken", "drainMs"]);
      const { reason, fencingToken, drainMs } = options;
      checkMs("drainMs", drainMs, 0, LIMITS.drainMaxMs);
      checkText("reason", reason, 1, LIMITS.reasonChars);
      if (!Number.isSafeInteger(fencingToken) || fencingToken < 0)
        throw new InvalidRequestError("fencingToken: must be the token of the hold to end, as inspect() shows it", "fencingToken");
      const { breakInMs } = await session.ask(`forceRelease ${key}`, (attempt) =>
        api.breakHold({ key, reason, fencingToken, drainMs }, attempt),
      );
      return { breakInMs };
    },

    async health() {
      const { status, version, serverTimeMs } = await session.ask("health", (attempt) => api.health({}, attempt));
      return { status, version, serverTimeMs };
    },

    async close() {
      const { leases, cleaned } = registry.close(closedError());
      for (const lease of leases) lease.abandon();
      // A run ends by its own outcome: its work was told, and says what came of it.
      const locks = leases.filter(({ kind }) => kind === "locks");
      await Promise.all([cleaned, ...locks.map((lease) => session.released(lease))]);
    },

    [Symbol.asyncDispose]: () => client.close(),
  };
  listeners.set(client, ({ key, ...event }) => session.tell({ ...event, key: key.replace(/\S+/g, `${prefix}$&`) }));
  return client;
}
