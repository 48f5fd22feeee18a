/** The handler on records in memory, called with events: for requests that no HTTP client can send. */
import { createHash } from "node:crypto";
import { type HandlerDeps, createHandler } from "../../lambda/handler.js";
import { operationAt } from "../../lambda/routes.js";
import { createPolicy } from "../../lib/core/policy.js";
import { digestOfPrincipal } from "../../lib/service/caller.js";
import type { LogLine } from "../../lib/service/log.js";
import type { LockStore } from "../../lib/store/port.js";
import { createMemoryStore } from "./memory-store.js";
import { VirtualClock } from "../../lib/testing/virtual-clock.js";
import { type EventParts, httpEvent } from "./http-event.js";
import { leaseIdAt } from "./lease-ids.js";
import { type Reply, checkReply, replyOf } from "./reply.js";

/** The parts that a test may replace. */
export type DirectOptions = Partial<HandlerDeps> & { readonly clock?: VirtualClock };

/** Short names of route keys. Acquire a lease. */
export const ACQUIRE = "PUT /v1/locks/{key}/leases/{leaseId}";
/** Check that a lease is still held. */
export const CHECK = "GET /v1/locks/{key}/leases/{leaseId}";
/** Release or cancel. */
export const RELEASE = "DELETE /v1/locks/{key}/leases/{leaseId}";
/** Send a heartbeat. */
export const RENEW = "POST /v1/locks/{key}/leases/{leaseId}/renew";

/** Start a run, or get its outcome. */
export const START = "PUT /v1/runs/{key}/leases/{leaseId}";
/** Check that a run is still held. */
export const CHECK_RUN = "GET /v1/runs/{key}/leases/{leaseId}";
/** Cancel a start. */
export const CANCEL_START = "DELETE /v1/runs/{key}/leases/{leaseId}";
/** Send a run's heartbeat. */
export const RENEW_RUN = "POST /v1/runs/{key}/leases/{leaseId}/renew";
/** Complete a run with its outcome. */
export const COMPLETE_RUN = "PUT /v1/runs/{key}/leases/{leaseId}/outcome";
/** Reset a run, as an operator. */
export const RESET = "POST /v1/runs/{key}/reset";
/** Inspect a run. */
export const INSPECT_RUN = "GET /v1/runs/{key}";

/** The two callers as the log names them. */
export const [alice, bob] = ["111122223333/AROAALICE", "111122223333/AROABOB"];
/** The first one in other callers' lines, as in the record. */
export const toOthers = { principal: digestOfPrincipal(alice) };
/** A leaseId as the log names it. */
export const hash = (leaseId: string): string => createHash("sha256").update(leaseId).digest("hex").slice(0, 12);

/** A handler with its clock, store and log. */
export interface DirectService {
  readonly clock: VirtualClock;
  readonly store: LockStore;
  readonly lines: readonly LogLine[];
  /** The failures that the handler reported as its own. */
  readonly failures: readonly (readonly [error: unknown, requestId: string])[];
  /** Creates a leaseId with the current time. */
  newId(): string;
  /** Passes an event to the handler. By default, the gateway's clock is the service's clock. */
  ask(routeKey: string, parts?: Partial<EventParts>): Promise<Reply>;
}

/** A store that fails every call with `error`. */
export function failing(error: unknown): LockStore {
  // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- anything can be thrown
  const fail = (): Promise<never> => Promise.reject(error);
  const { parameters } = createMemoryStore({ policy: createPolicy() });
  const limits = { take: fail, shut: fail, reset: fail, read: fail, list: fail };
  const reads = { tenancy: fail, doors: fail, read: fail, list: fail, readPayload: fail };
  return { parameters, limits, ...reads, apply: fail, applyAll: fail, keepPayload: fail };
}

/** Creates a handler for one test. */
export function directService(options: DirectOptions = {}): DirectService {
  const { clock = new VirtualClock(), store = createMemoryStore({ policy: createPolicy(), clock }), ...rest } = options;
  const lines: LogLine[] = [];
  const failures: [error: unknown, requestId: string][] = [];
  const handler = createHandler({
    clock,
    store,
    log: (line) => void lines.push(line),
    onFailure: (error, requestId) => void failures.push([error, requestId]),
    ...rest,
  });
  return {
    clock,
    store,
    lines,
    failures,
    newId: () => leaseIdAt(clock.wallMs()),
    async ask(routeKey, parts = {}) {
      const event = httpEvent(routeKey, { timeEpoch: clock.wallMs(), key: "ORDER_1", ...parts });
      const reply = replyOf(await handler(event));
      checkReply(operationAt(routeKey) ? routeKey : "$default", reply, JSON.stringify([event.pathParameters, parts.body]));
      return reply;
    },
  };
}
