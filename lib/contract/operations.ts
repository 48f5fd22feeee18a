/**
 * The contract: one row for each operation of the API. A row has the schemas of its request, and how the service is called and its answer
 * put on the wire. The handler and the document are loops over the rows. The routes are in routes.ts; what only the document tells is in
 * document-words.ts.
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
    body: "AcquireRequest",
    answers: { 200: "Lease", 201: "Lease", 202: "Queued" },
    refusals: ["locked", "limit-mismatch", "queue-full", "key-full", "lease-over", "lease-reused", "lease-id-time"],
    serve: async (api, { path, body, waitMs, taskToken }) => {
      const wake = taskToken === undefined ? body.wake : { taskToken };
      return answer(await api.acquire({ ...path, ...body, waitMs, wake }), heldOrWaiting);
    },
  }),
  check: operation("check", {
    answers: { 200: "Lease", 202: "Waiting" },
    refusals: ["lease-lost"],
    serve: async (api, { path }) => answer(await api.check(path), heldOrWaiting),
  }),
  release: operation("release", {
    answers: { 204: "empty" },
    serve: async (api, { path }) => answer(await api.release(path), endedAnswer),
  }),
  renew: operation("renew", {
    body: "RenewRequest",
    answers: { 200: "Lease" },
    refusals: ["key-full", "lease-lost"],
    serve: async (api, { path, body }) => answer(await api.renew({ ...path, ...body }), leaseAnswer),
  }),
  changeMode: operation("changeMode", {
    body: "ModeRequest",
    answers: { 200: "Lease" },
    refusals: ["locked", "upgrade-conflict", "token-mismatch", "limit-mismatch", "lease-lost"],
    serve: async (api, { path, body }) => answer(await api.changeMode({ ...path, ...body }), leaseAnswer),
  }),
  transfer: operation("transfer", {
    body: "TransferRequest",
    answers: { 200: "Lease" },
    refusals: ["locked", "key-full", "lease-lost", "lease-over", "lease-reused", "lease-id-time"],
    serve: async (api, { path, body: to }) => answer(await api.transfer({ ...path, to }), leaseAnswer),
  }),
  wait: operation("wait", {
    body: "WaitRequest",
    answers: { 202: "Waiting" },
    refusals: ["not-exclusive", "queue-full", "key-full", "lease-lost", "lease-over", "lease-reused", "lease-id-time"],
    serve: async (api, { path, body: { condition, ...to } }) =>
      answer(await api.waitForCondition({ ...path, condition, to }), waitingAnswer),
  }),
  notify: operation("notify", {
    body: "NotifyRequest",
    answers: { 200: "Notified" },
    refusals: ["not-exclusive", "lease-lost"],
    serve: async (api, { path, body }) =>
      answer(await api.notify({ ...path, ...body }), ({ how, notified }) => marked(how, { status: 200, body: { notified } })),
  }),

  inspect: operation("inspect", {
    answers: { 200: "Inspection", 304: "empty" },
    serve: async (api, { path, ifNoneMatch, waitMs }) =>
      answer(await api.inspect({ ...path, ifNoneMatch, waitMs }), (found) =>
        readAnswer(found.tag, "unchanged" in found ? undefined : found.inspection),
      ),
  }),
  break: operation("break", {
    body: "BreakRequest",
    answers: { 200: "Break", 202: "Break" },
    refusals: ["other-hold", "not-found"],
    serve: async (api, { path, body }) =>
      answer(await api.breakHold({ ...path, ...body }), ({ breakInMs }) => ({ status: breakInMs > 0 ? 202 : 200, body: { breakInMs } })),
  }),
  list: operation("list", {
    query: ListQuery,
    answers: { 200: "List" },
    serve: async (api, { query }) => answer(await api.list(query), plainAnswer),
  }),

  acquireSet: operation("acquireSet", {
    body: "AcquireSetRequest",
    answers: { 200: "LeaseSet", 201: "LeaseSet" },
    refusals: ["locked", "limit-mismatch", "key-full", "lease-over", "lease-reused", "lease-id-time"],
    serve: async (api, { path, body: { keys = [], locks = keys.map((key) => ({ key })), ...body } }) =>
      answer(await api.acquireSet({ ...path, locks, ...body }), ({ ok: _ok, how, ...set }) =>
        marked(how, { status: how === "granted" ? 201 : 200, body: set }),
      ),
  }),
  renewSet: operation("renewSet", {
    body: "RenewSetRequest",
    answers: { 200: "LeaseSet" },
    refusals: ["lease-lost"],
    serve: async (api, { path, body }) =>
      answer(await api.renewSet({ ...path, ...body }), ({ ok: _ok, how: _renewed, ...set }) => ({ status: 200, body: set })),
  }),
  releaseSet: operation("releaseSet", {
    body: "ReleaseSetRequest",
    answers: { 200: "SetStates" },
    serve: async (api, { path, body }) => answer(await api.releaseSet({ ...path, ...body }), plainAnswer),
  }),
  renewMany: operation("renewMany", {
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
    answers: { 200: "Lease" },
    refusals: ["lease-lost"],
    serve: async (api, { path }) => answer(await api.check({ kind, ...path }), heldOrWaiting),
  }),
  abandonRun: operation("abandonRun", {
    answers: { 204: "empty" },
    serve: async (api, { path }) => answer(await api.release({ kind, ...path }), endedAnswer),
  }),
  renewRun: operation("renewRun", {
    body: "RenewRunRequest",
    answers: { 200: "Lease" },
    refusals: ["lease-lost"],
    serve: async (api, { path, body }) => answer(await api.renew({ kind, ...path, ...body }), leaseAnswer),
  }),
  complete: operation("complete", {
    body: "OutcomeRequest",
    maxBytes: LIMITS.outcomeBodyBytes,
    answers: { 200: "Recorded" },
    refusals: ["lease-lost", "outcome-differs"],
    serve: async (api, { path, body: outcome }) =>
      answer(await api.complete({ kind, ...path, outcome }), ({ how }) => marked(how, { status: 200, body: { recorded: true } })),
  }),
  run: operation("run", {
    answers: { 200: "Run", 304: "empty" },
    refusals: ["not-found"],
    serve: async (api, { path, ifNoneMatch, waitMs }) =>
      answer(await api.run({ ...path, ifNoneMatch, waitMs }), (found) =>
        readAnswer(found.tag, "unchanged" in found ? undefined : found.run),
      ),
  }),
  resetRun: operation("resetRun", {
    body: "ResetRunRequest",
    answers: { 200: "Reset" },
    refusals: ["not-found", "run-in-progress", "other-hold"],
    serve: async (api, { path, body }) => answer(await api.resetRun({ ...path, ...body }), () => ({ status: 200, body: { reset: true } })),
  }),
  runs: operation("runs", {
    query: RunListQuery,
    answers: { 200: "RunList" },
    serve: async (api, { query }) => answer(await api.runs(query), plainAnswer),
  }),

  take: operation("take", {
    body: "TakeRequest",
    answers: { 200: "Taken" },
    refusals: ["rate-limited", "limit-mismatch"],
    serve: async (api, { path, body }) => answer(await api.take({ ...path, ...body }), plainAnswer),
  }),
  shutLimit: operation("shutLimit", {
    body: "ShutRequest",
    answers: { 200: "Taken" },
    refusals: ["limit-mismatch"],
    serve: async (api, { path, body }) => answer(await api.shutLimit({ ...path, ...body }), plainAnswer),
  }),
  limit: operation("limit", {
    answers: { 200: "Limit" },
    refusals: ["not-found"],
    serve: async (api, { path }) => answer(await api.limit(path), ({ limit }) => ({ status: 200, body: limit })),
  }),
  resetLimit: operation("resetLimit", {
    body: "ResetRequest",
    answers: { 200: "Reset" },
    refusals: ["not-found"],
    serve: async (api, { path, body }) =>
      answer(await api.resetLimit({ ...path, ...body }), () => ({ status: 200, body: { reset: true } })),
  }),
  limits: operation("limits", {
    query: LimitListQuery,
    answers: { 200: "LimitList" },
    serve: async (api, { query }) => answer(await api.limits(query), plainAnswer),
  }),

  health: operation("health", {
    query: HealthQuery,
    answers: { 200: "Health" },
    serve: async (api, { query }) => answer(await api.health(query), plainAnswer),
  }),
} satisfies { readonly [Name in Exclude<OperationName, "openapi">]: OperationRow<PathOf<Name>> };
