/** The OpenAPI document's text on each operation, and its named schemas. */
import * as v from "valibot";
import type { ErrorCode } from "../core/errors.js";
import { LIMITS } from "../core/limits.js";
import * as messages from "./messages.js";

/** The schemas that have a name in the document. */
export const SCHEMAS = {
  AcquireRequest: messages.AcquireBody,
  RenewRequest: messages.RenewBody,
  ModeRequest: messages.ModeBody,
  TransferRequest: messages.TransferBody,
  WaitRequest: messages.WaitBody,
  NotifyRequest: messages.NotifyBody,
  BreakRequest: messages.BreakBody,
  AcquireSetRequest: messages.AcquireSetBody,
  RenewSetRequest: messages.RenewSetBody,
  ReleaseSetRequest: messages.ReleaseSetBody,
  RenewalsRequest: messages.RenewalsBody,
  StartRequest: messages.StartBody,
  RenewRunRequest: messages.RenewRunBody,
  OutcomeRequest: messages.OutcomeBody,
  ResetRequest: messages.ResetBody,
  Lease: messages.Lease,
  Waiting: messages.Waiting,
  Notified: messages.Notified,
  Inspection: messages.Inspection,
  List: messages.List,
  Break: messages.Break,
  LeaseSet: messages.LeaseSet,
  SetStates: messages.SetStates,
  Renewals: messages.Renewals,
  Started: messages.Started,
  StartedOrReplayed: messages.StartedOrReplayed,
  Recorded: messages.Recorded,
  Run: messages.Run,
  RunList: messages.RunList,
  Reset: messages.Reset,
  Health: messages.Health,
  Problem: messages.Problem,
  GatewayAnswer: v.object({ message: v.string() }),
} as const satisfies Record<string, v.GenericSchema>;

/** The documentation of an operation. */
export interface OperationDoc {
  readonly operationId: string;
  readonly summary: string;
  readonly body?: keyof typeof SCHEMAS;
  readonly answers: Readonly<Record<string, keyof typeof SCHEMAS | "empty">>;
  readonly refusals?: readonly ErrorCode[];
  readonly query?: { readonly entries: Readonly<Record<string, v.GenericSchema>> };
  /** Headers of a request and of its answer, with their descriptions. */
  readonly asks?: Readonly<Record<string, string>>;
  readonly tells?: Readonly<Record<string, string>>;
}

const LEASE = "/v1/locks/{key}/leases/{leaseId}";
const RUN = "/v1/runs/{key}/leases/{leaseId}";
const WAIT = { Prefer: `\`wait=N\`: wait up to N seconds, at most ${LIMITS.serverWaitMs / 1000}; a deployment may answer at once` };
const IF_NONE_MATCH = { "If-None-Match": "The `ETag` of an earlier look: 304 if nothing changed" };
const LEASE_STATE = { "Lease-State": "`released`, `expired`, `lost`, `transferred`, `never` or `unknown`" };
const VERSION_TAG = { ETag: '`"v<version>"`' };
const REPLAYED = { "Idempotent-Replayed": "`true` when this request had been carried out before" };

/** Each route's documentation; a test compares it with the routes. */
export const OPERATION_DOCS: Readonly<Record<string, OperationDoc>> = {
  [`PUT ${LEASE}`]: {
    operationId: "acquire",
    summary: "Acquire the key under a leaseId of your own making, or ask again under it",
    body: "AcquireRequest",
    answers: { 200: "Lease", 201: "Lease", 202: "Waiting" },
    refusals: ["locked", "limit-mismatch", "queue-full", "key-full", "lease-over", "lease-reused", "lease-id-time"],
    asks: {
      Prefer: `\`wait=N\`: queue for the key; the answer may take N seconds, at most ${LIMITS.serverWaitMs / 1000}, for who is next; a deployment may answer at once`,
    },
    tells: { ...VERSION_TAG, ...REPLAYED },
  },
  [`GET ${LEASE}`]: {
    operationId: "check",
    summary: "Still mine, or still in the queue?",
    answers: { 200: "Lease", 202: "Waiting" },
    refusals: ["lease-lost"],
    tells: VERSION_TAG,
  },
  [`DELETE ${LEASE}`]: {
    operationId: "release",
    summary:
      "Release the lease, leave the queue, or cancel an acquire of unknown outcome; always safe to repeat. `Lease-State` says how it ended",
    answers: { 204: "empty" },
    tells: LEASE_STATE,
  },
  [`POST ${LEASE}/renew`]: {
    operationId: "renew",
    summary: "Extend the lease; never shortens",
    body: "RenewRequest",
    answers: { 200: "Lease" },
    refusals: ["key-full", "lease-lost"],
    tells: VERSION_TAG,
  },
  [`POST ${LEASE}/mode`]: {
    operationId: "changeMode",
    summary: "Become the writer, if no other reader remains, or a reader, with a new token",
    body: "ModeRequest",
    answers: { 200: "Lease" },
    refusals: ["locked", "upgrade-conflict", "token-mismatch", "limit-mismatch", "lease-lost"],
    tells: { ...VERSION_TAG, ...REPLAYED },
  },
  [`POST ${LEASE}/transfer`]: {
    operationId: "transfer",
    summary: "Hand the hold to a new leaseId, with a new token",
    body: "TransferRequest",
    answers: { 200: "Lease" },
    refusals: ["locked", "key-full", "lease-lost", "lease-over", "lease-reused", "lease-id-time"],
    tells: { ...VERSION_TAG, ...REPLAYED },
  },
  [`POST ${LEASE}/wait`]: {
    operationId: "wait",
    summary:
      "Free the key and wait for a condition under a new leaseId, in one step; then acquire by that id, as any waiter. After a refusal, cancel the new id before you go on: a duplicate of the request could still free the key",
    body: "WaitRequest",
    answers: { 202: "Waiting" },
    refusals: ["not-exclusive", "queue-full", "key-full", "lease-lost", "lease-over", "lease-reused", "lease-id-time"],
  },
  [`POST ${LEASE}/notify`]: {
    operationId: "notify",
    summary: "Wake the first that waits for the condition, or all of them: each queues for the key",
    body: "NotifyRequest",
    answers: { 200: "Notified" },
    refusals: ["not-exclusive", "lease-lost"],
    tells: REPLAYED,
  },
  "GET /v1/locks/{key}": {
    operationId: "inspect",
    summary: "Who holds the key, and who waits for it",
    answers: { 200: "Inspection", 304: "empty" },
    asks: { ...IF_NONE_MATCH, ...WAIT },
    tells: { ETag: "Over who holds and who waits; a renewal doesn't change it" },
  },
  "POST /v1/locks/{key}/break": {
    operationId: "break",
    summary: "End somebody's hold, named by its token",
    body: "BreakRequest",
    answers: { 200: "Break", 202: "Break" },
    refusals: ["other-hold", "not-found"],
  },
  "GET /v1/locks": {
    operationId: "list",
    summary: "Held keys, in order; a page may be short, and is the last without a `cursor`",
    query: messages.ListQuery,
    answers: { 200: "List" },
  },
  "PUT /v1/lock-sets/{leaseId}": {
    operationId: "acquireSet",
    summary: "Acquire all of these keys under one leaseId, or none",
    body: "AcquireSetRequest",
    answers: { 200: "LeaseSet", 201: "LeaseSet" },
    refusals: ["locked", "limit-mismatch", "key-full", "lease-over", "lease-reused", "lease-id-time"],
    tells: REPLAYED,
  },
  "POST /v1/lock-sets/{leaseId}/renew": {
    operationId: "renewSet",
    summary: "Extend every lease of the set; refused with the keys that are lost",
    body: "RenewSetRequest",
    answers: { 200: "LeaseSet" },
    refusals: ["lease-lost"],
  },
  "POST /v1/lock-sets/{leaseId}/release": {
    operationId: "releaseSet",
    summary: "Release the set, or cancel one of unknown outcome; always safe to repeat",
    body: "ReleaseSetRequest",
    answers: { 200: "SetStates" },
  },
  "POST /v1/renewals": {
    operationId: "renewMany",
    summary: "The heartbeats of many leases in one request; one result per lease, in the same order",
    body: "RenewalsRequest",
    answers: { 200: "Renewals" },
  },
  [`PUT ${RUN}`]: {
    operationId: "start",
    summary: "Run the work of an idempotency key, or get its outcome",
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
    operationId: "abandonRun",
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
    operationId: "complete",
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
    summary: "Is the service up; ?deep=1 also reads the table, and ?caller=1 also says as whom it knows the caller",
    query: messages.HealthQuery,
    answers: { 200: "Health" },
  },
  "GET /v1/openapi.json": { operationId: "openapi", summary: "This document", answers: { 200: "empty" } },
};
