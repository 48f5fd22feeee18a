/**
 * The contract: one row for each operation of the API. A row has the operation's words in the OpenAPI document, the schemas of its request,
 * and how the service is called and its answer put on the wire. The handler and the document are loops over the rows. The routes are in
 * routes.ts; headers and links, which only the document has, are in headers-and-links.ts.
 */
import { type OperationRow, operation, REPLAYED } from "./operation.js";
import { answer, endedAnswer, heldOrWaiting, leaseAnswer, readAnswer, marked, plainAnswer, waitingAnswer } from "./operation.js";
import { LIMITS } from "../core/limits.js";
import { toProblem } from "./problem.js";
import { HealthQuery, LimitListQuery, ListQuery, RunListQuery } from "./requests.js";
import type { OperationName, PathOf } from "./routes.js";

/** A run's lease is renewed, checked and released like a lock's, with its kind. */
const kind = "runs";

/** Every operation that the service carries out. The OpenAPI document has its own row in openapi.ts. */
export const OPERATIONS = {
  acquire: operation("acquire", {
    summary: "Acquire the key under a leaseId of your own making, or ask again under it",
    body: "AcquireRequest",
    answers: { 200: "Lease", 201: "Lease", 202: "Queued" },
    refusals: ["locked", "limit-mismatch", "queue-full", "key-full", "lease-over", "lease-reused", "lease-id-time"],
    serve: async (api, { path, body, waitMs, taskToken }) => {
      const wake = taskToken === undefined ? body.wake : { taskToken };
      return answer(await api.acquire({ ...path, ...body, waitMs, wake }), heldOrWaiting);
    },
  }),
  check: operation("check", {
    summary: "Still mine, or still in the queue?",
    answers: { 200: "Lease", 202: "Waiting" },
    refusals: ["lease-lost"],
    serve: async (api, { path }) => answer(await api.check(path), heldOrWaiting),
  }),
  release: operation("release", {
    summary:
      "Release the lease, leave the queue, or cancel an acquire of unknown outcome; always safe to repeat. `Lease-State` says how it ended",
    answers: { 204: "empty" },
    serve: async (api, { path }) => answer(await api.release(path), endedAnswer),
  }),
  renew: operation("renew", {
    summary: "Extend the lease; never shortens",
    body: "RenewRequest",
    answers: { 200: "Lease" },
    refusals: ["key-full", "lease-lost"],
    serve: async (api, { path, body }) => answer(await api.renew({ ...path, ...body }), leaseAnswer),
  }),
  changeMode: operation("changeMode", {
    summary: "Become the writer, if no other reader remains, or a reader, with a new token",
    body: "ModeRequest",
    answers: { 200: "Lease" },
    refusals: ["locked", "upgrade-conflict", "token-mismatch", "limit-mismatch", "lease-lost"],
    serve: async (api, { path, body }) => answer(await api.changeMode({ ...path, ...body }), leaseAnswer),
  }),
  transfer: operation("transfer", {
    summary: "Hand the hold to a new leaseId, with a new token",
    body: "TransferRequest",
    answers: { 200: "Lease" },
    refusals: ["locked", "key-full", "lease-lost", "lease-over", "lease-reused", "lease-id-time"],
    serve: async (api, { path, body: to }) => answer(await api.transfer({ ...path, to }), leaseAnswer),
  }),
  wait: operation("wait", {
    summary:
      "Free the key and wait for a condition under a new leaseId, in one step; then acquire by that id, as any waiter. After a refusal, cancel the new id before you go on: a duplicate of the request could still free the key",
    body: "WaitRequest",
    answers: { 202: "Waiting" },
    refusals: ["not-exclusive", "queue-full", "key-full", "lease-lost", "lease-over", "lease-reused", "lease-id-time"],
    serve: async (api, { path, body: { condition, ...to } }) =>
      answer(await api.waitForCondition({ ...path, condition, to }), waitingAnswer),
  }),
  notify: operation("notify", {
    summary: "Wake the first that waits for the condition, or all of them: each queues for the key",
    body: "NotifyRequest",
    answers: { 200: "Notified" },
    refusals: ["not-exclusive", "lease-lost"],
    serve: async (api, { path, body }) =>
      answer(await api.notify({ ...path, ...body }), ({ how, notified }) => marked(how, { status: 200, body: { notified } })),
  }),

  inspect: operation("inspect", {
    summary: "Who holds the key, and who waits for it",
    answers: { 200: "Inspection", 304: "empty" },
    serve: async (api, { path, ifNoneMatch, waitMs }) =>
      answer(await api.inspect({ ...path, ifNoneMatch, waitMs }), (found) =>
        readAnswer(found.tag, "unchanged" in found ? undefined : found.inspection),
      ),
  }),
  break: operation("break", {
    summary: "End somebody's hold, named by its token",
    body: "BreakRequest",
    answers: { 200: "Break", 202: "Break" },
    refusals: ["other-hold", "not-found"],
    serve: async (api, { path, body }) =>
      answer(await api.breakHold({ ...path, ...body }), ({ breakInMs }) => ({ status: breakInMs > 0 ? 202 : 200, body: { breakInMs } })),
  }),
  list: operation("list", {
    summary: "Held keys, in order; a page may be short, and is the last without a `cursor`",
    query: ListQuery,
    answers: { 200: "List" },
    serve: async (api, { query }) => answer(await api.list(query), plainAnswer),
  }),

  acquireSet: operation("acquireSet", {
    summary: "Acquire all of these keys under one leaseId, or none",
    body: "AcquireSetRequest",
    answers: { 200: "LeaseSet", 201: "LeaseSet" },
    refusals: ["locked", "limit-mismatch", "key-full", "lease-over", "lease-reused", "lease-id-time"],
    serve: async (api, { path, body: { keys = [], locks = keys.map((key) => ({ key })), ...body } }) =>
      answer(await api.acquireSet({ ...path, locks, ...body }), ({ ok: _ok, how, ...set }) =>
        marked(how, { status: how === "granted" ? 201 : 200, body: set }),
      ),
  }),
  renewSet: operation("renewSet", {
    summary: "Extend every lease of the set; refused with the keys that are lost",
    body: "RenewSetRequest",
    answers: { 200: "LeaseSet" },
    refusals: ["lease-lost"],
    serve: async (api, { path, body }) =>
      answer(await api.renewSet({ ...path, ...body }), ({ ok: _ok, how: _renewed, ...set }) => ({ status: 200, body: set })),
  }),
  releaseSet: operation("releaseSet", {
    summary: "Release the set, or cancel one of unknown outcome; always safe to repeat",
    body: "ReleaseSetRequest",
    answers: { 200: "SetStates" },
    serve: async (api, { path, body }) => answer(await api.releaseSet({ ...path, ...body }), plainAnswer),
  }),
  renewMany: operation("renewMany", {
    summary: "The heartbeats of many leases in one request; one result per lease, in the same order",
    body: "RenewalsRequest",
    answers: { 200: "Renewals" },
    serve: async (api, { body: { leases } }) =>
      answer(await api.renewMany({ leases }), ({ results }) => ({
        status: 200,
        body: {
          results: results.map((result, index) => {
            const key = leases[index]?.key ?? "";
            return result.ok ? { status: 200, ...result.lease } : { key, ...toProblem(result, `/v1/locks/${key}`) };
          }),
        },
      })),
  }),

  start: operation("start", {
    summary: "Run the work of an idempotency key, or get its outcome",
    body: "StartRequest",
    answers: { 200: "StartedOrReplayed", 201: "Started" },
    refusals: ["run-in-progress", "attempts-exhausted", "fingerprint-mismatch", "lease-over", "lease-reused", "lease-id-time"],
    serve: async (api, { path, body, waitMs }) =>
      answer(await api.start({ kind, ...path, ...body, waitMs }), (started) => {
        if (started.state !== "running") return { ...plainAnswer(started), headers: REPLAYED };
        const { ok, how, lease, ...run } = started;
        return { ...leaseAnswer({ ok, how, lease }), body: { ...run, ...lease } };
      }),
  }),
  checkRun: operation("checkRun", {
    summary: "Still mine?",
    answers: { 200: "Lease" },
    refusals: ["lease-lost"],
    serve: async (api, { path }) => answer(await api.check({ kind, ...path }), heldOrWaiting),
  }),
  abandonRun: operation("abandonRun", {
    summary: "Cancel a start of unknown outcome: as if it had not been. Work that was begun ends with an outcome instead",
    answers: { 204: "empty" },
    serve: async (api, { path }) => answer(await api.release({ kind, ...path }), endedAnswer),
  }),
  renewRun: operation("renewRun", {
    summary: "Extend the lease of a run, and save how far it got",
    body: "RenewRunRequest",
    answers: { 200: "Lease" },
    refusals: ["lease-lost"],
    serve: async (api, { path, body }) => answer(await api.renew({ kind, ...path, ...body }), leaseAnswer),
  }),
  complete: operation("complete", {
    summary: "Record what came of the work, and end its lease: only while it still holds the run",
    body: "OutcomeRequest",
    maxBytes: LIMITS.outcomeBodyBytes,
    answers: { 200: "Recorded" },
    refusals: ["lease-lost", "outcome-differs"],
    serve: async (api, { path, body: outcome }) =>
      answer(await api.complete({ kind, ...path, outcome }), ({ how }) => marked(how, { status: 200, body: { recorded: true } })),
  }),
  run: operation("run", {
    summary: "What is known of a run",
    answers: { 200: "Run", 304: "empty" },
    refusals: ["not-found"],
    serve: async (api, { path, ifNoneMatch, waitMs }) =>
      answer(await api.run({ ...path, ifNoneMatch, waitMs }), (found) =>
        readAnswer(found.tag, "unchanged" in found ? undefined : found.run),
      ),
  }),
  resetRun: operation("resetRun", {
    summary: "Forget a run that is over or was given up: the next start is a first attempt",
    body: "ResetRunRequest",
    answers: { 200: "Reset" },
    refusals: ["not-found", "run-in-progress", "other-hold"],
    serve: async (api, { path, body }) => answer(await api.resetRun({ ...path, ...body }), () => ({ status: 200, body: { reset: true } })),
  }),
  runs: operation("runs", {
    summary: "Runs in the order of their keys, without their values",
    query: RunListQuery,
    answers: { 200: "RunList" },
    serve: async (api, { query }) => answer(await api.runs(query), plainAnswer),
  }),

  take: operation("take", {
    summary: "Take from every rate of the limit, or from none. A take that is sent twice is charged twice",
    body: "TakeRequest",
    answers: { 200: "Taken" },
    refusals: ["rate-limited", "limit-mismatch"],
    serve: async (api, { path, body }) => answer(await api.take({ ...path, ...body }), plainAnswer),
  }),
  limit: operation("limit", {
    summary: "What is left of a limit, and when it is full again",
    answers: { 200: "Limit" },
    refusals: ["not-found"],
    serve: async (api, { path }) => answer(await api.limit(path), ({ limit }) => ({ status: 200, body: limit })),
  }),
  resetLimit: operation("resetLimit", {
    summary: "Make a limit full: the next take may bring other rates",
    body: "ResetRequest",
    answers: { 200: "Reset" },
    refusals: ["not-found"],
    serve: async (api, { path, body }) =>
      answer(await api.resetLimit({ ...path, ...body }), () => ({ status: 200, body: { reset: true } })),
  }),
  limits: operation("limits", {
    summary: "Limits that are not full, in the order of their names",
    query: LimitListQuery,
    answers: { 200: "LimitList" },
    serve: async (api, { query }) => answer(await api.limits(query), plainAnswer),
  }),

  health: operation("health", {
    summary: "Is the service up; ?deep=1 also reads the table, and ?caller=1 also says as whom it knows the caller",
    query: HealthQuery,
    answers: { 200: "Health" },
    serve: async (api, { query }) => answer(await api.health(query), plainAnswer),
  }),
} satisfies { readonly [Name in Exclude<OperationName, "openapi">]: OperationRow<PathOf<Name>> };
