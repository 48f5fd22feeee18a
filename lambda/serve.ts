/** Carries out one request: decodes it by its row of the contract, calls the service, and makes the gateway's answer. */
import type { ServiceApi } from "../lib/core/api/runs.js";
import type { Refusal } from "../lib/core/errors.js";
import { type Decoded, type Schema, decode, decodeBody } from "../lib/contract/decode.js";
import { Key, LeaseId } from "../lib/contract/fields.js";
import type { Answer, DecodedRequest, OperationRow } from "../lib/contract/operation.js";
import { OPERATIONS } from "../lib/contract/operations.js";
import { REQUESTS, TASK_TOKEN_HEADER, TaskToken } from "../lib/contract/requests.js";
import type { OperationName } from "../lib/contract/routes.js";
import { type HttpEvent, type HttpResult, bodyOf, empty, json, secondsToWait } from "./http.js";

const NOTHING = { ok: true, value: {} } as const;

/** Answers `event` by the row of `name`, or refuses it. */
export async function serve(name: OperationName, event: HttpEvent, api: ServiceApi): Promise<HttpResult | Refusal> {
  if (name === "openapi") {
    // Loaded on use: few functions are asked for the document, and its maker would be a sixth of their code.
    const { openapi } = await import("../lib/contract/openapi.js");
    return json(200, openapi());
  }
  // Each row's own types hold: what it is served was decoded by its route and its schemas.
  const row = OPERATIONS[name] as OperationRow<object, object, object>;
  const request = decodeRequest(row, event);
  if (!request.ok) return request;
  const answer = await row.serve(api, request.value);
  return "code" in answer ? answer : resultOf(answer);
}

function resultOf({ status, body, headers = {} }: Answer): HttpResult {
  return body ? json(status, body, headers) : empty(status, headers);
}

/** Decodes the path, then the body and the query. */
function decodeRequest(row: OperationRow, event: HttpEvent): Decoded<DecodedRequest<object>> {
  const path: Record<string, string> = {};
  for (const [name, schema] of Object.entries(PARAMETERS)) {
    if (!event.routeKey.includes(`{${name}}`)) continue;
    const value = parameter(schema, event, name);
    if (!value.ok) return value;
    path[name] = value.value;
  }
  const body = row.body === undefined ? NOTHING : bodyAs(REQUESTS[row.body], event, row.maxBytes);
  if (!body.ok) return body;
  const query = row.query === undefined ? NOTHING : decode(row.query, event.queryStringParameters ?? {});
  if (!query.ok) return query;
  const seconds = secondsToWait(event.headers["prefer"]);
  const waitMs = seconds && 1000 * seconds;
  const token = event.headers[TOKEN_HEADER];
  const taskToken = token === undefined ? NO_TOKEN : decode(TaskToken, token);
  if (!taskToken.ok) return named(taskToken, TOKEN_HEADER);
  const common = { waitMs, ifNoneMatch: event.headers["if-none-match"], taskToken: taskToken.value };
  return { ok: true, value: { path, body: body.value, query: query.value, ...common } };
}

const PARAMETERS = { key: Key, leaseId: LeaseId };
const TOKEN_HEADER = TASK_TOKEN_HEADER.toLowerCase();
const NO_TOKEN = { ok: true, value: undefined } as const;

function bodyAs(schema: Schema<object>, event: HttpEvent, maxBytes: number | undefined): Decoded<object> {
  const body = bodyOf(event);
  return body.ok ? decodeBody(schema, body.value, event.headers["content-type"], maxBytes) : body;
}

/** Returns a path parameter as the gateway matched it; a refusal names it. */
function parameter(schema: Schema<string>, event: HttpEvent, name: string): Decoded<string> {
  const decoded = decode(schema, event.pathParameters?.[name]);
  return decoded.ok ? decoded : named(decoded, name);
}

/** Names the part of the request that a refusal is about. */
function named(refusal: Refusal, field: string): Refusal {
  return { ...refusal, field, detail: `${field}: ${refusal.detail}` };
}

/** Returns the key's own path, which a problem document names; it doesn't contain the leaseId. */
export function instanceOf(event: HttpEvent): string | undefined {
  const key = decode(Key, event.pathParameters?.["key"]);
  return key.ok ? `/v1/${kindOf(event.routeKey)}/${key.value}` : undefined;
}

/** Returns the kind of key that a route is about. */
export function kindOf(routeKey: string): "locks" | "runs" | "limits" {
  const [, kind] = / \/v1\/(runs|limits)(?:\/|$)/.exec(routeKey) ?? [];
  return kind === "runs" || kind === "limits" ? kind : "locks";
}
