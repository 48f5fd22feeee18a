/**
 * Shows which ways lead to the same records: a lease or a take of this client is known at both, or the table of one lists the other among its
 * doors.
 */
import { isA } from "../../core/brand.js";
import type { LeaseRef } from "../../core/api/locks.js";
import * as compare from "./compare-ways.js";
import type { Knowledge, RequestLimits } from "./compare-ways.js";
import { LockError } from "./errors.js";
import type { FailoverDeps, Proof, Route, Ways } from "./ways.js";

/** Limits of the requests by which two ways are compared, in ms. */
const COMPARED: RequestLimits = { attemptMs: 1500, budgetMs: 5000 };
/** The time limit for asking another way for its doors, while the way in use is silent, in ms. */
const ASKED: RequestLimits = { attemptMs: 1000, budgetMs: 1000 };
/** The time after which a comparison that got no answer, or an unclear one, is repeated, in ms. */
const COMPARE_AGAIN_MS = 10_000;
/** Leases or takes unknown to another way after which the two are considered to have different tables. A key forgets old leases. */
const UNKNOWN_MAX = 3;

/** The knowledge that a way has of a record of this client. */
interface Met {
  readonly found: Knowledge;
  readonly by: Proof;
}

/** The proofs of one client. */
export class Proofs {
  readonly #ways: Ways;
  readonly #deps: FailoverDeps;
  #comparing: Promise<void> | undefined;
  #compareAtMs = 0;
  #asking: Promise<void> | undefined;
  /** A lease of this client, as the way in use answered it. */
  lastLease: LeaseRef | undefined;
  /** A limit from which this client took by the way in use. */
  #limit: string | undefined;

  constructor(ways: Ways, deps: FailoverDeps) {
    this.#ways = ways;
    this.#deps = deps;
  }

  /** Set while other ways are asked for their doors. */
  get asking(): Promise<void> | undefined {
    return this.#asking;
  }

  /** Notes a lease that `route` answered. The first one of the way in use is looked up on the others. */
  granted(route: Route, lease: LeaseRef): void {
    if (route !== this.#ways.now) return;
    this.lastLease = lease;
    // A take shows the same table, and only a lease that the principal is the same too.
    this.#compareIfDue(["lease"]);
  }

  took(route: Route, limit: string | undefined): void {
    if (route !== this.#ways.now) return;
    this.#limit = limit;
    this.#compareIfDue(["lease", "take"]);
  }

  #compareIfDue(enough: readonly Proof[]): void {
    if (this.#comparing || this.#deps.clock.monotonicMs() < this.#compareAtMs) return;
    const isOpen = (route: Route): boolean =>
      route !== this.#ways.now && !route.refused && !route.breaker.rests && !(route.proof && enough.includes(route.proof));
    const open = this.#ways.chosen.filter(isOpen);
    if (open.length > 0) void this.#compare(open).catch(() => undefined);
  }

  /** @throws LockError unless `other` knows a lease or a take of this client */
  async compareNow(other: Route): Promise<void> {
    await this.#comparing?.catch(() => undefined);
    if (!other.proof) await this.#compare([other]);
    if (other.refused) throw other.refused;
    if (!other.proof) throw compare.notConfigured(compare.unproven(this.#ways.namesWith(other)));
  }

  #compare(others: readonly Route[]): Promise<void> {
    this.#compareAtMs = this.#deps.clock.monotonicMs() + COMPARE_AGAIN_MS;
    this.#comparing = Promise.allSettled(others.map((other) => this.#compared(other))).then((results) => {
      this.#comparing = undefined;
      const failed = results.find(({ status }) => status === "rejected");
      if (failed) throw (failed as PromiseRejectedResult).reason;
      if (results.every((result) => "value" in result && result.value)) this.#compareAtMs = 0;
    });
    return this.#comparing;
  }

  /** Asks the services for the caller's identity, and `other` for what it knows. Returns false if that is unclear. @throws LockError without an answer */
  async #compared(other: Route): Promise<boolean> {
    const { found, by } = await this.#foundOn(other).catch((error: unknown) => {
      // Anything else may pass, such as something else that answers in the service's place.
      if (!isA(error, LockError) || error.retry !== "never") throw error;
      this.#refuse(other, error);
      return { found: undefined, by: "lease" as const };
    });
    if (found === undefined) return true;
    other.refused = undefined;
    if (found === "unclear") return false;
    other.proof = undefined;
    if (found === "known") this.#believe(other, by);
    else if (++other.strangers >= UNKNOWN_MAX) this.#refuse(other, compare.notConfigured(compare.otherTable(this.#ways.namesWith(other))));
    return true;
  }

  async #foundOn(other: Route): Promise<Met> {
    const lease = this.lastLease;
    for (const route of [this.#ways.now, other]) await this.checkCaller(route, route === other ? this.#ways.now : other, COMPARED);
    return this.met(other, lease, COMPARED);
  }

  /** Notes that the way in use and `other` lead to the same records. */
  #believe(other: Route, by: Proof): void {
    other.proof = by;
    this.#ways.now.proof ??= by;
    other.unlisted = undefined;
  }

  /** Compares the caller's identity at a service with that of this client. @throws LockError if they differ, or without an answer */
  async checkCaller(route: Route, other: Route, limits: RequestLimits): Promise<void> {
    if (route.way.kind === "service")
      this.#ways.identify(route, other, (await compare.stateAt(this.#ways.on(route), limits, this.#deps)).caller);
  }

  /** Returns what `route` knows of a lease. If that shows nothing, a take shows whether it and the way in use meet. */
  async met(route: Route, lease: LeaseRef | undefined, limits: RequestLimits): Promise<Met> {
    const found = lease ? await compare.lookUp(this.#ways.on(route), lease, limits, this.#deps) : "unclear";
    if (found !== "unclear" || this.#limit === undefined) return { found, by: "lease" };
    const [one, other] = route.index < this.#ways.now.index ? [route, this.#ways.now] : [this.#ways.now, route];
    return { found: await compare.lookUpTake(this.#ways.on(one), this.#ways.on(other), this.#limit, limits, this.#deps), by: "take" };
  }

  #refuse(route: Route, error: LockError): void {
    route.proof = undefined;
    route.refused = error;
    this.#deps.emit({ type: "failover-refused", key: "", error });
  }

  /** The way in use doesn't answer, and no other is proven: asks those of its kind, one after the other, whether their table lists its door. */
  askOthers(): Promise<void> {
    const now = this.#ways.now;
    const { kind, door } = now.way;
    const isOpen = (route: Route): boolean =>
      route !== now && route.way.kind === kind && !route.proof && !route.refused && this.#deps.clock.monotonicMs() >= route.askAtMs;
    const open = this.#ways.chosen.filter(isOpen);
    if (door === undefined || open.length === 0) return this.#asking ?? Promise.resolve();
    this.#asking ??= Promise.all(open.map((other) => this.#ask(now, door, other))).then(() => void (this.#asking = undefined));
    return this.#asking;
  }

  async #ask(now: Route, door: string, other: Route): Promise<void> {
    try {
      const state = await compare.stateAt(this.#ways.on(other), ASKED, this.#deps);
      compare.checkDoors(state, door, this.#ways.nameOf(other));
      this.#ways.identify(other, now, state.caller);
      if (this.#ways.now === now) this.#believe(other, "doors");
    } catch (error) {
      if (!isA(error, LockError) || error.retry !== "never") return;
      other.askAtMs = this.#deps.clock.monotonicMs() + COMPARE_AGAIN_MS;
      if (!other.unlisted) this.#deps.emit({ type: "failover-refused", key: "", error });
      other.unlisted = error;
    }
  }
}
