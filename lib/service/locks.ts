/** The operations on locks, and on every lease: they fill in defaults and send one request each. */
import { digestOf } from "../core/canonical.js";
import { breaksOf } from "../core/lock/break.js";
import { check } from "../core/lock/check.js";
import type { Acquire } from "../core/commands.js";
import { type Refusal, refuse } from "../core/errors.js";
import { DETAILS } from "../core/details.js";
import { DEFAULTS, LIMITS } from "../core/limits.js";
import type { AcquireRequest, LockApi } from "../core/api/locks.js";
import type { LockRecord } from "../core/record.js";
import { VERSION } from "../core/version.js";
import { endedLeases, inspection, inspectionTag, lapsedHolds, withinBytes } from "../core/lock/views.js";
import { type RequestContext, HEALTH_KEY } from "./request-context.js";
import { type Named, given, pick } from "../core/members.js";
import { acquireWithAgent } from "./acquire-with-agent.js";
import { viewChanged } from "./watch.js";

/** 96 bits: enough to distinguish everything that one key ever sees, without revealing the input. */
const DIGEST_CHARS = 16;

/** Makes the operations on locks. */
// Over 60 lines: a table of the operations.
export function lockOperations(context: RequestContext): LockApi {
  const { store, clocks, caller, principal } = context;
  const { namespace } = caller;
  return {
    async acquire({ kind: _locks, waitMs, wake, tie, ...request }) {
      const parameters = parametersOf(request);
      const refusal = refuseParameters(parameters);
      if (refusal) return refusal;
      const command: Acquire = { type: "acquire", principal, ...parameters, ...(waitMs !== undefined && { wait: true }) };
      return wake || tie ? acquireWithAgent(context, command, { waitMs, wake, tie }) : context.apply(command);
    },
    changeMode: ({ kind: _locks, ...request }) => context.apply({ type: "mode", principal, ...request }),
    renew: ({ key, leaseId, leaseMs, meta }) => context.apply({ type: "renew", key, leaseId, principal, ...given({ leaseMs, meta }) }),
    release: ({ kind, key, leaseId }) => context.apply({ type: "release", key, leaseId, principal }, kind),
    waitForCondition: ({ key, leaseId, condition, to }) => {
      const back: Acquire = { type: "acquire", principal, ...parametersOf({ ...to, key }) };
      return context.apply({ type: "wait", key, leaseId, principal, condition, to: back });
    },
    notify: ({ key, leaseId, condition, sequence, all = false }) =>
      context.apply({ type: "notify", key, leaseId, principal, condition, all, ...given({ sequence }) }),
    transfer: ({ key, leaseId, to: { leaseId: toLeaseId, owner: toOwner, meta: toMeta, leaseMs } }) =>
      context.apply({ type: "transfer", key, leaseId, principal, toLeaseId, ...given({ toOwner, toMeta, leaseMs }) }),
    breakHold: ({ key, fencingToken, reason, drainMs }) =>
      context.apply({ type: "break", key, fencingToken, ...given({ drainMs }) }, "locks", { reason }),

    check: ({ kind = "locks", key, leaseId }) =>
      context.carryOut({ key, kind }, async () =>
        check(await store.read(context.addressOf(key, kind)), { key, leaseId, principal }, clocks()),
      ),
    inspect: ({ key, ...poll }, { signal } = {}) => {
      const viewOf = (record: LockRecord | undefined) => {
        // By one reading, so that no hold is both among the holders and over, or neither.
        const reading = clocks();
        const found = inspection(key, record, reading);
        const recent = record ? endedLeases(record, reading) : [];
        const lapsed = record ? lapsedHolds(record, reading) : [];
        const ifBroken = record ? breaksOf(record, reading) : [];
        const last = { ...(recent.length > 0 && { recent }), ...(lapsed.length > 0 && { lapsed }) };
        const all = { ...found, ...last, ...(ifBroken.length > 0 && { ifBroken }) };
        return { ok: true, tag: inspectionTag(found), inspection: all } as const;
      };
      return context.carryOut({ key }, () => viewChanged(context, context.addressOf(key), poll, viewOf, signal));
    },
    async list({ owner, ...query }) {
      const viewOf = (key: string, record: LockRecord) => {
        const view = inspection(key, record, clocks());
        return view.holders.some((holder) => owner === undefined || holder.owner === owner) ? view : undefined;
      };
      const page = await context.list("locks", query, owner !== undefined, viewOf, (views) => withinBytes(views, LIMITS.pageBytes));
      if (!page.ok) return page;
      const { ok, ...found } = page;
      return { ok, namespace, ...found };
    },
    health({ deep, caller: callerFlag }) {
      const needsCaller = callerFlag === "1";
      const needsTable = deep === "1" || needsCaller;
      return context.carryOut({ needsTable }, async () => {
        if (needsTable) await store.read(context.addressOf(HEALTH_KEY));
        const up = { ok: true, status: "ok", version: VERSION, serverTimeMs: clocks().latestMs } as const;
        if (!needsCaller) return up;
        const doors = await store.doors();
        const identity = { namespace, principal: caller.principal, ...store.parameters };
        return { ...up, caller: identity, ...(doors.length > 0 && { doors }) };
      });
    },
  };
}

/** Fills in defaults, and adds the hash that distinguishes this acquire from a different one under the same id. */
export function parametersOf(request: AcquireRequest): Omit<Acquire, "type" | "principal"> {
  const { key, leaseId, leaseMs = DEFAULTS.leaseMs, mode = "exclusive", limit = 1, permits = 1, priority = 0 } = request;
  const { owner = "", meta, ...later } = pick(request, DETAILS);
  const scope = request.scope === undefined ? undefined : shortDigestOf(request.scope);
  // Stored with the hold, and compared by other versions: what came later is appended only where it is given, with its name.
  const requestHash = shortDigestOf([leaseMs, owner, mode, limit, permits, scope, meta, priority, ...Object.entries(given(later))]);
  type Chosen = Named<Omit<Acquire, "type" | "principal" | "wait" | "sleepMs">>;
  return given<Chosen>({ ...later, key, leaseId, leaseMs, owner, mode, limit, permits, priority, requestHash, scope, meta });
}

function shortDigestOf(value: unknown): string {
  return digestOf(value).slice(0, DIGEST_CHARS);
}

/** Refuses parameters that no key could grant. */
function refuseParameters({ mode, limit, permits }: Pick<Acquire, "mode" | "limit" | "permits">): Refusal | undefined {
  if (permits > limit) return refuse("invalid-request", { field: "permits", detail: `permits: must be at most the limit of ${limit}` });
  if (mode === "shared" && limit > 1)
    return refuse("invalid-request", { field: "limit", detail: "limit: a shared lease takes no permits; leave it out" });
  return undefined;
}
