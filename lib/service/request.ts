/**
 * What every use case goes through: one reading of the clocks before anything is decided, the store
 * asked, the outcome logged, trouble told as a refusal. It knows who calls, and nothing of HTTP.
 */
import type { AnswerTo, Command } from "../core/commands.js";
import type { ErrorCode, Refusal } from "../core/errors.js";
import { refuse } from "../core/errors.js";
import { isSkewed } from "../core/lock/expiry.js";
import { LIMITS } from "../core/limits.js";
import type { LeaseId } from "../core/lease-id.js";
import type { Kind } from "../core/api/locks.js";
import type { Clock } from "../core/time.js";
import type { Address, LockStore, ReadClocks } from "../store/port.js";
import { NewerFormat, StoreNotConfigured, StoreUnavailable } from "../store/port.js";
import type { Caller } from "./caller.js";
import { digestOfPrincipal, SHARED_NAMESPACE } from "./caller.js";
import type { RequestClocks } from "./clocks.js";
import { ClockSkew, guarded } from "./clocks.js";
import type { Log } from "./log.js";
import { eventLine, refusalLine, withoutLeaseIds } from "./log.js";

/** What the service is made of. */
export interface ServiceDeps {
  readonly store: LockStore;
  readonly log: Log;
  /** For the pauses of a request that waits; what is decided is decided by the request's own clocks. */
  readonly clock: Clock;
  /**
   * For how long a request that waits may be held, in ms, from 0 to 5 000; 0 answers it at once with when to come again.
   * Whatever serves it is occupied meanwhile. @default 5 000
   */
  readonly serverWaitMs?: number;
  /** Whether the caller is told what the store said, which only who owns the store should be. @default false */
  readonly exposeCause?: boolean;
}

/** What an operation adds to its lines in the log. */
export interface Logging {
  /** Why somebody did it, in their words. */
  readonly reason?: string;
  /** A refusal that is not the last word: who gets it logs it, when it is. */
  readonly deferLog?: ErrorCode;
}

/** What is read. */
export interface ReadRequest {
  readonly key?: string;
  readonly kind?: Kind | undefined;
  /** False: it is answered also while the table isn't. @default true */
  readonly needsTable?: boolean;
}

/** One caller's requests of one kind of key. */
export interface Requests {
  readonly store: LockStore;
  readonly caller: Caller;
  /** The caller's principal, as commands and records have it. */
  readonly principal: string;
  /** The request's clocks, which throw {@link ClockSkew} where they disagree: whatever is decided or told rests on a reading that was guarded. */
  readonly clocks: ReadClocks;
  readonly clock: Clock;
  /** For how long a request may be held, in ms. */
  readonly serverWaitMs: number;
  /** Decides and logs. Clocks that disagree decide nothing but the end of a lease. */
  readonly apply: <C extends Command>(command: C, kind?: Kind, logging?: Logging) => Promise<AnswerTo<C> | Refusal>;
  /** The same of several keys, all or nothing: an answer for each, or why none could be decided. */
  readonly applyAll: <C extends Command & { readonly leaseId: LeaseId }>(
    commands: readonly C[],
  ) => Promise<readonly (AnswerTo<C> | undefined)[] | Refusal>;
  /** Logs a refusal that was decided here, and passes it on. */
  readonly refused: (request: Parameters<typeof refusalLine>[0], refusal: Refusal, cause?: string) => Refusal;
  /** What reading alone answers; only trouble is logged. */
  readonly read: <T>(request: ReadRequest, read: () => Promise<T>) => Promise<T | Refusal>;
}

const HAS_TENANTS = "this table has tenants, each with a namespace of its own";

/** A key that is only ever read: to see whether the table answers, and what its clock says. */
export const HEALTH_KEY = "health";

/** Requests on `caller`'s behalf, by these clocks. */
export function requests(
  { store, log, clock, serverWaitMs = LIMITS.serverWaitMs, exposeCause = false }: ServiceDeps,
  caller: Caller,
  unguarded: RequestClocks,
): Requests {
  const { namespace } = caller;
  const clocks = guarded(unguarded);

  /** The time that a line in the log has: where the clocks disagree, the later one may be days ahead, and nobody looks for a line there. */
  function logTimeMs(): number {
    const reading = unguarded();
    return isSkewed(reading) ? reading.earliestMs : reading.latestMs;
  }

  function refused(request: Parameters<typeof refusalLine>[0], refusal: Refusal, cause?: string): Refusal {
    log(refusalLine(request, refusal, caller, logTimeMs(), cause));
    return refusal;
  }

  /** A store that failed, logged with what it said; or clocks that disagree. */
  function failed(request: Parameters<typeof refusalLine>[0], error: unknown): Refusal {
    if (error instanceof ClockSkew) return refused(request, error.refusal);
    const refusal = storeRefusal(error);
    const cause = withoutLeaseIds((error as Error).message);
    refused(request, refusal, cause);
    return exposeCause ? { ...refusal, detail: `${refusal.detail}: ${cause}` } : refusal;
  }

  /**
   * Two clients of a table exclude each other only if all callers share one namespace, or none of them does. The
   * table says which; reading that is also the look by which a client straight on the table learns the table's clock.
   */
  async function refuseNamespace(): Promise<Refusal | undefined> {
    const mine = namespace === SHARED_NAMESPACE ? "shared" : "tenants";
    const recorded = await store.tenancy(mine);
    if (recorded === mine) return undefined;
    const rule = recorded === "shared" ? `all callers of this table share the namespace "${SHARED_NAMESPACE}"` : HAS_TENANTS;
    return refuse("not-configured", { detail: `namespace: "${namespace}" can't be right: ${rule}` });
  }

  return {
    store,
    caller,
    principal: digestOfPrincipal(caller.principal),
    clocks,
    clock,
    serverWaitMs,
    refused,

    async apply(command, kind = "locks", { reason, deferLog } = {}) {
      const address = { namespace, kind, key: command.key };
      const request = { kind, ...command };
      try {
        const misplaced = await refuseNamespace();
        if (misplaced) return refused(request, misplaced);
        if (unguarded.isStale?.()) await store.read(address);
        const atMs = logTimeMs();
        const { answer, events } = await store.apply(address, command, command.type === "release" ? unguarded : clocks);
        for (const event of events) log(eventLine({ kind, key: command.key }, event, caller, atMs, reason));
        if (answer.ok) return answer;
        return answer.code === deferLog ? answer : refused(request, answer);
      } catch (error) {
        return failed(request, error);
      }
    },

    async applyAll(commands) {
      const addresses = commands.map(({ key }) => ({ namespace, kind: "locks", key }) as const);
      const [first] = addresses;
      const request = { kind: "locks", key: "", ...(commands[0] && { leaseId: commands[0].leaseId }) } as const;
      try {
        const misplaced = await refuseNamespace();
        if (misplaced) return refused(request, misplaced);
        if (first && unguarded.isStale?.()) await store.read(first);
        const { latestMs } = clocks();
        const applied = await store.applyAll(
          commands.map((command, index) => ({ address: addresses[index] as Address, command })),
          clocks,
        );
        return applied.map((one, index) => {
          const key = commands[index]?.key ?? "";
          for (const event of one?.events ?? []) log(eventLine({ kind: "locks", key }, event, caller, latestMs));
          if (!one) return undefined;
          return one.answer.ok ? one.answer : (refused({ ...request, key }, one.answer) as typeof one.answer);
        });
      } catch (error) {
        return failed(request, error);
      }
    },

    async read({ key = HEALTH_KEY, kind = "locks", needsTable = true }, read) {
      try {
        const misplaced = needsTable ? await refuseNamespace() : undefined;
        if (misplaced) return misplaced;
        if (unguarded.isStale?.()) await store.read({ namespace, kind, key });
        clocks();
        return await read();
      } catch (error) {
        if (error instanceof ClockSkew) return error.refusal;
        return failed({ kind, key: key === HEALTH_KEY ? "" : key }, error);
      }
    },
  };
}

/** Only the members that are there. */
export function given<T extends object>(members: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };
}

/** A store that failed, as the caller is told: whether it may have happened, and nothing of the inside. */
function storeRefusal(error: unknown): Refusal {
  if (error instanceof NewerFormat) return refuse("newer-format", { retryAfterMs: 1000 });
  if (!(error instanceof StoreUnavailable)) throw error;
  if (error instanceof StoreNotConfigured) return refuse("not-configured", { definite: error.definite });
  if (error.definite && error.throttled) return refuse("throttled", { retryAfterMs: 500 });
  // A request that the table refused would be refused again in a moment: the caller hears it now.
  return refuse("unavailable", { definite: error.definite, ...(error.definite && { retry: "later" }), retryAfterMs: 500 });
}
