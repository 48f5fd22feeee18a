/** The OpenAPI 3.1 document, made from the schemas that validate the requests. */
import { toJsonSchema } from "@valibot/to-json-schema";
import * as v from "valibot";
import { ERRORS } from "../core/errors.js";
import type { ErrorCode } from "../core/errors.js";
import { LIMITS } from "../core/limits.js";
import { VERSION } from "../core/version.js";
import * as messages from "./messages.js";
import { PROBLEM_TYPE } from "./problem.js";

type Schema = v.GenericSchema;
type Json = Readonly<Record<string, unknown>>;

const SCHEMAS = {
  AcquireRequest: messages.AcquireBody,
  RenewRequest: messages.RenewBody,
  TransferRequest: messages.TransferBody,
  BreakRequest: messages.BreakBody,
  StartRequest: messages.StartBody,
  RenewRunRequest: messages.RenewRunBody,
  OutcomeRequest: messages.OutcomeBody,
  ResetRequest: messages.ResetBody,
  Lease: messages.Lease,
  Inspection: messages.Inspection,
  List: messages.List,
  Break: messages.Break,
  Started: messages.Started,
  StartedOrReplayed: messages.StartedOrReplayed,
  Recorded: messages.Recorded,
  Run: messages.Run,
  RunList: messages.RunList,
  Reset: messages.Reset,
  Health: messages.Health,
  Problem: messages.Problem,
} as const satisfies Record<string, Schema>;

interface OperationDoc {
  readonly operationId: string;
  readonly summary: string;
  readonly body?: keyof typeof SCHEMAS;
  readonly answers: Readonly<Record<string, keyof typeof SCHEMAS | "empty">>;
  readonly refusals?: readonly ErrorCode[];
  readonly query?: { readonly entries: Readonly<Record<string, Schema>> };
  /** Headers that a request may carry and an answer does, with what they say. */
  readonly asks?: Readonly<Record<string, string>>;
  readonly tells?: Readonly<Record<string, string>>;
}

const LEASE = "/v1/locks/{key}/leases/{leaseId}";
const RUN = "/v1/runs/{key}/leases/{leaseId}";
const WAIT = { Prefer: `\`wait=N\`: wait up to N seconds, at most ${LIMITS.serverWaitMs / 1000}` };
const IF_NONE_MATCH = { "If-None-Match": "The `ETag` of an earlier look: 304 if nothing changed" };
const LEASE_STATE = { "Lease-State": "`released`, `expired`, `lost`, `transferred`, `never` or `unknown`" };
const VERSION_TAG = { ETag: '`"v<version>"`' };
const REPLAYED = { "Idempotent-Replayed": "`true` when this request had been carried out before" };

/** Each route's documentation; a test holds it to the routes. */
export const OPERATION_DOCS: Readonly<Record<string, OperationDoc>> = {
  [`PUT ${LEASE}`]: {
    operationId: "acquire",
    summary: "Acquire the key under a leaseId of your own making, or ask again under it",
    body: "AcquireRequest",
    answers: { 200: "Lease", 201: "Lease" },
    refusals: ["locked", "lease-over", "lease-reused", "lease-id-time"],
    tells: { ...VERSION_TAG, ...REPLAYED },
  },
  [`GET ${LEASE}`]: {
    operationId: "check",
    summary: "Still mine?",
    answers: { 200: "Lease" },
    refusals: ["lease-lost"],
    tells: VERSION_TAG,
  },
  [`DELETE ${LEASE}`]: {
    operationId: "release",
    summary: "Release the lease, or cancel an acquire of unknown outcome; always safe to repeat. `Lease-State` says how it ended",
    answers: { 204: "empty" },
    tells: LEASE_STATE,
  },
  [`POST ${LEASE}/renew`]: {
    operationId: "renew",
    summary: "Extend the lease; never shortens",
    body: "RenewRequest",
    answers: { 200: "Lease" },
    refusals: ["lease-lost"],
    tells: VERSION_TAG,
  },
  [`POST ${LEASE}/transfer`]: {
    operationId: "transfer",
    summary: "Hand the hold to a new leaseId, with a new token",
    body: "TransferRequest",
    answers: { 200: "Lease" },
    refusals: ["lease-lost", "lease-over", "lease-reused", "lease-id-time"],
    tells: { ...VERSION_TAG, ...REPLAYED },
  },
  "GET /v1/locks/{key}": {
    operationId: "inspect",
    summary: "Who holds the key",
    answers: { 200: "Inspection", 304: "empty" },
    asks: IF_NONE_MATCH,
    tells: { ETag: "Over who holds and who waits; a renewal doesn't change it" },
  },
  "POST /v1/locks/{key}/break": {
    operationId: "break",
    summary: "End somebody's hold, named by its token",
    body: "BreakRequest",
    answers: { 200: "Break", 202: "Break" },
    refusals: ["other-hold", "not-found"],
  },
  "GET /v1/locks": { operationId: "list", summary: "Held keys, in order", query: messages.ListQuery, answers: { 200: "List" } },
  [`PUT ${RUN}`]: {
    operationId: "start",
    summary: "Run the work of an idempotency key, or be told what came of it",
    body: "StartRequest",
    answers: { 200: "StartedOrReplayed", 201: "Started" },
    refusals: ["run-in-progress", "attempts-exhausted", "fingerprint-mismatch", "lease-over", "lease-reused", "lease-id-time"],
    asks: WAIT,
    tells: { ...VERSION_TAG, ...REPLAYED },
  },
  [`GET ${RUN}`]: {
    operationId: "checkRun",
    summary: "Still mine?",
    answers: { 200: "Lease" },
    refusals: ["lease-lost"],
    tells: VERSION_TAG,
  },
  [`DELETE ${RUN}`]: {
    operationId: "giveUpRun",
    summary: "Cancel a start of unknown outcome: as if it had not been. Work that was begun ends with an outcome instead",
    answers: { 204: "empty" },
    tells: LEASE_STATE,
  },
  [`POST ${RUN}/renew`]: {
    operationId: "renewRun",
    summary: "Extend the lease of a run, and save how far it got",
    body: "RenewRunRequest",
    answers: { 200: "Lease" },
    refusals: ["lease-lost"],
    tells: VERSION_TAG,
  },
  [`PUT ${RUN}/outcome`]: {
    operationId: "conclude",
    summary: "Record what came of the work, and end its lease: only while it still holds the run",
    body: "OutcomeRequest",
    answers: { 200: "Recorded" },
    refusals: ["lease-lost", "outcome-differs"],
    tells: REPLAYED,
  },
  "GET /v1/runs/{key}": {
    operationId: "run",
    summary: "What is known of a run",
    answers: { 200: "Run", 304: "empty" },
    refusals: ["not-found"],
    asks: { ...IF_NONE_MATCH, ...WAIT },
    tells: { ETag: "Over state, attempt and checkpoint; a renewal doesn't change it" },
  },
  "POST /v1/runs/{key}/reset": {
    operationId: "resetRun",
    summary: "Forget a run that is over or was given up: the next start is a first attempt",
    body: "ResetRequest",
    answers: { 200: "Reset" },
    refusals: ["not-found", "run-in-progress"],
  },
  "GET /v1/runs": {
    operationId: "runs",
    summary: "Runs in the order of their keys, without their values",
    query: messages.RunListQuery,
    answers: { 200: "RunList" },
  },
  "GET /v1/health": {
    operationId: "health",
    summary: "Is the service up; ?deep=1 also reads the table",
    query: messages.HealthQuery,
    answers: { 200: "Health" },
  },
  "GET /v1/openapi.json": { operationId: "openapi", summary: "This document", answers: { 200: "empty" } },
};

const RETRY_AFTER = { "Retry-After": "Whole seconds; goes with `retryAfterMs`" };
const ALWAYS: readonly ErrorCode[] = [
  "invalid-request",
  "forbidden",
  "too-large",
  "unsupported-media-type",
  "throttled",
  "internal",
  "clock-skew",
  "unavailable",
  "newer-format",
];

/** The document, as plain JSON. */
export function openapi(): Json {
  const paths: Record<string, Record<string, Json>> = {};
  for (const [route, doc] of Object.entries(OPERATION_DOCS)) {
    const [method = "", path = ""] = route.split(" ", 2);
    (paths[path] ??= {})[method.toLowerCase()] = operation(path, doc);
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "holdfast",
      version: VERSION,
      description: "Lease locks as an HTTP API.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    paths,
    components: { schemas: Object.fromEntries(Object.entries(SCHEMAS).map(([name, schema]) => [name, jsonSchema(schema)])) },
  };
}

function operation(path: string, { operationId, summary, body, answers, refusals = [], query, asks = {}, tells = {} }: OperationDoc): Json {
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => ({
    name,
    in: "path",
    required: true,
    schema: jsonSchema(name === "key" ? messages.Key : messages.LeaseId),
  }));
  const inQuery = Object.entries(query?.entries ?? {}).map(([name, schema]) => ({
    name,
    in: "query",
    schema: jsonSchema(schema, "output"),
  }));
  const inHeader = Object.entries(asks).map(([name, description]) => ({ name, in: "header", description, schema: { type: "string" } }));
  const headers = headersOf(tells);
  return {
    operationId,
    summary,
    parameters: [...inPath, ...inQuery, ...inHeader],
    ...(body && {
      requestBody: {
        required: !v.is(SCHEMAS[body], {}),
        content: { "application/json": { schema: ref(body) } },
        description: `At most ${body === "OutcomeRequest" ? LIMITS.outcomeBodyBytes : LIMITS.bodyBytes} bytes.`,
      },
    }),
    responses: {
      ...Object.fromEntries(Object.entries(answers).map(([status, name]) => [status, { ...response(name), ...headers }])),
      ...problems([...refusals, ...ALWAYS]),
    },
  };
}

/** One response per status; the codes that share it are named. */
function problems(codes: readonly ErrorCode[]): Record<string, Json> {
  const statuses = new Set(codes.map((code) => ERRORS[code].status));
  return Object.fromEntries(
    Array.from(statuses, (status) => {
      const shared = codes.filter((code) => ERRORS[code].status === status);
      const description = shared.map((code) => `\`${code}\`: ${ERRORS[code].title}`).join(". ");
      const headers = shared.some((code) => ERRORS[code].retry === "later") ? headersOf(RETRY_AFTER) : {};
      return [status, { description, ...headers, content: { [PROBLEM_TYPE]: { schema: ref("Problem") } } }];
    }),
  );
}

function response(name: keyof typeof SCHEMAS | "empty"): Json {
  return name === "empty"
    ? { description: "No content of note" }
    : { description: name, content: { "application/json": { schema: ref(name) } } };
}

function headersOf(named: Readonly<Record<string, string>>): Json {
  const headers = Object.entries(named).map(([name, description]) => [name, { description, schema: { type: "string" } }] as const);
  return headers.length > 0 ? { headers: Object.fromEntries(headers) } : {};
}

function ref(name: keyof typeof SCHEMAS): Json {
  return { $ref: `#/components/schemas/${name}` };
}

/** What a schema checks by a function of ours is left to the service, but that `meta` is an object. */
function jsonSchema(schema: Schema, typeMode: "input" | "output" = "input"): Json {
  const { $schema: _draft, ...rest } = toJsonSchema(schema, {
    target: "draft-2020-12",
    errorMode: "ignore",
    typeMode,
    overrideSchema: ({ valibotSchema }) => (valibotSchema.type === "custom" ? { type: "object" } : undefined),
  }) as Json;
  return rest;
}
