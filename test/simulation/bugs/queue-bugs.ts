/** The must-fail switches of the queue: see bugs.ts. */
import type { Bug } from "./bug.js";

/** Mistakes in the order of the queue. */
export const QUEUE_BUGS: readonly Bug[] = [
  {
    name: "heard-of-as-a-change",
    why: "a keep-alive raises the version, and all concurrent writers lose their races",
    file: "lib/core/lock/acquire.ts",
    edits: [["...(reports && { touch: { waiter: touch, index } }),", "...(reports && { next: change(now.record, reading, {}) }),"]],
  },
  {
    name: "heard-of-in-vain",
    why: "a change decided before a keep-alive overwrites it, because the version is the same",
    file: "test/support/memory-store.ts",
    edits: [
      ["return !next || !current || !seen || isSameQueue(next, seen) || current.touches === seen.touches;", "return true;"],
      ["...(isLeft && { waiters: current.waiters }) };", "...(isLeft && current === next && { waiters: current.waiters }) };"],
    ],
  },
  {
    name: "every-visit-a-write",
    why: "every poll of a waiter is a keep-alive, and costs a write of the whole queue",
    file: "lib/core/lock/pace.ts",
    edits: [["return aliveUntilMs - ttlMs / 2 <= latestMs;", "return latestMs > 0;"]],
  },
  {
    name: "offer-shorter-than-a-visit",
    why: "the offer's window is shorter than the longest pause between polls",
    file: "lib/core/lock/expiry.ts",
    edits: [
      ["return offerEndsAtMs(offer) <= earliestMs;", "return offerEndsAtMs(offer) - (2 * DEFAULTS.offerWindowMs) / 3 <= earliestMs;"],
    ],
  },
  {
    name: "offer-withdrawn-by-the-later-clock",
    why: "a fast server clock withdraws the offer from a waiter that is about to claim it",
    file: "lib/core/lock/expiry.ts",
    edits: [
      ["offer: Offer, { earliestMs }: ClockReading", "offer: Offer, { latestMs }: ClockReading"],
      ["offerEndsAtMs(offer) <= earliestMs;", "offerEndsAtMs(offer) <= latestMs;"],
    ],
  },
  {
    name: "the-living-skipped",
    why: "a lapsed offer skips all waiters ahead, also those that were seen since",
    file: "lib/core/lock/queue.ts",
    edits: [["&& lastSeenMs(waiter) < lapsedAtMs;", "&& lapsed.length > 0;"]],
  },
  {
    name: "the-dead-one-by-one",
    why: "each dead waiter is offered the key in turn, for a whole window",
    file: "lib/core/lock/queue.ts",
    edits: [["&& lastSeenMs(waiter) < lapsedAtMs;", "&& lapsedAtMs === 0;"]],
  },
  {
    name: "claimed-after-withdrawal",
    why: "a withdrawn offer can still be claimed: two hold then",
    file: "lib/core/lock/queue.ts",
    edits: [["const offers = record.offers.filter((offer) => !lapsed.includes(offer));", "const { offers } = record;"]],
  },
  {
    name: "hand-over-forgets-the-head",
    why: "the first waiter is removed from the queue, and never offered the key",
    file: "lib/core/lock/queue.ts",
    edits: [
      [
        "offers.push({ ...offered, offeredAtMs: first.asleep ? reading.latestMs : Math.max(reading.latestMs, lastSeenMs(first)) });",
        "void offered;",
      ],
    ],
  },
  {
    name: "offered-key-to-a-newcomer",
    why: "an offered key counts as free: the first caller gets it",
    file: "lib/core/lock/queue.ts",
    edits: [["[...occupantsOf(record, reading)]", "[...occupantsOf({ ...record, offers: [] }, reading)]"]],
  },
  {
    name: "arrivals-in-front",
    why: "new arrivals go in front of the queue",
    file: "lib/core/lock/places.ts",
    edits: [["let place = behind < 0 ? waiters.length : behind;", "let place = behind < 0 ? 0 : behind;"]],
  },
  {
    name: "free-to-who-does-not-queue",
    why: "an acquire that doesn't wait ignores the queue",
    file: "lib/core/lock/acquire.ts",
    edits: [
      [
        "const waiters = withWaiter(before.waiters, arrived);",
        "const waiters = wait ? withWaiter(before.waiters, arrived) : [arrived, ...before.waiters];",
      ],
    ],
  },
  {
    name: "dead-waiters-stay",
    why: "dead waiters leave only at their turn: behind a holder that keeps renewing, the queue stays full of them",
    file: "lib/core/lock/queue.ts",
    edits: [
      ["return isNew === true || (isFirst && isHeadDead(before, reading));", "return isNew === true && isFirst && reading.latestMs < 0;"],
    ],
  },
  {
    name: "the-dead-shown",
    why: "an inspection shows waiters that were not seen for long",
    file: "lib/core/lock/views.ts",
    edits: [["waiters.filter((waiter) => isWaiting(waiter, reading))", "waiters"]],
  },
  {
    name: "refusal-that-writes-nothing",
    why: "a caller that only tries writes nothing: it never advances a queue of dead waiters",
    file: "lib/core/lock/acquire.ts",
    edits: [["if (!hasMoved) return", "if (hasMoved || !hasMoved) return"]],
  },
  {
    name: "refused-set-that-writes-nothing",
    why: "a refused set writes nothing: it never advances a queue of dead waiters",
    file: "lib/store/compare-and-set.ts",
    edits: [["const isWritten = !answer.ok && next", "const isWritten = !answer.ok && events.length < 0 && next"]],
  },
  {
    name: "heard-of-taken-back",
    why: "a stalled keep-alive overwrites a later one: its waiter counts as dead too early",
    file: "lib/store/dynamo/touch-waiter.ts",
    edits: [[", `${place.aliveUntilMs} < :until`]", "]"]],
  },
  {
    name: "gives-up-without-asking",
    why: "a wait pauses until its end and gives up: the key may have been offered to it since its last poll",
    file: "lib/client/ask/until-granted.ts",
    breaks: "L9",
    noticedBy: ["test/client/acquire/end-of-a-wait.test.ts", "control: at its end it asks once more, and is told that the key is held"],
    edits: [["asks = wait.isEnding() ||", "if (wait.isEnding()) wait.end(place.key);\n    asks ="]],
  },
  {
    name: "pace-past-the-offer",
    why: "a waiter far back is told to poll when its turn is due, which may be after its place is lost",
    file: "lib/core/lock/pace.ts",
    breaks: "L2",
    edits: [
      [
        "const pollWithinMs = Math.min(LIMITS.pollMaxMs, ...reports);",
        "const pollWithinMs = Math.max(LIMITS.pollMaxMs, 400 * stepMs(record) * (place + 1), ...reports);",
      ],
    ],
  },
  {
    name: "places-without-end",
    why: "whoever comes gets a place: every write pays for all of them",
    file: "lib/core/lock/places.ts",
    breaks: "L4",
    edits: [["return alike.length > most ||", "return alike.length > 100 * most ||"]],
  },
  {
    name: "offer-for-a-minute",
    why: "an offer whose waiter died keeps the key for a minute",
    file: "lib/core/lock/expiry.ts",
    breaks: "L3",
    edits: [["return offerEndsAtMs(offer) <= earliestMs;", "return offerEndsAtMs(offer) + 11 * DEFAULTS.offerWindowMs <= earliestMs;"]],
  },
];
