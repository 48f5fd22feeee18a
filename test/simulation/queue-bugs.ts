/** The must-fail switches of the queue: see bugs.ts. */
import type { Bug } from "./bugs.js";

/** Mistakes in the order of the queue. */
export const QUEUE_BUGS: readonly Bug[] = [
  {
    name: "heard-of-as-a-change",
    why: "a waiter that says it is there raises the version, and all who write then have lost their races",
    file: "lib/core/lock/acquire.ts",
    edits: [["...(reports && { touch: { waiter: touch, index } }),", "...(reports && { next: change(now.record, reading, {}) }),"]],
  },
  {
    name: "heard-of-in-vain",
    why: "a change that was decided before a waiter was heard of is written over it, since the version is the same",
    file: "lib/store/memory-store.ts",
    edits: [
      ["return !next || !current || !seen || isSameQueue(next, seen) || current.touches === seen.touches;", "return true;"],
      ["...(isLeft && { waiters: current.waiters }) };", "...(isLeft && current === next && { waiters: current.waiters }) };"],
    ],
  },
  {
    name: "every-visit-a-write",
    why: "a waiter says at every visit that it is there: each costs a write of the whole queue",
    file: "lib/core/lock/queue.ts",
    edits: [["if (waiter.aliveUntilMs - waiter.ttlMs / 2 <= latestMs) return true;", "if (latestMs > 0) return true;"]],
  },
  {
    name: "offer-shorter-than-a-visit",
    why: "the key is offered for a shorter time than the one it is offered to may stay away",
    file: "lib/core/lock/expiry.ts",
    edits: [
      ["return offeredAtMs + DEFAULTS.offerWindowMs <= earliestMs;", "return offeredAtMs + DEFAULTS.offerWindowMs / 3 <= earliestMs;"],
    ],
  },
  {
    name: "offer-withdrawn-by-the-later-clock",
    why: "a server clock that is fast takes the turn away from somebody who is on its way",
    file: "lib/core/lock/expiry.ts",
    edits: [
      ["{ offeredAtMs }: Offer, { earliestMs }: ClockReading", "{ offeredAtMs }: Offer, { latestMs }: ClockReading"],
      ["DEFAULTS.offerWindowMs <= earliestMs;", "DEFAULTS.offerWindowMs <= latestMs;"],
    ],
  },
  {
    name: "the-living-skipped",
    why: "with an offer that lapsed everybody ahead goes, whether or not they were heard of since",
    file: "lib/core/lock/queue.ts",
    edits: [["&& lastSeenMs(waiter) < lapsedAtMs;", "&& lapsed.length > 0;"]],
  },
  {
    name: "the-dead-one-by-one",
    why: "each of the dead is offered the key in its turn, and keeps it for a whole window",
    file: "lib/core/lock/queue.ts",
    edits: [["&& lastSeenMs(waiter) < lapsedAtMs;", "&& lapsedAtMs === 0;"]],
  },
  {
    name: "claimed-after-withdrawal",
    why: "an offer that was withdrawn is still good for a claim: two hold then",
    file: "lib/core/lock/queue.ts",
    edits: [["offers: offers.sort(inOrder), waiters }", "offers: [...offers, ...lapsed].sort(inOrder), waiters }"]],
  },
  {
    name: "hand-over-forgets-the-head",
    why: "the first in the queue is taken out of it, and never offered the key",
    file: "lib/core/lock/queue.ts",
    edits: [["offers.push({ ...offered, offeredAtMs: reading.latestMs });", "void offered;"]],
  },
  {
    name: "offered-key-to-a-newcomer",
    why: "a key that is only offered counts as free: whoever comes first has it",
    file: "lib/core/lock/queue.ts",
    edits: [[".map(([, hold]) => hold), ...offers];", ".map(([, hold]) => hold)];"]],
  },
  {
    name: "arrivals-in-front",
    why: "whoever comes stands before those who wait",
    file: "lib/core/lock/queue.ts",
    edits: [["const place = behind < 0 ? waiters.length : behind;", "const place = behind < 0 ? 0 : behind;"]],
  },
  {
    name: "free-to-who-does-not-queue",
    why: "an acquire that waits for nobody doesn't see the queue either",
    file: "lib/core/lock/acquire.ts",
    edits: [
      [
        "advanceQueue({ ...before, waiters: withWaiter(before.waiters, arrived) }, reading, leaseId, true);",
        "advanceQueue({ ...before, waiters: wait ? withWaiter(before.waiters, arrived) : [arrived, ...before.waiters] }, reading, leaseId, true);",
      ],
    ],
  },
  {
    name: "dead-waiters-stay",
    why: "dead waiters go only when it is their turn: behind a holder that goes on, the queue stays full of them",
    file: "lib/core/lock/queue.ts",
    edits: [
      ["const drops = isNew || (isFirst && isHeadDead(before, reading));", "const drops = isNew && isFirst && reading.latestMs < 0;"],
    ],
  },
  {
    name: "the-dead-shown",
    why: "whoever looks at a key is shown waiters that were not heard of for long",
    file: "lib/core/lock/views.ts",
    edits: [["waiters.filter((waiter) => isWaiting(waiter, reading))", "waiters"]],
  },
  {
    name: "refusal-that-writes-nothing",
    why: "a caller that only tries leaves the record as it is: it never moves a queue of dead waiters on",
    file: "lib/core/lock/acquire.ts",
    edits: [["if (!hasMoved) return", "if (hasMoved || !hasMoved) return"]],
  },
  {
    name: "refused-set-that-writes-nothing",
    why: "a set that is refused leaves all records as they are: it never moves a queue of dead waiters on",
    file: "lib/store/compare-and-set.ts",
    edits: [["const isWritten = !answer.ok && next", "const isWritten = !answer.ok && events.length < 0 && next"]],
  },
  {
    name: "heard-of-taken-back",
    why: "a keep-alive whose write stalled is written over a later one: its waiter counts as dead too early",
    file: "lib/store/dynamo/fast-path.ts",
    edits: [[" AND q[${index}].u < :until", ""]],
  },
];
