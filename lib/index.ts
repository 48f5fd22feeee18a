/**
 * `holdfast`: the lock client over HTTP. It imports no package: it needs only Node's built-in modules (node:async_hooks,
 * node:crypto; node:http and node:https, or `fetch` where they are missing).
 */
import { type ClientOptions, checkClient } from "./client/calls/client-options.js";
import type { LockClient } from "./client/calls/lock-client.js";
import { createClient } from "./client/client.js";
import { callersOf, httpApi } from "./client/wire/http.js";
import { type HttpOptions, HTTP_OPTIONS, urlsOf } from "./client/wire/http-options.js";
import { systemRuntime } from "./client/runtime.js";
import { type Call, apiBy } from "./core/api/call.js";

export { currentLease } from "./client/calls/surrounding.js";
export type { ClientOptions } from "./client/calls/client-options.js";
export type { CloseOptions } from "./client/hold/closing.js";
export type { LockClientEvent } from "./client/wire/events.js";
export type { LockClient, LockHandle, ReadWriteHandle, SegmentsHandle, UnsureWork, Work } from "./client/calls/lock-client.js";
export type { ElectOptions, Lead } from "./client/calls/elect.js";
export { FinalError, LimitExceededError, InvalidRequestError, LockError, LockLostError, LockTimeoutError } from "./client/wire/errors.js";
export { LockUnavailableError, RunFailedError } from "./client/wire/errors.js";
export { type BatchOptions, type BatchRecord, type BatchResponse, idempotencyKeyOf, runBatch } from "./client/calls/batch.js";
export { type FencedWrite, fencedWrite } from "./client/hold/fenced-write.js";
export type { HttpOptions, Sign } from "./client/wire/http-options.js";
export type { InvocationContext } from "./client/wire/invocation.js";
export type { OccurrenceOptions, Schedule } from "./client/calls/occurrence.js";
export type { RefreshOptions, Renewal } from "./client/calls/refresh.js";
export type { RunningBefore, Tick, TickOptions, TickResult } from "./client/calls/tick.js";
export {
  type LimitedOptions,
  type Limiter,
  type LimiterOptions,
  type Limits,
  type TakeOptions,
  type TakeResult,
  limitAll,
} from "./client/calls/limiter.js";
export type { ShutOptions } from "./client/calls/limit-writes.js";
export type { Lease, State } from "./client/hold/lease-types.js";
export { type LockedOptions, locked } from "./client/calls/wrap/locked.js";
export { type OnceOptions, currentRun, runOnce } from "./client/calls/wrap/once.js";
export type { LeaseSet, SetKey } from "./client/hold/lease-set.js";
export type { AcquireOptions, LeaseOptions, SetOptions, WhenUnavailable } from "./client/calls/options.js";
export type { RunResult } from "./client/calls/run/outcome.js";
export type { Run } from "./client/calls/run/run-once.js";
export type { RunOptions } from "./client/calls/run/run-options.js";
export type { RunInspection, Runs } from "./client/calls/run/runs.js";
export type { WatchOptions } from "./client/calls/watch.js";
export type { AsyncMethod, AsyncMethodDecorator, Through } from "./client/calls/wrap/wrap-method.js";
export type { Via } from "./core/api/locks.js";
export type { LeaseState } from "./core/commands.js";
export type { HolderView } from "./core/errors.js";
export type { LimitView, Rate } from "./core/rate.js";
export type { KeyPart } from "./core/key.js";
export { key } from "./client/calls/key.js";
export type { Inspection, RunView } from "./core/lock/views.js";

/** Options of a client over HTTP. */
export interface HttpClientOptions extends ClientOptions, Omit<HttpOptions, "url"> {
  /**
   * The API's URL, with its stage if it has one. Or the URLs of several services of one table, the nearest first: requests go to the first that
   * answers, and leases, places in queues and runs go on through another. @default HOLDFAST_URL, in which commas separate several
   */
  readonly url?: string | readonly string[] | undefined;
}

/**
 * Creates a client of the service at `url`. The client sends nothing until it is asked for a lock.
 * @throws InvalidRequestError if there is no URL, a URL is invalid, or an option does not exist.
 */
export function createLockClient(options: HttpClientOptions = {}): LockClient {
  checkClient(options, HTTP_OPTIONS);
  const urls = urlsOf(options.url);
  const [url = ""] = urls;
  const first = httpApi({ ...options, url });
  let loaded: Promise<Call> | undefined;
  const load = (): Promise<Call> => import("./client/wire/doors.js").then(({ servicesAt }) => servicesAt(urls, options));
  // A client of one URL doesn't load what several need.
  const api = urls.length > 1 ? apiBy(first, async (...request) => (await (loaded ??= load()))(...request)) : first;
  return createClient({ ...systemRuntime(api), callers: callersOf(options) }, options);
}
