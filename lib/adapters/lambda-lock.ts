/**
 * A handler that runs while it holds the lock named by its event. `lockHandler` wraps the handler, so that nothing can run in between.
 * `lockMiddleware` is the same for Middy's `use`, and must be the last middleware.
 */
import type { Lease } from "../client/hold/lease-types.js";
import type { LeaseSet } from "../client/hold/lease-set.js";
import { checkAcquire } from "../client/calls/options.js";
import { type LockedOptions, type Skipping, locked } from "../client/calls/wrap/locked.js";
import { currentLease } from "../client/calls/surrounding.js";
import { type Around, type Handler, type Wrapped, type WrapperOptions, answering, handlerOf, invocationOf } from "./lambda.js";
import { isHttp } from "./lambda-http.js";
import { type Middleware, middlewareOf } from "./middy.js";
import { type Protection, runProtected, checkClient, waitOf } from "./once.js";

/** Options of a handler that runs under a lock, in addition to those of the acquire. The invocation's remaining time bounds all of them. */
export interface LockHandlerOptions<Event, Context>
  extends Omit<LockedOptions<unknown, readonly [event: Event, context: Context]>, keyof WrapperOptions>, WrapperOptions {
  /**
   * Makes the key from event and context. A list of several keys is one set, all or nothing. With an empty list, the handler runs without a
   * lock. An error of this function is thrown, so validate the event fields that it reads.
   */
  readonly key: (event: Event, context: Context) => string | readonly string[];
  /**
   * The time to wait for the key, in ms; 0 asks once. @default 5 000 for a request over HTTP, else the client's default; at most the remaining time − 1 s
   */
  readonly waitMs?: number | undefined;
  /**
   * The behaviour if the key is still held after `waitMs`: `"wait"` throws LockTimeoutError, so that the trigger tries again; `"throw"`
   * does so without a wait; `"skip"` ends the invocation successfully and returns undefined, for schedules. A request over HTTP (an event
   * with a method, or with headers) is answered 423 with Retry-After in each case.
   * @default "wait"
   */
  readonly whenHeld?: "wait" | "skip" | "throw" | undefined;
}

/**
 * Returns `handler` under the lock that its event names; `currentLease()` is the lease. The lock is released when the handler returns or
 * throws. If the lease was lost meanwhile, LockLostError is thrown (503 over HTTP), whatever the handler returned.
 * @throws InvalidRequestError naming the invalid option; at a call, if that is of a durable execution
 */
export function lockHandler<Event, Context, Rest extends readonly unknown[], Result>(
  options: LockHandlerOptions<Event, Context> & Skipping,
  handler: Handler<Event, Context, Rest, Result>,
): Wrapped<Event, Context, Rest, Result | undefined>;
export function lockHandler<Event, Context, Rest extends readonly unknown[], Result>(
  options: LockHandlerOptions<Event, Context>,
  handler: Handler<Event, Context, Rest, Result>,
): Wrapped<Event, Context, Rest, Result>;
export function lockHandler<Event, Context, Rest extends readonly unknown[], Result>(
  options: LockHandlerOptions<Event, Context>,
  handler: Handler<Event, Context, Rest, Result>,
): Wrapped<Event, Context, Rest, Result> {
  return handlerOf(underLock(options), handler);
}

/**
 * The same as a Middy middleware: `use` it last. Then no other middleware can answer between it and the handler, which would leave the key
 * held until its lease is over, and parsers and validators have already processed the event. The handler has its lease as
 * `context.lease`, and other middlewares have it as `request.internal.lease`.
 * @throws InvalidRequestError naming the invalid option; at a call, if that is of a durable execution
 */
export function lockMiddleware<Event, Context = unknown>(
  options: LockHandlerOptions<Event, Context>,
): Middleware<Event, Context, { lease?: Lease | LeaseSet | undefined }> {
  return middlewareOf("lease", underLock(options));
}

const LOCKS: Protection<Lease | LeaseSet | undefined> = {
  current: currentLease,
  isLost: (lease) => lease?.state === "lost",
  held: "locked",
};

function underLock<Event, Context>(options: LockHandlerOptions<Event, Context>): Around<Event, Context, Lease | LeaseSet | undefined> {
  const { locks, key, waitMs, whenHeld = "wait", whenUnavailable = "throw", ...acquire } = options;
  checkClient(locks);
  checkAcquire({ ...acquire, ...(waitMs !== undefined && { waitMs }) });
  locked({ locks, key, whenHeld, whenUnavailable }, async () => undefined); // Refuses invalid options before any call.

  return async (event, context, work) => {
    const invocation = invocationOf(event, context);
    const isRequest = isHttp(event);
    const ofCall = {
      ...waitOf(isRequest, { waitMs, whenUnavailable }),
      whenHeld: isRequest && whenHeld === "skip" ? "throw" : whenHeld,
      locks: locks.forInvocation(invocation),
      key,
    } as const;
    return runProtected(isRequest, LOCKS, answering(work), (perform) =>
      locked({ ...acquire, ...ofCall }, async function handler(_event: Event, _context: Context) {
        return perform();
      })(event, context),
    );
  };
}
