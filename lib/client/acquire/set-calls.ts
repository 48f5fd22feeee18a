/** The calls for several keys at once. */
import * as DEFAULTS from "../../core/request-defaults.js";
import { capWaitMs } from "../invocation.js";
import type { LeaseSet, SetKey } from "../lease/lease-set.js";
import { leaseSetOf } from "../lease/lease-set.js";
import type { LockClient } from "../lock-client.js";
import type { SetOptions } from "../options.js";
import { checkSet, checkWork } from "../options.js";
import type { Session } from "../session.js";
import { refuseOwn } from "../wrap/reentrancy-guard.js";
import { runUnderLease } from "../wrap/run-under-lease.js";
import { setParams, trySet, untilSet } from "./sets.js";

/** Returns the calls of `session` for several keys at once. */
export function setCalls(session: Session): Pick<LockClient, "tryAcquireAll" | "acquireAll" | "withLocks"> {
  const { deps, context, scope } = session;

  async function acquireSet(what: string, names: readonly SetKey[], options: SetOptions) {
    checkSet(what, options);
    const params = setParams(session, names, options);
    if (scope === undefined) params.uses.forEach((use) => refuseOwn(use, deps.api));
    const lease = await untilSet(session, params, capWaitMs(options.waitMs ?? DEFAULTS.waitMs, context), options);
    return { lease, params };
  }

  return {
    async tryAcquireAll(names, options = {}) {
      checkSet("tryAcquireAll", options);
      const params = setParams(session, names, options);
      if (scope === undefined) params.uses.forEach((use) => refuseOwn(use, deps.api));
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
  };
}
