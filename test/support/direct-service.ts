/** The handler on records in memory, asked with events: for what no HTTP request could bring about. */
import type { HandlerDeps } from "../../lambda/handler.js";
import { createHandler } from "../../lambda/handler.js";
import { ROUTES } from "../../lambda/routes.js";
import { createPolicy } from "../../lib/core/policy.js";
import type { LogLine } from "../../lib/service/log.js";
import type { LockStore } from "../../lib/store/port.js";
import { createMemoryStore } from "../../lib/store/memory-store.js";
import { VirtualClock } from "../../lib/testing/virtual-clock.js";
import type { EventParts } from "./http-event.js";
import { httpEvent } from "./http-event.js";
import { leaseIdAt } from "./lease-ids.js";
import type { Reply } from "./reply.js";
import { checkReply, replyOf } from "./reply.js";

/** The parts that a test may replace. */
export type DirectOptions = Partial<HandlerDeps> & { readonly clock?: VirtualClock };

/** Route keys, for short. */
export const ACQUIRE = "PUT /v1/locks/{key}/leases/{leaseId}";
/** Still mine? */
export const CHECK = "GET /v1/locks/{key}/leases/{leaseId}";
/** Release or cancel. */
export const RELEASE = "DELETE /v1/locks/{key}/leases/{leaseId}";
/** A heartbeat. */
export const RENEW = "POST /v1/locks/{key}/leases/{leaseId}/renew";

/** Run the work, or be told what came of it. */
export const START = "PUT /v1/runs/{key}/leases/{leaseId}";
/** Still mine? */
export const CHECK_RUN = "GET /v1/runs/{key}/leases/{leaseId}";
/** Give up a start. */
export const GIVE_UP = "DELETE /v1/runs/{key}/leases/{leaseId}";
/** A run's heartbeat. */
export const RENEW_RUN = "POST /v1/runs/{key}/leases/{leaseId}/renew";
/** Complete a run with its outcome. */
export const CONCLUDE = "PUT /v1/runs/{key}/leases/{leaseId}/outcome";
/** An operator's new beginning. */
export const RESET = "POST /v1/runs/{key}/reset";
/** A look at a run. */
export const LOOK = "GET /v1/runs/{key}";

/** A handler, and what stands around it. */
export interface DirectService {
  readonly clock: VirtualClock;
  readonly store: LockStore;
  readonly lines: readonly LogLine[];
  /** The failures that the handler reported as its own. */
  readonly failures: readonly (readonly [error: unknown, requestId: string])[];
  /** A new leaseId of now. */
  newId(): string;
  /** Hands the handler an event; the gateway's clock is the service's unless the test says otherwise. */
  ask(routeKey: string, parts?: Partial<EventParts>): Promise<Reply>;
}

/** A handler of its own for each test. */
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
      checkReply(Object.hasOwn(ROUTES, routeKey) ? routeKey : "$default", reply, JSON.stringify([event.pathParameters, parts.body]));
      return reply;
    },
  };
}
