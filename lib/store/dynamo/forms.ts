/**
 * The forms in which a change of one key is written: one table, by the kind of key and the command. Each form is one conditional write. What it
 * leaves is what the core decides on the record that it meets, or the part of it that the write `decides`
 * (test/store/differential/differential.test.ts compares them). Beside these, a set is a transaction (replacement.ts), a large payload and the
 * tenancy have items of their own (dynamo-store.ts), and limits and sleepers have their stores.
 *
 * A form that `fits` is written for a decision of the core. One that `guesses` is written before the key is read: on nothing that is known, or
 * where what an earlier request saw is likely to be over. If its condition fails, the response has the present item, and the core decides on it.
 *
 * A change for which no other form fits is written as a whole record.
 */
import { isA } from "../../core/brand.js";
import type { Acquire, Command, Complete, Decision, Release, Renew, Start } from "../../core/commands.js";
import type { Kind } from "../../core/api/locks.js";
import { isAlone } from "../../core/lock/compatibility.js";
import { isLive, isSkewed, isWaiting } from "../../core/lock/expiry.js";
import { refuseNewLease } from "../../core/lock/grant.js";
import { isLikelyOver, withTouch } from "../../core/lock/pace.js";
import { placeOf } from "../../core/lock/places.js";
import { isOnly } from "../../core/lock/release.js";
import { EMPTY_RECORD, holdOf } from "../../core/lock/tombstones.js";
import { memberOf } from "../../core/lock/wait-set.js";
import { isLong } from "../../core/record-bytes.js";
import type { LockPolicy } from "../../core/record.js";
import { isStored } from "../../core/run/run.js";
import type { ClockReading } from "../../core/time.js";
import { transition } from "../../core/transition.js";
import type { Form } from "../compare-and-set.js";
import { UnreadableRecord } from "../port.js";
import { endAnyway, handOver, leave, leavePlace } from "./ending.js";
import { append, claim, complete, grant, placesAround, renew, renewRun, start } from "./holding.js";
import { storedOf } from "./item.js";
import { join } from "./join.js";
import type { Item } from "./layout.js";
import { type Stored, LEFT, NOTHING, wholly } from "./lists.js";
import type { AttemptOf, FormWrite } from "./predicates.js";
import { whole } from "./replacement.js";
import { touchWaiter } from "./touch-waiter.js";

/** A form of a write of the table. */
export interface TableForm<C extends Command = Command> extends Form<C, Stored> {
  readonly name: string;
  readonly write: (attempt: AttemptOf<C>) => FormWrite;
  /** Set if the item that it leaves isn't remembered after a read or a refusal: short waits would become slower (decision 045). */
  readonly isForgotten?: true;
}

const ACQUIRE: readonly TableForm<Acquire>[] = [
  { name: "grant", guesses: (attempt) => isNew(attempt) && (!attempt.decision || isOverByNow(attempt)), write: grant },
  { name: "claim", fits: (attempt) => isGranted(attempt) && isAlone(attempt.command), guesses: isNext, write: claim },
  { name: "join", fits: (attempt) => isGranted(attempt) && !isAlone(attempt.command), write: join },
  {
    name: "append to a crowd",
    fits: (attempt) => goesBehind(attempt) && attempt.decision.commutes === true && !isLong(attempt.command),
    write: (attempt) => append(attempt, true),
  },
  {
    name: "append",
    isForgotten: true,
    fits: (attempt) => goesBehind(attempt) && isPlain(attempt.command),
    write: (attempt) => append(attempt, false),
  },
];

const RENEW: readonly TableForm<Renew>[] = [
  {
    name: "renew",
    fits: ({ decision }) => decision.commutes === true,
    guesses: (attempt) => !isHeld(attempt) && !needsRecord(attempt.command),
    write: renew,
  },
];

const RELEASE: readonly TableForm<Release>[] = [
  { name: "end anyway", fits: (attempt) => attempt.refusals > 1 && isOwn(attempt), write: endAnyway },
  {
    name: "leave a place",
    fits: ({ command, decision, seen: { record } = NOTHING }) => decision.commutes === true && placeOf(record, command.leaseId) >= 0,
    write: leavePlace,
  },
  {
    name: "leave",
    fits: (attempt) => attempt.decision.commutes === true && isOwn(attempt),
    guesses: (attempt) => mayEnd(attempt) && !isWaitingFor(attempt) && isShared(attempt),
    write: leave,
  },
  {
    name: "hand over",
    fits: (attempt) => isOwn(attempt) && handsOver(attempt),
    guesses: (attempt) => mayEnd(attempt) && !isWaitingFor(attempt) && !isHeld(attempt),
    write: handOver,
  },
];

/**
 * Only the holder of a run's lease renews or completes it, and it knows what the record is: so these forms guess. A start guesses that there is
 * no run: one that is known of has started. An abandon has no form of its own.
 */
const START: readonly TableForm<Start>[] = [
  {
    name: "start",
    guesses: ({ command, reading, decision }) => !decision && !refuseNewLease(EMPTY_RECORD, command.leaseId, reading),
    write: start,
  },
];
const RENEW_RUN: readonly TableForm<Renew>[] = [{ name: "renew", guesses: ({ command }) => !needsRecord(command), write: renewRun }];
const COMPLETE: readonly TableForm<Complete>[] = [
  { name: "complete", guesses: ({ command: { payload } }) => !payload || isStored(payload), write: complete },
];

/** Any change. */
const ANY: readonly TableForm[] = [
  { name: "keep-alive", fits: ({ decision, isFresh }) => isFresh && decision.touch !== undefined, write: touchWaiter },
  { name: "whole", fits: ({ decision }) => decision.next !== undefined, write: whole },
];

const LOCKS = { acquire: ACQUIRE, renew: RENEW, release: RELEASE };
const RUNS = { start: START, renew: RENEW_RUN, complete: COMPLETE };

/** Returns the forms of a command on a key of this kind, those first that lose the fewest races. */
export function formsOf<C extends Command>(kind: Kind, { type }: C): readonly TableForm<C>[] {
  const own = (kind === "runs" ? RUNS : LOCKS) as Partial<Record<Command["type"], readonly unknown[]>>;
  return [...(own[type] ?? []), ...ANY] as readonly TableForm<C>[];
}

/** Returns the write of this command where nothing is known of its key, if it has one. */
export function blindWrite(kind: Kind, command: Command, reading: ClockReading, policy: LockPolicy): FormWrite | undefined {
  const attempt = { command, reading, policy, isFresh: false, refusals: 0 };
  return formsOf(kind, command)
    .find(({ guesses }) => guesses?.(attempt))
    ?.write(attempt);
}

/**
 * Returns what a write did to this item: the decision that it carried out, and the item that it left; `after` is absent if that isn't known to
 * the digit. Most often the item is the one that was decided on.
 */
export function resultOf<C extends Command>(
  write: FormWrite,
  attempt: AttemptOf<C>,
  item: Item | undefined,
): { readonly decided: Decision<C>; readonly after?: Stored } {
  const { command, reading, policy, seen, decision } = attempt;
  const isAsSeen = decision && seen && item?.["v"] === seen.record.version && item["qv"] === seen.record.touches;
  const before = isAsSeen ? seen : storedBefore(item);
  const core = (): Decision<C> => (isAsSeen ? decision : transition(before?.record, command, reading, policy));
  const decided = write.decides ? (write.decides((before ?? NOTHING).record) as Decision<C>) : core();
  const record = decided.next ?? (isAsSeen && decided.touch && withTouch(seen.record, decided.touch));
  if (!record) return { decided };
  const { lists } = before ?? wholly(record);
  return { decided, after: { record, lists: write.lists?.(lists) ?? lists } };
}

/** Converts the item that a write has just replaced. */
function storedBefore(item: Item | undefined): Stored | undefined {
  try {
    return storedOf(item);
  } catch (error) {
    throw isA(error, UnreadableRecord) ? new UnreadableRecord(error.code, error.message, { definite: false, cause: error }) : error;
  }
}

/** A command on a key that was seen, and the decision on it. */
type Decided<C extends Command> = AttemptOf<C> & { readonly decision: Decision<C> };

/** The id may become a new lease, and isn't to sleep. */
function isNew({ command: { leaseId, sleepMs }, reading }: AttemptOf<Acquire>): boolean {
  return sleepMs === undefined && !refuseNewLease(EMPTY_RECORD, leaseId, reading);
}

/** It would wait behind the holder alone, which is likely to have left since. */
function isOverByNow({ command, decision, seen = NOTHING, reading }: AttemptOf<Acquire>): boolean {
  return decision?.behind !== undefined && isAlone(command) && isPlain(command) && isLikelyOver(seen.record, reading);
}

/**
 * It waits as the first, for the whole key, so the holder may have handed over to it since. A refused write costs units, and a read before it
 * would cost the time.
 */
function isNext({ command, decision, seen = NOTHING }: AttemptOf<Acquire>): boolean {
  const [first] = seen.record.waiters;
  return first?.leaseId === command.leaseId && !first.asleep && isAlone(command) && decision?.answer.ok === true && !decision.next;
}

/** It is granted beside others, or claims the only offer. */
function isGranted({ decision: { commutes, behind } }: Decided<Acquire>): boolean {
  return commutes === true && behind === undefined;
}

/** It waits behind all others, and has surely room there. */
function goesBehind(attempt: Decided<Acquire>): boolean {
  const { decision, seen: { record } = NOTHING } = attempt;
  return decision.behind !== undefined && record.waiters.length < placesAround(attempt);
}

/** The waiter belongs at the end of the queue, as long as the key is in use. */
function isPlain(command: Acquire): boolean {
  return command.scope === undefined && command.priority === 0 && !isLong(command);
}

/** The lease has a place in the queue or the wait set, as far as the key is known. One that was offered the key has claimed it since. */
function isWaitingFor({ command: { leaseId }, seen: { record } = NOTHING }: AttemptOf<Release>): boolean {
  return placeOf(record, leaseId) >= 0 || memberOf(record, leaseId) !== undefined;
}

/** Only the record shows if there is room for new meta, or if the prolonged checkpoint is still the stored one. */
function needsRecord({ meta, prolonged, checkpoint }: Renew): boolean {
  return meta !== undefined || prolonged !== undefined || (checkpoint !== undefined && !isStored(checkpoint));
}

/** It may end any lease. Skewed clocks don't advance the queue, and may leave the ending of the hold unknown. */
function mayEnd({ command, reading }: AttemptOf<Release>): boolean {
  return !command.onlyWaiting && command.pendingMs === undefined && !isSkewed(reading);
}

/** It ends the caller's own, live lease, and the record must show no more than that. */
function isOwn(attempt: AttemptOf<Release>): boolean {
  const { command, reading, seen = NOTHING } = attempt;
  const hold = holdOf(seen.record, command.leaseId);
  return mayEnd(attempt) && hold?.principal === command.principal && !hold.broken && !seen.record.run && isLive(hold, reading);
}

/** The lease is the only one, and the queue is empty, or its first waiter is alive, wants the key exclusively and polls. */
function handsOver({ seen: { record, lists } = NOTHING, reading }: AttemptOf<Release>): boolean {
  const [first] = record.waiters;
  if (!isOnly(record) || lists.listed.length > 0) return false;
  if (lists.places.length === 0) return true;
  return (
    first !== undefined &&
    lists.places[0] !== LEFT &&
    record.limit === 1 &&
    first.mode === "exclusive" &&
    !first.asleep &&
    isWaiting(first, reading)
  );
}

/** Several leases hold the key, as far as that is known. */
function isShared({ seen: { record } = NOTHING }: AttemptOf): boolean {
  return Object.keys(record.holds).length > 1;
}

/** The lease holds the key, as far as that is known. */
function isHeld({ command: { leaseId }, seen: { record } = NOTHING }: AttemptOf<Renew | Release>): boolean {
  return holdOf(record, leaseId) !== undefined;
}
