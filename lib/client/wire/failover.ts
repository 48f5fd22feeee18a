/**
 * One transport that holds several ways to the records: services over HTTP, and the table directly, in one Region or in several. The client
 * above doesn't know which of them carries out a request. That is safe because all decide on one record: a request that is repeated on
 * another way has the same leaseId, and a lease answers to the same principal on each.
 *
 * 1. A service tells the caller's identity: its namespace, its principal, and the parameters of the records. All services must tell the same,
 *    and the table is used under it.
 * 2. Before another way is used, a lease that the way in use granted, of a lock, a run or a set, must be found there. For a client that only
 *    takes from limits, a take of its own must (decision 064). Otherwise that way is refused. A process that begins while its first way is
 *    silent has no lease: it believes another way if the table there lists the first one among its doors (decision 103).
 * 3. Each way has a breaker (breaker.ts). New requests go to the first way that doesn't rest. An attempt that failed is repeated on a way where
 *    it has not failed yet, at once: it doesn't wait for as long as the failed way asks for. While there is such a way, an attempt ends after
 *    a second of silence.
 *
 * Only silence, `unavailable`, `internal`, and something else in the service's place are failures of a way. No other answer says that it can't
 * be reached, and neither does a kept connection that the other side had closed.
 */
import { isA } from "../../core/brand.js";
import type { Refusal } from "../../core/errors.js";
import { type CallOptions, type Health, type LeaseRef, type Via, NoResponse } from "../../core/api/locks.js";
import { type AnswerOf, type Operation, type RequestOf, apiBy, callOf } from "../../core/api/call.js";
import type { ServiceApi } from "../../core/api/runs.js";
import type { Timer } from "../../core/time.js";
import { refused } from "./checks.js";
import { type BreakerEvent, afterEvent, isProbeDue, UNTRIPPED } from "./breaker.js";
import { type Knowledge, type RequestLimits, leaseIn } from "./compare-ways.js";
import { LazyAbort, stopSignalOf } from "./lazy-abort.js";
import { Proofs } from "./proofs.js";
import { timeLimit, TIMED_OUT } from "./retry.js";
import { type FailoverDeps, type Route, checkVia, Ways } from "./ways.js";

/** The client's operations, and the choice of their way. */
export interface Failover {
  readonly api: ServiceApi;
  /** @throws InvalidRequestError for an unknown way; LockError `not-configured` if leases would be lost by the switch */
  readonly use: (via: Via) => Promise<void>;
}

type ApiAnswer = { readonly ok: true } | Refusal;
type WayOutcome = "answered" | "failed" | undefined;
/** The parts of an attempt beside its request. */
interface Attempt {
  readonly ids: readonly string[];
  readonly options: CallOptions | undefined;
  /** The time for which the service may hold the request, in ms. */
  readonly heldMs: number;
  /** True if an answer says nothing about the table. */
  readonly isShallow: boolean;
}

/** The time limit of a probe's request, in ms. */
const PROBED: RequestLimits = { attemptMs: 2000, budgetMs: 2000 };
/** The silence of a way after which an attempt goes to another one, in ms. */
const SILENT_MS = 1000;
/** The longest time for which a service holds a request before it answers, in ms, and the operations that it holds. */
const HELD_MAX_MS = 5000;
const HELD: readonly Operation[] = ["start", "inspect", "run"];
/** The result of a probe, by what the way knows of the client's last lease. */
const PROBE_RESULTS = { known: "probe-answered", unknown: "probe-failed", unclear: "probe-unclear" } as const;
/** The largest number of requests of which it is remembered where they failed. */
const REMEMBERED = 1000;

/** Combines the ways. Nothing is sent before the first call. */
export function failover(deps: FailoverDeps): Failover {
  const ways = new Ways(deps);
  const requests = new Requests(ways, deps);
  const api = deps.ways.length === 1 ? ways.operations : apiBy(ways.operations, (...request) => requests.call(...request));
  return {
    api: { ...api, health: async (...request) => requests.describe(await api.health(...request)) },
    use: (via) => requests.use(via),
  };
}

class Requests {
  readonly #deps: FailoverDeps;
  readonly #ways: Ways;
  readonly #proofs: Proofs;
  #isUsed = false;
  /** The ways on which the last attempts about a leaseId, or of an operation without one, failed. The latest is the last. */
  readonly #failedOn = new Map<string, readonly Route[]>();
  /** The way of an answer about the service's state. */
  readonly #answeredBy = new WeakMap<object, Route>();

  constructor(ways: Ways, deps: FailoverDeps) {
    this.#deps = deps;
    this.#ways = ways;
    this.#proofs = new Proofs(ways, deps);
  }

  /** Carries out one attempt. */
  async call<Name extends Operation>(operation: Name, request: RequestOf<Name>, options?: CallOptions): Promise<AnswerOf<Name>> {
    this.#isUsed = true;
    this.#probeIfDue();
    const ids = idsOf(operation, request);
    if (this.#proofs.asking && this.#failed(ids).length > 0) await this.#proofs.asking;
    const route = this.#routeOf(ids);
    const { kind, key, waitMs = 0 } = request as Partial<LeaseRef> & { readonly waitMs?: number };
    const heldMs = HELD.includes(operation) ? Math.min(waitMs, HELD_MAX_MS) : 0;
    const send = (within?: CallOptions): Promise<AnswerOf<Name>> => callOf(this.#ways.on(route))(operation, request, within);
    const answer = await this.#observed(route, { ids, heldMs, options, isShallow: operation === "health" }, send);
    const lease = leaseIn(operation, kind, answer);
    if (lease) this.#proofs.granted(route, lease);
    else if (operation === "take" && answer.ok) this.#proofs.took(route, key);
    if (operation === "health") this.#answeredBy.set(answer, route);
    return answer;
  }

  /** Adds the way to a service's answer. */
  describe(answer: Health | Refusal): Health | Refusal {
    return answer.ok ? this.#ways.describe(answer, this.#answeredBy.get(answer) ?? this.#ways.now) : answer;
  }

  async use(via: Via): Promise<void> {
    checkVia(via);
    const [first] = this.#ways.chosenBy(via);
    if (!first || (via !== "table" && first.way.kind !== "service")) throw refused("via", via, "it needs the option url");
    if (this.#isUsed && first !== this.#ways.now && !first.proof) await this.#proofs.compareNow(first);
    this.#ways.via = via;
    for (const route of this.#ways.routes) route.breaker = UNTRIPPED;
    this.#ways.goTo(first);
  }

  #failed(ids: readonly string[]): readonly Route[] {
    return ids.map((id) => this.#failedOn.get(id)).find((routes) => routes !== undefined) ?? [];
  }

  /** Returns the way of a request: the one in use, or after a failure the first where it has not failed, or else where that was longest ago. */
  #routeOf(ids: readonly string[]): Route {
    const failed = this.#failed(ids);
    if (failed.length === 0) return this.#ways.now;
    const usable = this.#ways.usable;
    const fresh = usable.filter((route) => !failed.includes(route));
    return fresh.find(({ breaker }) => !breaker.rests) ?? fresh[0] ?? failed.find((route) => usable.includes(route)) ?? this.#ways.now;
  }

  /** True if another way may carry out what `route` doesn't answer: one that doesn't rest, and where it has not failed. */
  #hasOther(route: Route, ids: readonly string[] = []): boolean {
    const failed = this.#failed(ids);
    return this.#ways.usable.some((other) => other !== route && !other.breaker.rests && !failed.includes(other));
  }

  /** The same, after the others were asked if none is known. */
  async #findsOther(route: Route, ids: readonly string[]): Promise<boolean> {
    if (!this.#hasOther(route, ids)) await this.#proofs.askOthers();
    return this.#hasOther(route, ids);
  }

  /** Takes the outcome of an attempt from its answer, or from its end without one. */
  async #observed<A extends ApiAnswer>(
    route: Route,
    { ids, heldMs, options, isShallow }: Attempt,
    send: (options?: CallOptions) => Promise<A>,
  ): Promise<A> {
    const stop = options && stopSignalOf(options);
    const own = new LazyAbort();
    let timer: Timer | undefined;
    let isOver = false;
    const end = (outcome: WayOutcome): void => {
      if (isOver) return;
      isOver = true;
      timer?.cancel();
      stop?.removeEventListener("abort", stopped);
      this.#ended(route, ids, outcome, isShallow);
    };
    // A time limit has no reason. A caller that gives up has one, and says nothing about the way.
    const stopped = (): void => {
      own.abort(stop?.reason);
      end(stop?.reason === undefined ? "failed" : undefined);
    };
    const silence = new Promise<never>((_resolve, reject) => {
      const cutOff = async (): Promise<void> => {
        if (!(await this.#findsOther(route, ids)) || isOver) return;
        own.abort();
        reject(new NoResponse(TIMED_OUT, { hasOtherWay: true }));
      };
      timer = timeLimit(SILENT_MS + heldMs, () => void cutOff(), this.#deps.clock);
    });
    stop?.addEventListener("abort", stopped, { once: true });
    if (stop?.aborted) own.abort(stop.reason);
    try {
      const answer = await Promise.race([send(own), silence]);
      const outcome = outcomeOf(answer);
      end(outcome);
      if (outcome !== "failed" || answer.ok || !(await this.#findsOther(route, ids))) return answer;
      // When this way may be back is no reason to wait for another one, or not to ask it.
      return { ...answer, retryAfterMs: undefined, retry: "same", hasOtherWay: true };
    } catch (error) {
      const isStale = isA(error, NoResponse) && error.isStale;
      end(isStale ? undefined : "failed");
      if (!isA(error, NoResponse) || isStale || stop?.aborted || !(await this.#findsOther(route, ids))) throw error;
      const { message, cause, httpStatus, isStranger } = error;
      throw new NoResponse(message, { cause, httpStatus, isStranger, hasOtherWay: true });
    }
  }

  #ended(route: Route, ids: readonly string[], outcome: WayOutcome, isShallow: boolean): void {
    if (outcome === undefined) return;
    for (const id of ids) {
      const before = (this.#failedOn.get(id) ?? []).filter((one) => one !== route);
      this.#failedOn.delete(id);
      if (outcome === "failed") this.#failedOn.set(id, [...before, route]);
    }
    for (const id of this.#failedOn.keys()) {
      if (this.#failedOn.size <= REMEMBERED) break;
      this.#failedOn.delete(id);
    }
    if (route !== this.#ways.now || (isShallow && outcome === "answered")) return;
    if (this.#hasOther(route)) this.#step(route, outcome);
    else if (outcome === "failed") void this.#proofs.askOthers();
  }

  #step(route: Route, event: BreakerEvent): void {
    const { clock, random } = this.#deps;
    route.breaker = afterEvent(route.breaker, event, clock.monotonicMs(), random());
    this.#ways.goTo(this.#ways.usable.find(({ breaker }) => !breaker.rests) ?? this.#ways.now);
  }

  /** Sends probes in the background: a way must reach the table, know this caller as before, and know a lease of this client. */
  #probeIfDue(): void {
    const nowMs = this.#deps.clock.monotonicMs();
    for (const route of this.#ways.chosen) {
      if (!isProbeDue(route.breaker, nowMs)) continue;
      this.#step(route, "probe");
      const lease = this.#proofs.lastLease;
      const probed = async (): Promise<Knowledge> => {
        await this.#proofs.checkCaller(route, this.#ways.now, PROBED);
        return (await this.#proofs.met(route, lease, PROBED)).found;
      };
      void probed()
        .catch(() => "unknown" as const)
        .then((found) => this.#step(route, PROBE_RESULTS[found]));
    }
  }
}

/** Returns what an operation is remembered by: its leaseIds, or its name and its key. */
function idsOf(operation: Operation, request: object): readonly string[] {
  const {
    leaseId,
    leases,
    key = "",
  } = request as { readonly leaseId?: string; readonly leases?: readonly LeaseRef[]; readonly key?: string };
  if (leaseId !== undefined) return [leaseId];
  return leases?.map((lease) => lease.leaseId) ?? [`${operation} ${key}`];
}

/** Returns what an answer says about the way: undefined if nothing, since a limit or a clock refused the request. */
function outcomeOf(answer: ApiAnswer): WayOutcome {
  const { results } = answer as { readonly results?: readonly ApiAnswer[] };
  if (results && results.length > 0 && results.every(isFailure)) return "failed";
  if (isFailure(answer)) return "failed";
  return !answer.ok && (answer.code === "throttled" || answer.code === "clock-skew") ? undefined : "answered";
}

function isFailure(answer: ApiAnswer): boolean {
  if (answer.ok) return false;
  const { code, unreached, retry } = answer;
  return code === "unavailable" || code === "internal" || unreached === true || (code === "not-configured" && retry === "same");
}
