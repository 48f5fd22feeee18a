/**
 * The common part of the calls of a client, or of a view of it for one invocation or scope: its keys, its defaults, its listener, and the
 * requests that need no lease.
 */
import type { CallOptions, Via } from "../../core/api/locks.js";
import type { Refusal } from "../../core/errors.js";
import { prefixed } from "../../core/key.js";
import { type Named, pick } from "../../core/members.js";
import * as DEFAULTS from "../../core/request-defaults.js";
import { type AcquireParams, type AskDeps, tryOnce } from "../ask/fresh-id.js";
import type { RefusedTakes } from "../ask/refused-takes.js";
import type { Holds } from "../hold/holds.js";
import type { HeldLease } from "../hold/lease.js";
import type { SetAsLease } from "../hold/lease-set.js";
import { type Registry, closedError } from "../hold/registry.js";
import { type Checks, checkOptions, metaOf } from "../wire/checks.js";
import { errorOf, InvalidRequestError, readErrorOf } from "../wire/errors.js";
import { type LockClientEvent, emitQuietly } from "../wire/events.js";
import { type InvocationContext, capBudgetMs, capLeaseMs, capWaitMs, firstAnswerMs } from "../wire/invocation.js";
import type { Outage } from "../wire/outage.js";
import { type RetryBounds, boundsFor, retry, SHORT_ATTEMPT_MS } from "../wire/retry.js";
import type { ClientOptions } from "./client-options.js";
import { type LeaseOptions, checkKey, checkProgress, PARAMETERS } from "./options.js";

/** The budget of an operation other than an acquire. Each attempt gets half of it. */
export const CALL_BUDGET_MS = 10_000;

/** The default wait of a client whose default lease is long, in leases. */
const WAITED_LEASES = DEFAULTS.waitMs / DEFAULTS.leaseMs;

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

/** The bounds of an operation that needs no lease; `mostMs` is for all of its attempts. */
interface Bounds extends Pick<RetryBounds, "signal" | "once"> {
  readonly mostMs?: number | undefined;
  /** True for what work says that has begun: it is sent while the client closes, which waits for it. @default false */
  readonly ofWork?: boolean | undefined;
}

/** The dependencies of the calls, besides the leases. */
export interface CallDeps extends AskDeps {
  readonly outage: Outage;
  /** The takes of limits that were refused lately. */
  readonly refusedTakes: RefusedTakes;
  /** The way to the service, for telemetry. @default HTTP */
  readonly transport?: "dynamodb" | "memory";
  /** Chooses between the ways of `api`, if it has two. */
  readonly use?: ((via: Via) => Promise<void>) | undefined;
}

/** A client, or a view of it for one invocation or scope. */
export class Session {
  constructor(
    readonly deps: CallDeps,
    readonly options: ClientOptions,
    readonly registry: Registry,
    readonly holds: Holds,
    /** The scope that makes acquires reentrant, in a view for one request. */
    readonly scope?: string,
  ) {}

  /** The invocation that bounds every call, if there is one. */
  get context(): InvocationContext | undefined {
    return this.deps.context;
  }

  /** Returns the key with the client's prefix. A value that isn't text is refused, so there is never a lock called `undefined`. */
  keyOf(name: unknown): string {
    checkKey(name);
    return prefixed(this.options.prefix ?? "", name);
  }

  /**
   * Returns the acquire parameters with defaults filled in.
   * @throws LockError if the client is closed; InvalidRequestError if `progressMs` doesn't fit the lease.
   */
  acquireParams(key: string, options: Omit<LeaseOptions, "maxHoldMs">): Named<Omit<AcquireParams, "signal">> {
    if (this.registry.closedBy) throw closedError();
    const { leaseMs = this.options.leaseMs ?? DEFAULTS.leaseMs, owner = this.options.owner ?? "", meta } = options;
    checkProgress(options, leaseMs);
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
      return answer.ok ? this.holds.adopt({ ...answered, answer }, options, { api }) : null;
    });
  }

  /** Carries out an operation that needs no lease, within its bounds. @throws LockError for a refusal, and if the client is closed */
  async carryOut<A extends { readonly ok: true }>(
    what: string,
    attempt: (options: CallOptions) => Promise<A | Refusal>,
    bounds: Omit<Bounds, "once"> = {},
  ): Promise<A> {
    const answer = await this.#answer(attempt, bounds);
    if (!answer.ok) throw errorOf(answer, what);
    return answer;
  }

  /** Carries out an operation that only reads, within its budget. @throws LockError for a refusal, always definite */
  async read<A extends { readonly ok: true }>(
    what: string,
    attempt: (options: CallOptions) => Promise<A | Refusal>,
    mostMs?: number,
  ): Promise<A> {
    const answer = await this.#answer(attempt, { mostMs, once: this.options.retryReads === false });
    if (!answer.ok) throw readErrorOf(answer, what);
    return answer;
  }

  async #answer<A extends { readonly ok: true }>(
    attempt: (options: CallOptions) => Promise<A | Refusal>,
    { signal, once = false, mostMs = CALL_BUDGET_MS, ofWork = false }: Bounds,
  ): Promise<A | Refusal> {
    if (this.registry.closedBy && !ofWork) throw closedError();
    const budgetMs = capBudgetMs(mostMs, this.context);
    const attemptMs = once ? budgetMs : Math.max(SHORT_ATTEMPT_MS, budgetMs / 2);
    const answered = retry(attempt, { attemptMs, budgetMs, signal, once }, this.deps);
    if (ofWork) this.registry.track(answered);
    return (await answered).answer;
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
    const { prefix: requested = "" } = options;
    const prefix = requested.startsWith(own) ? requested : own + requested;
    const { ok: _ok, ...page } = await this.read(what, (call) => ask({ ...options, prefix }, call));
    return page;
  }

  emit(event: LockClientEvent): void {
    void emitQuietly(this.options.onEvent, event);
  }
}
