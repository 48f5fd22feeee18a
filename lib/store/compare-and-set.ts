/**
 * The compare-and-set loop that every store runs:
 *
 *  1. decide on the record as it was last seen;
 *  2. nothing to change: answer;
 *  3. write the change on condition that the version is still the one seen, or in one of the {@link LeanWay}s, on a condition of its own;
 *  4. lost the race: the response carries the newer record. Wait briefly, with jitter, and decide again.
 *
 * The loop is bounded. A request that keeps losing gives up, and has definitely written nothing.
 */
import { type Backoff, backoffMs } from "../core/backoff.js";
import type { Command, Decision, Touch } from "../core/commands.js";
import { LIMITS } from "../core/limits.js";
import type { LockRecord, LockPolicy } from "../core/record.js";
import type { Clock, ClockReading } from "../core/time.js";
import { transition } from "../core/transition.js";
import { type Address, type Applied, type Part, type ReadClocks, KeyContended } from "./port.js";

/** The outcome of a conditional write. A refused write returns the record that refused it. */
export type WriteResult = { readonly written: true } | { readonly written: false; readonly seen: LockRecord | undefined };

/**
 * The ways to write a change without a condition on the version. Each has a condition of its own, so it loses fewer races. In the order in
 * which the loop tries them:
 *
 *  - `end`, after a lost race: ends a lease, and leaves the queue to its next poll. So a release loses no more than two races.
 *  - `commute`: the core would decide the same on the present record, be it `seen` or a later one.
 *  - `append`: puts one more waiter at the end of the queue. So two hundred concurrent waiters don't race each other.
 */
const LEAN_WAYS = ["end", "commute", "append"] as const;
/** One of the ways to write a change without a condition on the version. */
export type LeanWay = (typeof LEAN_WAYS)[number];

/** The writes of a store for one key. */
export interface Writes {
  /** Writes the next record, if the version is still the one seen. */
  readonly replace: (next: LockRecord, seen: LockRecord | undefined) => Promise<WriteResult>;
  /** Writes only a waiter's keep-alive, if the waiter is still at its place. */
  readonly touchWaiter: (touch: Touch, seen: LockRecord) => Promise<WriteResult>;
  /** Writes the change in this way, and returns what was decided on the record that it changed. Undefined: this store has no such write. */
  readonly lean?: <C extends Command>(
    way: LeanWay,
    seen: LockRecord,
    command: C,
    reading: ClockReading,
  ) => Promise<LeanResult<C>> | undefined;
}

/** The outcome of a lean write. */
export type LeanResult<C extends Command> =
  { readonly written: true; readonly decided: Applied<C> } | { readonly written: false; readonly seen: LockRecord | undefined };

/** The loop's dependencies. */
export interface CompareAndSetDeps {
  readonly policy: LockPolicy;
  readonly clock: Clock;
  /** Returns a number from 0 to 1, for jitter. */
  readonly random: () => number;
}

/** Pauses before deciding again after a lost race, without jitter. */
const PAUSES: Backoff = { firstMs: 4, longestMs: 256 };

/** Decides `command` starting from `seen`, and retries until a write succeeds or nothing needs writing. */
export async function compareAndSet<C extends Command>(
  seen: LockRecord | undefined,
  command: C,
  clocks: ReadClocks,
  writes: Writes,
  { policy, clock, random }: CompareAndSetDeps,
): Promise<Applied<C>> {
  // The latest version at which the table refused each way. Such a record is written as a whole.
  const refusedAt: Record<LeanWay, number> = { end: 0, commute: 0, append: 0 };
  for (let attempt = 0; attempt < LIMITS.compareAndSetAttempts; attempt++) {
    if (attempt > 0) await pause(clock, random() * backoffMs(PAUSES, attempt));
    const reading = clocks();
    const { answer, next, touch, behind, commutes, events } = transition(seen, command, reading, policy);
    const isRight: Record<LeanWay, unknown> = { end: attempt > 0 && next, commute: commutes, append: behind };
    const before = seen;
    const ways = LEAN_WAYS.filter((way) => before && isRight[way] && before.version > refusedAt[way]);
    const lean = before && sendLean(ways, (way) => writes.lean?.(way, before, command, reading));
    if (lean) {
      const result = await lean.sent;
      if (result.written) return result.decided;
      // The condition of an append depends on the record only by the number of places, so it would most likely be refused again.
      refusedAt[lean.way] = (lean.way === "append" ? result.seen : before)?.version ?? 0;
      seen = result.seen;
      continue;
    }
    const written = touch && seen ? writes.touchWaiter(touch, seen) : next && writes.replace(next, seen);
    if (!written) return { answer, events };
    const result = await written;
    if (result.written) return { answer, events };
    seen = result.seen;
  }
  throw new KeyContended(`the key changed ${LIMITS.compareAndSetAttempts} times under this request`);
}

/** Sends the first of these lean writes that the store has. */
function sendLean<Sent>(ways: readonly LeanWay[], send: (way: LeanWay) => Sent | undefined): { way: LeanWay; sent: Sent } | undefined {
  for (const way of ways) {
    const sent = send(way);
    if (sent) return { way, sent };
  }
  return undefined;
}

/** The outcome of a transaction. A refused transaction returns the records as they are now. */
export type WriteAllResult = { readonly written: true } | { readonly written: false; readonly seen: readonly (LockRecord | undefined)[] };

/** A record to write over another. Without `next`, the record must only be unchanged for the transaction to succeed. */
export interface Change {
  readonly address: Address;
  readonly next?: LockRecord;
  readonly seen: LockRecord | undefined;
}

/** The same loop over several keys: all of them change together, or none does. */
export async function compareAndSetAll<C extends Command>(
  seen: readonly (LockRecord | undefined)[],
  parts: readonly Part<C>[],
  clocks: ReadClocks,
  replaceAll: (changes: readonly Change[]) => Promise<WriteAllResult>,
  { policy, clock, random }: CompareAndSetDeps,
): Promise<readonly (Applied<C> | undefined)[]> {
  for (let attempt = 0; attempt < LIMITS.compareAndSetAttempts; attempt++) {
    if (attempt > 0) await pause(clock, random() * backoffMs(PAUSES, attempt));
    const reading = clocks();
    const decisions = parts.map(({ command }, index) => transition(seen[index], command, reading, policy));
    if (decisions.some(({ answer }) => !answer.ok))
      return refusedSet(
        parts,
        decisions.map((decision, index) => ({ decision, seen: seen[index] })),
        replaceAll,
      );
    if (decisions.every(({ next }) => !next)) return decisions;
    // A part that is held already takes part too, since it may end meanwhile.
    const changes = parts.map(({ address }, index) => {
      const next = decisions[index]?.next;
      return { address, seen: seen[index], ...(next && { next }) };
    });
    const result = await replaceAll(changes);
    if (result.written) return decisions;
    seen = result.seen;
  }
  throw new KeyContended(`the keys changed ${LIMITS.compareAndSetAttempts} times under this request`);
}

/** Returns the answers to a refused set. A key that refused it may have an advanced queue, which is written by itself (L1). */
export function refusedSet<C extends Command>(
  parts: readonly Part<C>[],
  decided: readonly ({ readonly decision: Decision<C>; readonly seen: LockRecord | undefined } | undefined)[],
  replaceAll: (changes: readonly Change[]) => Promise<WriteAllResult>,
): Promise<readonly (Applied<C> | undefined)[]> {
  const told = async ({ address }: Part<C>, index: number): Promise<Applied<C> | undefined> => {
    const one = decided[index];
    if (!one) return undefined;
    const { answer, next, events } = one.decision;
    const isWritten = !answer.ok && next !== undefined && (await replaceAll([{ address, next, seen: one.seen }])).written;
    return { answer, events: isWritten ? events : [] };
  };
  return Promise.all(parts.map(told));
}

function pause(clock: Clock, delayMs: number): Promise<void> {
  // Skip the timer for a zero delay: a test's clock may stand still.
  return delayMs <= 0 ? Promise.resolve() : new Promise((resolve) => clock.after(delayMs, resolve));
}
