/**
 * The oracle: sees every write to the table in the order in which it happened, and every lease that a
 * client was handed, and says which property of the design was broken. It shares no rule with the code
 * it judges: what it knows, it saw.
 */
import type { Lease } from "../../lib/client/lease.js";
import type { Ending, LockRecord } from "../../lib/core/record.js";
import type { LeaseState } from "../../lib/core/commands.js";

/** The properties that can be found broken. */
export type Property = "S1" | "S2" | "S3" | "S4" | "S5" | "S6" | "S7" | "S8" | "S9" | "S14" | "L1" | "internal";

/** A property found broken, when, and how. */
export interface Violation {
  readonly property: Property;
  readonly atMs: number;
  readonly what: string;
}

/** How often the interesting things happened. */
export interface Coverage {
  grants: number;
  takeovers: number;
  collections: number;
  fencedLateWrites: number;
  duplicatesPastTheRing: number;
  renewals: number;
  releases: number;
  transfers: number;
  breaks: number;
  losses: number;
}

/** An end that left no trace in the ring. */
type Unremembered = "collected" | "forgotten";

/** A key as it really was. */
interface Truth {
  version: number;
  token: number;
  readonly tokens: Map<string, number>;
  readonly endings: Map<string, Ending | Unremembered>;
  /** In the order of their ends. */
  readonly endOrder: string[];
  /** The largest token that the guarded resource has seen. */
  written: number;
}

/** Judges one history. */
export class Oracle {
  readonly violations: Violation[] = [];
  readonly coverage: Coverage = {
    grants: 0,
    takeovers: 0,
    collections: 0,
    fencedLateWrites: 0,
    duplicatesPastTheRing: 0,
    renewals: 0,
    releases: 0,
    transfers: 0,
    breaks: 0,
    losses: 0,
  };
  /** Folds the whole history into a number: the same seed must give the same one. */
  digest = 0x811c9dc5;
  readonly #truths = new Map<string, Truth>();
  readonly #leases = new Set<Lease>();
  readonly #asked = { release: new Set<string>(), renew: new Set<string>(), transfer: new Set<string>(), breakToken: new Set<number>() };
  readonly #forced = new Set<number>();

  constructor(private readonly now: () => number) {}

  /** A client sent this; only what was asked for may happen. */
  asked(operation: "release" | "renew" | "transfer", leaseId: string): void {
    this.#asked[operation].add(leaseId);
  }

  askedToBreak(fencingToken: number, byForce: boolean): void {
    this.#asked.breakToken.add(fencingToken);
    if (byForce) this.#forced.add(fencingToken);
  }

  /** A lease that a client holds from now on. */
  handed(lease: Lease): void {
    const token = this.#truth(lease.key).tokens.get(lease.leaseId);
    if (token !== lease.fencingToken) this.#fail("S8", `${lease.key}: was granted token ${token} and told ${lease.fencingToken}`);
    this.#leases.add(lease);
    lease.signal.addEventListener("abort", () => {
      if (lease.isHeld()) this.#fail("S14", `${lease.key}: the signal fired and isHeld() is still true`);
      this.#leases.delete(lease);
      if (lease.state === "lost") this.coverage.losses++;
    });
  }

  /** The record as it was and as it is, at the moment of the write. */
  written(key: string, before: LockRecord | undefined, next: LockRecord): void {
    const truth = this.#truth(key);
    this.#fold(`${key}|${next.version}|${next.fencingToken}|${Object.keys(next.holds).join()}`);
    if (next.version <= truth.version) this.#fail("S2", `${key}: version ${next.version} after ${truth.version}`);
    truth.version = next.version;

    const held = before?.holds ?? {};
    for (const [leaseId, hold] of Object.entries(held)) {
      const after = next.holds[leaseId];
      if (!after) this.#ended(key, truth, leaseId, hold.fencingToken, next);
      else this.#kept(key, leaseId, hold, after);
    }
    for (const ended of next.ended) if (!truth.endings.has(ended.leaseId)) this.#end(truth, ended.leaseId, ended.ending);
    if (Object.keys(next.holds).length > 1) this.#fail("S1", `${key}: the item has two exclusive holds`);
    for (const [leaseId, hold] of Object.entries(next.holds)) if (!held[leaseId]) this.#granted(key, truth, leaseId, hold.fencingToken);
  }

  /** Garbage collection removed the record. */
  collected(key: string, record: LockRecord): void {
    const truth = this.#truth(key);
    this.coverage.collections++;
    this.#fold(`${key}|collected`);
    for (const leaseId of Object.keys(record.holds)) this.#end(truth, leaseId, "collected");
    for (const lease of this.#leases)
      if (lease.key === key && lease.isHeld()) this.#fail("S1", `${key}: collected under a believing holder`);
  }

  /** At any instant: at most one client believes it holds the key (unless one was broken by force). */
  atRest(): void {
    if (this.#leases.size < 2) return;
    const believing = [...this.#leases].filter((lease) => !this.#forced.has(lease.fencingToken) && lease.isHeld());
    for (const [at, lease] of believing.entries()) {
      if (believing.slice(at + 1).some((other) => other.key === lease.key))
        this.#fail("S1", `${lease.key}: two clients believe they hold it`);
    }
  }

  /** A fenced write reaches the guarded resource. */
  resourceWrite(key: string, fencingToken: number): void {
    const truth = this.#truth(key);
    if (fencingToken >= truth.written) {
      truth.written = fencingToken;
      return;
    }
    this.coverage.fencedLateWrites++;
    if (fencingToken === truth.token) this.#fail("S4", `${key}: the resource refuses the latest grant's token ${fencingToken}`);
  }

  /** The service told a client how its lease ended. */
  toldEnding(key: string, leaseId: string, state: LeaseState): void {
    const { endings, tokens } = this.#truth(key);
    const ending = endings.get(leaseId);
    const truthful: Record<LeaseState, boolean> = {
      released: ending === "released",
      expired: ending === "expired" || ending === "collected",
      lost: ending === "taken" || ending === "broken",
      transferred: ending === "transferred",
      never: !tokens.has(leaseId) || ending === "collected",
      unknown: ending !== undefined,
    };
    if (!truthful[state]) this.#fail("S6", `${key}: told "${state}" of a lease that ended by "${ending}"`);
  }

  /** A request arrives once more, for an acquire whose id ended more than a ring ago. */
  duplicateAcquire(key: string, leaseId: string): void {
    const { endOrder } = this.#truth(key);
    const at = endOrder.indexOf(leaseId);
    if (at >= 0 && endOrder.length - at > 8) this.coverage.duplicatesPastTheRing++;
  }

  fail(property: Property, what: string): void {
    this.#fail(property, what);
  }

  #granted(key: string, truth: Truth, leaseId: string, token: number): void {
    this.coverage.grants++;
    if (token <= truth.token) this.#fail("S3", `${key}: granted token ${token} after ${truth.token}`);
    if (truth.endings.has(leaseId)) this.#fail("S7", `${key}: a lease that ended by "${truth.endings.get(leaseId)}" holds again`);
    truth.token = Math.max(truth.token, token);
    truth.tokens.set(leaseId, token);
    for (const lease of this.#leases) {
      if (lease.key === key && lease.leaseId !== leaseId && !this.#forced.has(lease.fencingToken) && lease.isHeld()) {
        this.#fail("S9", `${key}: granted while another client believes for ${Math.round(lease.remainingMs())} ms more`);
      }
    }
  }

  #kept(key: string, leaseId: string, hold: LockRecord["holds"][string], after: LockRecord["holds"][string]): void {
    if (after.fencingToken !== hold.fencingToken) this.#fail("S8", `${key}: a living lease changed its token`);
    if (after.expiresAtMs === hold.expiresAtMs) return;
    this.coverage.renewals++;
    if (after.broken) return;
    if (after.expiresAtMs < hold.expiresAtMs) this.#fail("S5", `${key}: shortened by ${hold.expiresAtMs - after.expiresAtMs} ms`);
    if (!this.#asked.renew.has(leaseId)) this.#fail("S8", `${key}: extended although nobody renewed it`);
  }

  #ended(key: string, truth: Truth, leaseId: string, token: number, next: LockRecord): void {
    const ending = next.ended.find((ended) => ended.leaseId === leaseId)?.ending;
    if (!ending && leaseId <= next.floor) return this.#end(truth, leaseId, this.#asked.release.has(leaseId) ? "released" : "forgotten");
    if (!ending) return this.#fail("S7", `${key}: a hold vanished without being remembered`);
    this.#end(truth, leaseId, ending);
    if (ending === "taken") this.coverage.takeovers++;
    if (ending === "transferred") this.coverage.transfers++;
    if (ending === "broken") this.coverage.breaks++;
    if (ending === "released" || ending === "expired") this.coverage.releases++;
    const asked = {
      released: this.#asked.release.has(leaseId),
      expired: this.#asked.release.has(leaseId),
      transferred: this.#asked.transfer.has(leaseId),
      broken: this.#asked.breakToken.has(token),
      taken: true,
      cancelled: false,
    };
    if (!asked[ending]) this.#fail("S5", `${key}: a hold ended by "${ending}" although nobody asked for it`);
  }

  #end(truth: Truth, leaseId: string, ending: Ending | Unremembered): void {
    truth.endings.set(leaseId, ending);
    truth.endOrder.push(leaseId);
  }

  #truth(key: string): Truth {
    let truth = this.#truths.get(key);
    if (!truth) this.#truths.set(key, (truth = { version: 0, token: 0, tokens: new Map(), endings: new Map(), endOrder: [], written: 0 }));
    return truth;
  }

  #fail(property: Property, what: string): void {
    this.#fold(property);
    this.violations.push({ property, atMs: this.now(), what });
  }

  #fold(text: string): void {
    for (let index = 0; index < text.length; index++) this.digest = Math.imul(this.digest ^ text.charCodeAt(index), 0x01000193) >>> 0;
  }
}
