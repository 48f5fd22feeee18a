/** The calls for several keys at once. */
import { unlessUnavailable } from "./unavailable.js";
import { awaited, mayWaitForItself } from "./surrounding.js";
import type { HeldLease } from "../hold/lease.js";
import { type LeaseSet, type SetKey, leaseSetOf } from "../hold/lease-set.js";
import type { LockClient } from "./lock-client.js";
import { type SetOptions, type WhenUnavailable, type WorkLast, SET, WHEN_UNAVAILABLE, optionsAndWork } from "./options.js";
import { checkOptions, checkWork } from "../wire/checks.js";
import type { Session } from "./session.js";
import { TimedOutWaits } from "./timed-out-waits.js";
import { runUnderLease } from "./run-under-lease.js";
import { type SetParams, setParams, untilSet } from "./sets.js";

/** Returns the calls of `session` for several keys at once. */
export function setCalls(session: Session): Pick<LockClient, "tryAcquireAll" | "acquireAll" | "withLocks"> {
  const timedOut = new TimedOutWaits(session);
  const obtain = (params: SetParams, options: SetOptions): Promise<HeldLease> =>
    awaited(session, params.uses, () => untilSet(session, params, session.waitMsOf(options), options, timedOut));

  return {
    async tryAcquireAll(names, options = {}) {
      checkOptions("tryAcquireAll", options, SET);
      const params = setParams(session, names, options);
      params.uses.forEach((use) => mayWaitForItself(session, use));
      const lease = await session.tryOnce(params.params, options, params.set);
      return lease && leaseSetOf(lease, params);
    },

    async acquireAll(names, options = {}) {
      checkOptions("acquireAll", options, SET);
      const params = setParams(session, names, options);
      return leaseSetOf(await obtain(params, options), params);
    },

    async withLocks<T>(names: readonly SetKey[], ...rest: WorkLast<SetOptions & WhenUnavailable, LeaseSet, T>): Promise<T> {
      const [options, work] = optionsAndWork(rest);
      checkWork("withLocks", "work", work);
      checkOptions("withLocks", options, { ...SET, ...WHEN_UNAVAILABLE });
      const params = setParams(session, names, options);
      return unlessUnavailable(session, options, params.params.key, {
        acquire: () => obtain(params, options),
        under: (lease) => {
          const set = leaseSetOf(lease, params);
          return runUnderLease(session, lease, params.uses, () => work(set), set);
        },
        alone: work,
      });
    },
  };
}
