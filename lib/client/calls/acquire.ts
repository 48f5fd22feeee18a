/** The calls for a single key: ask once, wait, run work under the lease, or attach a detached lease. */
import { unlessUnavailable } from "./unavailable.js";
import { awaited, mayWaitForItself } from "./surrounding.js";
import type { Held } from "../../core/commands.js";
import { instantOf } from "../../core/time.js";
import { errorOf } from "../wire/errors.js";
import { capWaitMs } from "../wire/invocation.js";
import { type Detached, fromHandle } from "../hold/detached-lease.js";
import type { HeldLease } from "../hold/lease.js";
import type { Lease } from "../hold/lease-types.js";
import type { LockClient } from "./lock-client.js";
import type { AcquireOptions, WhenUnavailable, WorkLast } from "./options.js";
import { ATTACH, checkAcquire, checkTryAcquire, WHEN_UNAVAILABLE, withDefaults, optionsAndWork } from "./options.js";
import { checkOptions, checkWork } from "../wire/checks.js";
import { type Session, CALL_BUDGET_MS } from "./session.js";
import { TimedOutWaits } from "./timed-out-waits.js";
import type { LazyAbort } from "../wire/lazy-abort.js";
import { type Answered, atMost, boundsFor } from "../wire/retry.js";
import { runUnderLease } from "./run-under-lease.js";
import { type AcquireParams, abortError, CANCEL_HOLDS_MS, ensureFresh, throwIfAborted, transferHold } from "../ask/fresh-id.js";
import type { LocalQueues } from "../ask/local-queue.js";

/** Returns the calls of `session` for a single key. Callers of one process wait for it in `localQueues`. */
export function lockCalls(session: Session, localQueues: LocalQueues): Pick<LockClient, "tryAcquire" | "acquire" | "withLock" | "attach"> {
  const timedOut = new TimedOutWaits(session);
  return {
    async tryAcquire(name, options = {}) {
      const key = session.keyOf(name);
      checkTryAcquire(options);
      mayWaitForItself(session, { ...options, key });
      return session.tryOnce(session.acquireParams(key, options), options);
    },

    async acquire(name, options = {}) {
      const key = session.keyOf(name);
      checkAcquire(options);
      return obtained(session, localQueues, timedOut, key, options);
    },

    async withLock<T>(name: string, ...rest: WorkLast<AcquireOptions & WhenUnavailable, Lease, T>): Promise<T> {
      const [options, work] = optionsAndWork(rest);
      checkWork("withLock", "work", work);
      const key = session.keyOf(name);
      checkAcquire(options, WHEN_UNAVAILABLE);
      return unlessUnavailable(session, options, key, {
        acquire: () => obtained(session, localQueues, timedOut, key, options),
        under: (lease) => {
          // A getter, because upgrade and downgrade change the mode.
          const use = {
            key: lease.key,
            limit: options.limit,
            permits: lease.permits,
            get mode() {
              return lease.mode;
            },
          };
          return runUnderLease(session, lease, { uses: [use] }, () => work(lease));
        },
        alone: work,
      });
    },

    async attach(handle, options = {}) {
      const { key, leaseId, leaseMs } = fromHandle(handle);
      checkOptions("attach", options, ATTACH);
      const params = session.acquireParams(key, withDefaults({ leaseMs }, options));
      return session.registry.run(undefined, async (signal) =>
        session.holds.adopt(await takeOver(session, { key, leaseId, leaseMs }, { ...params, signal }), options),
      );
    },
  };
}

/** Waits for the key, with checked options. */
async function obtained(
  session: Session,
  localQueues: LocalQueues,
  timedOut: TimedOutWaits,
  key: string,
  options: AcquireOptions,
): Promise<HeldLease> {
  const { deps } = session;
  const params = session.acquireParams(key, options);
  const waitMs = session.waitMsOf(options);
  const wait = async (signal: LazyAbort): Promise<HeldLease> => {
    const began = instantOf(deps.clock);
    const { answered, handoff } = await localQueues
      .join({ ...params, signal }, waitMs, deps)
      .catch((error: unknown) => timedOut.refuse(error, `acquire ${key}`, key, began, waitMs));
    const lease = await session.holds.adopt(answered, options, { handoff });
    if (!signal.aborted) return lease;
    await atMost(CANCEL_HOLDS_MS, session.holds.tryRelease(lease), deps.clock);
    throw abortError(signal);
  };
  return awaited(session, [{ ...options, key }], () => session.registry.run(options.signal, wait));
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
  throw errorOf(answer, `attach ${key}`, { key });
}
