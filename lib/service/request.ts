/**
 * What every use case goes through: one reading of the clocks before anything is decided, the store
 * asked, the outcome logged, trouble told as a refusal. It knows who calls, and nothing of HTTP.
 */
import type { AnswerTo, Command, Held } from "../core/commands.js";
import type { ErrorCode, Refusal } from "../core/errors.js";
import { refuse } from "../core/errors.js";
import { DEFAULTS } from "../core/limits.js";
import type { LeaseId } from "../core/lease-id.js";
import type { Kind } from "../core/lock-api.js";
import type { Clock } from "../core/time.js";
import type { Address, LockStore } from "../store/lock-store.js";
import { NewerFormat, StoreNotConfigured, StoreUnavailable } from "../store/lock-store.js";
import type { Caller } from "./caller.js";
import { SHARED_NAMESPACE } from "./caller.js";
import type { RequestClocks } from "./clocks.js";
import { refuseSkew } from "./clocks.js";
import type { Log } from "./log.js";
import { eventLine, refusalLine, withoutLeaseIds } from "./log.js";

/** What the service is made of. */
export interface ServiceDeps {
  readonly store: LockStore;
  readonly log: Log;
  /** For the pauses of a request that waits; what is decided is decided by the request's own clocks. */
  readonly clock: Clock;
  /** Clocks further apart than this refuse to decide, in ms. @default 10 000 */
  readonly clockGuardMs?: number;
  /** Whether the caller is told what the store said, which only who owns the store should be. @default false */
  readonly tellsCause?: boolean;
}

/** What an operation adds to its lines in the log. */
export interface Logging {
  /** Why somebody did it, in their words. */
  readonly reason?: string;
  /** A refusal that is not the last word: who gets it logs it, when it is. */
  readonly unlogged?: ErrorCode;
}

/** What is read. */
export interface Look {
  readonly key?: string;
  readonly kind?: Kind | undefined;
  /** False: it is answered also while the table isn't. @default true */
  readonly needsTable?: boolean;
}

/** One caller's requests of one kind of key. */
export interface Requests {
  readonly store: LockStore;
  readonly caller: Caller;
  readonly clocks: RequestClocks;
  readonly clock: Clock;
  /** Decides and logs. Clocks that disagree decide nothing but the end of a lease. */
  readonly apply: <C extends Command>(command: C, kind?: Kind, logging?: Logging) => Promise<AnswerTo<C> | Refusal>;
  /** The same of several keys, all or nothing: an answer for each, or why none could be decided. */
  readonly applyAll: <C extends Command & { readonly leaseId: LeaseId }>(
    commands: readonly C[],
  ) => Promise<readonly (AnswerTo<C> | undefined)[] | Refusal>;
  /** Logs a refusal that was decided here, and passes it on. */
  readonly refused: (request: Parameters<typeof refusalLine>[0], refusal: Refusal, cause?: string) => Refusal;
  /** What reading alone answers; only trouble is logged. */
  readonly look: <T>(request: Look, read: () => Promise<T>) => Promise<T | Refusal>;
}

const HAS_TENANTS = "this table has tenants, each with a namespace of its own";

/** A key that is only ever read: to see whether the table answers, and what its clock says. */
export const HEALTH_KEY = "health";

/** Requests on `caller`'s behalf, by these clocks. */
export function requests(
  { store, log, clock, clockGuardMs = DEFAULTS.clockGuardMs, tellsCause = false }: ServiceDeps,
  caller: Caller,
  clocks: RequestClocks,
): Requests {
  const { namespace } = caller;

  function refused(request: Parameters<typeof refusalLine>[0], refusal: Refusal, cause?: string): Refusal {
    const { earlierMs, laterMs } = clocks();
    // Where the clocks disagree, the later one may be days ahead, and nobody looks for a line there.
    log(refusalLine(request, refusal, caller, refusal.code === "clock-skew" ? earlierMs : laterMs, cause));
    return refusal;
  }

  /** A store that failed, logged with what it said. */
  function failed(request: Parameters<typeof refusalLine>[0], error: unknown): Refusal {
    const refusal = storeRefusal(error);
    const cause = withoutLeaseIds((error as Error).message);
    refused(request, refusal, cause);
    return tellsCause ? { ...refusal, detail: `${refusal.detail}: ${cause}` } : refusal;
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
    clocks,
    clock,
    refused,

    async apply(command, kind = "locks", { reason, unlogged } = {}) {
      const address = { namespace, kind, key: command.key };
      const request = { kind, ...command };
      try {
        const misplaced = await refuseNamespace();
        if (misplaced) return refused(request, misplaced);
        if (clocks.isVague?.()) await store.read(address);
        const before = clocks();
        const skewed = command.type === "release" ? undefined : refuseSkew(before, clockGuardMs);
        if (skewed) return refused(request, skewed);
        const { answer, events } = await store.apply(address, command, clocks);
        for (const event of events) log(eventLine({ kind, key: command.key }, event, caller, before.laterMs, reason));
        if (answer.ok) return aged(answer, clocks().laterMs - before.laterMs);
        return answer.code === unlogged ? answer : refused(request, answer);
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
        if (first && clocks.isVague?.()) await store.read(first);
        const before = clocks();
        const skewed = refuseSkew(before, clockGuardMs);
        if (skewed) return refused(request, skewed);
        const applied = await store.applyAll(
          commands.map((command, index) => ({ address: addresses[index] as Address, command })),
          clocks,
        );
        const movedMs = clocks().laterMs - before.laterMs;
        return applied.map((one, index) => {
          const key = commands[index]?.key ?? "";
          for (const event of one?.events ?? []) log(eventLine({ kind: "locks", key }, event, caller, before.laterMs));
          if (!one) return undefined;
          return one.answer.ok ? aged(one.answer, movedMs) : (refused({ ...request, key }, one.answer) as typeof one.answer);
        });
      } catch (error) {
        return failed(request, error);
      }
    },

    async look({ key = HEALTH_KEY, kind = "locks", needsTable = true }, read) {
      try {
        const misplaced = needsTable ? await refuseNamespace() : undefined;
        if (misplaced) return misplaced;
        if (clocks.isVague?.()) await store.read({ namespace, kind, key });
        return refuseSkew(clocks(), clockGuardMs) ?? (await read());
      } catch (error) {
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
  if (error instanceof StoreNotConfigured) return refuse("not-configured", { definite: error.definite });
  if (error.definite && error.throttled) return refuse("throttled", { retryAfterMs: 500 });
  // A request that the table refused would be refused again in a moment: the caller hears it now.
  return refuse("unavailable", { definite: error.definite, ...(error.definite && { retry: "later" }), retryAfterMs: 500 });
}
