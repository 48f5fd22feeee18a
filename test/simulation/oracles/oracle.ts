/**
 * The oracle. It sees every write to the table in order, and every lease that a client received, and reports which property of the design
 * was broken. It shares no rule with the code under test: it knows only the events that it saw. For runs it checks the properties that
 * they share with locks. The other checks are in run-oracle.ts (runs), queue-oracle.ts (queues), wait-oracle.ts (waits), limit-oracle.ts
 * (limits) and believers.ts (leases that clients treat as held).
 */
import type { Lease } from "../../../lib/client/hold/lease-types.js";
import type { LeaseSet } from "../../../lib/client/hold/lease-set.js";
import type { Run } from "../../../lib/client/calls/run/run-once.js";
import type { LeaseState } from "../../../lib/core/commands.js";
import { LIMITS } from "../../../lib/core/limits.js";
import type { Kind } from "../../../lib/core/api/locks.js";
import type { Ending, Hold, LockRecord, Mode } from "../../../lib/core/record.js";
import type { Address } from "../../../lib/store/port.js";
import { asLock, Believers } from "./believers.js";
import { LimitOracle } from "./limit-oracle.js";
import { LockRequests } from "./lock-requests.js";
import { type Believable, type End, type Truth, type Unremembered, newTruth } from "./lock-truth.js";
import { QueueOracle } from "./queue-oracle.js";
import { type Written, RunOracle } from "./run-oracle.js";
import { clash, holdersIn } from "./sharing.js";
import { type Bench, type Property, type Violation, noCoverage } from "./verdict.js";
import { WaitOracle } from "./wait-oracle.js";

/** The largest item of a lock, in bytes. */
const ITEM_BYTES = 32 * 1024;
/** The number of recently ended leases whose endings must at least be known. Cancelled ids may take the other places. */
const REMEMBERED = LIMITS.tombstonesMax / 2;
/** Rounding: times in a record are whole numbers. */
const ROUNDING_MS = 2;

/** A write to the guarded resource: the lease that sent it, and the tokens that the resource compares. */
export interface ResourceWrite {
  readonly leaseId?: string;
  readonly fencingToken: number;
  /** The token to compare for a shared lease or a permit. */
  readonly fenceFloor?: number;
}

/** Checks one history. */
export class Oracle implements Bench {
  readonly violations: Violation[] = [];
  readonly coverage = noCoverage();
  readonly asked: LockRequests;
  readonly runs: RunOracle;
  readonly queues = new QueueOracle(this);
  readonly waits = new WaitOracle(this);
  readonly limits = new LimitOracle(this);
  readonly believers = new Believers(this, (token) => this.asked.isForced(token));
  /** False while nobody need get on: then no property of liveness is judged. */
  judgesLiveness = true;
  /** A hash of the whole history. The same seed must give the same hash. */
  digest = 0x811c9dc5;
  readonly #truths = new Map<string, Truth>();
  readonly #tries = new Map<string, number>();
  /** The leases of sets that were granted in the current transaction. */
  #granted: string[] = [];

  constructor(
    readonly now: () => number,
    /** The largest clock error of a decision, in ms. Releases are excluded: any clock may decide them. */
    private readonly clockErrorMs = 0,
    /** True if the clocks of a release may be further apart than the guard allows. */
    private readonly mayDisagree = false,
    /** True if sets are acquired in parts. */
    setsInParts = false,
  ) {
    this.asked = new LockRequests(setsInParts);
    this.runs = new RunOracle(this);
  }

  /** Records a lease that a client holds from now on, in the mode of the lease or of `mode`. */
  handed(lease: Lease, mode: () => Mode = () => lease.mode): void {
    const truth = this.#truth("locks", lease.key);
    this.#told(truth, lease.leaseId, lease.fencingToken);
    this.believers.add(lease, [{ truth, leaseId: lease.leaseId, of: lease, mode }], () => {
      if (lease.state === "lost") this.coverage.losses++;
    });
  }

  /** Records a set that a client holds from now on. */
  handedSet(set: LeaseSet): void {
    const { leaseId } = set;
    const truths = set.keys.map((key) => this.#truth("locks", key));
    if (this.asked.setsInParts) this.#heldWhole(set, truths);
    for (const truth of truths)
      this.#told(truth, leaseId, Object.hasOwn(set.fencingTokens, truth.key) ? (set.fencingTokens[truth.key] ?? 0) : 0);
    this.believers.add(
      set,
      truths.map((truth) => ({ truth, leaseId, of: set })),
    );
  }

  /** A client that is told to hold a set in parts holds every key, unless it lost one since. */
  #heldWhole({ leaseId }: LeaseSet, truths: readonly Truth[]): void {
    this.coverage.sets++;
    for (const { key, holding, endings } of truths) {
      if (!holding.has(leaseId) && endings.get(leaseId)?.ending === "released") this.fail("S13", `a set is told as granted without ${key}`);
    }
  }

  /** Records a lease that a plain HTTP client holds from now on. */
  handedRaw(key: string, lease: Believable & { readonly leaseId: string; readonly fencingToken: number }): void {
    const truth = this.#truth("locks", key);
    this.#told(truth, lease.leaseId, lease.fencingToken);
    this.believers.add(lease, [{ truth, leaseId: lease.leaseId, of: lease }]);
  }

  /** Records a run whose work a client begins now. */
  begun(run: Run): void {
    this.runs.begun(run);
    const truth = this.#truth("runs", run.idempotencyKey);
    const [leaseId = ""] = [...truth.granted].find(([, { token }]) => token === run.fencingToken) ?? [];
    this.believers.add(run, [{ truth, leaseId, of: run }]);
  }

  /** Records a write to the table: a change of the record, or a waiter's keep-alive, which doesn't change the version. */
  observed(address: Address, write: Written): void {
    const { before, next } = write;
    if (before?.version !== next.version) return this.written(address, write);
    for (const [place, waiter] of next.waiters.entries())
      if (before.waiters[place]?.aliveUntilMs !== waiter.aliveUntilMs) this.queues.heard(waiter);
    const rest = ({ holds, offers, tombstones: ended, lowWatermark: floor, fencingToken, run }: LockRecord): string =>
      JSON.stringify([holds, offers, ended, floor, fencingToken, run]);
    if (rest(before) !== rest(next)) this.fail("S2", `${address.key}: changed at version ${next.version}, which it had before`);
  }

  /** Checks a write, with the record before and after it. */
  written({ kind, key }: Address, write: Written): void {
    const { before, next } = write;
    const truth = this.#truth(kind, key);
    this.#fold(`${kind}/${key}|${next.version}|${next.fencingToken}|${Object.keys(next.holds).join()}`);
    // If the clocks disagree, a new record is dated by the id that is cancelled, however old it is (release.ts).
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
    else {
      this.queues.written(key, before, next, this.asked);
      this.waits.written(key, next);
    }
  }

  /** Returns the latest time, in true time, until which the key is held without further renewals. */
  heldUntilMs(key: string): number {
    const { holding, expiresAtMs } = this.#truth("locks", key);
    return Math.max(0, ...[...holding].map((leaseId) => expiresAtMs.get(leaseId) ?? 0));
  }

  /** Returns the leases that the key was granted to. */
  leasesOf(key: string): readonly string[] {
    return [...this.#truth("locks", key).granted.keys()];
  }

  /** Checks the size of an item that was written. */
  sized({ key }: Address, bytes: number): void {
    if (bytes > ITEM_BYTES) this.fail("L4", `${key}: an item of ${bytes} bytes, which every heartbeat pays for`);
  }

  /** Counts a write that reaches the table, whatever its result. */
  tried({ key }: Address): void {
    this.#tries.set(key, this.triesOf(key) + 1);
  }

  /** Returns the number of writes of the key that reached the table. */
  triesOf(key: string): number {
    return this.#tries.get(key) ?? 0;
  }

  /** Called after all parts of a write or of a transaction were reported. Checks that sets are complete. */
  settled(): void {
    for (const leaseId of this.#granted) {
      // In parts, it is granted when its client is told so.
      if (this.asked.setsInParts) continue;
      const missing = this.asked.keysOf(leaseId)?.find((key) => !this.#truth("locks", key).holding.has(leaseId));
      if (missing !== undefined) this.fail("S13", `a set was granted without ${missing}`);
      this.coverage.sets++;
    }
    this.#granted = [];
  }

  /** Records that garbage collection removed the record. */
  collected({ kind, key }: Address, record: LockRecord): void {
    const truth = this.#truth(kind, key);
    this.coverage.collections++;
    truth.wasCollected = true;
    this.#fold(`${kind}/${key}|collected`);
    for (const leaseId of Object.keys(record.holds)) this.#end(truth, leaseId, "collected");
    this.believers.collected(truth);
    if (kind === "runs") this.runs.collected(key);
    else this.waits.written(key, undefined);
  }

  /** Checks a fenced write that reaches the guarded resource. */
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

  /** Checks the token that a sleeper is told of. */
  toldToken(key: string, leaseId: string, fencingToken: number): void {
    this.#told(this.#truth("locks", key), leaseId, fencingToken);
  }

  /** Checks the service's answer to a client about how its lease ended. */
  toldEnding(key: string, leaseId: string, state: LeaseState): void {
    const truth = this.#truth("locks", key);
    const ending = truth.endings.get(leaseId)?.ending;
    const truthful: Record<LeaseState, boolean> = {
      released: ending === "released" || ending === "forgotten",
      expired: ending === "expired" || ending === "collected" || ending === "forgotten",
      lost: ending === "taken" || ending === "broken",
      transferred: ending === "transferred",
      never: !truth.granted.has(leaseId),
      unknown: ending !== undefined && (this.mayDisagree || isForgotten(truth, leaseId, ending)),
    };
    if (!truthful[state]) this.fail("S6", `${key}: told "${state}" of a lease that ended by "${ending}"`);
  }

  /** Checks an answer that the lease is held, to a request sent at `sinceMs`. */
  toldHeld(key: string, leaseId: string, sinceMs: number): void {
    const truth = this.#truth("locks", key);
    const end = truth.endings.get(leaseId);
    const overMs = sinceMs - Math.min(end?.atMs ?? Number.POSITIVE_INFINITY, (truth.expiresAtMs.get(leaseId) ?? 0) + this.clockErrorMs);
    if (overMs > 0) this.fail("S14", `${key}: told that a lease is held which was over ${Math.round(overMs)} ms before`);
  }

  /** Checks a reported number of reentrant holds: at most the number that was granted to the scope. */
  toldCount(key: string, { leaseId, holdCount }: { readonly leaseId: string; readonly holdCount: number }): void {
    const { granted } = this.#truth("locks", key);
    const scope = granted.get(leaseId)?.share.scope;
    const levels = [...granted].filter(([id, { share }]) => share.scope === scope && this.asked.has("acquire", id)).length;
    if (holdCount > (scope === undefined ? 1 : levels))
      this.fail("S10", `${key}: told of ${holdCount} levels, where ${levels} were granted`);
  }

  /** Counts duplicates of an acquire whose lease is followed by eight or more further ends, so that its tombstone is gone. */
  duplicateAcquire(kind: Kind, key: string, leaseId: string): void {
    const { endOrder } = this.#truth(kind, key);
    const at = endOrder.indexOf(leaseId);
    if (at >= 0 && endOrder.length - at > 8) this.coverage.duplicatesPastTheRing++;
  }

  fail(property: Property, what: string): void {
    if (!this.judgesLiveness && property.startsWith("L")) return;
    this.#fold(property);
    this.violations.push({ property, atMs: this.now(), what });
  }

  #told({ key, granted }: Truth, leaseId: string, told: number): void {
    const token = granted.get(leaseId)?.token;
    if (token !== told) this.fail("S8", `${key}: was granted token ${token} and told ${told}`);
  }

  /** Records a new hold: of a new lease, or another reentrant hold of a scope. */
  #began(truth: Truth, leaseId: string, hold: Hold, write: Written): void {
    const { key } = truth;
    const { fencingToken, scope } = hold;
    const { before, next } = write;
    this.coverage.grants++;
    const end = truth.endings.get(leaseId);
    if (end) this.fail("S7", `${key}: a lease that ended by "${end.ending}" holds again`);
    if (!this.asked.has("acquire", leaseId))
      this.fail(scope === undefined ? "S8" : "S10", `${key}: held under an id that nobody asked with`);
    // A lease transferred to the id of a set has no owner until the set is acquired.
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

  /** Checks that a granted or renewed lease lasts for at most its length, counted from the decision. */
  #lasts({ key, expiresAtMs }: Truth, leaseId: string, hold: Hold, { decidedAtMs }: Written): void {
    expiresAtMs.set(leaseId, Math.min(hold.expiresAtMs, decidedAtMs + hold.leaseMs + this.clockErrorMs));
    const beyondMs = hold.expiresAtMs - decidedAtMs - hold.leaseMs - this.clockErrorMs - ROUNDING_MS;
    if (beyondMs > 0) this.fail("L1", `${key}: lasts ${Math.round(beyondMs)} ms longer than its length and any clock's error`);
  }

  /** Records the lease's share of the key from now on. */
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
    const leftMs = expiresAtMs - decidedAtMs;
    if (!ending && leaseId <= next.lowWatermark) {
      // Its own tombstone was dropped at once.
      const isClear = released && Math.abs(leftMs) > this.clockErrorMs;
      return this.#end(truth, leaseId, isClear ? (leftMs > 0 ? "released" : "expired") : "forgotten");
    }
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

/** True if the key needn't know any more how this lease ended. */
function isForgotten({ endOrder }: Truth, leaseId: string, ending: End["ending"]): boolean {
  return ending === "collected" || ending === "forgotten" || endOrder.length - endOrder.lastIndexOf(leaseId) > REMEMBERED;
}
