/** A store for express-rate-limit: all instances of a service count together, in one limit for each of its clients. */
import type { Options, Store } from "express-rate-limit";
import { type Limiter, type LockClient, LimitExceededError, LockError, key } from "../../lib/index.js";

/**
 * Returns the store of one middleware; `name` is the same on all instances, and no other middleware's. A client's `limit` may start at once, and
 * flows back evenly in `windowMs`. So in two windows there are at most as many as with windows that begin anew: twice the limit, less one.
 */
export function limitStore(locks: Pick<LockClient, "limiter" | "limits">, name: string): Store {
  let count: number;
  let windowMs: number;
  const nameOf = (client: string): string => key("RATE", name, `${count}:${windowMs}`, client);
  const limiterOf = (client: string): Limiter => locks.limiter(nameOf(client), { rates: [{ count, perMs: windowMs, burst: count }] });
  const inMs = (ms: number): Date => new Date(Date.now() + ms);
  return {
    prefix: name,
    localKeys: false,
    init(options: Options) {
      if (typeof options.limit !== "number") throw new TypeError("limit: must be a number, because all requests of a client share it");
      if (options.skipFailedRequests || options.skipSuccessfulRequests)
        throw new TypeError("skipFailedRequests, skipSuccessfulRequests: not possible, because nothing is refunded");
      ({ limit: count, windowMs } = options);
    },
    async increment(client) {
      try {
        const { remaining } = await limiterOf(client).take();
        const totalHits = count - remaining[0]!;
        return { totalHits, resetTime: inMs((totalHits * windowMs) / count) };
      } catch (error) {
        if (!(error instanceof LimitExceededError)) throw error;
        return { totalHits: count + 1, resetTime: inMs(error.retryAfterMs) };
      }
    },
    /** It is called only with the options that `init` refuses. */
    decrement: () => undefined,
    async resetKey(client) {
      await locks.limits.reset(nameOf(client), { reason: "resetKey of express-rate-limit" }).catch((error: unknown) => {
        if (!(error instanceof LockError && error.code === "not-found")) throw error;
      });
    },
  };
}
