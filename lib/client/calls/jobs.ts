/** The calls of a client for jobs: a value that is refreshed once for all, work that is done once for each occurrence of a schedule, and limits. */
import { type FollowTake, checkLimiter, NamedLimiter } from "./limiter.js";
import type { LockClient } from "./lock-client.js";
import { checkWork } from "../wire/checks.js";
import type { Session } from "./session.js";
import { seemsHeldAround } from "./surrounding.js";
import type { Locks } from "./locks.js";
import { occurrenceOf } from "./occurrence.js";
import { type PendingRefreshes, checkRefresh, refresh, refreshed } from "./refresh.js";
import { checkTick, tick } from "./tick.js";

/** The member through which this package's wrappers reach the same client without its scope. Other packages can't name it. */
export const UNSCOPED = Symbol("unscoped");

/** A client, as this package's wrappers see it. */
export interface WithUnscoped {
  readonly [UNSCOPED]?: () => LockClient;
}

/**
 * Returns the calls, which are made of others of the client.
 * @param locks returns the client without a scope: under one, two processes of a request would be let in together
 * @param follow carries out each take of a limiter; it does so alone by default
 */
export function jobCalls(locks: () => Locks, session: Session, follow?: FollowTake): Pick<LockClient, "refresh" | "tick" | "limiter"> {
  const pending: PendingRefreshes = new Map();
  return {
    async refresh(name, options) {
      const key = session.keyOf(name);
      checkRefresh(options);
      // A renewal that asks for the value that it renews waits for the key as long as any, and not for the end of its own flight.
      if (pending.has(key) && seemsHeldAround({ key }, session.deps.api)) return refreshed(locks(), key, options, session.deps);
      return refresh(locks(), pending, key, options, session);
    },

    async tick(name, options, work) {
      const key = session.keyOf(name);
      checkTick(options);
      checkWork("tick", "work", work);
      const occurrence = occurrenceOf(options, session.deps.clock.wallMs());
      return tick(locks(), key, occurrence, options, work);
    },

    limiter(name, options) {
      const key = session.keyOf(name);
      checkLimiter(options);
      return new NamedLimiter(name, key, options, { session, locks, follow });
    },
  };
}
