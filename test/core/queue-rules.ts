/**
 * The rules that every history of a key with a queue must satisfy. Each rule watches the requests of one history and
 * names the request that broke it. No rule calls the core: each keeps its own count, from the record's fields alone.
 */
import { DEFAULTS, LIMITS } from "../../lib/core/limits.js";
import type { LeaseId } from "../../lib/core/lease-id.js";
import type { LockRecord, Waiter } from "../../lib/core/record.js";
import type { Asked } from "./queue-history.js";
import {
  areTogether,
  has,
  lastSeenMs,
  holdsOf,
  isGranted,
  isInQueue,
  isNested,
  isPending,
  itself,
  leftOut,
  offersOf,
  ofItsScope,
  occupantsOf,
  waitersOf,
} from "./queue-shares.js";

/** Watches one history, and returns a description of a violation. `slackMs` is the error that clocks may add to a time. */
export type Watch = (asked: Asked) => string | undefined;

/** S11, S12: holders and offers are compatible with each other, by any clock. */
const sharesAreKept =
  (): Watch =>
  ({ after }) => {
    const shares = occupantsOf(after, { hold: () => true, offer: () => true });
    return areTogether(shares, after?.limit ?? 1) ? undefined : "more shares than may be had at once";
  };

/** Tracks the clients that poll in time, and each one's deadline. */
function whoComes(): { readonly note: (asked: Asked) => void; readonly isLiving: (id: LeaseId, asked: Asked) => boolean } {
  const dueMs = new Map<LeaseId, number>();
  return {
    note(asked) {
      const id = itself(asked);
      const { answer, nowMs } = asked;
      if (answer.ok && "pollWithinMs" in answer) dueMs.set(id, nowMs + (answer.retryAfterMs === 0 ? 0 : answer.pollWithinMs));
      else dueMs.delete(id);
    },
    isLiving: (id, { nowMs }) => (dueMs.get(id) ?? -1) >= nowMs,
  };
}

/** L2: a client that polls in time keeps its place, or its offer. */
function nobodyIsSkipped(): Watch {
  const { note, isLiving } = whoComes();
  return (asked) => {
    const { before, after } = asked;
    note(asked);
    for (const { leaseId } of [...offersOf(before), ...waitersOf(before)]) {
      if (!isLiving(leaseId, asked)) continue;
      if (!has(offersOf(after), leaseId) && !has(waitersOf(after), leaseId) && !after?.holds[leaseId])
        return "a place is gone of who visits as told";
    }
    return undefined;
  };
}

/**
 * L2: a client that came later, without a higher priority, never takes what a waiter needs that polls in time: it is granted or offered the
 * key before that one only if there is room for both, and for all that wait before them.
 */
function nobodyIsOvertaken(): Watch {
  const { note, isLiving } = whoComes();
  const cameAt = new Map<LeaseId, number>();
  let comings = 0;
  return (asked) => {
    const { before, after, command } = asked;
    note(asked);
    for (const { leaseId } of waitersOf(after)) if (!has(waitersOf(before), leaseId)) cameAt.set(leaseId, ++comings);
    const ahead = offersOf(after)
      .filter(({ leaseId }) => !has(offersOf(before), leaseId))
      .map(({ leaseId, priority }) => ({ leaseId, priority }));
    if (command?.type === "acquire" && isGranted(asked) && !isNested(asked)) ahead.push(command);
    for (const { leaseId, priority } of ahead) {
      const came = has(waitersOf(before), leaseId) || has(offersOf(before), leaseId) ? (cameAt.get(leaseId) ?? Infinity) : Infinity;
      const passed = waitersOf(after).find(
        (waiter) =>
          isLiving(waiter.leaseId, asked) &&
          waiter.priority >= priority &&
          (cameAt.get(waiter.leaseId) ?? 0) < came &&
          !isKeptFor(waiter, after),
      );
      if (passed) return "who came later went before who waits";
    }
    return undefined;
  };
}

/** True if what a waiter needs is there beside all holders and offers, and beside what those before it need. */
function isKeptFor(waiter: Waiter, record: LockRecord | undefined): boolean {
  const waiters = waitersOf(record);
  const before = waiters.slice(0, waiters.indexOf(waiter) + 1).map(({ leaseId, ...share }) => ({ ...share, of: leaseId }));
  return areTogether([...occupantsOf(record, { hold: () => true, offer: () => true }), ...before], record?.limit ?? 1);
}

/** L3: after a live waiter's poll, lapsed offers are over, and so are those of the waiters ahead that were not seen since. */
function theDeadAreSkipped(slackMs: number): Watch {
  const { note, isLiving } = whoComes();
  const offeredMs = new Map<LeaseId, number>();
  return (asked) => {
    const { nowMs, command, answer, before, after } = asked;
    note(asked);
    for (const { leaseId } of offersOf(after)) if (!has(offersOf(before), leaseId)) offeredMs.set(leaseId, nowMs);
    const isWatched = waitersOf(before).some(({ leaseId }) => isLiving(leaseId, asked));
    const longest = DEFAULTS.offerWindowMs + LIMITS.pollMaxMs + slackMs;
    const late = offersOf(after).find(({ leaseId }) => nowMs - (offeredMs.get(leaseId) ?? nowMs) > longest);
    if (isWatched && late) return "a turn that nobody comes for is kept past its window and a visit";
    const lapsed = offersOf(before).filter((offer) => !isPending(offer, asked));
    if (lapsed.length === 0 || command?.type !== "acquire" || !answer.ok || isNested(asked) || has(offersOf(before), command.leaseId))
      return undefined;
    if (
      !after ||
      after === before ||
      (after.holds[command.leaseId] === before?.holds[command.leaseId] && !has(after.waiters, command.leaseId))
    )
      return undefined;
    if (lapsed.some(({ leaseId }) => has(after.offers, leaseId))) return "a turn that lapsed outlasts a visit";
    const sinceMs = Math.max(...lapsed.map(({ offeredAtMs }) => offeredAtMs));
    const place = waitersOf(before).findIndex(({ leaseId }) => leaseId === command.leaseId);
    const ahead = waitersOf(before)
      .slice(0, place < 0 ? undefined : place)
      .filter((waiter) => lastSeenMs(waiter) < sinceMs && waiter.priority >= command.priority);
    return ahead.some(({ leaseId }) => has(after.offers, leaseId)) ? "a turn for one who wasn't heard of during another's" : undefined;
  };
}

/**
 * A poll tells the waiter to acquire at once if there is something to write: its own offer, a lapsed offer of another
 * waiter, or a key that it can take.
 */
const looksTell = (): Watch => (asked) => {
  const { by, command, answer, before } = asked;
  if (command || !by || !answer.ok || !("pollWithinMs" in answer) || answer.retryAfterMs === 0) return undefined;
  if (has(offersOf(before), by.leaseId)) return "told to wait when it is its turn";
  if (offersOf(before).some((offer) => !isPending(offer, asked))) return "told to wait when another's turn is over";
  return leftOut(before, asked) ? "told to wait when nobody is in the way of the first" : undefined;
};

/** A write that advances the queue leaves no compatible waiter out. A write that doesn't advance it makes no room. */
const nobodyIsLeftOut = (): Watch => (asked) => {
  const { command, before, after, isTouched } = asked;
  if (!command || isTouched || after === before || !leftOut(after, asked)) return undefined;
  // A nested grant takes none of the permits that it waited for beyond its scope's. The waiters behind it learn that at their next poll.
  if (isInQueue(before, asked) && ofItsScope(asked).length > 0) return undefined;
  const isClaim = command.type === "acquire" && has(offersOf(before), command.leaseId);
  const isRepeat = command.type === "acquire" && before?.holds[command.leaseId] !== undefined;
  // A lease that leaves others leaves the queue to its next poll, and so does a waiter that leaves its place.
  if (command.type === "release" && before?.holds[command.leaseId] && holdsOf(after).length + offersOf(after).length > 0) return undefined;
  if (command.type === "release" && has(waitersOf(before), command.leaseId)) return undefined;
  const wasThere =
    "leaseId" in command &&
    (before?.holds[command.leaseId] !== undefined || has(offersOf(before), command.leaseId) || has(waitersOf(before), command.leaseId));
  const ended = command.type === "break" && holdsOf(after).length < holdsOf(before).length;
  const moves =
    command.type === "acquire"
      ? !isClaim && !isRepeat && !isNested(asked)
      : command.type === "release"
        ? wasThere
        : ended || (command.type === "mode" && asked.answer.ok);
  return moves || !leftOut(before, asked) ? "a write left the key to nobody, though the first in the queue fits" : undefined;
};

/** Every waiter occurs once. The queue is ordered by priority, then by arrival, and every waiter learns its position. */
const theQueueIsInOrder = (): Watch => (asked) => {
  const { answer, before, after, command, by } = asked;
  const waiters = waitersOf(after);
  const ids = [
    ...holdsOf(after).map(([id]) => id),
    ...offersOf(after).map(({ leaseId }) => leaseId),
    ...waiters.map(({ leaseId }) => leaseId),
  ];
  if (new Set(ids).size < ids.length) return "the same id twice";
  if (waiters.some(({ priority }, place) => priority > (waiters[place - 1]?.priority ?? Infinity))) return "more priority behind less";
  const stayed = waiters.filter(({ leaseId }) => has(waitersOf(before), leaseId)).map(({ leaseId }) => leaseId);
  const were = waitersOf(before)
    .map(({ leaseId }) => leaseId)
    .filter((id) => stayed.includes(id));
  if (stayed.join() !== were.join()) return "places were changed";
  const isBehind = ({ leaseId, priority }: Waiter, place: number): boolean =>
    stayed.includes(leaseId) || !waiters.slice(place + 1).some((other) => other.priority >= priority);
  if (!waiters.every(isBehind)) return "not behind all of its priority";
  if (!answer.ok || !("position" in answer) || (command && command.type !== "acquire")) return undefined;
  const queue = [...offersOf(after), ...waiters];
  return queue[answer.position - 1]?.leaseId === by?.leaseId ? undefined : `told position ${answer.position}`;
};

/** S2: a change increases the version by one. A keep-alive doesn't, and it changes only that waiter. */
const versionsCount =
  (): Watch =>
  ({ before, after, isTouched, command }) => {
    if (after === before) return isTouched ? "heard of, and not written" : undefined;
    if (!isTouched) return !before || after?.version === before.version + 1 ? undefined : "a change that isn't one version";
    if (!before || !after || command?.type !== "acquire") return "heard of by another command";
    const { waiters: _then, ...then } = before;
    const { waiters: _now, ...now } = after;
    if (JSON.stringify(then) !== JSON.stringify(now)) return "more than that it was heard of";
    const others = after.waiters.filter((waiter, place) => waiter !== before.waiters[place]);
    return others.length === 1 && others[0]?.leaseId === command.leaseId ? undefined : "another's place was changed";
  };

/** S3: a claim has a token above all earlier tokens. */
function tokensRise(): Watch {
  let highest = 0;
  return (asked) => {
    const { after } = asked;
    const top = Math.max(0, ...holdsOf(after).map(([, { fencingToken }]) => fencingToken), after?.fencingToken ?? 0);
    const { answer } = asked;
    const broken =
      isGranted(asked) &&
      !isNested(asked) &&
      answer.ok &&
      "lease" in answer &&
      "fencingToken" in answer.lease &&
      answer.lease.fencingToken <= highest;
    highest = Math.max(highest, top);
    return broken ? "a grant with a token that is not above those before it" : undefined;
  };
}

/** S7: an id that left, or held, never holds or waits again. */
function theGoneStayGone(): Watch {
  const gone = new Set<LeaseId>();
  return ({ command, answer, before, after }) => {
    for (const [id] of holdsOf(before)) if (!after?.holds[id]) gone.add(id);
    if (command?.type === "release" && answer.ok) gone.add(command.leaseId);
    const back = [
      ...holdsOf(after).map(([id]) => id),
      ...offersOf(after).map(({ leaseId }) => leaseId),
      ...waitersOf(after).map(({ leaseId }) => leaseId),
    ];
    return back.some((id) => gone.has(id)) ? "an id that was gone is back" : undefined;
  };
}

/** S15: a stranger learns nothing about the waiters and holders, and changes nothing. */
const strangersAreKeptOut =
  (): Watch =>
  ({ command, answer, before, after }) => {
    if (!command || !("principal" in command) || command.principal === "P") return undefined;
    // A transferred lease belongs to the first caller that uses it.
    if (before?.holds[command.leaseId]?.principal === "") return undefined;
    if (after !== before) return "changed by a stranger";
    const isThere =
      before?.holds[command.leaseId] ?? [...offersOf(before), ...waitersOf(before)].find(({ leaseId }) => leaseId === command.leaseId);
    return isThere && answer.ok ? "answered to a stranger" : undefined;
  };

/** The rules by name. */
export const RULES_OF_QUEUES = {
  "S12: never more holds and turns than may hold at once": sharesAreKept,
  "L2: nobody who visits as told is skipped": nobodyIsSkipped,
  "L2: nobody who visits as told is overtaken": nobodyIsOvertaken,
  "L3: a turn that nobody comes for lasts its window and a visit": theDeadAreSkipped,
  "a look tells who has something to write": looksTell,
  "no write leaves the key to nobody while somebody waits who fits": nobodyIsLeftOut,
  "the queue is in order": theQueueIsInOrder,
  "S2: what is heard of leaves the version alone": versionsCount,
  "S3: tokens rise with claims": tokensRise,
  "S7: who left or held is gone": theGoneStayGone,
  "S15: strangers change nothing": strangersAreKeptOut,
} as const satisfies Readonly<Record<string, (slackMs: number) => Watch>>;

/** The name of a rule. */
export type QueueRule = keyof typeof RULES_OF_QUEUES;
