/** One entry per operation: decodes the request, calls the service, and sets the answer's status and headers. */
import type { Held, Waiting } from "../lib/core/commands.js";
import type { Refusal } from "../lib/core/errors.js";
import { LIMITS } from "../lib/core/limits.js";
import type { LeaseRef } from "../lib/core/api/locks.js";
import type { ServiceApi } from "../lib/core/api/runs.js";
import type { SetHeld } from "../lib/core/api/sets.js";
import { toSecondsUp } from "../lib/core/time.js";
import type { Decoded, Output, Schema } from "../lib/wire/decode.js";
import { decode, decodeBody } from "../lib/wire/decode.js";
import {
  AcquireBody,
  AcquireSetBody,
  BreakBody,
  HealthQuery,
  Key,
  LeaseId,
  ListQuery,
  ModeBody,
  OutcomeBody,
  ReleaseSetBody,
  RenewalsBody,
  RenewBody,
  RenewRunBody,
  RenewSetBody,
  ResetBody,
  RunListQuery,
  StartBody,
  NotifyBody,
  TransferBody,
  WaitBody,
} from "../lib/wire/messages.js";
import { openapi } from "../lib/wire/openapi.js";
import { toProblem } from "../lib/wire/problem.js";
import { bodyOf, empty, json, secondsToWait } from "./http.js";
import type { HttpEvent, HttpResult } from "./http.js";
import type { RouteName } from "./routes.js";

/** Marks the answer to a request that was already carried out. */
const REPLAYED = { "idempotent-replayed": "true" };

/** The kind of a route's lease, and the longest body in bytes. */
interface RouteOfLease {
  readonly kind?: LeaseRef["kind"];
  readonly maxBytes?: number;
}
const RUN: RouteOfLease = { kind: "runs" };

/** Answers `event`, or refuses it. */
export type Operation = (event: HttpEvent, api: ServiceApi) => Promise<HttpResult | Refusal>;

/** The operation of each route. */
export const OPERATIONS: Readonly<Record<RouteName, Operation>> = {
  acquire: withLease(AcquireBody, async (api, ref, body, event) => {
    const seconds = secondsToWait(event.headers["prefer"]);
    const waitMs = seconds && 1000 * seconds;
    return answer(await api.acquire({ ...ref, ...body, waitMs }), (held) =>
      "state" in held ? waitingResult(held) : leaseResult(held.how === "granted" ? 201 : 200, held),
    );
  }),
  renew: withLease(RenewBody, async (api, ref, body) => answer(await api.renew({ ...ref, ...body }), (held) => leaseResult(200, held))),
  changeMode: withLease(ModeBody, async (api, ref, body) =>
    answer(await api.changeMode({ ...ref, ...body }), (held) => leaseResult(200, held)),
  ),
  transfer: withLease(TransferBody, async (api, ref, to) => answer(await api.transfer({ ...ref, to }), (held) => leaseResult(200, held))),
  wait: withLease(WaitBody, async (api, ref, { condition, ...to }) =>
    answer(await api.waitForCondition({ ...ref, condition, to }), waitingResult),
  ),
  notify: withLease(NotifyBody, async (api, ref, body) =>
    answer(await api.notify({ ...ref, ...body }), ({ how, notified }) => json(200, { notified }, how === "replayed" ? REPLAYED : {})),
  ),
  check: withLease(undefined, checkLease),
  release: withLease(undefined, async (api, ref) => answer(await api.release(ref), ({ state }) => empty(204, { "lease-state": state }))),
  break: withKey(async (event, api, key) => {
    const body = bodyAs(BreakBody, event);
    if (!body.ok) return body;
    return answer(await api.breakHold({ key, ...body.value }), ({ breakInMs }) => json(breakInMs > 0 ? 202 : 200, { breakInMs }));
  }),
  inspect: withKey(async (event, api, key) =>
    answer(await api.inspect({ key, ifNoneMatch: event.headers["if-none-match"], waitMs: waitMsOf(event) }), (found) =>
      "unchanged" in found ? empty(304, { etag: found.tag }) : json(200, found.inspection, { etag: found.tag }),
    ),
  ),
  async list(event, api) {
    const query = decode(ListQuery, event.queryStringParameters ?? {});
    if (!query.ok) return query;
    return answer(await api.list(query.value), ({ namespace, items, cursor }) =>
      json(200, { namespace, items, ...(cursor !== undefined && { cursor }) }),
    );
  },
  async health(event, api) {
    const query = decode(HealthQuery, event.queryStringParameters ?? {});
    if (!query.ok) return query;
    return answer(await api.health(query.value), (health) => json(200, fieldsOf(health)));
  },
  acquireSet: withSet(AcquireSetBody, async (api, leaseId, { keys = [], locks = keys.map((key) => ({ key })), ...body }) =>
    answer(await api.acquireSet({ leaseId, locks, ...body }), (held) => setResult(held.how === "granted" ? 201 : 200, held)),
  ),
  renewSet: withSet(RenewSetBody, async (api, leaseId, body) =>
    answer(await api.renewSet({ leaseId, ...body }), (held) => setResult(200, held)),
  ),
  releaseSet: withSet(ReleaseSetBody, async (api, leaseId, { keys }) =>
    answer(await api.releaseSet({ leaseId, keys }), ({ states }) => json(200, { states })),
  ),
  async renewMany(event, api) {
    const body = bodyAs(RenewalsBody, event);
    if (!body.ok) return body;
    const { leases } = body.value;
    return answer(await api.renewMany({ leases }), ({ results }) =>
      json(200, {
        results: results.map((result, index) => {
          const key = leases[index]?.key ?? "";
          return result.ok ? { status: 200, ...result.lease } : { key, ...toProblem(result, `/v1/locks/${key}`) };
        }),
      }),
    );
  },
  start: withLease(
    StartBody,
    async (api, ref, body, event) =>
      answer(await api.start({ ...ref, ...body, waitMs: waitMsOf(event) }), (started) => {
        if (started.state !== "running") return json(200, fieldsOf(started), REPLAYED);
        const { ok: _ok, how, lease, ...run } = started;
        const tag = { etag: `"v${lease.version}"` };
        return how === "granted" ? json(201, { ...run, ...lease }, tag) : json(200, { ...run, ...lease }, { ...tag, ...REPLAYED });
      }),
    RUN,
  ),
  checkRun: withLease(undefined, checkLease, RUN),
  abandonRun: withLease(
    undefined,
    async (api, ref) => answer(await api.release(ref), ({ state }) => empty(204, { "lease-state": state })),
    RUN,
  ),
  renewRun: withLease(
    RenewRunBody,
    async (api, ref, body) => answer(await api.renew({ ...ref, ...body }), (held) => leaseResult(200, held)),
    RUN,
  ),
  complete: withLease(
    OutcomeBody,
    async (api, ref, outcome) =>
      answer(await api.complete({ ...ref, outcome }), ({ how }) => json(200, { recorded: true }, how === "replayed" ? REPLAYED : {})),
    { ...RUN, maxBytes: LIMITS.outcomeBodyBytes },
  ),
  run: withKey(async (event, api, key) => {
    const ifNoneMatch = event.headers["if-none-match"];
    return answer(await api.run({ key, ifNoneMatch, waitMs: waitMsOf(event) }), (found) =>
      "unchanged" in found ? empty(304, { etag: found.tag }) : json(200, found.run, { etag: found.tag }),
    );
  }),
  resetRun: withKey(async (event, api, key) => {
    const body = bodyAs(ResetBody, event);
    if (!body.ok) return body;
    return answer(await api.resetRun({ key, ...body.value }), () => json(200, { reset: true }));
  }),
  async runs(event, api) {
    const query = decode(RunListQuery, event.queryStringParameters ?? {});
    if (!query.ok) return query;
    return answer(await api.runs(query.value), (listed) => json(200, fieldsOf(listed)));
  },
  openapi: () => Promise.resolve(json(200, openapi())),
};

/** Returns the key's own path, which a problem document names; it doesn't contain the leaseId. */
export function instanceOf(event: HttpEvent): string | undefined {
  const key = decode(Key, event.pathParameters?.["key"]);
  const kind = event.routeKey.includes(" /v1/runs/") ? "runs" : "locks";
  return key.ok ? `/v1/${kind}/${key.value}` : undefined;
}

function answer<A extends { readonly ok: true }>(result: A | Refusal, respond: (result: A) => HttpResult): HttpResult | Refusal {
  return result.ok ? respond(result) : result;
}

function leaseResult(statusCode: number, { how, lease }: Held): HttpResult {
  return json(statusCode, lease, { etag: `"v${lease.version}"`, ...(how === "replayed" && REPLAYED) });
}

async function checkLease(api: ServiceApi, ref: LeaseRef): Promise<HttpResult | Refusal> {
  return answer(await api.check(ref), (found) => ("state" in found ? waitingResult(found) : leaseResult(200, found)));
}

function waitingResult(waiting: Waiting): HttpResult {
  return json(202, fieldsOf(waiting), { "retry-after": String(toSecondsUp(waiting.retryAfterMs)) });
}

/** Returns the answer's fields as a body. */
function fieldsOf<A extends { readonly ok: true }>({ ok: _ok, ...fields }: A): Omit<A, "ok"> {
  return fields;
}

/** Returns the requested wait, in ms. */
function waitMsOf(event: HttpEvent): number {
  return 1000 * (secondsToWait(event.headers["prefer"]) ?? 0);
}

function withKey(operate: (event: HttpEvent, api: ServiceApi, key: string) => Promise<HttpResult | Refusal>): Operation {
  return async (event, api) => {
    const key = parameter(Key, event, "key");
    return key.ok ? operate(event, api, key.value) : key;
  };
}

function withLease<S extends Schema<object>>(
  schema: S | undefined,
  operate: (api: ServiceApi, ref: LeaseRef, body: Output<S>, event: HttpEvent) => Promise<HttpResult | Refusal>,
  { kind = "locks", maxBytes = LIMITS.bodyBytes }: RouteOfLease = {},
): Operation {
  return withKey(async (event, api, key) => {
    const leaseId = parameter(LeaseId, event, "leaseId");
    if (!leaseId.ok) return leaseId;
    const body = schema ? bodyAs(schema, event, maxBytes) : { ok: true as const, value: {} };
    return body.ok ? operate(api, { kind, key, leaseId: leaseId.value }, body.value, event) : body;
  });
}

function withSet<S extends Schema<object>>(
  schema: S,
  operate: (api: ServiceApi, leaseId: string, body: Output<S>) => Promise<HttpResult | Refusal>,
): Operation {
  return async (event, api) => {
    const leaseId = parameter(LeaseId, event, "leaseId");
    if (!leaseId.ok) return leaseId;
    const body = bodyAs(schema, event);
    return body.ok ? operate(api, leaseId.value, body.value) : body;
  };
}

function setResult(statusCode: number, { ok: _ok, how, ...set }: SetHeld): HttpResult {
  return json(statusCode, set, how === "replayed" ? REPLAYED : {});
}

function bodyAs<S extends Schema<object>>(schema: S, event: HttpEvent, maxBytes?: number): Decoded<Output<S>> {
  const body = bodyOf(event);
  return body.ok ? decodeBody(schema, body.value, event.headers["content-type"], maxBytes) : body;
}

/** Returns a path parameter as the gateway matched it; a refusal names it. */
function parameter(schema: Schema<string>, event: HttpEvent, name: string): Decoded<string> {
  const decoded = decode(schema, event.pathParameters?.[name]);
  return decoded.ok ? decoded : { ...decoded, field: name, detail: `${name}: ${decoded.detail}` };
}
