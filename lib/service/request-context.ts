/**
 * The path of every request: read the clocks, call the store, log the outcome, and convert failures to refusals. It
 * knows the caller, and nothing of HTTP.
 */
import { isA } from "../core/brand.js";
import type { Acquire, AnswerTo, Command } from "../core/commands.js";
import { type ErrorCode, type Refusal, refuse } from "../core/errors.js";
import { isSkewed } from "../core/lock/expiry.js";
import { DEFAULTS, LIMITS } from "../core/limits.js";
import type { Kind, PageRequest } from "../core/api/locks.js";
import { given } from "../core/members.js";
import type { Take } from "../core/rate.js";
import type { LockRecord } from "../core/record.js";
import type { Clock } from "../core/time.js";
import type { Address, LockStore, ReadClocks, SleeperStore } from "../store/port.js";
import { KeyContended, StoreNotConfigured, StoreUnavailable, UnreadableRecord } from "../store/port.js";
import { type Caller, digestOfPrincipal, SHARED_NAMESPACE } from "./caller.js";
import { type RequestClocks, UnfitClocks, guarded, known } from "./clocks.js";
import { type Log, eventLine, NO_LOG, printableMessage, refusalLine, resetLine, shutLine, takeLine } from "./log.js";

/** The parts of the service. */
export interface ServiceDeps {
  readonly store: LockStore;
  readonly log: Log;
  /** For the pauses of a waiting request. Decisions use the request's own clocks. */
  readonly clock: Clock;
  /**
   * The longest that the service may hold the start of a run or a look that waits for a change, in ms, from 0 to 5 000. With 0, it
   * answers at once. A held request occupies its function or process. @default 5 000
   */
  readonly serverWaitMs?: number;
  /** The sleepers and tied leases. @default none: the service has no agent that looks after them, so it refuses such a request */
  readonly sleepers?: Pick<SleeperStore, "put">;
  /** True to include the store's own message in an answer, which only the owner of the store should see. @default false */
  readonly exposeCause?: boolean;
}

/** Options for an operation's lines in the log. */
export interface Logging {
  /** The operator's reason, in their words. */
  readonly reason?: string;
  /** A refusal that this operation does not log. Its caller logs it when it becomes the final answer. */
  readonly deferLog?: ErrorCode;
}

/** A request that changes no lease. */
export interface OtherRequest {
  readonly key?: string;
  readonly kind?: Kind | "limits" | undefined;
  readonly take?: Take;
  /** False if it is answered even while the table isn't available. @default true */
  readonly needsTable?: boolean;
}

const HAS_TENANTS = "this table has tenants, each with a namespace of its own";

/** A key that is only ever read: to check that the table answers, and to read its clock. */
export const HEALTH_KEY = "health";

/** A request as a line of the log names it. */
type Logged = Parameters<typeof refusalLine>[0] & { readonly type?: Command["type"] };

/** The requests of one caller, by the clocks of one request. */
export class RequestContext {
  readonly deps: ServiceDeps;
  readonly store: LockStore;
  readonly caller: Caller;
  /** The caller's principal, in the form of commands and records. */
  readonly principal: string;
  /** The request's clocks, which throw {@link UnfitClocks} if one is unknown or they disagree. So every decision and answer uses a checked reading. */
  readonly clocks: ReadClocks;
  readonly #unguarded: RequestClocks;

  constructor(deps: ServiceDeps, caller: Caller, clocks: RequestClocks) {
    this.deps = deps;
    this.store = deps.store;
    this.caller = caller;
    this.principal = digestOfPrincipal(caller.principal);
    this.clocks = guarded(clocks);
    this.#unguarded = clocks;
  }

  /** Returns where a key of the caller is stored. */
  addressOf(key: string, kind: Kind = "locks"): Address {
    return { namespace: this.caller.namespace, kind, key };
  }

  /** Decides a command and logs it. If the clocks disagree, only the end of a lease is decided. */
  async apply<C extends Command>(command: C, kind: Kind = "locks", { reason, deferLog }: Logging = {}): Promise<AnswerTo<C> | Refusal> {
    const address = this.addressOf(command.key, kind);
    const request = { kind, ...command };
    try {
      const misplaced = await this.#prepare(address);
      if (misplaced) return this.refused(request, misplaced);
      const atMs = this.#logTimeMs();
      const { answer, events } = await this.store.apply(
        address,
        command,
        command.type === "release" ? known(this.#unguarded) : this.clocks,
      );
      if (this.deps.log !== NO_LOG) for (const event of events) this.deps.log(eventLine(address, event, this.caller, atMs, reason));
      return answer.ok || answer.code === deferLog ? answer : this.refused(request, answer);
    } catch (error) {
      return this.#failed(request, error);
    }
  }

  /** Acquires several keys, all or nothing. Returns an answer for each, or the reason why none could be decided. */
  async acquireAll(commands: readonly Acquire[]): Promise<readonly (AnswerTo<Acquire> | undefined)[] | Refusal> {
    const all = commands.map((command) => ({ address: this.addressOf(command.key), command }));
    const request = { kind: "locks", key: "", ...(commands[0] && { leaseId: commands[0].leaseId }) } as const;
    try {
      const misplaced = await this.#prepare(all[0]?.address);
      if (misplaced) return this.refused(request, misplaced);
      const { latestMs } = this.clocks();
      const applied = await this.store.applyAll(all, this.clocks);
      return all.map(({ address }, index) => {
        const { answer, events = [] } = applied[index] ?? {};
        for (const event of events) this.deps.log(eventLine(address, event, this.caller, latestMs));
        return !answer || answer.ok ? answer : this.refused({ ...request, key: address.key }, answer);
      });
    } catch (error) {
      return this.#failed(request, error);
    }
  }

  /** Carries out a request that changes no lease: a read, or a take of a limit. Logs why it could not be. */
  async carryOut<T>(
    { key = HEALTH_KEY, kind = "locks", needsTable = true, take }: OtherRequest,
    task: () => Promise<T>,
  ): Promise<T | Refusal> {
    const request = { kind, key: key === HEALTH_KEY ? "" : key, ...given({ take }) };
    try {
      const misplaced = await this.#prepare(this.addressOf(key, kind === "runs" ? kind : "locks"), needsTable);
      if (misplaced) return this.refused(request, misplaced);
      this.clocks();
      return await task();
    } catch (error) {
      return this.#failed(request, error);
    }
  }

  /** Answers a page of the caller's keys, without those that `viewOf` leaves out: if it `isFiltered`, it is chosen from more keys. */
  list<View extends { readonly key: string }>(
    kind: Kind,
    { prefix = "", max = DEFAULTS.listMax, cursor: after = "" }: PageRequest,
    isFiltered: boolean,
    viewOf: (key: string, record: LockRecord) => View | undefined,
    fit = (views: readonly View[]): readonly View[] => views,
  ): Promise<{ readonly ok: true; readonly items: readonly View[]; readonly cursor?: string } | Refusal> {
    return this.carryOut({ kind }, async () => {
      const { namespace } = this.caller;
      const page = await this.store.list({ namespace, kind, prefix, after, max: isFiltered ? LIMITS.filteredMax : max });
      const views = page.items.map(({ key, record }) => viewOf(key, record)).filter((view) => view !== undefined);
      const items = fit(views.slice(0, max));
      const cursor = items.length < views.length ? items.at(-1)?.key : page.next;
      return { ok: true as const, items, ...given({ cursor }) };
    });
  }

  logTake(request: Logged, startInMs: number): void {
    if (this.deps.log !== NO_LOG) this.deps.log(takeLine(request, this.caller, this.#logTimeMs(), startInMs));
  }

  logShut(request: Logged, forMs: number, reason: string): void {
    if (this.deps.log !== NO_LOG) this.deps.log(shutLine(request, this.caller, this.#logTimeMs(), { forMs, reason }));
  }

  logReset(request: Logged, reason: string): void {
    if (this.deps.log !== NO_LOG) this.deps.log(resetLine(request, this.caller, this.#logTimeMs(), reason));
  }

  /** Logs a refusal that was decided here, and returns it. */
  refused(request: Logged, refusal: Refusal, cause?: string): Refusal {
    if (this.deps.log !== NO_LOG) this.deps.log(refusalLine(request, refusal, this.caller, this.#logTimeMs(), cause));
    return refusal;
  }

  /** Converts an error to a refusal: a failure of the store, which is logged with its message, or unfit clocks. */
  #failed(request: Logged, error: unknown): Refusal {
    if (isA(error, UnfitClocks)) return this.refused(request, error.refusal);
    const refusal = storeRefusal(error, HOLDERS.has(request.type));
    const cause = printableMessage((error as Error).message);
    this.refused(request, refusal, cause);
    return this.deps.exposeCause && !isA(error, UnreadableRecord) ? { ...refusal, detail: `${refusal.detail}: ${cause}` } : refusal;
  }

  /** Returns the time for a line in the log. If the clocks disagree, the latest may be days ahead, where nobody would look for the line. */
  #logTimeMs(): number {
    const reading = this.#unguarded();
    if (!reading) return this.deps.clock.wallMs();
    return isSkewed(reading) ? reading.earliestMs : reading.latestMs;
  }

  /**
   * Refuses a namespace that contradicts the table's tenancy, if the request `needsTable`. Two clients of a table exclude each other only if
   * all callers share one namespace, or none of them does. Else reads `address` if the clocks are stale: a read shows them the table's.
   */
  async #prepare(address: Address | undefined, needsTable = true): Promise<Refusal | undefined> {
    const { namespace } = this.caller;
    const own = namespace === SHARED_NAMESPACE ? "shared" : "tenants";
    const recorded = needsTable ? await this.store.tenancy(own) : own;
    if (recorded !== own) {
      const rule = recorded === "shared" ? `all callers of this table share the namespace "${SHARED_NAMESPACE}"` : HAS_TENANTS;
      return refuse("not-configured", { detail: `namespace: "${namespace}" can't be right: ${rule}` });
    }
    if (address && this.#unguarded.isStale?.()) await this.store.read(address);
    return undefined;
  }
}

const HOLDERS: ReadonlySet<Command["type"] | undefined> = new Set(["renew", "release", "complete"]);
/** The pause before a request that was throttled comes again, in ms. A holder's is shorter, so that many waiters don't cost it its lease. */
const AFTER_THROTTLE_MS = { holder: 50, other: 500 };

/** Returns the caller's refusal for a failed store: if the operation may have happened, and no internal details. */
function storeRefusal(error: unknown, isHolders: boolean): Refusal {
  if (isA(error, UnreadableRecord)) {
    const { code, message: detail, definite } = error;
    const again = code === "newer-format" ? { retryAfterMs: 1000 } : {};
    return refuse(code, { detail, ...again, ...(!definite && { definite, retry: "same" }) });
  }
  if (!isA(error, StoreUnavailable)) throw error;
  if (isA(error, StoreNotConfigured))
    return refuse("not-configured", { definite: error.definite, ...(error.isAskedAgain && { retry: "same" }) });
  if (isA(error, KeyContended)) return refuse("contended", { retryAfterMs: 500 });
  if (error.definite && error.throttled)
    return refuse("throttled", { retryAfterMs: isHolders ? AFTER_THROTTLE_MS.holder : AFTER_THROTTLE_MS.other });
  // The table refused this request and would refuse an immediate retry, so the caller gets the refusal now.
  return refuse("unavailable", { definite: error.definite, ...(error.definite && { retry: "later" }), retryAfterMs: 500 });
}
