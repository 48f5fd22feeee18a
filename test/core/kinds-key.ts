/**
 * One key of the pure core, in any of its kinds, with simulated time. Every command replaces the record, and its answer
 * is a word or two.
 */
import { check } from "../../lib/core/lock/check.js";
import type { Acquire, AnswerTo, Command, LeaseView } from "../../lib/core/commands.js";
import type { LeaseId } from "../../lib/core/lease-id.js";
import type { LockRecord, Mode } from "../../lib/core/record.js";
import type { ClockReading } from "../../lib/core/time.js";
import { transition } from "../../lib/core/transition.js";
import { leaseId, LEASE_MS, outcomeOf, POLICY, START_MS } from "../store/fixture.js";

/** The options of a reader, a writer (none) and permits of a semaphore; the scope S. */
export const READER = { mode: "shared" } as const;
export const WRITER = {};
export const permits = (count: number, limit = 3) => ({ permits: count, limit }) as const;
export const IN_S = { scope: "scope S" } as const;

/** The options of an acquire besides its leaseId. */
export type AcquireOptions = Partial<Pick<Acquire, "principal" | "mode" | "limit" | "permits" | "scope" | "leaseMs" | "requestHash">>;

/** Leases by the letters of the tests, in the order of their ids. */
export const ID = (letter: string): LeaseId => leaseId(letter.charCodeAt(0) - 64);

/** One key, at {@link START_MS}, never used. */
export class Key {
  record: LockRecord | undefined;
  reading: ClockReading = { earliestMs: START_MS, latestMs: START_MS };

  /** Sets the clocks: the earliest at `ms` after the start, the latest `aheadMs` beyond. */
  at(ms: number, aheadMs = 0): this {
    this.reading = { earliestMs: START_MS + ms, latestMs: START_MS + ms + aheadMs };
    return this;
  }

  send<C extends Command>(command: C): AnswerTo<C> {
    const { answer, next } = transition(this.record, command, this.reading, POLICY);
    this.record = next ?? this.record;
    return answer;
  }

  acquire(letter: string, options: AcquireOptions = {}) {
    const usual = {
      principal: "P",
      owner: "",
      leaseMs: LEASE_MS,
      mode: "exclusive",
      limit: 1,
      permits: 1,
      priority: 0,
      requestHash: "same",
    } as const;
    return this.send<Acquire>({ type: "acquire", key: "k", leaseId: ID(letter), ...usual, ...options });
  }

  renew(letter: string, leaseMs = LEASE_MS) {
    return this.send({ type: "renew", key: "k", leaseId: ID(letter), principal: "P", leaseMs });
  }

  release(letter: string) {
    return this.send({ type: "release", key: "k", leaseId: ID(letter), principal: "P" });
  }

  transfer(letter: string, to: string) {
    return this.send({ type: "transfer", key: "k", leaseId: ID(letter), principal: "P", toLeaseId: ID(to) });
  }

  /** Changes the mode, by default with the lease's present token. */
  change(letter: string, mode: Mode, fencingToken = this.tokenOf(letter), principal = "P") {
    return this.send({ type: "mode", key: "k", leaseId: ID(letter), principal, mode, fencingToken });
  }

  /** Breaks the hold that this lease belongs to. */
  break(letter: string, drainMs?: number) {
    return this.send({ type: "break", key: "k", fencingToken: this.tokenOf(letter), ...(drainMs !== undefined && { drainMs }) });
  }

  check(letter: string) {
    return check(this.record, { key: "k", leaseId: ID(letter), principal: "P" }, this.reading);
  }

  /** The token of the lease; 1, which no lease has, if it holds nothing. */
  tokenOf(letter: string): number {
    return this.record?.holds[ID(letter)]?.fencingToken ?? 1;
  }

  /** The lease as its holder sees it. @throws Error if it isn't held. */
  lease(letter: string): LeaseView {
    const answer = this.check(letter);
    if (!answer.ok || !("lease" in answer)) throw new Error(`${letter} does not hold: ${outcomeOf(answer)}`);
    return answer.lease;
  }

  /** A copy for experiments. */
  copy(): Key {
    const copy = new Key();
    copy.record = this.record;
    copy.reading = this.reading;
    return copy;
  }

  /**
   * The holders on the record: `Ax` a writer, `Bs` a reader, `C2/3` two permits of three. Leases with the same token
   * are joined by `=`. `†` has expired, `!` is being broken, `^` waits to become the writer.
   */
  get holds(): string {
    const { holds = {}, limit = 1, upgrading } = this.record ?? {};
    const byToken = new Map<number, string[]>();
    for (const [id, hold] of Object.entries(holds).sort(([a], [b]) => (a < b ? -1 : 1))) {
      const kind = limit > 1 ? `${hold.permits}/${limit}` : hold.mode === "shared" ? "s" : "x";
      const over = hold.expiresAtMs <= this.reading.earliestMs ? "†" : "";
      const waits = upgrading?.leaseId === id && upgrading.untilMs > this.reading.earliestMs ? "^" : "";
      const text = `${letterOf(id)}${kind}${over}${hold.broken ? "!" : ""}${waits}`;
      byToken.set(hold.fencingToken, [...(byToken.get(hold.fencingToken) ?? []), text]);
    }
    return Array.from(byToken.values(), (level) => level.join("=")).join(" ");
  }
}

/** The letter of a test's lease. */
function letterOf(id: LeaseId): string {
  return String.fromCharCode(64 + Number.parseInt(id.slice(-4), 16));
}
