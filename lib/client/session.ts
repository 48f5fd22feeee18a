/**
 * The state and helpers that every operation of a client shares: keys with the client's prefix, options within the invocation's time,
 * replies turned into live leases, and the event listener.
 */
import { isA } from "../core/brand.js";
import type { Held, LeaseState } from "../core/commands.js";
import { prefixed } from "../core/key.js";
import { type Named, pick } from "../core/members.js";
import type { HolderView, Refusal } from "../core/errors.js";
import type { CallOptions, Kind } from "../core/api/locks.js";
import type { ServiceApi } from "../core/api/runs.js";
import * as DEFAULTS from "../core/request-defaults.js";
import { type Instant, elapsedMs, instantOf } from "../core/time.js";
import { type AcquireDeps, type AcquireParams, CANCEL_HOLDS_MS, tryOnce } from "./acquire/acquire.js";
import type { StopSignal } from "./transport/lazy-abort.js";
import { type Answered, boundsFor, retry, SHORT_ATTEMPT_MS } from "./transport/retry.js";
import type { ClientOptions, LockClientEvent } from "./client-options.js";
import { errorOf, InvalidRequestError, LockError, LockLostError, LockTimeoutError, LockUnavailableError, timeoutOf } from "./errors.js";
import { type InvocationContext, capBudgetMs, capLeaseMs, capWaitMs, firstAnswerMs } from "./invocation.js";
import { type KeepAliveDeps, KeepAlive } from "./lease/keep-alive.js";
import { type LeaseKind, HeldLease } from "./lease/lease.js";
import type { SetAsLease } from "./lease/lease-set.js";
import { tellQuietly } from "./tell.js";
import { type Checks, type LeaseOptions, type WhenUnavailable, checkKey, checkOptions, metaOf, PARAMETERS } from "./options.js";
import type { Registry } from "./registry.js";
import { type KeyUse, seemsHeldAround } from "./wrap/surrounding.js";

/** The budget of an operation other than an acquire. Each attempt gets half of it. */
export const CALL_BUDGET_MS = 10_000;

/** The time for which the holders are reused that were read for a wait that timed out. */
const SEEN_LASTS_MS = 1000;

/** The default wait of a client whose default lease is long, in leases. */
const WAITED_LEASES = DEFAULTS.waitMs / DEFAULTS.leaseMs;

/** The reasons for which this side ends a lease on purpose. */
const GIVEN_UP: ReadonlySet<LockLostError["reason"] | undefined> = new Set(["released", "transferred", "closed"]);

/** The release states of a hold that was lost before. After a grant, `unknown` and `never` count as lost, unless the release was repeated. */
const LOST: ReadonlySet<LeaseState | undefined> = new Set(["lost", "unknown", "never"]);

/** The sentences that a timeout adds if this side holds the key. */
const OWN = "; this client holds it itself, and a scope makes it reentrant";
const AROUND =
  "; a call around this one seems to hold it: pass its lease on, or use a scope; or the async context is another caller's, as in a pool: bind the job to its own";

/** The kind of the lease, the service that renews and releases it, and its handoff. */
interface AdoptOptions extends Pick<LeaseKind, "handoff"> {
  readonly kind?: Kind;
  readonly api?: ServiceApi;
}

/** The member through which this package's wrappers reach the session of a client. Other packages can't name it. */
export const SESSION = Symbol("session");

/** A client, as this package's wrappers see it. */
export interface WithSession {
  readonly [SESSION]?: Session;
}

/** Returns the session of a client that is the option `name`. @throws InvalidRequestError unless it is a client of this package */
export function sessionOf(name: string, client: unknown): Session {
  const session = (client as WithSession | undefined)?.[SESSION];
  if (session) return session;
  throw new InvalidRequestError(`${name}: must be a client, as createLockClient() of this copy of the package makes it`, name);
}

/** Returns an answer that says nothing if the service has nothing of that name. A 404 from another server only means that the URL is wrong. */
export function orNothing<A extends { readonly ok: true }>(answer: A | Refusal): A | { readonly ok: true } | Refusal {
  return !answer.ok && answer.code === "not-found" && answer.field !== "url" ? { ok: true } : answer;
}

/** The shared state of a client, or of a view of it for one invocation. */
export class Session {
  /** Told of each heartbeat when it begins, if a wrapper measures them. */
  onBeat?: KeepAliveDeps["onBeat"];

  /** The holders of each key seen in the last second; an empty list while a read is in progress. */
  readonly #seen = new Map<string, readonly HolderView[]>();

  /** The dependencies that the leases of this session share. */
  readonly #keeping: KeepAliveDeps;

  constructor(
    readonly deps: AcquireDeps,
    readonly options: ClientOptions,
    readonly registry: Registry,
    readonly context: InvocationContext | undefined,
    /** The scope that makes acquires reentrant, in a view for one request. */
    readonly scope?: string,
  ) {
    this.#keeping = {
      ...deps,
      onEnd: (lease) => this.#ended(lease),
      endHold: (lease) => this.endHold(lease),
      run: (signal, wait) => registry.run(signal, wait),
      scope,
      onBeat: (lease, beat) => this.onBeat?.(lease, beat),
      onRenewFailed: (lease, error) => this.emit("renew-failed", lease, error),
      // A run ends only by its own outcome: if it were given up here, work that had begun would count as never started.
      giveBack: (lease) => void (lease.kind === "locks" && this.released(lease)),
    };
  }

  /** Returns the key with the client's prefix. A value that isn't text is refused, so there is never a lock called `undefined`. */
  keyOf(name: unknown): string {
    checkKey(name);
    return prefixed(this.options.prefix ?? "", name);
  }

  /** Returns the acquire parameters with defaults filled in. @throws LockError if the client is closed. */
  acquireParams(key: string, options: Omit<LeaseOptions, "heartbeat" | "maxHoldMs">): Named<Omit<AcquireParams, "signal">> {
    if (this.registry.closedBy) throw closedError();
    const { leaseMs = this.options.leaseMs ?? DEFAULTS.leaseMs, owner = this.options.owner ?? "", meta } = options;
    const chosen = { key, leaseMs: capLeaseMs(leaseMs, this.context), owner, meta: metaOf(meta), scope: this.scope };
    return { ...pick(options, PARAMETERS), ...chosen };
  }

  /**
   * Returns the time to wait, within the invocation's. By default it outlasts a holder of the client's default length that crashed: half of a
   * long lease is more than its margin and a poll.
   */
  waitMsOf({ waitMs }: { readonly waitMs?: number | undefined }): number {
    const { options } = this;
    const byDefault = options.waitMs ?? Math.max(DEFAULTS.waitMs, Math.ceil((options.leaseMs ?? 0) * WAITED_LEASES));
    return capWaitMs(waitMs ?? byDefault, this.context);
  }

  /** Asks once for the key of `params`, or for `set`. Returns the lease, or null if others hold it. */
  async tryOnce(params: AcquireParams, options: LeaseOptions & Pick<AcquireParams, "signal">, set?: SetAsLease): Promise<HeldLease | null> {
    const api = set?.api ?? this.deps.api;
    return this.registry.run(options.signal, async (signal) => {
      const within = boundsFor(params.leaseMs, Math.min(params.leaseMs, firstAnswerMs(0, this.context)));
      const answered = await tryOnce({ ...params, signal }, within, { ...this.deps, api }, set?.acquire);
      const { answer } = answered;
      return answer.ok ? this.adopt({ ...answered, answer }, options, { api }) : null;
    });
  }

  /** Turns the reply into a live lease. A lease that can't be kept is released, and no caller ever gets it. */
  async adopt(
    answered: Answered<Held>,
    options: LeaseOptions,
    { kind = "locks", api = this.deps.api, handoff }: AdoptOptions = {},
  ): Promise<HeldLease> {
    const isLock = kind === "locks" && api === this.deps.api;
    const deps = isLock ? this.#keeping : { ...this.#keeping, api, renewalBatcher: undefined };
    const lease = new HeldLease(answered.answer.lease, answered.sentAt, { kind, handoff }, deps);
    new KeepAlive(lease, options, deps);
    if (this.registry.closedBy || !lease.isHeld()) await this.released(lease);
    if (this.registry.closedBy) throw closedError();
    if (isWithoutTime(lease)) throw withoutTimeError(lease.key);
    lease.assertHeld();
    this.registry.add(lease);
    this.emit("acquired", lease);
    return lease;
  }

  /** Releases the lease. A release without a response is reported as an event only: the lease ends by itself. */
  async released(lease: HeldLease): Promise<LeaseState | undefined> {
    try {
      return await lease.release();
    } catch (error) {
      this.emit("release-failed", lease, error);
      return undefined;
    }
  }

  /**
   * Releases the lease of finished work. @throws LockLostError unless it was held until then, or the work itself released or transferred
   * it.
   */
  async endHold(lease: HeldLease): Promise<void> {
    const { wasLost } = lease;
    const state = await this.released(lease);
    if (wasLost) lease.assertHeld();
    // In a crowd the key forgets the id before the release is repeated. The lease was held when it was sent first.
    if (LOST.has(state) && !(state === "unknown" && lease.wasReleaseRepeated))
      throw new LockLostError(`${lease.key}: was taken or broken while the work ran`, "broken");
  }

  /** Carries out an operation that needs no lease, within its budget, or until `signal` aborts. @throws LockError for a refusal. */
  async ask<A extends { readonly ok: true }>(
    what: string,
    attempt: (options: CallOptions) => Promise<A | Refusal>,
    signal?: StopSignal,
    mostMs = CALL_BUDGET_MS,
  ): Promise<A> {
    if (this.registry.closedBy) throw closedError();
    const budgetMs = capBudgetMs(mostMs, this.context);
    const { answer } = await retry(attempt, { attemptMs: Math.max(SHORT_ATTEMPT_MS, budgetMs / 2), budgetMs, signal }, this.deps);
    if (!answer.ok) throw errorOf(answer, what);
    return answer;
  }

  /** Asks for a page of what begins with the client's prefix and `options.prefix`. @throws LockError for a refusal */
  async page<Options extends { readonly prefix?: string | undefined }, Page extends { readonly ok: true }>(
    what: string,
    options: Options,
    checks: Checks,
    ask: (query: Options & { readonly prefix: string }, call: CallOptions) => Promise<Page | Refusal>,
  ): Promise<Omit<Page, "ok">> {
    checkOptions(what, options, checks);
    const { prefix: own = "" } = this.options;
    const { prefix: given = "" } = options;
    const prefix = given.startsWith(own) ? given : own + given;
    const { ok: _ok, ...page } = await this.ask(what, (call) => ask({ ...options, prefix }, call));
    return page;
  }

  /**
   * Tells the listener if `use` seems to be held by a call around this one, without which it may wait for itself. Within a scope it doesn't.
   * Returns true if it seems so.
   */
  mayWaitForItself(use: KeyUse): boolean {
    const may = (this.scope === undefined || use.kind === "runs") && seemsHeldAround(use, this.deps.api);
    if (may) this.tell({ type: "self-wait", key: use.key });
    return may;
  }

  /** Carries out a wait for these keys. A timeout says so if one of them seems to be held around it, or is held by this client. */
  async awaited<T>(uses: readonly KeyUse[], wait: () => Promise<T>): Promise<T> {
    const isAround = uses.filter((use) => this.mayWaitForItself(use)).length > 0;
    try {
      return await wait();
    } catch (error) {
      const hint = isAround ? AROUND : uses.some(({ key }) => this.registry.has(key)) ? OWN : "";
      if (!isA(error, LockTimeoutError)) throw error;
      throw new LockTimeoutError(error.message + hint, Object.assign({}, error, { key: uses.map(({ key }) => key).join(" ") }));
    }
  }

  /** Throws the error that ended a wait for `key`; a timeout gets the holders, if its cancel left time to look, and the time waited. */
  async refuseWait(error: unknown, key: string, began: Instant, waitMs: number): Promise<never> {
    if (!isA(error, LockTimeoutError)) throw error;
    const waitedMs = elapsedMs(began, instantOf(this.deps.clock));
    const lookMs = CANCEL_HOLDS_MS - Math.max(0, waitedMs - waitMs);
    const holders = error.holders.length > 0 ? error.holders : await this.#holdersOf(key, lookMs);
    const { position, retryAfterMs } = error;
    throw timeoutOf(`acquire ${key}`, { holders, position, retryAfterMs }, waitedMs);
  }

  /**
   * Returns the key's holders, if there is time to read them. If many callers time out together, the first reads them and the others reuse
   * the result for a second.
   */
  async #holdersOf(key: string, lookMs: number): Promise<readonly HolderView[]> {
    const seen = this.#seen.get(key);
    if (seen || lookMs <= 0) return seen ?? [];
    this.#seen.set(key, []);
    const found = await this.ask("inspect", (call) => this.deps.api.inspect({ key }, call), undefined, lookMs).catch(() => undefined);
    const holders = found && "inspection" in found ? found.inspection.holders : [];
    this.#seen.set(key, holders);
    this.deps.clock.inBackground(SEEN_LASTS_MS, () => this.#seen.delete(key));
    return holders;
  }

  /** Reports an event of a lease to the client's listener. */
  emit(type: LockClientEvent["type"], lease: HeldLease, error?: unknown): void {
    this.tell({ type, key: lease.key, fencingToken: lease.fencingToken, ...(error !== undefined && { error }) });
  }

  /**
   * Runs `work` under what `acquire` gets. If the locks can't be reached, `alone` runs instead, or nothing, as the option says. Such a call
   * isn't held up again by an outage that this client met in the last seconds (outage.ts).
   * @param key the key, or the keys of a set, for the listener
   */
  async unlessUnavailable<A, T>(
    { whenUnavailable: when, timeoutMs, ...wait }: WhenUnavailable & { readonly waitMs?: number | undefined; readonly timeoutMs?: number },
    key: string,
    acquire: () => Promise<A>,
    alone: (nothing: never) => Promise<T> | T,
    work: (acquired: A) => Promise<T>,
  ): Promise<T> {
    const isSkipped = when === "skip";
    const mayDoWithout = isSkipped || when === "proceed";
    let acquired: A;
    try {
      acquired = await (mayDoWithout ? this.deps.outage.ask(timeoutMs ?? this.#patienceMs(wait), acquire) : acquire());
    } catch (error) {
      const isOutage = isA(error, LockUnavailableError);
      if (!isOutage || !mayDoWithout) {
        // A caller that gave up was not refused.
        if (isA(error, LockError)) this.tell({ type: isOutage ? "unavailable" : "refused", key, error });
        throw error;
      }
      this.tell({ type: isSkipped ? "skipped" : "proceeded", key, error });
      return (isSkipped ? undefined : alone(undefined as never)) as T;
    }
    return work(acquired);
  }

  /** Returns the time after which an acquire without an answer ends. */
  #patienceMs(options: { readonly waitMs?: number | undefined }): number {
    const waitMs = this.waitMsOf(options);
    return Math.max(waitMs, firstAnswerMs(waitMs, this.context));
  }

  /** Reports an event to the client's listener. */
  tell(event: LockClientEvent): void {
    void tellQuietly(this.options.onEvent, event);
  }

  #ended(lease: HeldLease): void {
    if (!this.registry.delete(lease)) return;
    if (GIVEN_UP.has(lease.endReason)) this.emit("released", lease);
    else this.emit("lost", lease, lease.ending.reason);
  }
}

/** True if the invocation ended the lease, which nobody had yet. */
function isWithoutTime({ signal: { reason } }: HeldLease): boolean {
  return isA(reason, LockLostError) && reason.reason === "invocation-ends";
}

function withoutTimeError(key: string): LockError {
  const what = `${key}: nothing is held, because the Lambda invocation has no time left for it`;
  return new LockError(what, { code: "invocation-ends", definite: true, retry: "later" });
}

/** Returns the error of a closed client. */
export function closedError(): LockError {
  return new LockError("the client is closed", { code: "closed", definite: true, retry: "never" });
}
