/** The calls for several keys at once. */
import type { HeldLease } from "../lease/lease.js";
import { type LeaseSet, type SetKey, leaseSetOf } from "../lease/lease-set.js";
import type { LockClient } from "../lock-client.js";
import { type SetOptions, type WhenUnavailable, type WorkLast, checkSet, checkWork, WHEN_UNAVAILABLE } from "../options.js";
import type { Session } from "../session.js";
import { refuseOwn } from "../wrap/reentrancy-guard.js";
import { runUnderLease } from "../wrap/run-under-lease.js";
import { type SetParams, setParams, untilSet } from "./sets.js";

/** Returns the calls of `session` for several keys at once. */
export function setCalls(session: Session): Pick<LockClient, "tryAcquireAll" | "acquireAll" | "withLocks"> {
  const { deps, scope } = session;

  const obtain = (params: SetParams, options: SetOptions): Promise<HeldLease> =>
    untilSet(session, params, session.waitMsOf(options), options);

  function paramsOf(names: readonly SetKey[], options: SetOptions): SetParams {
    const params = setParams(session, names, options);
    if (scope === undefined) params.uses.forEach((use) => refuseOwn(use, deps.api));
    return params;
  }

  return {
    async tryAcquireAll(names, options = {}) {
      checkSet("tryAcquireAll", options);
      const params = paramsOf(names, options);
      const lease = await session.tryOnce(params.params, options, params.set);
      return lease && leaseSetOf(lease, params);
    },

    async acquireAll(names, options = {}) {
      checkSet("acquireAll", options);
      const params = paramsOf(names, options);
      return leaseSetOf(await obtain(params, options), params);
    },

    async withLocks<T>(names: readonly SetKey[], ...rest: WorkLast<SetOptions & WhenUnavailable, LeaseSet, T>): Promise<T> {
      const [options, work] = rest.length === 1 ? [{}, rest[0]] : rest;
      checkWork("withLocks", "work", work);
      checkSet("withLocks", options, WHEN_UNAVAILABLE);
      const params = paramsOf(names, options);
      return session.unlessUnavailable(
        options,
        params.params.key,
        () => obtain(params, options),
        work,
        (lease) => {
          const set = leaseSetOf(lease, params);
          return runUnderLease(session, lease, params.uses, () => work(set), set);
        },
      );
    },
  };
}
