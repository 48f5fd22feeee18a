/**
 * A handler that holds the lock which its event names while it runs. `lockHandler` goes around the handler, so
 * that nothing can come between; `lockMiddleware` is the same for Middy's `use`, and belongs last there.
 */
import { currentLease } from "../client/wrap/reentrancy-guard.js";
import { LockLostError, LockTimeoutError, LockUnavailableError } from "../client/errors.js";
import type { Lease } from "../client/lease/lease.js";
import type { LeaseSet } from "../client/lease/lease-set.js";
import type { LockClient } from "../client/lock-client.js";
import type { LockedOptions } from "../client/wrap/locked.js";
import { locked } from "../client/wrap/locked.js";
import { checkAcquire } from "../client/options.js";
import type { Around, Handler, Wrapped } from "./around.js";
import { checkClient, handlerOf, invocationOf } from "./around.js";
import type { HttpAnswer } from "./http.js";
import { HTTP_WAIT_MS, isHttp } from "./http.js";
import type { Middleware } from "./middleware.js";
import { middlewareOf } from "./middleware.js";
import { problemAnswer } from "./problem.js";

/** Options of a handler that runs under a lock, beside those of the acquire. The invocation's remaining time bounds all of it. */
export interface LockHandlerOptions<Event, Context> extends Omit<
  LockedOptions<unknown, readonly [event: Event, context: Context]>,
  "locks"
> {
  /** The client, made once outside of the handler. */
  readonly locks: LockClient;
  /**
   * The key, made from event and context; several (a list) are one set, all or nothing. None (an empty list): nothing
   * is locked and the handler runs. What it throws is thrown, so check what it reads from an event before.
   */
  readonly key: (event: Event, context: Context) => string | readonly string[];
  /** How long to wait for the key in ms; 0 asks once. @default 5 000 for a request over HTTP, else 30 000; at most the remaining time − 1 s */
  readonly waitMs?: number;
  /**
   * When another still holds the key after `waitMs`: `"wait"` throws LockTimeoutError, so that the trigger tries
   * again; `"throw"` does so without a wait; `"skip"` ends the invocation well, with undefined: for schedules. A
   * request over HTTP (an event with a method, or with headers) is answered 423 with Retry-After in each case. @default "wait"
   */
  readonly whenHeld?: "wait" | "skip" | "throw";
  /**
   * When the locks can't be reached: `"throw"` LockUnavailableError (503 with Retry-After over HTTP), `"skip"` (over
   * HTTP as `"throw"`), or `"proceed"` without the lock. The client's `onEvent` is told of the latter two. @default "throw"
   */
  readonly whenUnavailable?: "throw" | "skip" | "proceed";
}

/** With these a call may come to nothing, and returns undefined. */
type Skipping = { readonly whenHeld: "skip" } | { readonly whenUnavailable: "skip" };

/**
 * `handler` under the lock that its event names; `currentLease()` is the lease. It is released when the handler ends,
 * however it ends. Was it lost meanwhile, LockLostError is thrown (503 over HTTP), whatever the handler returned.
 * @throws InvalidRequestError naming an option that is wrong
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
 * The same for Middy: `use` it last. Then no other middleware can answer between it and the handler, which would
 * leave the key held until the invocation ends, and everything before it (parsers, validators) has seen to the event.
 * The handler has its lease as `context.lease`, other middlewares as `request.internal.lease`.
 * @throws InvalidRequestError naming an option that is wrong
 */
export function lockMiddleware<Event, Context = unknown>(
  options: LockHandlerOptions<Event, Context>,
): Middleware<Event, Context, { lease?: Lease | LeaseSet | undefined }> {
  return middlewareOf("lease", underLock(options));
}

function underLock<Event, Context>(options: LockHandlerOptions<Event, Context>): Around<Event, Context, Lease | LeaseSet | undefined> {
  const { locks, key, waitMs, whenHeld = "wait", whenUnavailable = "throw", ...acquire } = options;
  checkClient(locks);
  checkAcquire({ ...acquire, ...(waitMs !== undefined && { waitMs }) });
  locked({ locks, key, whenHeld, whenUnavailable }, async () => undefined); // Refuses what it can't use, before any call.

  return async (event, context, work) => {
    const http = isHttp(event);
    let lease: Lease | LeaseSet | undefined;
    let stage: Stage = "before";
    const call = locked(
      {
        ...acquire,
        locks: locks.forInvocation(invocationOf(context)),
        key,
        ...((waitMs !== undefined || http) && { waitMs: waitMs ?? HTTP_WAIT_MS }),
        // Somebody waits for an answer, and a call that came to nothing has none.
        whenHeld: http && whenHeld === "skip" ? "throw" : whenHeld,
        whenUnavailable: http && whenUnavailable === "skip" ? "throw" : whenUnavailable,
      },
      async function handler(_event: Event, _context: Context) {
        stage = "in";
        lease = currentLease();
        const response = await work(lease);
        stage = "after";
        return response;
      },
    );
    try {
      return { how: "answered", response: await call(event, context) };
    } catch (error) {
      const answer = http ? refusal(error, stage, lease) : undefined;
      if (answer) return { how: "refused", error, answer };
      throw error;
    }
  };
}

/** Whether the handler was reached, and whether it returned. */
type Stage = "before" | "in" | "after";

/** What to answer for an error of the lock; undefined for one of the handler, or of whoever put this together. */
function refusal(error: unknown, stage: Stage, lease: Lease | LeaseSet | undefined): HttpAnswer | undefined {
  if (stage !== "before")
    return error instanceof LockLostError && (stage === "after" || lease?.state === "lost") ? problemAnswer("lease-lost") : undefined;
  if (error instanceof LockTimeoutError) return problemAnswer("locked", error);
  // Lost before anybody ran: the invocation is nearly over.
  return error instanceof LockUnavailableError || error instanceof LockLostError ? problemAnswer("unavailable", error) : undefined;
}
