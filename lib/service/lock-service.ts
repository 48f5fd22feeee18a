/**
 * The use cases: defaults filled in, one clock reading per request, the store asked, the outcome told
 * and logged. It knows who calls, and nothing of HTTP.
 */
import { createHash } from "node:crypto";
import { check } from "../core/check.js";
import type { AnswerTo, Command, Held } from "../core/commands.js";
import type { Refusal } from "../core/errors.js";
import { refuse } from "../core/errors.js";
import { DEFAULTS } from "../core/limits.js";
import type { AcquireRequest, LockApi } from "../core/lock-api.js";
import { VERSION } from "../core/version.js";
import { inspection, inspectionTag } from "../core/views.js";
import type { LockStore } from "../store/lock-store.js";
import { NewerFormat, StoreUnavailable } from "../store/lock-store.js";
import type { Caller } from "./caller.js";
import type { RequestClocks } from "./clocks.js";
import { refuseSkew } from "./clocks.js";
import type { Log } from "./log.js";
import { eventLine, refusalLine } from "./log.js";

/** What the service is made of. */
export interface LockServiceDeps {
  readonly store: LockStore;
  readonly log: Log;
  /** Clocks further apart than this refuse to decide, in ms. @default 10 000 */
  readonly clockGuardMs?: number;
}

/** A key that is only ever read: to see whether the table answers, and what its clock says. */
const HEALTH_KEY = "health";

/** The operations on `caller`'s behalf, by these clocks. */
export function lockService(
  { store, log, clockGuardMs = DEFAULTS.clockGuardMs }: LockServiceDeps,
  caller: Caller,
  clocks: RequestClocks,
): LockApi {
  const { namespace, principal } = caller;

  /** Decides and logs. Clocks that disagree decide nothing but the end of a lease. */
  async function apply<C extends Command>(command: C, reason?: string): Promise<AnswerTo<C> | Refusal> {
    try {
      if (clocks.isVague?.()) await store.read({ namespace, key: command.key });
      const before = clocks();
      const skewed = command.type === "release" ? undefined : refuseSkew(before, clockGuardMs);
      if (skewed) return refused(command, skewed);
      const { answer, events } = await store.apply({ namespace, key: command.key }, command, clocks);
      for (const event of events) log(eventLine(command.key, event, caller, before.laterMs, reason));
      return answer.ok ? aged(answer, clocks().laterMs - before.laterMs) : refused(command, answer);
    } catch (error) {
      return refused(command, storeRefusal(error), (error as Error).message);
    }
  }

  function refused(request: Parameters<typeof refusalLine>[0], refusal: Refusal, cause?: string): Refusal {
    log(refusalLine(request, refusal, caller, clocks().laterMs, cause));
    return refusal;
  }

  /** What reading alone answers; only trouble is logged. */
  async function look<T>(request: { readonly key?: string }, read: () => Promise<T>): Promise<T | Refusal> {
    try {
      if (clocks.isVague?.()) await store.read({ namespace, key: request.key ?? HEALTH_KEY });
      return refuseSkew(clocks(), clockGuardMs) ?? (await read());
    } catch (error) {
      return refused({ key: "", ...request }, storeRefusal(error), (error as Error).message);
    }
  }

  return {
    acquire: (request) => apply({ type: "acquire", principal, ...parametersOf(request) }),
    renew: ({ key, leaseId, leaseMs, meta }) => apply({ type: "renew", key, leaseId, principal, ...given({ leaseMs, meta }) }),
    release: ({ key, leaseId }) => apply({ type: "release", key, leaseId, principal }),
    transfer: ({ key, leaseId, to }) =>
      apply({ type: "transfer", key, leaseId, principal, toLeaseId: to.leaseId, ...given({ toOwner: to.owner, leaseMs: to.leaseMs }) }),
    breakHold: ({ key, fencingToken, reason, drainMs }) => apply({ type: "break", key, fencingToken, ...given({ drainMs }) }, reason),
    check: ({ key, leaseId }) =>
      look({ key }, async () => check(await store.read({ namespace, key }), { key, leaseId, principal }, clocks())),
    inspect: ({ key, ifNoneMatch }) =>
      look({ key }, async () => {
        const found = inspection(key, await store.read({ namespace, key }), clocks());
        const tag = inspectionTag(found);
        return tag === ifNoneMatch ? { ok: true, tag, unchanged: true } : { ok: true, tag, inspection: found };
      }),
    list: ({ prefix = "", owner, max = DEFAULTS.listMax, cursor = "" }) =>
      look({}, async () => {
        const page = await store.list({ namespace, prefix, after: cursor, max });
        const items = page.items
          .map(({ key, record }) => inspection(key, record, clocks()))
          .filter(({ holders }) => holders.some((holder) => owner === undefined || holder.owner === owner));
        return { ok: true, items, ...(page.next !== undefined && { cursor: page.next }) };
      }),
    health: ({ deep = false }) =>
      look({}, async () => {
        if (deep) await store.read({ namespace, key: HEALTH_KEY });
        return { ok: true, status: "ok", version: VERSION, serverTimeMs: clocks().laterMs };
      }),
  };
}

/** Defaults filled in, and the digest by which the same acquire is told from another under its id. */
function parametersOf({ key, leaseId, leaseMs = DEFAULTS.leaseMs, owner = "", meta }: AcquireRequest) {
  const params = createHash("sha256")
    .update(JSON.stringify([leaseMs, owner, sorted(meta)]))
    .digest("base64url")
    .slice(0, 16);
  return { key, leaseId, leaseMs, owner, params, ...given({ meta }) };
}

/** The same JSON for the same value, however its members were ordered. Bounded by the body's limit. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, member]) => [name, sorted(member)]),
  );
}

/** Only the members that are there. */
function given<T extends object>(members: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };
}

/** A lease's remaining time less what the later clock moved on while it was written (direct mode). */
function aged<A extends object>(answer: A, movedMs: number): A {
  if (movedMs <= 0 || !("lease" in answer)) return answer;
  const { lease } = answer as Pick<Held, "lease">;
  return { ...answer, lease: { ...lease, remainingMs: Math.max(0, lease.remainingMs - movedMs) } };
}

/** A store that failed, as the caller is told: whether it may have happened, and nothing of the inside. */
function storeRefusal(error: unknown): Refusal {
  if (error instanceof NewerFormat) return refuse("newer-format", { retryAfterMs: 1000 });
  if (!(error instanceof StoreUnavailable)) throw error;
  if (error.definite && error.throttled) return refuse("throttled", { retryAfterMs: 500 });
  return refuse("unavailable", { definite: error.definite, retryAfterMs: 500 });
}
