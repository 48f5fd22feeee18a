/** One entry per operation: the request decoded, the service asked, the answer given its status and headers. */
import type { Held } from "../lib/core/commands.js";
import type { Refusal } from "../lib/core/errors.js";
import type { LockApi } from "../lib/core/lock-api.js";
import type { Decoded, Meant, Schema } from "../lib/wire/decode.js";
import { decode, decodeBody } from "../lib/wire/decode.js";
import { AcquireBody, BreakBody, HealthQuery, Key, LeaseId, ListQuery, RenewBody, TransferBody } from "../lib/wire/messages.js";
import { openapi } from "../lib/wire/openapi.js";
import { bodyOf, empty, json, namesTag } from "./http.js";
import type { HttpEvent, HttpResult } from "./http.js";
import type { RouteName } from "./routes.js";

/** Answers `event`, or refuses it. */
export type Operation = (event: HttpEvent, api: LockApi) => Promise<HttpResult | Refusal>;

/** What each route does. */
export const OPERATIONS: Readonly<Record<RouteName, Operation>> = {
  acquire: withLease(AcquireBody, async (api, ref, { leaseMs, owner, meta }) =>
    answer(await api.acquire({ ...ref, leaseMs, owner, meta }), (held) => leaseResult(held.how === "granted" ? 201 : 200, held)),
  ),
  renew: withLease(RenewBody, async (api, ref, body) => answer(await api.renew({ ...ref, ...body }), (held) => leaseResult(200, held))),
  transfer: withLease(TransferBody, async (api, ref, to) => answer(await api.transfer({ ...ref, to }), (held) => leaseResult(200, held))),
  check: withLease(undefined, async (api, ref) => answer(await api.check(ref), (held) => leaseResult(200, held))),
  release: withLease(undefined, async (api, ref) => answer(await api.release(ref), ({ state }) => empty(204, { "lease-state": state }))),
  break: withKey(async (event, api, key) => {
    const body = bodyAs(BreakBody, event);
    if (!body.ok) return body;
    return answer(await api.breakHold({ key, ...body.value }), ({ breakInMs }) => json(breakInMs > 0 ? 202 : 200, { breakInMs }));
  }),
  inspect: withKey(async (event, api, key) =>
    answer(await api.inspect({ key }), (found) =>
      "unchanged" in found || namesTag(event.headers["if-none-match"], found.tag)
        ? empty(304, { etag: found.tag })
        : json(200, found.inspection, { etag: found.tag }),
    ),
  ),
  async list(event, api) {
    const query = decode(ListQuery, event.queryStringParameters ?? {});
    if (!query.ok) return query;
    return answer(await api.list(query.value), ({ items, cursor }) => json(200, { items, ...(cursor !== undefined && { cursor }) }));
  },
  async health(event, api) {
    const query = decode(HealthQuery, event.queryStringParameters ?? {});
    if (!query.ok) return query;
    return answer(await api.health({ deep: query.value.deep === "1" }), ({ status, version, serverTimeMs }) =>
      json(200, { status, version, serverTimeMs }),
    );
  },
  openapi: () => Promise.resolve(json(200, openapi())),
};

/** The key's own path: what a problem document names, without the leaseId. */
export function instanceOf(event: HttpEvent): string | undefined {
  const key = decode(Key, event.pathParameters?.["key"]);
  return key.ok ? `/v1/locks/${key.value}` : undefined;
}

function answer<A extends { readonly ok: true }>(result: A | Refusal, respond: (result: A) => HttpResult): HttpResult | Refusal {
  return result.ok ? respond(result) : result;
}

function leaseResult(statusCode: number, { how, lease }: Held): HttpResult {
  return json(statusCode, lease, { etag: `"v${lease.version}"`, ...(how === "replayed" && { "idempotent-replayed": "true" }) });
}

function withKey(operate: (event: HttpEvent, api: LockApi, key: string) => Promise<HttpResult | Refusal>): Operation {
  return async (event, api) => {
    const key = parameter(Key, event, "key");
    return key.ok ? operate(event, api, key.value) : key;
  };
}

function withLease<S extends Schema<object>>(
  schema: S | undefined,
  operate: (api: LockApi, ref: { key: string; leaseId: string }, body: Meant<S>) => Promise<HttpResult | Refusal>,
): Operation {
  return withKey(async (event, api, key) => {
    const leaseId = parameter(LeaseId, event, "leaseId");
    if (!leaseId.ok) return leaseId;
    const body = schema ? bodyAs(schema, event) : { ok: true as const, value: {} };
    return body.ok ? operate(api, { key, leaseId: leaseId.value }, body.value) : body;
  });
}

function bodyAs<S extends Schema<object>>(schema: S, event: HttpEvent): Decoded<Meant<S>> {
  return decodeBody(schema, bodyOf(event), event.headers["content-type"]);
}

/** A path parameter, as the gateway matched it; a refusal names it. */
function parameter(schema: Schema<string>, event: HttpEvent, name: string): Decoded<string> {
  const decoded = decode(schema, event.pathParameters?.[name]);
  return decoded.ok ? decoded : { ...decoded, field: name, detail: `${name}: ${decoded.detail}` };
}
