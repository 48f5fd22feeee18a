/**
 * The oracle: sees every write to the table in the order in which it happened, and every lease that a
 * client was handed, and says which property of the design was broken. It shares no rule with the code
 * it judges: what it knows, it saw. Of runs it judges what they have in common with locks; the rest is
 * run-oracle.ts.
 */
import type { Lease } from "../../lib/client/lease.js";
import type { Run } from "../../lib/client/run-once.js";
import type { LeaseState } from "../../lib/core/commands.js";
import type { Kind } from "../../lib/core/lock-api.js";
import type { Ending, LockRecord } from "../../lib/core/record.js";
import type { Address } from "../../lib/store/lock-store.js";
import type { Written } from "./run-oracle.js";
import { RunOracle } from "./run-oracle.js";
import type { Bench, Property, Violation } from "./verdict.js";
import { noCoverage } from "./verdict.js";

/** An end that left no trace in the ring. */
type Unremembered = "collected" | "forgotten";

/** Somebody who may believe to hold. */
type Believer = Pick<Run, "fencingToken" | "isHeld" | "signal"> & Partial<Pick<Lease, "remainingMs">>;

/** A key as it really was: of a lock or of a run, which never meet. */
interface Truth {
  readonly kind: Kind;
  readonly key: string;
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
export class Oracle implements Bench {
  readonly violations: Violation[] = [];
  readonly coverage = noCoverage();
  readonly runs: RunOracle;
  /** Folds the whole history into a number: the same seed must give the same one. */
  digest = 0x811c9dc5;
  readonly #truths = new Map<string, Truth>();
  readonly #believers = new Map<Believer, Truth>();
  readonly #asked = { release: new Set<string>(), renew: new Set<string>(), transfer: new Set<string>(), breakToken: new Set<number>() };
  readonly #forced = new Set<number>();

  constructor(
    readonly now: () => number,
    textBeside: (key: string, digest: string) => string | undefined,
  ) {
    this.runs = new RunOracle(this, textBeside);
  }

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
    const truth = this.#truth("locks", lease.key);
    const token = truth.tokens.get(lease.leaseId);
    if (token !== lease.fencingToken) this.#fail("S8", `${lease.key}: was granted token ${token} and told ${lease.fencingToken}`);
    this.#believes(truth, lease, () => lease.state === "lost");
  }

  /** A run whose work a client begins now. */
  begun(run: Run): void {
    this.runs.begun(run);
    this.#believes(this.#truth("runs", run.idempotencyKey), run);
  }

  #believes(truth: Truth, believer: Believer, wasLost?: () => boolean): void {
    this.#believers.set(believer, truth);
    believer.signal.addEventListener("abort", () => {
      if (believer.isHeld()) this.#fail("S14", `${truth.key}: the signal fired and isHeld() is still true`);
      this.#believers.delete(believer);
      if (wasLost?.()) this.coverage.losses++;
    });
  }

  /** The record as it was and as it is, at the moment of the write. */
  written({ kind, key }: Address, write: Written): void {
    const { before, next } = write;
    const truth = this.#truth(kind, key);
    this.#fold(`${kind}/${key}|${next.version}|${next.fencingToken}|${Object.keys(next.holds).join()}`);
    if (next.version <= truth.version) this.#fail("S2", `${key}: version ${next.version} after ${truth.version}`);
    truth.version = next.version;

    const held = before?.holds ?? {};
    for (const [leaseId, hold] of Object.entries(held)) {
      const after = next.holds[leaseId];
      if (!after) this.#ended(truth, leaseId, hold.fencingToken, next);
      else this.#kept(truth, leaseId, hold, after);
    }
    for (const ended of next.ended) if (!truth.endings.has(ended.leaseId)) this.#end(truth, ended.leaseId, ended.ending);
    if (Object.keys(next.holds).length > 1) this.#fail("S1", `${key}: the item has two exclusive holds`);
    for (const [leaseId, hold] of Object.entries(next.holds)) if (!held[leaseId]) this.#granted(truth, leaseId, hold.fencingToken);
    if (kind === "runs") this.runs.written(key, write);
  }

  /** Garbage collection removed the record. */
  collected({ kind, key }: Address, record: LockRecord): void {
    const truth = this.#truth(kind, key);
    this.coverage.collections++;
    this.#fold(`${kind}/${key}|collected`);
    for (const leaseId of Object.keys(record.holds)) this.#end(truth, leaseId, "collected");
    for (const [believer, of] of this.#believers)
      if (of === truth && believer.isHeld()) this.#fail(oneAtATime(truth), `${key}: collected under a believing holder`);
    if (kind === "runs") this.runs.collected(key);
  }

  /** At any instant: at most one client believes it holds the key (unless one was broken by force). */
  atRest(): void {
    if (this.#believers.size < 2) return;
    const held = new Set<Truth>();
    for (const [believer, truth] of this.#believers) {
      if (this.#forced.has(believer.fencingToken) || !believer.isHeld()) continue;
      if (held.has(truth)) this.#fail(oneAtATime(truth), `${truth.key}: two clients believe they hold it`);
      held.add(truth);
    }
  }

  /** A fenced write reaches the guarded resource. */
  resourceWrite(kind: Kind, key: string, fencingToken: number): void {
    const truth = this.#truth(kind, key);
    if (fencingToken >= truth.written) {
      truth.written = fencingToken;
      return;
    }
    this.coverage.fencedLateWrites++;
    if (fencingToken === truth.token) this.#fail("S4", `${key}: the resource refuses the latest grant's token ${fencingToken}`);
  }

  /** The service told a client how its lease ended. */
  toldEnding(key: string, leaseId: string, state: LeaseState): void {
    const { endings, tokens } = this.#truth("locks", key);
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
  duplicateAcquire(kind: Kind, key: string, leaseId: string): void {
    const { endOrder } = this.#truth(kind, key);
    const at = endOrder.indexOf(leaseId);
    if (at >= 0 && endOrder.length - at > 8) this.coverage.duplicatesPastTheRing++;
  }

  fail(property: Property, what: string): void {
    this.#fail(property, what);
  }

  #granted(truth: Truth, leaseId: string, token: number): void {
    const { key } = truth;
    this.coverage.grants++;
    if (token <= truth.token) this.#fail("S3", `${key}: granted token ${token} after ${truth.token}`);
    if (truth.endings.has(leaseId)) this.#fail("S7", `${key}: a lease that ended by "${truth.endings.get(leaseId)}" holds again`);
    truth.token = Math.max(truth.token, token);
    truth.tokens.set(leaseId, token);
    for (const [believer, of] of this.#believers) {
      if (of !== truth || believer.fencingToken === token || this.#forced.has(believer.fencingToken) || !believer.isHeld()) continue;
      this.#fail(
        "S9",
        `${key}: granted while another client believes${believer.remainingMs ? ` for ${Math.round(believer.remainingMs())} ms more` : ""}`,
      );
    }
  }

  #kept({ key }: Truth, leaseId: string, hold: LockRecord["holds"][string], after: LockRecord["holds"][string]): void {
    if (after.fencingToken !== hold.fencingToken) this.#fail("S8", `${key}: a living lease changed its token`);
    if (after.expiresAtMs === hold.expiresAtMs) return;
    this.coverage.renewals++;
    if (after.broken) return;
    if (after.expiresAtMs < hold.expiresAtMs) this.#fail("S5", `${key}: shortened by ${hold.expiresAtMs - after.expiresAtMs} ms`);
    if (!this.#asked.renew.has(leaseId)) this.#fail("S8", `${key}: extended although nobody renewed it`);
  }

  #ended(truth: Truth, leaseId: string, token: number, next: LockRecord): void {
    const { key } = truth;
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
      broken: this.#asked.breakToken.has(token) || (truth.kind === "runs" && this.runs.asked.isBeingReset(key)),
      taken: true,
      cancelled: false,
    };
    if (!asked[ending]) this.#fail("S5", `${key}: a hold ended by "${ending}" although nobody asked for it`);
  }

  #end(truth: Truth, leaseId: string, ending: Ending | Unremembered): void {
    truth.endings.set(leaseId, ending);
    truth.endOrder.push(leaseId);
  }

  #truth(kind: Kind, key: string): Truth {
    const id = `${kind}/${key}`;
    let truth = this.#truths.get(id);
    if (!truth) {
      truth = { kind, key, version: 0, token: 0, tokens: new Map(), endings: new Map(), endOrder: [], written: 0 };
      this.#truths.set(id, truth);
    }
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

/** One at a time is what locks promise as S1, and runs as R1. */
function oneAtATime({ kind }: Truth): Property {
  return kind === "runs" ? "R1" : "S1";
}
