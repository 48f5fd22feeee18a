/** One key of the pure core with a queue. To the holders of {@link Key}, it adds the offers (`Bx?`) and the waiters, in order (`Cs…`). */
import { check } from "../../lib/core/lock/check.js";
import type { Acquire, AnswerTo, Command, Decision, Notify, WaitForCondition, Waiting } from "../../lib/core/commands.js";
import type { LockRecord, Offer, Waiter } from "../../lib/core/record.js";
import { transition } from "../../lib/core/transition.js";
import { LEASE_MS, outcomeOf, POLICY } from "../store/fixture.js";
import { type AcquireOptions, ID, Key } from "./kinds-key.js";

/** The options of an acquire that concern the queue. */
export type QueueOptions = AcquireOptions & Partial<Pick<Acquire, "leaseId" | "priority" | "owner" | "wait" | "sleepMs" | "meta">>;

/** The record after a decision was written: `next`, or the record with the touched waiter in its place. */
export function writtenOver(before: LockRecord | undefined, { next, touch }: Decision): LockRecord | undefined {
  if (next) return next;
  if (!touch || !before) return before;
  const { waiter, index, inWaitSet } = touch;
  if (!inWaitSet) return { ...before, waiters: before.waiters.with(index, waiter) };
  const { waitSet = [] } = before;
  return {
    ...before,
    waitSet: waitSet.map((member, at) => (at === index ? { ...member, ...waiter, condition: member.condition } : member)),
  };
}

/** One key, at the start of the tests' time, never used. */
export class QueueKey extends Key {
  /** The decision on the latest command. */
  decision: Decision | undefined;

  override send<C extends Command>(command: C): AnswerTo<C> {
    const decision = transition(this.record, command, this.reading, POLICY);
    this.decision = decision;
    this.record = writtenOver(this.record, decision);
    return decision.answer;
  }

  override acquire(letter: string, options: QueueOptions = {}): AnswerTo<Acquire> {
    return super.acquire(letter, options);
  }

  /** Acquires with waiting: a new lease enqueues, a waiter asks for the key. */
  ask(letter: string, options: QueueOptions = {}): AnswerTo<Acquire> {
    return this.acquire(letter, { ...options, wait: true });
  }

  /** Returns the answer to a poll by GET. @throws Error if the lease isn't in the queue. */
  look(letter: string): Waiting {
    const answer = this.check(letter);
    if (!answer.ok || !("state" in answer)) throw new Error(`${letter} does not wait: ${outcomeOf(answer)}`);
    return answer;
  }

  /** Every command and poll that names a lease by its id alone. */
  by(principal: string, letter: string) {
    const ref = { key: "k", leaseId: ID(letter), principal } as const;
    return {
      check: () => check(this.record, ref, this.reading),
      release: () => this.send({ type: "release", ...ref }),
      renew: () => this.send({ type: "renew", ...ref }),
    };
  }

  override copy(): QueueKey {
    const copy = new QueueKey();
    copy.record = this.record;
    copy.reading = this.reading;
    return copy;
  }

  /** The waiter by its letter. @throws Error if it isn't in the queue. */
  waiter(letter: string): Waiter {
    const waiter = this.record?.waiters.find(({ leaseId }) => leaseId === ID(letter));
    if (!waiter) throw new Error(`${letter} does not wait`);
    return waiter;
  }

  /** Frees the key that `letter` holds, and waits for `condition` as `next`. */
  wait(letter: string, next: string, condition = "c", options: QueueOptions = {}): AnswerTo<WaitForCondition> {
    const usual = { owner: "", leaseMs: LEASE_MS, mode: "exclusive", limit: 1, permits: 1, priority: 0, requestHash: "same" } as const;
    const { principal = "P" } = options;
    const to: Acquire = { type: "acquire", key: "k", leaseId: ID(next), principal, ...usual, ...options };
    return this.send<WaitForCondition>({ type: "wait", key: "k", leaseId: ID(letter), principal, condition, to });
  }

  /** Notifies `condition` as the holder `letter`. */
  notify(letter: string, sequence?: number, { condition = "c", all = false, principal = "P" } = {}): AnswerTo<Notify> {
    return this.send<Notify>({
      type: "notify",
      key: "k",
      leaseId: ID(letter),
      principal,
      condition,
      all,
      ...(sequence !== undefined && { sequence }),
    });
  }

  /** The members of the wait set with their conditions. */
  get set(): string {
    const { waitSet = [] } = this.record ?? {};
    return waitSet
      .map(({ leaseId, condition }) => `${String.fromCharCode(64 + Number.parseInt(leaseId.slice(-4), 16))}:${condition}`)
      .join(" ");
  }

  /** The holders, the offers and the waiters. */
  get all(): string {
    const { offers = [], waiters = [], limit = 1 } = this.record ?? {};
    const kind = ({ mode, permits }: Offer | Waiter): string => (limit > 1 ? `${permits}/${limit}` : mode === "shared" ? "s" : "x");
    const name = (asking: Offer | Waiter): string => String.fromCharCode(64 + Number.parseInt(asking.leaseId.slice(-4), 16)) + kind(asking);
    return [this.holds, ...offers.map((offer) => `${name(offer)}?`), ...waiters.map((waiter) => `${name(waiter)}…`)]
      .filter(Boolean)
      .join(" ");
  }

  /** The log events of the latest command. */
  get events(): string {
    const { events = [] } = this.decision ?? {};
    return events
      .map(({ event, leaseId, reason }) => `${String.fromCharCode(64 + Number.parseInt(leaseId.slice(-4), 16))} ${reason ?? event}`)
      .join(", ");
  }
}

/** A key that A holds for a long time, with these waiters. */
export function queueOf(letters: string): QueueKey {
  const key = new QueueKey();
  key.acquire("A", { leaseMs: 100 * LEASE_MS });
  for (const letter of letters) key.ask(letter);
  return key;
}
