/**
 * What every operation of a client shares: keys with the client's prefix, options within the invocation's
 * time, replies made into living leases, and the one who is told of all that happens to them.
 */
import type { Held, LeaseState } from "../core/commands.js";
import type { HolderView, Refusal } from "../core/errors.js";
import type { CallOptions, Kind } from "../core/api/locks.js";
import type { ServiceApi } from "../core/api/runs.js";
import { DEFAULTS } from "../core/limits.js";
import type { Instant } from "../core/time.js";
import { elapsedMs, instantOf } from "../core/time.js";
import type { AcquireDeps, AcquireParams } from "./acquire/acquire.js";
import type { Answered } from "./transport/retry.js";
import { retry } from "./transport/retry.js";
import type { ClientOptions, LockClientEvent } from "./client-options.js";
import { errorOf, LockError, LockLostError, LockTimeoutError, timeoutOf } from "./errors.js";
import type { InvocationContext } from "./invocation.js";
import { capBudgetMs, capLeaseMs } from "./invocation.js";
import { keepAlive } from "./lease/keep-alive.js";
import type { LeaseDeps } from "./lease/lease.js";
import { HeldLease } from "./lease/lease.js";
import { tellQuietly } from "./tell.js";
import type { LeaseOptions } from "./options.js";
import { checkKey } from "./options.js";
import type { Registry } from "./registry.js";

/** One operation other than acquiring is given this long, and each of its attempts half of it. */
export const CALL_BUDGET_MS = 10_000;

/** The look at who holds a key that was waited for in vain may take this long, and is good for so long. */
const LOOK_MS = 250;
const SEEN_LASTS_MS = 1000;

/** Ends of a lease that its own side meant. */
const GIVEN_UP: ReadonlySet<LockLostError["reason"]> = new Set(["released", "transferred", "closed"]);

/** What a release says of a hold that did not last until then. Who was granted treats `unknown` and `never` as lost. */
const LOST: ReadonlySet<LeaseState> = new Set(["lost", "unknown", "never"]);

/** What a lease is of, what it is renewed and released by, and who has it next. */
interface AdoptOptions extends Pick<LeaseDeps, "handoff"> {
  readonly kind?: Kind;
  readonly api?: ServiceApi;
}

/** What a client, or a view of it for one invocation, has in common with all that it hands out. */
export class Session {
  /** By key, the holders that were seen in the last second; none while somebody looks. */
  readonly #seen = new Map<string, readonly HolderView[]>();

  constructor(
    readonly deps: AcquireDeps,
    readonly options: ClientOptions,
    readonly registry: Registry,
    readonly context: InvocationContext | undefined,
    /** What makes acquires reentrant, in a view for one request. */
    readonly scope?: string,
  ) {}

  /** The key with the client's prefix. What isn't text isn't made into it: never a lock called `undefined`. */
  keyOf(name: unknown): string {
    const key = typeof name === "string" ? (this.options.prefix ?? "") + name : name;
    checkKey(key);
    return key;
  }

  /** What is wanted, defaults filled in. @throws LockError when the client is closed. */
  acquireParams(key: string, options: Omit<LeaseOptions, "heartbeat" | "maxHoldMs">): AcquireParams {
    if (this.registry.isClosed) throw closedError();
    const { leaseMs = DEFAULTS.leaseMs, owner = this.options.owner ?? "", meta, mode, limit, permits, priority } = options;
    return { key, leaseMs: capLeaseMs(leaseMs, this.context), owner, meta, mode, limit, permits, priority, scope: this.scope };
  }

  /** The reply as a living lease. One that can't be kept is given back, and nobody ever held it. */
  async adopt(
    answered: Answered<Held>,
    { heartbeat = true, maxHoldMs }: LeaseOptions,
    { kind = "locks", api = this.deps.api, handoff }: AdoptOptions = {},
  ): Promise<HeldLease> {
    const isLock = kind === "locks" && api === this.deps.api;
    const deps = {
      ...this.deps,
      api,
      renewalBatcher: isLock ? this.deps.renewalBatcher : undefined,
      kind,
      handoff,
      onEnd: (ended: HeldLease) => this.#ended(ended),
      endHold: (ended: HeldLease) => this.endHold(ended),
    };
    const lease = new HeldLease(answered.answer.lease, answered.sentAt, deps);
    const keeping = {
      heartbeat,
      maxHoldMs,
      context: this.context,
      onRenewFailed: (error: unknown) => this.emit("renew-failed", lease, error),
      // Of a run only its own outcome is an end: given up here, work that was begun would count as never started.
      giveBack: () => void (kind === "locks" && this.released(lease)),
    };
    keepAlive(lease, keeping, deps);
    if (this.registry.isClosed || !lease.isHeld()) await this.released(lease);
    if (this.registry.isClosed) throw closedError();
    lease.assertHeld();
    this.registry.add(lease);
    this.emit("acquired", lease);
    return lease;
  }

  /** Releases; a release that nobody answered is told and costs nothing: the lease ends by itself. */
  async released(lease: HeldLease): Promise<LeaseState | undefined> {
    try {
      return await lease.release();
    } catch (error) {
      this.emit("release-failed", lease, error);
      return undefined;
    }
  }

  /** Releases what was worked under. @throws LockLostError unless it was held until then, or released or handed over by the work itself. */
  async endHold(lease: HeldLease): Promise<void> {
    const { wasLost } = lease;
    const state = await this.released(lease);
    if (wasLost) lease.assertHeld();
    if (state !== undefined && LOST.has(state)) throw new LockLostError(`${lease.key}: was taken or broken while the work ran`, "broken");
  }

  /** One operation that needs no lease, within its budget. @throws LockError for a refusal. */
  async ask<A extends { readonly ok: true }>(
    what: string,
    attempt: (options: CallOptions) => Promise<A | Refusal>,
    mostMs = CALL_BUDGET_MS,
  ): Promise<A> {
    const budgetMs = capBudgetMs(mostMs, this.context);
    const { answer } = await retry(attempt, { attemptMs: budgetMs / 2, budgetMs }, this.deps);
    if (!answer.ok) throw errorOf(answer, what);
    return answer;
  }

  /** Throws what ended a wait for `key` that began then: a time-out with the holders, and the time that this caller waited. */
  async refuseWait(error: unknown, key: string, began: Instant): Promise<never> {
    if (!(error instanceof LockTimeoutError)) throw error;
    const waitedMs = elapsedMs(began, instantOf(this.deps.clock));
    const holders = error.holders.length > 0 ? error.holders : await this.#holdersOf(key);
    const { position, retryAfterMs } = error;
    const hint = this.registry.has(key) ? "; this client holds it itself, and a scope makes it reentrant" : "";
    throw timeoutOf(`acquire ${key}`, { holders, position, retryAfterMs }, waitedMs, hint);
  }

  /** The key's holders. Of many callers whose time is over one looks; the others go by what was seen in the last second. */
  async #holdersOf(key: string): Promise<readonly HolderView[]> {
    const seen = this.#seen.get(key);
    if (seen) return seen;
    this.#seen.set(key, []);
    const found = await this.ask("inspect", (attempt) => this.deps.api.inspect({ key }, attempt), LOOK_MS).catch(() => undefined);
    const holders = found && "inspection" in found ? found.inspection.holders : [];
    this.#seen.set(key, holders);
    this.deps.clock.inBackground(SEEN_LASTS_MS, () => this.#seen.delete(key));
    return holders;
  }

  /** Tells the client's listener. */
  emit(type: LockClientEvent["type"], lease: HeldLease, error?: unknown): void {
    this.tell({ type, key: lease.key, fencingToken: lease.fencingToken, ...(error !== undefined && { error }) });
  }

  /** The same of something that is no lease's. */
  tell(event: LockClientEvent): void {
    void tellQuietly(this.options.onEvent, event);
  }

  #ended(lease: HeldLease): void {
    if (!this.registry.delete(lease)) return;
    const reason: unknown = lease.signal.reason;
    const wasReleased = reason instanceof LockLostError && GIVEN_UP.has(reason.reason);
    this.emit(wasReleased ? "released" : "lost", lease, wasReleased ? undefined : reason);
  }
}

/** What a client says that was closed. */
export function closedError(): LockError {
  return new LockError("the client is closed", { code: "closed", definite: true, retry: "never" });
}
