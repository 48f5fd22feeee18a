/** The calls for a single key: ask once, wait, run work under the lease, or attach a detached lease. */
import type { Held } from "../../core/commands.js";
import type { Refusal } from "../../core/errors.js";
import { instantOf } from "../../core/time.js";
import { errorOf } from "../errors.js";
import { capWaitMs, firstAnswerMs } from "../invocation.js";
import type { Detached } from "../lease/detached-lease.js";
import { fromHandle } from "../lease/detached-lease.js";
import type { HeldLease } from "../lease/lease.js";
import type { LockClient, Work } from "../lock-client.js";
import type { AcquireOptions, WhenUnavailable } from "../options.js";
import { checkAcquire, CHECKS, checkOptions, checkTryAcquire, checkWork, WHEN_UNAVAILABLE, withDefaults } from "../options.js";
import type { Session } from "../session.js";
import { CALL_BUDGET_MS } from "../session.js";
import type { Answered } from "../transport/retry.js";
import { atMost, boundsFor } from "../transport/retry.js";
import { refuseOwn } from "../wrap/reentrancy-guard.js";
import { runUnderLease } from "../wrap/run-under-lease.js";
import type { AcquireParams } from "./acquire.js";
import { abortError, CANCEL_HOLDS_MS, cancel, ensureFresh, throwIfAborted, tryOnce } from "./acquire.js";
import type { LocalQueues } from "./local-queue.js";
import { transferHold } from "./transfer.js";

/** Returns the calls of `session` for a single key. Callers of one process wait for it in `localQueues`. */
// Over 60 lines: the calls share the session, and each of them is short.
export function lockCalls(session: Session, localQueues: LocalQueues): Pick<LockClient, "tryAcquire" | "acquire" | "withLock" | "attach"> {
  const { deps, registry, context, scope } = session;

  /** Waits for the key, with checked options. */
  async function obtain(name: string, options: AcquireOptions): Promise<HeldLease> {
    const key = session.keyOf(name);
    if (scope === undefined) refuseOwn({ ...options, key }, deps.api);
    const params = session.acquireParams(key, options);
    const waitMs = session.waitMsOf(options);
    return registry.run(options.signal, async (signal) => {
      const began = instantOf(deps.clock);
      const { answered, handoff } = await localQueues
        .join({ ...params, signal }, waitMs, deps)
        .catch((error: unknown) => session.refuseWait(error, key, began, waitMs));
      const lease = await session.adopt(answered, options, { handoff });
      if (!signal.aborted) return lease;
      await atMost(CANCEL_HOLDS_MS, session.released(lease), deps.clock);
      throw abortError(signal);
    });
  }

  return {
    async tryAcquire(name, options = {}) {
      const key = session.keyOf(name);
      checkTryAcquire(options);
      if (scope === undefined) refuseOwn({ ...options, key }, deps.api);
      const params = session.acquireParams(key, options);
      return registry.run(options.signal, async (signal) => {
        const within = boundsFor(params.leaseMs, Math.min(params.leaseMs, firstAnswerMs(0, context)));
        const answered = await tryOnce({ ...params, signal }, within, deps);
        const { answer } = answered;
        return answer.ok ? session.adopt({ ...answered, answer }, options) : null;
      });
    },

    async acquire(name, options = {}) {
      session.keyOf(name);
      checkAcquire(options);
      return obtain(name, options);
    },

    async withLock<T>(name: string, ...rest: [work: Work<T>] | [AcquireOptions & WhenUnavailable, Work<T>]): Promise<T> {
      const [options, work] = rest.length === 1 ? [{}, rest[0]] : rest;
      checkWork("withLock", "work", work);
      const key = session.keyOf(name);
      checkAcquire(options, WHEN_UNAVAILABLE);
      return session.unlessUnavailable(
        options,
        key,
        () => obtain(name, options),
        work,
        (lease) => {
          // A getter, because upgrade and downgrade change the mode.
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
      );
    },

    async attach(handle, options = {}) {
      const { key, leaseId, leaseMs } = fromHandle(handle);
      const { leaseMs: lengthMs, owner, heartbeat, maxHoldMs } = CHECKS;
      checkOptions("attach", options, { leaseMs: lengthMs, owner, heartbeat, maxHoldMs });
      const params = session.acquireParams(key, withDefaults({ leaseMs }, options));
      return registry.run(undefined, async (signal) =>
        session.adopt(await takeOver(session, { key, leaseId, leaseMs }, { ...params, signal }), options),
      );
    },
  };
}

/** Transfers the detached lease to a leaseId that only this process knows. */
async function takeOver(
  { deps, context }: Session,
  { key, leaseId, leaseMs: detachedMs }: Detached,
  { leaseMs, owner, signal }: AcquireParams,
): Promise<Answered<Held>> {
  const bounds = { ...boundsFor(detachedMs, capWaitMs(Math.min(detachedMs, CALL_BUDGET_MS), context)), signal };
  const handed = await transferHold({ key, leaseId }, { leaseMs, ...(owner !== "" && { owner }) }, bounds, deps);
  const { answer, ...rest } = handed.answer.ok ? await ensureFresh({ ...handed, answer: handed.answer }, bounds, deps) : handed;
  if (answer.ok && !signal?.aborted) return { ...rest, answer };
  if (answer.ok) await cancel(answer.lease, deps);
  throwIfAborted(signal);
  throw errorOf(answer as Refusal, `attach ${key}`);
}
