/**
 * The lock client at work, whatever it speaks to. It owns the leases it handed out; each has a keep-alive
 * of its own, and no state outlives it.
 */
import type { Held } from "../core/commands.js";
import type { Refusal } from "../core/errors.js";
import { DEFAULTS, LIMITS } from "../core/limits.js";
import { instantOf } from "../core/time.js";
import type { Acquiring, OuterDeps, Wanted } from "./acquire.js";
import { abortError, CANCEL_HOLDS_MS, cancel, refreshed, tryOnce } from "./acquire.js";
import type { Answered } from "./call.js";
import { atMost, boundsFor } from "./call.js";
import { refuseOwn } from "./chain.js";
import type { ElectOptions, Lead } from "./elect.js";
import { checkElect, elect } from "./elect.js";
import { errorOf, InvalidRequestError, LockError } from "./errors.js";
import { handOver } from "./hand-over.js";
import type { Detached } from "./handle.js";
import { fromHandle } from "./handle.js";
import { Heartbeats } from "./heartbeats.js";
import { Lines } from "./line.js";
import { handleOf, segmentsOf } from "./handles.js";
import { CALL_BUDGET_MS, closedError, Holder } from "./holder.js";
import type { InvocationContext } from "./invocation.js";
import { capWaitMs, checkContext, firstAnswerMs } from "./invocation.js";
import type { Lease } from "./lease.js";
import type { HeldLease } from "./lease.js";
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
import type { LeaseSet, SetKey } from "./lease-set.js";
import { leaseSetOf } from "./lease-set.js";
import { trySet, untilSet, wantedSet } from "./sets.js";
import { workUnder } from "./work.js";
import { Paces } from "./paces.js";
import { Registry } from "./registry.js";
import { RetryGate } from "./retry-gate.js";
import type { Run, RunResult } from "./run-once.js";
import { runOnce } from "./run-once.js";
import type { RunOptions } from "./run-options.js";
import { checkRun } from "./run-options.js";
import { runsOf } from "./runs.js";
import { closedBySigterm } from "./sigterm.js";
import { checkWatch, watch } from "./watch.js";

/** A client that speaks to `deps.api`. */
export function createClient(deps: OuterDeps, options: ClientOptions = {}): LockClient {
  const { api, clock, random } = deps;
  const shared = { heartbeats: new Heartbeats(api, clock), gate: new RetryGate(clock, random), paces: new Paces(), lines: new Lines() };
  const client = createView({ ...deps, ...shared }, options, new Registry());
  return options.closeOnSigterm ? closedBySigterm(client) : client;
}

/** The client, or a view of it for one invocation. */
function createView(
  outer: Omit<Acquiring, "track">,
  options: ClientOptions,
  registry: Registry,
  { context, scope }: { readonly context?: InvocationContext | undefined; readonly scope?: string | undefined } = {},
): LockClient {
  const deps: Acquiring = { ...outer, context, track: (work) => registry.track(work) };
  const { api } = deps;
  const { prefix = "" } = options;
  const holder = new Holder(deps, options, registry, context, scope);

  /** The detached lease, under an id that only this process knows. */
  async function takeOver({ key, leaseId, leaseMs: detachedMs }: Detached, { leaseMs, owner, signal }: Wanted): Promise<Answered<Held>> {
    const bounds = { ...boundsFor(detachedMs, capWaitMs(Math.min(detachedMs, CALL_BUDGET_MS), context)), signal };
    const handed = await handOver({ key, leaseId }, { leaseMs, ...(owner !== "" && { owner }) }, bounds, deps);
    const { answer, ...rest } = handed.answer.ok ? await refreshed({ ...handed, answer: handed.answer }, bounds, deps) : handed;
    if (answer.ok && !signal?.aborted) return { ...rest, answer };
    if (answer.ok) await cancel(answer.lease, deps);
    if (signal?.aborted) throw abortError(signal);
    throw errorOf(answer as Refusal, `attach ${key}`);
  }

  async function acquireSet(what: string, names: readonly SetKey[], options: SetOptions) {
    checkSet(what, options);
    const wanted = wantedSet(holder, names, options);
    if (scope === undefined) wanted.uses.forEach((use) => refuseOwn(use, api));
    const lease = await untilSet(holder, wanted, capWaitMs(options.waitMs ?? DEFAULTS.waitMs, context), options);
    return { lease, wanted };
  }

  const client: LockClient = {
    async tryAcquire(name, options = {}) {
      const key = holder.keyOf(name);
      checkTryAcquire(options);
      if (scope === undefined) refuseOwn({ ...options, key }, api);
      const wanted = holder.wanted(key, options);
      return registry.run(options.signal, async (signal) => {
        const within = boundsFor(wanted.leaseMs, Math.min(wanted.leaseMs, firstAnswerMs(0, context)));
        const answered = await tryOnce({ ...wanted, signal }, within, deps);
        const { answer } = answered;
        if (answer.ok) return holder.hand({ ...answered, answer }, options);
        if (answer.code !== "locked") throw errorOf(answer, `acquire ${key}`);
        return null;
      });
    },

    async acquire(name, options = {}) {
      const key = holder.keyOf(name);
      checkAcquire(options);
      if (scope === undefined) refuseOwn({ ...options, key }, api);
      const wanted = holder.wanted(key, options);
      const waitMs = capWaitMs(options.waitMs ?? DEFAULTS.waitMs, context);
      return registry.run(options.signal, async (signal) => {
        const began = instantOf(deps.clock);
        const { answered, succession } = await deps.lines
          .turn({ ...wanted, signal }, waitMs, deps)
          .catch((error: unknown) => holder.refuseWait(error, key, began));
        const lease = await holder.hand(answered, options, { succession });
        if (!signal.aborted) return lease;
        await atMost(CANCEL_HOLDS_MS, holder.released(lease), deps.clock);
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
      return workUnder(holder, lease, [use], () => work(lease));
    },

    async tryAcquireAll(names, options = {}) {
      checkSet("tryAcquireAll", options);
      const wanted = wantedSet(holder, names, options);
      if (scope === undefined) wanted.uses.forEach((use) => refuseOwn(use, api));
      const lease = await trySet(holder, wanted, options);
      return lease && leaseSetOf(lease, wanted);
    },

    async acquireAll(names, options = {}) {
      const { lease, wanted } = await acquireSet("acquireAll", names, options);
      return leaseSetOf(lease, wanted);
    },

    async withLocks<T>(
      names: readonly SetKey[],
      ...rest: [work: (set: LeaseSet) => Promise<T> | T] | [SetOptions, (set: LeaseSet) => Promise<T> | T]
    ): Promise<T> {
      const [options, work] = rest.length === 1 ? [{}, rest[0]] : rest;
      checkWork("withLocks", "work", work);
      const { lease, wanted } = await acquireSet("withLocks", names, options);
      const set = leaseSetOf(lease, wanted);
      return workUnder(holder, lease, wanted.uses, () => work(set), set);
    },

    async runOnce<T>(
      name: string,
      ...rest: [work: (run: Run) => Promise<T> | T] | [RunOptions, (run: Run) => Promise<T> | T]
    ): Promise<RunResult<T>> {
      const [runOptions, work] = rest.length === 1 ? [{}, rest[0]] : rest;
      const key = holder.keyOf(name);
      checkWork("runOnce", "work", work);
      checkRun(runOptions);
      return runOnce(holder, key, runOptions, work);
    },

    runs: runsOf(holder),

    async attach(handle, options = {}) {
      const { key, leaseId, leaseMs } = fromHandle(handle);
      checkNames("attach", options, ["leaseMs", "owner", "heartbeat", "maxHoldMs"]);
      checkLease(options);
      const wanted = holder.wanted(key, { leaseMs, ...options });
      return registry.run(undefined, async (signal) =>
        holder.hand(await takeOver({ key, leaseId, leaseMs }, { ...wanted, signal }), options),
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
      const key = holder.keyOf(name);
      const found = await holder.ask(`inspect ${key}`, (attempt) => api.inspect({ key }, attempt));
      if (!("inspection" in found))
        throw new LockError("inspect: the service answered 304 to an unconditional look", {
          code: "internal",
          definite: true,
          retry: "same",
        });
      return found.inspection;
    },

    watch(name, options = {}) {
      const key = holder.keyOf(name);
      checkWatch(options);
      return watch(holder, key, options);
    },

    async elect(name: string, ...rest: [work: Lead] | [ElectOptions, Lead]) {
      const [electOptions, lead] = rest.length === 1 ? [{}, rest[0]] : rest;
      const key = holder.keyOf(name);
      checkWork("elect", "lead", lead);
      checkElect(electOptions);
      return elect(holder, key, electOptions, lead);
    },

    async list(options = {}) {
      checkNames("list", options, ["prefix", "owner", "max", "cursor"]);
      checkPage(options);
      const { prefix: within = "", ...query } = options;
      const { ok: _ok, ...listed } = await holder.ask("list", (attempt) => api.list({ prefix: prefix + within, ...query }, attempt));
      return listed;
    },

    async forceRelease(name, options) {
      const key = holder.keyOf(name);
      checkNames("forceRelease", options, ["reason", "fencingToken", "drainMs"]);
      const { reason, fencingToken, drainMs } = options;
      checkMs("drainMs", drainMs, 0, LIMITS.drainMaxMs);
      checkText("reason", reason, 1, LIMITS.reasonChars);
      if (!Number.isSafeInteger(fencingToken) || fencingToken < 0)
        throw new InvalidRequestError("fencingToken: must be the token of the hold to end, as inspect() shows it", "fencingToken");
      const { breakInMs } = await holder.ask(`forceRelease ${key}`, (attempt) =>
        api.breakHold({ key, reason, fencingToken, drainMs }, attempt),
      );
      return { breakInMs };
    },

    async health() {
      const { status, version, serverTimeMs } = await holder.ask("health", (attempt) => api.health({}, attempt));
      return { status, version, serverTimeMs };
    },

    async close() {
      const { leases, cleaned } = registry.close(closedError());
      for (const lease of leases) lease.abandon();
      // A run ends by its own outcome: its work was told, and says what came of it.
      const locks = leases.filter(({ kind }) => kind === "locks");
      await Promise.all([cleaned, ...locks.map((lease) => holder.released(lease))]);
    },

    [Symbol.asyncDispose]: () => client.close(),
  };
  listeners.set(client, ({ key, ...event }) => holder.tell({ ...event, key: key.replace(/\S+/g, `${prefix}$&`) }));
  return client;
}
