/**
 * A history as a timeline that a person can read: requests and their answers, changes of a key's record and the clock that decided them,
 * clients that begin and cease to treat a lease as held, and processes that stop. Leases are numbered in the order in which they appear.
 */
import type { Lease } from "../../lib/client/hold/lease-types.js";
import type { LeaseSet } from "../../lib/client/hold/lease-set.js";
import type { Run } from "../../lib/client/calls/run/run-once.js";
import type { LockRecord, Mode } from "../../lib/core/record.js";
import type { Address } from "../../lib/store/port.js";
import { LEASE_ID } from "../support/lease-ids.js";
import { Oracle } from "./oracles/oracle.js";
import type { Written } from "./oracles/run-oracle.js";
import type { Believable } from "./oracles/lock-truth.js";
import type { Violation } from "./oracles/verdict.js";
import type { World } from "./world.js";

/** The longest timeline, in lines. Earlier lines are left out. */
const LINES_MOST = 80;
const WHO_WIDTH = 12;
/** The beginning of a client's name. */
const CLIENT = "client-";
/** A path with a key. Those of sets and of heartbeats sent together have none. */
const KEY_IN_PATH = /\b(?:locks|runs|limits)\//;

interface Entry {
  readonly atMs: number;
  readonly who: string;
  readonly what: string;
}

/** Collects what happens in one history. */
export class Timeline {
  readonly #entries: Entry[] = [];
  readonly #names = new Map<string, string>();
  readonly #world: World;
  readonly #startMs: number;

  constructor(world: World) {
    this.#world = world;
    this.#startMs = world.nowMs;
    world.tell = (who, what) => this.add(who, what);
  }

  /** Adds a line with the present time. */
  add(who: string, what: string): void {
    this.#entries.push({ atMs: this.#world.nowMs, who, what });
  }

  /** Returns a time of the history, in seconds from its start. */
  at(ms: number): string {
    return `${((ms - this.#startMs) / 1000).toFixed(3)} s`;
  }

  /** Returns the lines that lead to this violation: those about its key, and those of its clients that are about no other key. */
  until({ atMs, property, what }: Violation): readonly string[] {
    const [key = ""] = what.split(":", 1);
    const before = this.#entries.filter((entry) => entry.atMs <= atMs);
    const isAboutKey = ({ what: said }: Entry): boolean => said.includes(key);
    const clients = new Set(before.filter(isAboutKey).flatMap(({ who }) => (who.startsWith(CLIENT) ? [who] : [])));
    const about = before.filter((entry) => isAboutKey(entry) || (clients.has(entry.who) && !KEY_IN_PATH.test(entry.what)));
    const shown = about.slice(-LINES_MOST).map((entry) => this.#line(entry));
    const left = about.length - shown.length;
    const broken = this.#line({ atMs, who: "BROKEN", what: `${property}: ${what}` });
    return [...(left > 0 ? [`(${left} earlier lines)`] : []), ...shown, broken];
  }

  #line({ atMs, who, what }: Entry): string {
    const text = what.replaceAll(LEASE_ID, (leaseId) => this.#nameOf(leaseId));
    return `${this.at(atMs).padStart(12)}  ${who.padEnd(WHO_WIDTH)}  ${text}`;
  }

  #nameOf(leaseId: string): string {
    let name = this.#names.get(leaseId);
    if (name === undefined) this.#names.set(leaseId, (name = `lease-${this.#names.size + 1}`));
    return name;
  }
}

/** The oracle, which also tells the timeline what it sees. */
export class TellingOracle extends Oracle {
  readonly #timeline: Timeline;

  constructor(timeline: Timeline, ...about: ConstructorParameters<typeof Oracle>) {
    super(...about);
    this.#timeline = timeline;
  }

  override handed(lease: Lease, mode?: () => Mode): void {
    this.#holds(lease.key, lease.leaseId, lease);
    super.handed(lease, mode);
  }

  override handedSet(set: LeaseSet): void {
    this.#holds(set.keys.join(" and "), set.leaseId, set);
    super.handedSet(set);
  }

  override handedRaw(key: string, lease: Parameters<Oracle["handedRaw"]>[1]): void {
    this.#holds(key, lease.leaseId, lease);
    super.handedRaw(key, lease);
  }

  override begun(run: Run): void {
    this.#holds(run.idempotencyKey, `token ${run.fencingToken}`, run);
    super.begun(run);
  }

  override observed(address: Address, write: Written): void {
    // The others are changes, which are told below.
    if (write.before?.version === write.next.version) this.#timeline.add("record", `${address.key}: a waiter is still there`);
    super.observed(address, write);
  }

  override written(address: Address, write: Written): void {
    this.#timeline.add("record", `${address.key}: ${this.#change(write)}`);
    super.written(address, write);
  }

  override collected(address: Address, record: LockRecord): void {
    this.#timeline.add("record", `${address.key}: removed by garbage collection`);
    super.collected(address, record);
  }

  #holds(key: string, lease: string, of: Believable): void {
    const forMs = of.remainingMs?.();
    const until = forMs === undefined ? "" : `, for ${Math.round(forMs)} ms from now`;
    this.#timeline.add("a client", `treats ${key} as held by ${lease}${until}`);
    of.signal.addEventListener("abort", () => this.#timeline.add("a client", `no longer treats ${key} as held by ${lease}`));
  }

  /** Describes the parts of the record that a write changed, and how far the deciding clock was off. */
  #change({ before, next, decidedAtMs }: Written): string {
    const old = before && this.#partsOf(before);
    const changed = Object.entries(this.#partsOf(next)).filter(([name, text]) => old?.[name] !== text);
    const offMs = Math.round(decidedAtMs - this.now());
    const clock = offMs === 0 ? "" : ` (decided ${Math.abs(offMs)} ms ${offMs > 0 ? "ahead" : "ago"})`;
    return `version ${next.version}${clock}: ${changed.map(([name, text]) => `${name} ${text || "nobody"}`).join("; ") || "no change"}`;
  }

  #partsOf({ holds, offers, waiters, tombstones, lowWatermark, run }: LockRecord): Readonly<Record<string, string>> {
    const held = Object.entries(holds).map(
      ([id, { fencingToken, expiresAtMs, mode, broken }]) =>
        `${id} (token ${fencingToken}${mode === "shared" ? ", shared" : ""}, until ${this.#timeline.at(expiresAtMs)}${broken ? ", being broken" : ""})`,
    );
    return {
      "held by": held.join(" and "),
      "offered to": offers.map(({ leaseId }) => leaseId).join(" and "),
      "awaited by": waiters.map(({ leaseId }) => leaseId).join(", "),
      "ended:": tombstones.map(({ leaseId, ending }) => `${leaseId} ${ending}`).join(", "),
      "low watermark": lowWatermark,
      run: run ? `${run.state}, attempt ${run.attempt}` : "",
    };
  }
}
