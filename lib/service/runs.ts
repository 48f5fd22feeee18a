/**
 * The operations on runs. A large value is stored before the record refers to it, and only for the lease that holds the
 * run: a zombie's result is not stored. A waiting caller is answered as soon as the record changes. Until then the
 * service only reads the record, and writes nothing.
 */
import { digestOf } from "../core/canonical.js";
import type { Complete, Finished, Held, Renew, Running } from "../core/commands.js";
import { holdOf } from "../core/lock/tombstones.js";
import { type Refusal, refuse } from "../core/errors.js";
import { DEFAULTS, FOREVER_MS, LIMITS } from "../core/limits.js";
import type { CallOptions } from "../core/api/locks.js";
import type { LockRecord, Payload } from "../core/record.js";
import type { OutcomeInput, Replayed, RunApi, RunFound, ServiceApi, Started, StartRequest } from "../core/api/runs.js";
import { isRunning, payloadTtlAtSec, runOf } from "../core/run/run.js";
import { instantOf } from "../core/time.js";
import { freeInMs, runTag, runView } from "../core/lock/views.js";
import type { RequestContext } from "./request-context.js";
import { given } from "../core/members.js";
import { leftMsOf, viewChanged, watch } from "./watch.js";

/** The answer's mark for a result that is not stored. */
const OMITTED = { resultOmitted: true } as const;

/** Makes the operations on runs, and the renewal of their leases. */
// Over 60 lines: a table of the operations.
export function runOperations(context: RequestContext): RunApi & Pick<ServiceApi, "renew"> {
  const { clocks, deps, principal } = context;
  return {
    async start(request, { signal }: CallOptions = {}) {
      const { key, waitMs = 0 } = request;
      const command = { type: "start", principal, ...parametersOf(request) } as const;
      const began = instantOf(deps.clock);
      for (;;) {
        const answer = await context.apply(command, "runs", { deferLog: "run-in-progress" });
        if (answer.ok) return withValues(context, key, answer);
        if (answer.code !== "run-in-progress") return answer;
        const leftMs = leftMsOf(deps, waitMs, began);
        const found = await context.carryOut({ key, kind: "runs" }, async () => {
          const hasEnded = (latest: LockRecord | undefined): boolean => !latest || !isRunning(latest, clocks());
          const record = leftMs > 0 ? await watch(deps, context.addressOf(key, "runs"), leftMs, hasEnded, signal) : undefined;
          return { ok: true as const, record };
        });
        if (!found.ok) return found;
        const { record } = found;
        const isBusy = record && isRunning(record, clocks());
        if (leftMs <= 0 || isBusy)
          return context.refused({ kind: "runs", ...command }, { ...answer, ...(isBusy && { retryAfterMs: freeInMs(record, clocks()) }) });
      }
    },

    resetRun: ({ key, reason, fencingToken }) => context.apply({ type: "reset", key, ...given({ fencingToken }) }, "runs", { reason }),

    async renew({ key, leaseId, leaseMs, checkpoint, sequence }) {
      const command: Renew = { type: "renew", key, leaseId, principal, ...given({ leaseMs }) };
      if (checkpoint === undefined) return lengthened(await context.apply(command, "runs"));
      const stored = await keep(context, "checkpoint", checkpoint, key, leaseId);
      return stored.ok
        ? lengthened(await context.apply({ ...command, checkpoint: { ...stored.payload, ...given({ sequence }) } }, "runs"))
        : stored;

      /** Extends the life of the checkpoint's own item, if the record now outlives it. */
      async function lengthened(answer: Held | Refusal): Promise<Held | Refusal> {
        if (!answer.ok || !answer.outlived) return answer;
        const prolonged = answer.outlived;
        const done = await context.carryOut({ key, kind: "runs" }, async () => {
          await context.store.keepPayload(context.addressOf(key, "runs"), prolonged);
          return { ok: true as const };
        });
        // The lease is renewed even if this fails. The next heartbeat tries again.
        if (done.ok) await context.apply({ ...command, prolonged }, "runs");
        return answer;
      }
    },

    async complete({ key, leaseId, outcome }) {
      const command = { type: "complete", key, leaseId, principal, ...stateOf(outcome) } as const;
      if (outcome.state === "succeeded" && outcome.resultOmitted && outcome.result !== undefined)
        return refuse("invalid-request", { field: "resultOmitted", detail: "resultOmitted: goes without a result" });
      const [field, value] = outcome.state === "failed" ? (["error", outcome.error] as const) : (["result", outcome.result] as const);
      if (value === undefined) return context.apply<Complete>(command, "runs");
      const stored = await keep(context, field, value, key, leaseId);
      return stored.ok ? context.apply<Complete>({ ...command, payload: stored.payload }, "runs") : stored;
    },

    run: ({ key, ...poll }, { signal }: CallOptions = {}) =>
      context.carryOut({ key, kind: "runs" }, async (): Promise<RunFound | Refusal> => {
        const viewOf = (record: LockRecord | undefined) => {
          const run = record && runOf(record, clocks());
          if (!run) return undefined;
          const view = runView(key, record, run, clocks());
          return { tag: runTag(view, run), run, view };
        };
        const found = await viewChanged(context, context.addressOf(key, "runs"), poll, viewOf, signal);
        if (!found) return refuse("not-found", { detail: `Nothing was run under ${key}, or it is forgotten` });
        if ("unchanged" in found) return found;
        const { tag, view, run } = found;
        const { state, checkpoint, outcome } = run;
        const saved = given({ checkpoint: await unpack(context, key, checkpoint) });
        // The error of an earlier attempt says nothing about the present one.
        const isOver = state !== "running" && state !== "interrupted";
        const value = isOver && (await outcomeOf(context, key, state === "succeeded" ? "result" : "error", outcome?.payload));
        return { ok: true, tag, run: { ...view, ...saved, ...value } };
      }),

    runs: ({ state, ...query }) =>
      context.list("runs", query, state !== undefined, (key, record) => {
        const run = runOf(record, clocks());
        const view = run && runView(key, record, run, clocks());
        return state === undefined || view?.state === state ? view : undefined;
      }),
  };
}

/**
 * Makes the payload of a value, or refuses a value that is too large: 413 naming the field. A small one is text in the record. Stores a
 * large one in an item of its own if `leaseId` holds the run. For any other lease, the payload stays without text and is refused later.
 */
async function keep(
  context: RequestContext,
  field: "checkpoint" | "result" | "error",
  value: unknown,
  key: string,
  leaseId: string,
): Promise<{ readonly ok: true; readonly payload: Payload } | Refusal> {
  const text = JSON.stringify(value);
  const bytes = new TextEncoder().encode(text).length;
  const maxBytes = field === "checkpoint" ? LIMITS.checkpointBytes : LIMITS.resultBytes;
  if (bytes > maxBytes) return refuse("too-large", { field, detail: `${field}: is ${bytes} bytes as JSON, of at most ${maxBytes}` });
  const payload = { digest: digestOf(value), bytes };
  return context.carryOut({ key, kind: "runs" }, async () => {
    if (bytes <= LIMITS.inlineBytes) return { ok: true, payload: { ...payload, text } };
    const { store, clocks, principal } = context;
    const address = context.addressOf(key, "runs");
    const record = await store.read(address);
    if (!record?.run || holdOf(record, leaseId)?.principal !== principal) return { ok: true, payload };
    const stored = { ...payload, ttlAtSec: payloadTtlAtSec(record, record.run, clocks()) };
    await store.keepPayload(address, stored, text);
    return { ok: true, payload: stored };
  });
}

/** Returns the value of a run's `payload`; undefined without a payload, or if its item was collected. */
async function unpack(context: RequestContext, key: string, payload: Payload | undefined): Promise<unknown> {
  const text = payload && (payload.text ?? (await context.store.readPayload(context.addressOf(key, "runs"), payload.digest)));
  return text === undefined ? undefined : JSON.parse(text);
}

/**
 * Adds the stored values to the answer. Reading them may fail. The start has happened nevertheless, and the same
 * request sent again returns it.
 */
async function withValues(context: RequestContext, key: string, answer: Running | Finished): Promise<Started | Replayed | Refusal> {
  const whole = await context.carryOut({ key, kind: "runs" }, () => values(context, key, answer));
  return whole.ok ? whole : refuse("unavailable", { definite: false, ...given({ retryAfterMs: whole.retryAfterMs }) });
}

async function values(context: RequestContext, key: string, answer: Running | Finished): Promise<Started | Replayed> {
  if (answer.state === "running") {
    const { checkpoint, outlived, ...rest } = answer;
    if (outlived) await context.store.keepPayload(context.addressOf(key, "runs"), outlived);
    return { ...rest, ...given({ checkpoint: await unpack(context, key, checkpoint) }) };
  }
  const { payload, omitted, ...rest } = answer;
  return { ...rest, ...(await outcomeOf(context, key, answer.state === "failed" ? "error" : "result", payload, omitted)) };
}

/** Returns the stored value as the field `name`; or the mark, if there was one that is gone. */
async function outcomeOf(context: RequestContext, key: string, name: "result" | "error", payload: Payload | undefined, omitted?: true) {
  const value = await unpack(context, key, payload);
  const isGone = omitted ?? (payload !== undefined && value === undefined);
  return { ...given({ [name]: value }), ...(isGone && OMITTED) };
}

function stateOf(outcome: OutcomeInput): Pick<Complete, "state" | "omitted"> {
  if (outcome.state === "failed") return { state: outcome.retryable ? "retry" : "failed" };
  return { state: "succeeded", ...(outcome.resultOmitted && { omitted: true }) };
}

/** Fills in defaults, and adds the hash that distinguishes this start from a different one under the same id. */
function parametersOf(request: StartRequest) {
  const { key, leaseId, leaseMs = DEFAULTS.leaseMs, owner = "", fingerprint = "", maxAttempts = DEFAULTS.maxAttempts } = request;
  const { keepResultMs: requested = DEFAULTS.keepResultMs } = request;
  const keepResultMs = requested === "forever" ? FOREVER_MS : requested;
  const requestHash = digestOf([leaseMs, owner, fingerprint, keepResultMs, maxAttempts]).slice(0, 16);
  return { key, leaseId, leaseMs, owner, fingerprint, keepResultMs, maxAttempts, requestHash };
}
