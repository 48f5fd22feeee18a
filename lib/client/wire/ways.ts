/** The ways of a client with several: which of them is in use, which may be, and who the caller is on each. */
import type { CallerIdentity, Health, Via } from "../../core/api/locks.js";
import type { ServiceApi } from "../../core/api/runs.js";
import { type Breaker, UNTRIPPED } from "./breaker.js";
import { refused } from "./checks.js";
import { checkIdentity } from "./compare-ways.js";
import type { LockError } from "./errors.js";
import type { LockClientEvent } from "./events.js";
import type { Runtime } from "./retry.js";

/** One way to the records. */
export interface Way {
  /** The service over HTTP, or the table directly. */
  readonly kind: "service" | "table";
  /** The service's URL, or the Region in which the table is used. Undefined for a table of one Region. */
  readonly door?: string | undefined;
  /** Returns its operations. A table is used as this caller; a service knows its caller itself. */
  readonly open: (identity: CallerIdentity) => ServiceApi;
}

/** The parts of a client with several ways. */
export interface FailoverDeps extends Runtime {
  readonly via: Via;
  /** The ways in the order in which they are preferred: services, then tables. */
  readonly ways: readonly Way[];
  /** The identity on the table of a client that has not asked a service. */
  readonly own: CallerIdentity;
  /** The members of `own` that were configured, which a service must confirm. */
  readonly configured: readonly (keyof CallerIdentity)[];
  readonly emit: (event: LockClientEvent) => void;
}

/** A record of this client that both ways have, or the table's list of its doors. */
export type Proof = "lease" | "take" | "doors";

/** A way, and what this client knows of it. */
export interface Route {
  readonly way: Way;
  readonly index: number;
  api: ServiceApi | undefined;
  breaker: Breaker;
  /** The proof that it leads to this client's records. */
  proof: Proof | undefined;
  /** The reason why it never will be used. */
  refused: LockError | undefined;
  /** The reason why it is not used as long as the way in use is silent, and when it is asked again. */
  unlisted: LockError | undefined;
  askAtMs: number;
  /** The leases or takes of the way in use that it didn't know. */
  strangers: number;
}

/** The ways of one client. */
export class Ways {
  readonly #deps: FailoverDeps;
  readonly routes: readonly Route[];
  via: Via;
  /** The way of new requests, and since when. */
  #now: Route;
  #sinceMs: number;
  /** The identity that this client has on each way, for good. */
  #identity: CallerIdentity | undefined;

  constructor(deps: FailoverDeps) {
    this.#deps = deps;
    this.via = deps.via;
    const unknown = { api: undefined, proof: undefined, refused: undefined, unlisted: undefined };
    this.routes = deps.ways.map((way, index) => ({ way, index, breaker: UNTRIPPED, askAtMs: 0, strangers: 0, ...unknown }));
    const [first] = this.chosenBy(deps.via);
    if (!first) throw refused("via", deps.via, "it needs the option url");
    this.#now = first;
    this.#sinceMs = deps.clock.wallMs();
  }

  get now(): Route {
    return this.#now;
  }

  /** The operations of any way, for their names. */
  get operations(): ServiceApi {
    const [first = this.#now] = this.routes;
    return this.on(first);
  }

  /** The ways between which `via` chooses, in the order in which they are preferred. */
  chosenBy(via: Via): readonly Route[] {
    return this.routes.filter(({ way }) => via === "auto" || way.kind === via);
  }

  get chosen(): readonly Route[] {
    return this.chosenBy(this.via);
  }

  /** The ways that may carry out requests, in the same order. */
  get usable(): readonly Route[] {
    return this.chosen.filter((route) => route === this.#now || (route.proof && !route.refused));
  }

  on(route: Route): ServiceApi {
    const { way } = route;
    if (!route.api && way.kind === "table") this.#identity ??= this.#deps.own;
    return (route.api ??= way.open(this.#identity ?? this.#deps.own));
  }

  /** Sends new requests to `route`, and tells of a change. */
  goTo(route: Route): void {
    const before = this.#now;
    if (route === before) return;
    this.#now = route;
    this.#sinceMs = this.#deps.clock.wallMs();
    this.#deps.emit({ type: route.index > before.index ? "failover" : "fallback", key: "" });
  }

  /** Adds the way to the answer of `route` about its state. */
  describe(answer: Health, { way }: Route): Health {
    const others = this.chosen.filter((other) => other !== this.#now);
    const reasons = others.flatMap(({ refused: why, unlisted }) => why ?? unlisted ?? []);
    const isRefused = reasons.length === others.length;
    const state = others.some(({ proof }) => proof) ? "ready" : isRefused ? "refused" : "pending";
    const [why] = reasons;
    return {
      ...answer,
      via: this.#now.way.kind,
      viaSinceMs: this.#sinceMs,
      ...(way.door !== undefined && { door: way.door }),
      ...(others.length > 0 && { failover: { state, ...(why && { why: why.message }) } }),
    };
  }

  /** Compares the caller's identity at `route` with that of this client, as it is at `other`. @throws LockError if they differ */
  identify(route: Route, other: Route, caller: CallerIdentity): void {
    const { own, configured } = this.#deps;
    const expected = this.#identity ?? Object.fromEntries(configured.map((name) => [name, own[name]]));
    const place = this.nameOf(other);
    checkIdentity(caller, expected, this.nameOf(route), other.way.kind === "table" ? `on ${place}` : `at ${place}`);
    this.#identity ??= caller;
  }

  /** Returns the name of a way in a message. */
  nameOf({ way: { kind, door } }: Route): string {
    const isOneOfSeveral = this.routes.filter(({ way }) => way.kind === kind).length > 1;
    if (door !== undefined && (isOneOfSeveral || kind === "table")) return door;
    return kind === "service" ? "the service" : "the table";
  }

  /** Returns the names of the way in use and of another one, in their order. */
  namesWith(other: Route): string {
    const [first, last] = [this.#now, other].sort((a, b) => a.index - b.index) as [Route, Route];
    return `${this.nameOf(first)} and ${last.way.door === undefined ? "this client" : this.nameOf(last)}`;
  }
}

/** @throws InvalidRequestError unless it is a way, or the choice between both */
export function checkVia(via: unknown): asserts via is Via {
  if (via === "service" || via === "table" || via === "auto") return;
  throw refused("via", via, 'it must be "service", "table" or "auto"');
}
