/**
 * The loop by which every change gets into a store:
 *
 *  1. decide on what is known of the key: what this request has seen of it, or what an earlier one saw;
 *  2. this request has seen the key, and nothing is to change: answer;
 *  3. write the first {@link Form} that fits the decision, on that form's condition. Until this request has seen the key, also a form that
 *     guesses. Where there is none, read;
 *  4. refused: the response carries the key as it is now. Decide again, after a brief pause with jitter if this request had seen the key before.
 *
 * The loop is bounded. A request that keeps losing gives up, and has definitely written nothing.
 */
import { type Backoff, backoffMs } from "../core/backoff.js";
import type { Command, Decision } from "../core/commands.js";
import { LIMITS } from "../core/limits.js";
import type { LockRecord, LockPolicy } from "../core/record.js";
import type { Clock, ClockReading } from "../core/time.js";
import { transition } from "../core/transition.js";
import { type Address, type Applied, type Part, type ReadClocks, KeyContended } from "./port.js";

/** A record, with whatever else a store reads of its key. */
export interface Stored {
  readonly record: LockRecord;
}

/** A key, as far as it is known. */
export interface Known<S extends Stored> {
  /** Absent: it has no record. */
  readonly stored?: S | undefined;
  /** True if this request has seen it. Otherwise an earlier one did. */
  readonly isFresh: boolean;
}

/** One attempt to carry out a command: what its write may depend on. */
export interface Attempt<C extends Command = Command, S extends Stored = Stored> {
  readonly command: C;
  readonly reading: ClockReading;
  readonly policy: LockPolicy;
  readonly seen?: S | undefined;
  /** The decision on what is known. Absent: nothing is. */
  readonly decision?: Decision<C> | undefined;
  readonly isFresh: boolean;
  /** The writes of this request that were refused. */
  readonly refusals: number;
}

/** A form in which a store writes a decision. */
export interface Form<C extends Command = Command, S extends Stored = Stored> {
  /** True if the decision is written in this form. */
  readonly fits?: (attempt: Attempt<C, S> & { readonly decision: Decision<C> }) => boolean;
  /** True if it is written before the key is read, for what is likely: `seen` is what an earlier request saw, if any did. */
  readonly guesses?: (attempt: Attempt<C, S>) => boolean;
}

/** The writes of a store for one key. */
export interface Writes<C extends Command, S extends Stored, F extends Form<C, S>> {
  /** The forms of this command, those first that lose the fewest races. */
  readonly forms: readonly F[];
  readonly read: () => Promise<S | undefined>;
  /** Writes the command in this form. Returns what was decided on the record that it changed, or the key that refused it. */
  readonly write: (form: F, attempt: Attempt<C, S>) => Promise<Written<C, S>>;
}

/** The outcome of a conditional write. */
export type Written<C extends Command, S extends Stored> =
  { readonly written: true; readonly decided: Applied<C> } | { readonly written: false; readonly seen: S | undefined };

/** The loop's dependencies. */
export interface CompareAndSetDeps {
  readonly policy: LockPolicy;
  readonly clock: Clock;
  /** Returns a number from 0 to 1, for jitter. */
  readonly random: () => number;
}

/** Pauses before deciding again after a lost race, without jitter. */
const PAUSES: Backoff = { firstMs: 4, longestMs: 256 };

/** Decides `command` on what is known of its key, and retries until a write succeeds or nothing needs writing. */
export async function compareAndSet<C extends Command, S extends Stored, F extends Form<C, S>>(
  known: Known<S> | undefined,
  command: C,
  clocks: ReadClocks,
  { forms, read, write }: Writes<C, S, F>,
  { policy, clock, random }: CompareAndSetDeps,
): Promise<Applied<C>> {
  // A form that was refused is left out until it is decided on something else.
  const refused = new Map<F, S | undefined>();
  let [refusals, races] = [0, 0];
  while (races < LIMITS.compareAndSetAttempts) {
    const reading = clocks();
    const { stored: seen, isFresh = false } = known ?? {};
    const decision = known && transition(seen?.record, command, reading, policy);
    if (decision && isFresh && !decision.next && !decision.touch) return { answer: decision.answer, events: decision.events };
    const attempt = { command, reading, policy, seen, decision, isFresh, refusals };
    const form = forms.find((each) => !(refused.has(each) && isSame(refused.get(each), seen)) && applies(each, attempt));
    const result = form ? await write(form, attempt) : ({ written: false, seen: await read() } as const);
    if (result.written) return result.decided;
    if (form) refusals++;
    if (form && decision) refused.set(form, seen);
    known = { stored: result.seen, isFresh: true };
    // A record that an earlier request saw may have been over for long. A race is lost only on one that this request saw.
    if (isFresh && ++races < LIMITS.compareAndSetAttempts) await pause(clock, random() * backoffMs(PAUSES, races));
  }
  throw new KeyContended(`the key changed ${LIMITS.compareAndSetAttempts} times under this request`);
}

/** True if nothing was written in between: every change raises the version, and every keep-alive is counted. */
function isSame(one: Stored | undefined, other: Stored | undefined): boolean {
  return one?.record.version === other?.record.version && one?.record.touches === other?.record.touches;
}

/** True if a command is written in this form, as far as its key is known. */
export function applies<C extends Command, S extends Stored>({ fits, guesses }: Form<C, S>, attempt: Attempt<C, S>): boolean {
  const { decision, isFresh } = attempt;
  return (decision !== undefined && fits?.({ ...attempt, decision }) === true) || (!isFresh && guesses?.(attempt) === true);
}

/** The outcome of a transaction. A refused transaction returns the records as they are now. */
export type WriteAllResult<S extends Stored> =
  { readonly written: true } | { readonly written: false; readonly seen: readonly (S | undefined)[] };

/** A record to write over another. Without `next`, the record must only be unchanged for the transaction to succeed. */
export interface Change<S extends Stored> {
  readonly address: Address;
  readonly next?: LockRecord;
  readonly seen: S | undefined;
}

/** The same loop over several keys: all of them change together, or none does. */
export async function compareAndSetAll<C extends Command, S extends Stored>(
  seen: readonly (S | undefined)[],
  parts: readonly Part<C>[],
  clocks: ReadClocks,
  replaceAll: (changes: readonly Change<S>[]) => Promise<WriteAllResult<S>>,
  { policy, clock, random }: CompareAndSetDeps,
): Promise<readonly (Applied<C> | undefined)[]> {
  for (let round = 0; round < LIMITS.compareAndSetAttempts; round++) {
    if (round > 0) await pause(clock, random() * backoffMs(PAUSES, round));
    const reading = clocks();
    const decisions = parts.map(({ command }, index) => transition(seen[index]?.record, command, reading, policy));
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
export function refusedSet<C extends Command, S extends Stored>(
  parts: readonly Part<C>[],
  decided: readonly ({ readonly decision: Decision<C>; readonly seen: S | undefined } | undefined)[],
  replaceAll: (changes: readonly Change<S>[]) => Promise<WriteAllResult<S>>,
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
