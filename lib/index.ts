/**
 * `holdfast`: the lock client over HTTP. It imports no package: it needs only Node's built-in modules (node:async_hooks,
 * node:crypto; node:http and node:https, or `fetch` where they are missing).
 */
import { type ClientOptions, checkClient } from "./client/client-options.js";
import type { LockClient } from "./client/lock-client.js";
import { createClient } from "./client/client.js";
import { givenOrSet } from "./client/environment.js";
import type { HttpOptions } from "./client/transport/http-options.js";
import { callersOf, httpApi } from "./client/transport/http.js";
import { checkUrl, HTTP_OPTIONS } from "./client/transport/http-options.js";
import { systemRuntime } from "./client/runtime.js";

export { currentLease } from "./client/wrap/surrounding.js";
export type { ClientOptions, LockClientEvent } from "./client/client-options.js";
export type { LockClient } from "./client/lock-client.js";
export type { ElectOptions, Lead } from "./client/coordination/elect.js";
export {
  FinalError,
  LimitExceededError,
  InvalidRequestError,
  LockError,
  LockLostError,
  LockTimeoutError,
  LockUnavailableError,
  RunFailedError,
} from "./client/errors.js";
export type { BatchOptions, BatchRecord, BatchResponse } from "./client/events.js";
export { idempotencyKeyOf, runBatch } from "./client/events.js";
export type { FencedWrite } from "./client/lease/fenced-write.js";
export { fencedWrite } from "./client/lease/fenced-write.js";
export type { LockHandle, ReadWriteHandle, SegmentsHandle, UnsureWork, Work } from "./client/lock-client.js";
export type { HttpOptions, Sign } from "./client/transport/http-options.js";
export type { InvocationContext } from "./client/invocation.js";
export type { OccurrenceOptions, Schedule } from "./client/jobs/occurrence.js";
export type { RefreshOptions, Renewal } from "./client/jobs/refresh.js";
export type { RunningBefore, Tick, TickOptions, TickResult } from "./client/jobs/tick.js";
export type { Limiter, LimiterOptions, Limits, TakeOptions, TakeResult } from "./client/limiter.js";
export { limitAll } from "./client/limiter.js";
export type { Lease, State } from "./client/lease/lease.js";
export type { LockedOptions } from "./client/wrap/locked.js";
export { locked } from "./client/wrap/locked.js";
export type { OnceOptions } from "./client/wrap/once.js";
export { currentRun, runOnce } from "./client/wrap/once.js";
export type { LeaseSet, SetKey } from "./client/lease/lease-set.js";
export type { AcquireOptions, LeaseOptions, SetOptions, WhenUnavailable } from "./client/options.js";
export type { RunResult } from "./client/run/outcome.js";
export type { Run } from "./client/run/run-once.js";
export type { RunOptions } from "./client/run/run-options.js";
export type { RunInspection, Runs } from "./client/run/runs.js";
export type { WatchOptions } from "./client/coordination/watch.js";
export type { AsyncMethod, AsyncMethodDecorator, Through } from "./client/wrap/wrap-method.js";
export type { Via } from "./core/api/locks.js";
export type { LeaseState } from "./core/commands.js";
export type { HolderView } from "./core/errors.js";
export type { LimitView, Rate } from "./core/rate.js";
export type { KeyPart } from "./core/key.js";
export { key } from "./client/key.js";
export type { Inspection, RunView } from "./core/lock/views.js";

/** Options of a client over HTTP. `url` defaults to the environment variable `HOLDFAST_URL`. */
export interface HttpClientOptions extends ClientOptions, Omit<HttpOptions, "url"> {
  readonly url?: string | undefined;
}

/**
 * Creates a client of the service at `url`. The client sends nothing until it is asked for a lock.
 * @throws InvalidRequestError if there is no URL, the URL is invalid, or an option does not exist.
 */
export function createLockClient(options: HttpClientOptions = {}): LockClient {
  checkClient(options, HTTP_OPTIONS);
  const url = givenOrSet("url", options.url, "HOLDFAST_URL");
  checkUrl("url", url);
  const http = { ...options, url };
  return createClient({ ...systemRuntime(httpApi(http)), callers: callersOf(http) }, options);
}
