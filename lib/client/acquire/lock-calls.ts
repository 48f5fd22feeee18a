/** The calls for a single key: ask once, wait, run work under the lease, or attach a detached lease. */
import type { Held } from "../../core/commands.js";
import { instantOf } from "../../core/time.js";
import { errorOf } from "../errors.js";
import { capWaitMs } from "../invocation.js";
import { type Detached, fromHandle } from "../lease/detached-lease.js";
import type { HeldLease, Lease } from "../lease/lease.js";
import type { LockClient } from "../lock-client.js";
import type { AcquireOptions, WhenUnavailable, WorkLast } from "../options.js";
import { checkAcquire, CHECKS, checkOptions, checkTryAcquire, checkWork, WHEN_UNAVAILABLE, withDefaults } from "../options.js";
import { type Session, CALL_BUDGET_MS } from "../session.js";
import type { LazyAbort } from "../transport/lazy-abort.js";
import { type Answered, atMost, boundsFor } from "../transport/retry.js";
import { runUnderLease } from "../wrap/run-under-lease.js";
import { type AcquireParams, abortError, CANCEL_HOLDS_MS, ensureFresh, throwIfAborted, transferHold } from "./acquire.js";
import type { LocalQueues } from "./local-queue.js";

/** Returns the calls of `session` for a single key. Callers of one process wait for it in `localQueues`. */
export function lockCalls(session: Session, localQueues: LocalQueues): Pick<LockClient, "tryAcquire" | "acquire" | "withLock" | "attach"> {
  return {
    async tryAcquire(name, options = {}) {
      const key = session.keyOf(name);
      checkTryAcquire(options);
      session.mayWaitForItself({ ...options, key });
      return session.tryOnce(session.acquireParams(key, options), options);
    },

    async acquire(name, options = {}) {
      const key = session.keyOf(name);
      checkAcquire(options);
      return obtained(session, localQueues, key, options);
    },

    async withLock<T>(name: string, ...rest: WorkLast<AcquireOptions & WhenUnavailable, Lease, T>): Promise<T> {
      const [options, work] = rest.length === 1 ? [{}, rest[0]] : rest;
      checkWork("withLock", "work", work);
      const key = session.keyOf(name);
      checkAcquire(options, WHEN_UNAVAILABLE);
      return session.unlessUnavailable(
        options,
        key,
        () => obtained(session, localQueues, key, options),
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
      return session.registry.run(undefined, async (signal) =>
        session.adopt(await takeOver(session, { key, leaseId, leaseMs }, { ...params, signal }), options),
      );
    },
  };
}

/** Waits for the key, with checked options. */
async function obtained(session: Session, localQueues: LocalQueues, key: string, options: AcquireOptions): Promise<HeldLease> {
  const { deps } = session;
  const params = session.acquireParams(key, options);
  const waitMs = session.waitMsOf(options);
  const wait = async (signal: LazyAbort): Promise<HeldLease> => {
    const began = instantOf(deps.clock);
    const { answered, handoff } = await localQueues
      .join({ ...params, signal }, waitMs, deps)
      .catch((error: unknown) => session.refuseWait(error, key, began, waitMs));
    const lease = await session.adopt(answered, options, { handoff });
    if (!signal.aborted) return lease;
    await atMost(CANCEL_HOLDS_MS, session.released(lease), deps.clock);
    throw abortError(signal);
  };
  return session.awaited([{ ...options, key }], () => session.registry.run(options.signal, wait));
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
  if (answer.ok) return { ...rest, answer };
  throwIfAborted(signal);
  throw errorOf(answer, `attach ${key}`);
}
