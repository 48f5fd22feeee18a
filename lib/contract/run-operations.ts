/** The rows of runs. A run's lease is renewed, checked and released like a lock's, with its kind. */
import { LIMITS } from "../core/limits.js";
import { answer, endedAnswer, heldOrWaiting, leaseAnswer, readAnswer, marked, operation, plainAnswer, REPLAYED } from "./operation.js";
import { RunListQuery } from "./requests.js";

const kind = "runs";

export const RUN_OPERATIONS = {
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
};
