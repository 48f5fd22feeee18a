/**
 * One transport that holds two: the service over HTTP, and the table directly. The client above doesn't know which of them carries out a
 * request. That is safe because both decide on one record: a request that is repeated on the other way has the same leaseId, and a lease
 * answers to the same principal on both.
 *
 * 1. The service tells the caller's identity: its namespace, its principal, and the parameters of the records. The table is used under it.
 * 2. Before the table is used, a lease that the service granted, of a lock, a run or a set, must be found there. For a client that only takes
 *    from limits, a take of its own must (decision 064). Otherwise failover is refused.
 * 3. A breaker (breaker.ts) chooses the way of new requests. An attempt that failed is repeated on the other way.
 *
 * Only silence, `unavailable` and `internal` are failures of the service. No other answer says that it can't be reached, and neither does a
 * kept connection that the other side had closed.
 */
import { isA } from "../../core/brand.js";
import type { Refusal } from "../../core/errors.js";
import { type CallerIdentity, type CallOptions, type Health, type LeaseRef, type Via, NoResponse } from "../../core/api/locks.js";
import { type AnswerOf, type Operation, type RequestOf, apiBy, callOf } from "../../core/api/call.js";
import type { ServiceApi } from "../../core/api/runs.js";
import type { LockClientEvent } from "./events.js";
import { LockError } from "./errors.js";
import { refused } from "./checks.js";
import { type Breaker, type BreakerEvent, afterEvent, isProbeDue, UNTRIPPED } from "./breaker.js";
import type { Knowledge, RequestLimits } from "./compare-ways.js";
import { identityOf, leaseIn, lookUp, lookUpTake, notConfigured, OTHER_TABLE, UNPROVEN } from "./compare-ways.js";
import { stopSignalOf } from "./lazy-abort.js";
import type { Runtime } from "./retry.js";

export type Way = "service" | "table";

/** The parts of a client with two ways. */
export interface FailoverDeps extends Runtime {
  readonly via: Via;
  /** Undefined if the client has no URL. */
  readonly service: ServiceApi | undefined;
  /** Returns the operations straight on the table, as this caller. */
  readonly onTable: (identity: CallerIdentity) => ServiceApi;
  /** The identity on the table of a client that has not asked the service. */
  readonly own: CallerIdentity;
  /** The members of `own` that were configured, which the service must confirm. */
  readonly configured: readonly (keyof CallerIdentity)[];
  readonly emit: (event: LockClientEvent) => void;
}

/** The client's operations, and the choice of their way. */
export interface Failover {
  readonly api: ServiceApi;
  /** @throws InvalidRequestError for an unknown way; LockError `not-configured` if leases would be lost by the switch */
  readonly use: (via: Via) => Promise<void>;
}

type ApiAnswer = { readonly ok: true } | Refusal;
type WayOutcome = "answered" | "failed" | undefined;
/** A record of this client that both ways have. */
type Proof = "lease" | "take";
interface Met {
  readonly found: Knowledge;
  readonly by: Proof;
}

/** Limits of the requests by which the two ways are compared, in ms. */
const COMPARED: RequestLimits = { attemptMs: 1500, budgetMs: 5000 };
/** The time limit of a probe's request, in ms. */
const PROBED: RequestLimits = { attemptMs: 2000, budgetMs: 2000 };
/** The time after which a comparison that got no answer, or an unclear one, is repeated, in ms. */
const COMPARE_AGAIN_MS = 10_000;
/** Leases or takes of the service unknown to the table after which the two are considered to have different tables. A key forgets old leases. */
const UNKNOWN_MAX = 3;
/** The result of a probe, by what the service knows of the client's last lease. */
const PROBE_RESULTS = { known: "probe-answered", unknown: "probe-failed", unclear: "probe-unclear" } as const;
/** The largest number of requests whose last attempt's way is remembered. */
const REMEMBERED = 1000;

/** Combines both ways. Nothing is sent before the first call. */
export function failover(deps: FailoverDeps): Failover {
  const ways = new TwoWays(deps);
  const api = deps.service ? apiBy(deps.service, (...request) => ways.call(...request)) : ways.on("table");
  return { api: { ...api, health: async (...request) => ways.describe(await api.health(...request)) }, use: (via) => ways.use(via) };
}

class TwoWays {
  readonly #deps: FailoverDeps;
  #via: Via;
  #breaker: Breaker = UNTRIPPED;
  /** The way of new requests, and since when. */
  #way: Way;
  #sinceMs: number;
  /** The table under the identity that this client uses on it, for good. */
  #table: { readonly api: ServiceApi; readonly identity: CallerIdentity } | undefined;
  #isUsed = false;
  /** The result of the comparison: what proved that both ways lead to the same table; the error if they don't. */
  #proof: Proof | undefined;
  #refused: LockError | undefined;
  #strangers = 0;
  #comparing: Promise<void> | undefined;
  #compareAtMs = 0;
  /** A lease of this client, as the way in use answered it. */
  #lastLease: LeaseRef | undefined;
  /** A limit from which this client took by the way in use. */
  #limit: string | undefined;
  /** The way on which the last attempt about a leaseId failed. */
  readonly #failedOn = new Map<string, Way>();

  constructor(deps: FailoverDeps) {
    this.#deps = deps;
    this.#via = deps.via;
    this.#way = deps.via === "table" ? "table" : "service";
    this.#sinceMs = deps.clock.wallMs();
  }

  /** Carries out one attempt. */
  call<Name extends Operation>(operation: Name, request: RequestOf<Name>, options?: CallOptions): Promise<AnswerOf<Name>> {
    this.#isUsed = true;
    this.#probeIfDue();
    const ids = idsOf(request);
    const way = this.#wayOf(ids);
    const answering = callOf(this.on(way))(operation, request, options);
    const { kind, key } = request as Partial<LeaseRef>;
    return this.#observed(way, ids, options, answering, (answer) => {
      const lease = leaseIn(operation, kind, answer);
      if (lease) this.#granted(way, lease);
      else if (operation === "take" && answer.ok) this.#took(way, key);
    });
  }

  /** Adds the way to the service's answer. */
  describe(answer: Health | Refusal): Health | Refusal {
    if (!answer.ok) return answer;
    const state = this.#refused ? "refused" : this.#proof ? "ready" : "pending";
    const why = this.#refused?.message;
    return {
      ...answer,
      via: this.#way,
      viaSinceMs: this.#sinceMs,
      ...(this.#via === "auto" && { failover: { state, ...(why !== undefined && { why }) } }),
    };
  }

  async use(via: Via): Promise<void> {
    checkVia(via);
    if (via !== "table" && !this.#deps.service) throw refused("via", via, "it needs the option url");
    const leaves = this.#isUsed && via !== this.#way && (via === "table" || this.#table !== undefined);
    if (leaves && !this.#proof) await this.#compareNow();
    this.#via = via;
    this.#breaker = UNTRIPPED;
    this.#chooseWay();
  }

  on(way: Way): ServiceApi {
    if (way === "service" && this.#deps.service) return this.#deps.service;
    return (this.#table ??= { api: this.#deps.onTable(this.#deps.own), identity: this.#deps.own }).api;
  }

  /** True if a failed attempt may be repeated on the other way. */
  get #mayChange(): boolean {
    return this.#via === "auto" && this.#proof !== undefined;
  }

  #wayOf(ids: readonly string[]): Way {
    const failed = this.#mayChange ? ids.map((id) => this.#failedOn.get(id)).find((way) => way !== undefined) : undefined;
    return failed === undefined ? this.#way : otherThan(failed);
  }

  /** Takes the outcome of an attempt from its answer, or from its end without one. */
  async #observed<A extends ApiAnswer>(
    way: Way,
    ids: readonly string[],
    options: CallOptions | undefined,
    answering: Promise<A>,
    note: (answer: A) => void,
  ): Promise<A> {
    const stop = options && stopSignalOf(options);
    let isOver = false;
    const end = (outcome: WayOutcome): void => {
      if (isOver) return;
      isOver = true;
      stop?.removeEventListener("abort", cutOff);
      this.#ended(way, ids, outcome);
    };
    // A time limit has no reason. A caller that gives up has one, and says nothing about the service.
    const cutOff = (): void => end(stop?.reason === undefined ? "failed" : undefined);
    stop?.addEventListener("abort", cutOff, { once: true });
    try {
      const answer = await answering;
      end(outcomeOf(answer));
      note(answer);
      return answer;
    } catch (error) {
      end(isA(error, NoResponse) && error.isStale ? undefined : "failed");
      throw error;
    }
  }

  #ended(way: Way, ids: readonly string[], outcome: WayOutcome): void {
    if (outcome === undefined || !this.#mayChange) return;
    for (const id of ids) {
      this.#failedOn.delete(id);
      if (outcome === "failed") this.#failedOn.set(id, way);
    }
    for (const id of this.#failedOn.keys()) {
      if (this.#failedOn.size <= REMEMBERED) break;
      this.#failedOn.delete(id);
    }
    if (way === "service") this.#step(outcome);
  }

  #step(event: BreakerEvent): void {
    const { clock, random } = this.#deps;
    this.#breaker = afterEvent(this.#breaker, event, clock.monotonicMs(), random());
    this.#chooseWay();
  }

  /** Chooses the way of new requests, and tells of a change. */
  #chooseWay(): void {
    const way = this.#via === "auto" ? this.#breaker.way : this.#via;
    if (way === this.#way) return;
    this.#way = way;
    this.#sinceMs = this.#deps.clock.wallMs();
    this.#deps.emit({ type: way === "table" ? "failover" : "fallback", key: "" });
  }

  /** Notes a lease that `way` answered. The first one of the service is looked up on the table. */
  #granted(way: Way, lease: LeaseRef): void {
    if (way !== this.#way) return;
    this.#lastLease = lease;
    // A take shows the same table, and only a lease that the principal is the same too.
    this.#compareIfDue(this.#proof === "lease");
  }

  #took(way: Way, limit: string | undefined): void {
    if (way !== this.#way) return;
    this.#limit = limit;
    this.#compareIfDue(this.#proof !== undefined);
  }

  #compareIfDue(isProven: boolean): void {
    if (this.#via !== "auto" || isProven || this.#refused || this.#comparing) return;
    if (this.#deps.clock.monotonicMs() >= this.#compareAtMs) void this.#compare().catch(() => undefined);
  }

  /** @throws LockError unless the other way knows a lease or a take of this client */
  async #compareNow(): Promise<void> {
    await (this.#comparing ?? this.#compare());
    if (this.#refused) throw this.#refused;
    if (!this.#proof) throw notConfigured(UNPROVEN);
  }

  #compare(): Promise<void> {
    this.#compareAtMs = this.#deps.clock.monotonicMs() + COMPARE_AGAIN_MS;
    this.#comparing = this.#compared().finally(() => {
      this.#comparing = undefined;
    });
    return this.#comparing;
  }

  /** Asks the service for the caller's identity, and the other way for what it knows. @throws LockError if there was no answer */
  async #compared(): Promise<void> {
    let met: Met;
    try {
      const lease = this.#lastLease;
      const identity = await this.#identity(COMPARED);
      this.#table ??= { api: this.#deps.onTable(identity), identity };
      met = await this.#met(otherThan(this.#way), lease, COMPARED);
    } catch (error) {
      // Anything else may pass, such as something else that answers in the service's place.
      if (!isA(error, LockError) || error.retry !== "never") throw error;
      this.#refuse(error);
      return;
    }
    this.#refused = undefined;
    if (met.found === "unclear") return;
    this.#compareAtMs = 0;
    this.#proof = met.found === "known" ? met.by : undefined;
    if (!this.#proof && ++this.#strangers >= UNKNOWN_MAX) this.#refuse(notConfigured(OTHER_TABLE));
  }

  /** Returns the caller's identity. @throws LockError as {@link identityOf} does */
  #identity(bounds: RequestLimits): Promise<CallerIdentity> {
    const { own, configured } = this.#deps;
    const used = this.#table?.identity;
    const expected = used ?? Object.fromEntries(configured.map((name) => [name, own[name]]));
    return identityOf(this.on("service"), expected, bounds, this.#deps);
  }

  /** Returns what `way` knows of a lease. If that shows nothing, a take shows whether the service and the table meet. */
  async #met(way: Way, lease: LeaseRef | undefined, bounds: RequestLimits): Promise<Met> {
    const found = lease ? await lookUp(this.on(way), lease, bounds, this.#deps) : "unclear";
    if (found !== "unclear" || this.#limit === undefined) return { found, by: "lease" };
    return { found: await lookUpTake(this.on("service"), this.on("table"), this.#limit, bounds, this.#deps), by: "take" };
  }

  #refuse(error: LockError): void {
    this.#proof = undefined;
    this.#refused = error;
    this.#deps.emit({ type: "failover-refused", key: "", error });
  }

  /** Sends a probe in the background: the service must reach the table, know this caller as before, and know a lease of this client. */
  #probeIfDue(): void {
    if (this.#via !== "auto" || !isProbeDue(this.#breaker, this.#deps.clock.monotonicMs())) return;
    this.#step("probe");
    const lease = this.#lastLease;
    const probed = async (): Promise<Knowledge> => {
      await this.#identity(PROBED);
      return (await this.#met("service", lease, PROBED)).found;
    };
    void probed()
      .catch(() => "unknown" as const)
      .then((found) => this.#step(PROBE_RESULTS[found]));
  }
}

/** @throws InvalidRequestError unless it is a way, or the choice between both */
export function checkVia(via: unknown): asserts via is Via {
  if (via === "service" || via === "table" || via === "auto") return;
  throw refused("via", via, 'it must be "service", "table" or "auto"');
}

function otherThan(way: Way): Way {
  return way === "service" ? "table" : "service";
}

function idsOf(request: object): readonly string[] {
  const { leaseId, leases } = request as { readonly leaseId?: string; readonly leases?: readonly LeaseRef[] };
  return leaseId === undefined ? (leases ?? []).map((lease) => lease.leaseId) : [leaseId];
}

/** Returns what an answer says about the way: undefined if nothing, since a limit or a clock refused the request. */
function outcomeOf(answer: ApiAnswer): WayOutcome {
  const { results } = answer as { readonly results?: readonly ApiAnswer[] };
  if (results && results.length > 0 && results.every(isFailure)) return "failed";
  if (isFailure(answer)) return "failed";
  return !answer.ok && (answer.code === "throttled" || answer.code === "clock-skew") ? undefined : "answered";
}

function isFailure(answer: ApiAnswer): boolean {
  return !answer.ok && (answer.code === "unavailable" || answer.code === "internal");
}
