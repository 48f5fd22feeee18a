/**
 * The oracle: sees every write to the table in the order in which it happened, and every lease that a
 * client was handed, and says which property of the design was broken. It shares no rule with the code
 * it judges: what it knows, it saw. Of runs it judges what they have in common with locks; the rest is
 * run-oracle.ts. Queues are queue-oracle.ts, and who believes what believers.ts.
 */
import type { Lease } from "../../lib/client/lease/lease.js";
import type { LeaseSet } from "../../lib/client/lease/lease-set.js";
import type { Run } from "../../lib/client/run/run-once.js";
import type { LeaseState } from "../../lib/core/commands.js";
import { LIMITS } from "../../lib/core/limits.js";
import type { Kind } from "../../lib/core/api/locks.js";
import type { Ending, Hold, LockRecord, Mode } from "../../lib/core/record.js";
import type { Address } from "../../lib/store/port.js";
import { asLock, Believers } from "./believers.js";
import { LockRequests } from "./lock-requests.js";
import type { Believable, End, Truth, Unremembered } from "./lock-truth.js";
import { newTruth } from "./lock-truth.js";
import { QueueOracle } from "./queue-oracle.js";
import type { Written } from "./run-oracle.js";
import { RunOracle } from "./run-oracle.js";
import { clash, holdersIn } from "./sharing.js";
import type { Bench, Property, Violation } from "./verdict.js";
import { noCoverage } from "./verdict.js";

/** The largest item of a lock, in bytes. */
const ITEM_BYTES = 32 * 1024;
/** So many of the leases that ended last are remembered with how, at least: ids that were only cancelled may take the other places. */
const REMEMBERED = LIMITS.tombstonesMax / 2;
/** Times in a record are whole. */
const ROUNDING_MS = 2;

/** A write to the guarded resource: by which lease, and what the resource compares. */
export interface ResourceWrite {
  readonly leaseId?: string;
  readonly fencingToken: number;
  /** Of a shared lease or a permit, in place of its token. */
  readonly fenceFloor?: number;
}

/** Judges one history. */
export class Oracle implements Bench {
  readonly violations: Violation[] = [];
  readonly coverage = noCoverage();
  readonly asked = new LockRequests();
  readonly runs: RunOracle;
  readonly queues = new QueueOracle(this);
  readonly believers = new Believers(this, (token) => this.asked.isForced(token));
  /** Folds the whole history into a number: the same seed must give the same one. */
  digest = 0x811c9dc5;
  readonly #truths = new Map<string, Truth>();
  readonly #tries = new Map<string, number>();
  /** Leases of sets that were granted in the transaction that is being written. */
  #granted: string[] = [];

  constructor(
    readonly now: () => number,
    /** How far the clocks of a decision may be off, in ms: all but those of releases, which any clock may decide. */
    private readonly clockErrorMs = 0,
    /** Whether the clocks of a release may be further apart than the guard allows. */
    private readonly mayDisagree = false,
  ) {
    this.runs = new RunOracle(this);
  }

  /** A lease that a client holds from now on, as its client says or as `mode` says. */
  handed(lease: Lease, mode: () => Mode = () => lease.mode): void {
    const truth = this.#truth("locks", lease.key);
    this.#told(truth, lease.leaseId, lease.fencingToken);
    this.believers.add(lease, [{ truth, leaseId: lease.leaseId, of: lease, mode }], () => {
      if (lease.state === "lost") this.coverage.losses++;
    });
  }

  /** A set that a client holds from now on. */
  handedSet(set: LeaseSet): void {
    const { leaseId } = set;
    const truths = set.keys.map((key) => this.#truth("locks", key));
    for (const truth of truths)
      this.#told(truth, leaseId, Object.hasOwn(set.fencingTokens, truth.key) ? (set.fencingTokens[truth.key] ?? 0) : 0);
    this.believers.add(
      set,
      truths.map((truth) => ({ truth, leaseId, of: set })),
    );
  }

  /** A lease that somebody who speaks HTTP holds from now on. */
  handedRaw(key: string, lease: Believable & { readonly leaseId: string; readonly fencingToken: number }): void {
    const truth = this.#truth("locks", key);
    this.#told(truth, lease.leaseId, lease.fencingToken);
    this.believers.add(lease, [{ truth, leaseId: lease.leaseId, of: lease }]);
  }

  /** A run whose work a client begins now. */
  begun(run: Run): void {
    this.runs.begun(run);
    const truth = this.#truth("runs", run.idempotencyKey);
    const [leaseId = ""] = [...truth.granted].find(([, { token }]) => token === run.fencingToken) ?? [];
    this.believers.add(run, [{ truth, leaseId, of: run }]);
  }

  /** A write to the table: a change of the record, or only that a waiter was heard of, which leaves its version alone. */
  observed(address: Address, write: Written): void {
    const { before, next } = write;
    if (before?.version !== next.version) return this.written(address, write);
    for (const [place, waiter] of next.waiters.entries())
      if (before.waiters[place]?.aliveUntilMs !== waiter.aliveUntilMs) this.queues.heard(waiter);
    const rest = ({ holds, offers, tombstones: ended, lowWatermark: floor, fencingToken, run }: LockRecord): string =>
      JSON.stringify([holds, offers, ended, floor, fencingToken, run]);
    if (rest(before) !== rest(next)) this.fail("S2", `${address.key}: changed at version ${next.version}, which it had before`);
  }

  /** The record as it was and as it is, at the moment of the write. */
  written({ kind, key }: Address, write: Written): void {
    const { before, next } = write;
    const truth = this.#truth(kind, key);
    this.#fold(`${kind}/${key}|${next.version}|${next.fencingToken}|${Object.keys(next.holds).join()}`);
    // Clocks that disagree date a record that they make anew by the id that is cancelled, however old (release.ts).
    const isDatedById = !before && this.mayDisagree && next.tombstones.length === 1;
    if (next.version <= truth.version && !isDatedById) this.fail("S2", `${key}: version ${next.version} after ${truth.version}`);
    truth.version = next.version;

    const held = before?.holds ?? {};
    for (const [leaseId, hold] of Object.entries(held)) {
      const after = next.holds[leaseId];
      if (!after) this.#ended(truth, leaseId, hold, write);
      else this.#kept(truth, leaseId, hold, after, write);
    }
    for (const ended of next.tombstones) if (!truth.endings.has(ended.leaseId)) this.#end(truth, ended.leaseId, ended.ending);
    const broken = clash(holdersIn(next));
    if (broken) this.fail(asLock(truth, broken), `${key}: the item has holds that exclude each other`);
    for (const [leaseId, hold] of Object.entries(next.holds)) if (!held[leaseId]) this.#began(truth, leaseId, hold, write);
    if (kind === "runs") this.runs.written(key, write);
    else this.queues.written(key, before, next, this.asked);
  }

  /** Until when the key is held at the latest, in true time, if nobody renews. */
  heldUntilMs(key: string): number {
    const { holding, expiresAtMs } = this.#truth("locks", key);
    return Math.max(0, ...[...holding].map((leaseId) => expiresAtMs.get(leaseId) ?? 0));
  }

  /** The leases that the key was granted to. */
  leasesOf(key: string): readonly string[] {
    return [...this.#truth("locks", key).granted.keys()];
  }

  /** An item was written that is so large. */
  sized({ key }: Address, bytes: number): void {
    if (bytes > ITEM_BYTES) this.fail("L4", `${key}: an item of ${bytes} bytes, which every heartbeat pays for`);
  }

  /** A write reaches the table, whatever comes of it. */
  tried({ key }: Address): void {
    this.#tries.set(key, this.triesOf(key) + 1);
  }

  /** How many writes of the key reached the table. */
  triesOf(key: string): number {
    return this.#tries.get(key) ?? 0;
  }

  /** All of what is one write, or one transaction, was told: a set is there whole. */
  settled(): void {
    for (const leaseId of this.#granted) {
      const missing = this.asked.keysOf(leaseId)?.find((key) => !this.#truth("locks", key).holding.has(leaseId));
      if (missing !== undefined) this.fail("S13", `a set was granted without ${missing}`);
      this.coverage.sets++;
    }
    this.#granted = [];
  }

  /** Garbage collection removed the record. */
  collected({ kind, key }: Address, record: LockRecord): void {
    const truth = this.#truth(kind, key);
    this.coverage.collections++;
    truth.wasCollected = true;
    this.#fold(`${kind}/${key}|collected`);
    for (const leaseId of Object.keys(record.holds)) this.#end(truth, leaseId, "collected");
    this.believers.collected(truth);
    if (kind === "runs") this.runs.collected(key);
  }

  /** A fenced write reaches the guarded resource. */
  resourceWrite(kind: Kind, key: string, { leaseId = "", fencingToken, fenceFloor = fencingToken }: ResourceWrite): void {
    const truth = this.#truth(kind, key);
    const granted = truth.granted.get(leaseId);
    if (fenceFloor >= truth.written) {
      truth.written = fenceFloor;
      const end = truth.endings.get(leaseId);
      const isAlone = granted?.token === fencingToken && granted.share.mode === "exclusive" && granted.share.limit === 1;
      if (isAlone && end && end.order < truth.writtenBy.order && truth.writtenBy.token !== fencingToken)
        this.fail("S4", `${key}: the resource takes ${fenceFloor}, of a lease that was over when a later one wrote`);
      if (granted && granted.order > truth.writtenBy.order) truth.writtenBy = granted;
      return;
    }
    this.coverage.fencedLateWrites++;
    const holds = truth.holding.has(leaseId) && truth.granted.get(leaseId)?.token === fencingToken;
    if ((fencingToken === truth.token && fenceFloor === fencingToken) || holds)
      this.fail("S4", `${key}: the resource refuses ${fenceFloor}, of a lease that holds`);
  }

  /** The service told a client how its lease ended. */
  toldEnding(key: string, leaseId: string, state: LeaseState): void {
    const truth = this.#truth("locks", key);
    const ending = truth.endings.get(leaseId)?.ending;
    const truthful: Record<LeaseState, boolean> = {
      released: ending === "released",
      expired: ending === "expired" || ending === "collected",
      lost: ending === "taken" || ending === "broken",
      transferred: ending === "transferred",
      never: !truth.granted.has(leaseId),
      unknown: ending !== undefined && (this.mayDisagree || isForgotten(truth, leaseId, ending)),
    };
    if (!truthful[state]) this.fail("S6", `${key}: told "${state}" of a lease that ended by "${ending}"`);
  }

  /** Somebody was told that the lease is held, by a request of `sinceMs`. */
  toldHeld(key: string, leaseId: string, sinceMs: number): void {
    const truth = this.#truth("locks", key);
    const end = truth.endings.get(leaseId);
    const overMs = sinceMs - Math.min(end?.atMs ?? Number.POSITIVE_INFINITY, (truth.expiresAtMs.get(leaseId) ?? 0) + this.clockErrorMs);
    if (overMs > 0) this.fail("S14", `${key}: told that a lease is held which was over ${Math.round(overMs)} ms before`);
  }

  /** Somebody was told how many levels hold together: at most those that its scope was granted. */
  toldCount(key: string, { leaseId, holdCount }: { readonly leaseId: string; readonly holdCount: number }): void {
    const { granted } = this.#truth("locks", key);
    const scope = granted.get(leaseId)?.share.scope;
    const levels = [...granted].filter(([id, { share }]) => share.scope === scope && this.asked.has("acquire", id)).length;
    if (holdCount > (scope === undefined ? 1 : levels))
      this.fail("S10", `${key}: told of ${holdCount} levels, where ${levels} were granted`);
  }

  /** A request arrives once more, for an acquire whose id ended more than a ring ago. */
  duplicateAcquire(kind: Kind, key: string, leaseId: string): void {
    const { endOrder } = this.#truth(kind, key);
    const at = endOrder.indexOf(leaseId);
    if (at >= 0 && endOrder.length - at > 8) this.coverage.duplicatesPastTheRing++;
  }

  fail(property: Property, what: string): void {
    this.#fold(property);
    this.violations.push({ property, atMs: this.now(), what });
  }

  #told({ key, granted }: Truth, leaseId: string, told: number): void {
    const token = granted.get(leaseId)?.token;
    if (token !== told) this.fail("S8", `${key}: was granted token ${token} and told ${told}`);
  }

  /** A hold that was not there: of a new lease, or of another level of a scope that holds. */
  #began(truth: Truth, leaseId: string, hold: Hold, write: Written): void {
    const { key } = truth;
    const { fencingToken, scope } = hold;
    const { before, next } = write;
    this.coverage.grants++;
    const end = truth.endings.get(leaseId);
    if (end) this.fail("S7", `${key}: a lease that ended by "${end.ending}" holds again`);
    if (!this.asked.has("acquire", leaseId))
      this.fail(scope === undefined ? "S8" : "S10", `${key}: held under an id that nobody asked with`);
    // What was handed on to the id of a set is nobody's until the set asks for it.
    if (this.asked.keysOf(leaseId) && hold.principal !== "") this.#granted.push(leaseId);
    const others = Object.values(before?.holds ?? {});
    const levels = others.filter((other) => scope !== undefined && other.scope === scope && other.fencingToken === fencingToken);
    if (levels.length > 0) {
      this.coverage.levels++;
      const lastedMs = Math.max(...levels.map(({ expiresAtMs }) => expiresAtMs)) + this.clockErrorMs - write.decidedAtMs;
      if (lastedMs < 0) this.fail("S10", `${key}: joined a scope whose last level was over ${Math.round(-lastedMs)} ms before`);
    } else {
      if (fencingToken <= truth.token) this.fail("S3", `${key}: granted token ${fencingToken} after ${truth.token}`);
      if (Object.keys(next.holds).length > 1) this.coverage.joins++;
    }
    this.#holds(truth, leaseId, hold, next);
    this.#lasts(truth, leaseId, hold, write);
  }

  /** What was granted or renewed lasts for no longer than its length, from when that was decided. */
  #lasts({ key, expiresAtMs }: Truth, leaseId: string, hold: Hold, { decidedAtMs }: Written): void {
    expiresAtMs.set(leaseId, Math.min(hold.expiresAtMs, decidedAtMs + hold.leaseMs + this.clockErrorMs));
    const beyondMs = hold.expiresAtMs - decidedAtMs - hold.leaseMs - this.clockErrorMs - ROUNDING_MS;
    if (beyondMs > 0) this.fail("L1", `${key}: lasts ${Math.round(beyondMs)} ms longer than its length and any clock's error`);
  }

  /** The lease has this of the key from now on. */
  #holds(truth: Truth, leaseId: string, { fencingToken, mode, permits, scope }: Hold, { limit }: LockRecord): void {
    const share = { leaseId, mode, permits, scope, limit };
    truth.token = Math.max(truth.token, fencingToken);
    if (mode === "exclusive" && limit === 1) truth.floor = truth.token;
    truth.granted.set(leaseId, { token: fencingToken, share, order: ++truth.order });
    truth.holding.add(leaseId);
    this.believers.granted(truth, share);
  }

  #kept(truth: Truth, leaseId: string, hold: Hold, after: Hold, write: Written): void {
    const { key } = truth;
    const { next } = write;
    if (after.mode !== hold.mode) {
      this.coverage[after.mode === "shared" ? "downgrades" : "upgrades"]++;
      if (!this.asked.isToChange(leaseId, after.mode, hold.fencingToken))
        this.fail("S11", `${key}: nobody asked for a change from that token`);
      if (after.fencingToken <= truth.token) this.fail("S3", `${key}: changed to token ${after.fencingToken} after ${truth.token}`);
      this.#holds(truth, leaseId, after, next);
    } else if (after.fencingToken !== hold.fencingToken) this.fail("S8", `${key}: a living lease changed its token`);
    if (after.expiresAtMs === hold.expiresAtMs) return;
    this.coverage.renewals++;
    this.#lasts(truth, leaseId, after, write);
    if (after.broken && !hold.broken && !this.asked.isBroken(hold.fencingToken))
      this.fail("S5", `${key}: a hold is being broken although nobody asked for it`);
    if (hold.broken && after.expiresAtMs > hold.expiresAtMs) this.fail("S5", `${key}: extended while an operator is ending it`);
    if (after.broken) return;
    if (after.expiresAtMs < hold.expiresAtMs) this.fail("S5", `${key}: shortened by ${hold.expiresAtMs - after.expiresAtMs} ms`);
    if (!this.asked.has("renew", leaseId)) this.fail("S8", `${key}: extended although nobody renewed it`);
  }

  #ended(truth: Truth, leaseId: string, { fencingToken, expiresAtMs }: Hold, { next, decidedAtMs }: Written): void {
    const { key } = truth;
    const ending = next.tombstones.find((ended) => ended.leaseId === leaseId)?.ending;
    const released = this.asked.has("release", leaseId);
    if (!ending && leaseId <= next.lowWatermark) return this.#end(truth, leaseId, released ? "released" : "forgotten");
    truth.holding.delete(leaseId);
    if (!ending) return this.fail("S7", `${key}: a hold vanished without being remembered`);
    this.#end(truth, leaseId, ending);
    if (ending === "taken") this.coverage.takeovers++;
    if (ending === "taken") this.believers.taken(truth, leaseId);
    if (ending === "transferred") this.coverage.transfers++;
    if (ending === "broken") this.coverage.breaks++;
    if (ending === "released" || ending === "expired") this.coverage.releases++;
    const asked: Readonly<Record<string, boolean>> = {
      released,
      expired: released,
      unknown: released && this.mayDisagree,
      transferred: this.asked.has("transfer", leaseId),
      broken: this.asked.isBroken(fencingToken) || (truth.kind === "runs" && this.runs.asked.isBeingReset(key)),
      taken: true,
      cancelled: false,
    };
    if (!asked[ending]) this.fail("S5", `${key}: a hold ended by "${ending}" although nobody asked for it`);
    const leftMs = expiresAtMs - decidedAtMs;
    if (ending === "released" && leftMs + this.clockErrorMs < 0)
      this.fail("S6", `${key}: ended as released ${Math.round(-leftMs)} ms after it ran out`);
    if (ending === "expired" && leftMs - this.clockErrorMs > 0)
      this.fail("S6", `${key}: ended as expired with ${Math.round(leftMs)} ms left`);
  }

  #end(truth: Truth, leaseId: string, ending: Ending | Unremembered): void {
    truth.holding.delete(leaseId);
    truth.endings.set(leaseId, { ending, atMs: this.now(), order: ++truth.order });
    truth.endOrder.push(leaseId);
  }

  #truth(kind: Kind, key: string): Truth {
    const id = `${kind}/${key}`;
    let truth = this.#truths.get(id);
    if (!truth) this.#truths.set(id, (truth = newTruth(kind, key)));
    return truth;
  }

  #fold(text: string): void {
    for (let index = 0; index < text.length; index++) this.digest = Math.imul(this.digest ^ text.charCodeAt(index), 0x01000193) >>> 0;
  }
}

/** Whether the key need not know any more how this lease ended. */
function isForgotten({ endOrder }: Truth, leaseId: string, ending: End["ending"]): boolean {
  return ending === "collected" || ending === "forgotten" || endOrder.length - endOrder.lastIndexOf(leaseId) > REMEMBERED;
}
