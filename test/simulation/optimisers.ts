/** Edits that break no property, and cost requests: each optimiser of contention switched off, as the catalogue of mistakes does it (bug.ts), and a storm. */
import type { Bug } from "./bugs/bug.js";

export const OPTIMISERS: readonly Bug[] = [
  {
    name: "recent-records cache",
    why: "a change of a key that this process saw lately is decided without a read, and rarely refused",
    file: "lib/store/dynamo/recent-records.ts",
    edits: [["return seen && this.#clock.monotonicMs() - seen.atMs <= freshMs", "return seen && seen.atMs < 0"]],
  },
  {
    name: "pace of the queue",
    why: "a waiter polls when its turn is expected, by the lengths of the latest leases",
    file: "lib/core/lock/pace.ts",
    edits: [
      [
        "return (Math.max(0, Math.min(heldMs, heldBeforeMs)) + LIMITS.handOverMs) / limit;",
        "return heldMs < 0 ? limit : LIMITS.pollStepMs;",
      ],
    ],
  },
  {
    name: "local queue",
    why: "callers of one process that want the same key take one place in its queue, and pass the lease on among themselves",
    file: "lib/client/ask/local-queue.ts",
    edits: [["if (scope !== undefined || !isAlone({ mode, limit }))", "if (waitMs > 0)"]],
  },
  {
    name: "renewal batching",
    why: "heartbeats that are due at about the same time are one request",
    file: "lib/client/hold/renewal-batcher.ts",
    edits: [["#mayGather = true;", "#mayGather = false;"]],
  },
];

/** Heartbeats far too often, which break no property and only cost. */
export const STORM: Bug = {
  name: "storm of heartbeats",
  why: "every lease is renewed fourteen times as often as it should be",
  file: "lib/client/hold/keep-alive.ts",
  edits: [["lease.renewAfterMs * (0.9 + 0.2 * random())", "(lease.renewAfterMs * (0.9 + 0.2 * random())) / 14"]],
};

/** The pace of the queue as it was: half of a lease, wherever the lease at the front stands. */
export const HALF_A_LEASE: Bug = {
  name: "half a lease",
  why: "whoever is next comes by chance, up to half a lease after the release",
  file: "lib/core/lock/pace.ts",
  edits: [
    [
      "if (!isHeldAlone(record) || leftMs > wholeMs) return wholeMs / 2;",
      "if (!isHeldAlone(record) || leftMs < Infinity) return wholeMs / 2;",
    ],
  ],
};

/** The places of a queue as they were: for whoever asks when one is free. */
export const PLACES_BY_CHANCE: Bug = {
  name: "places by chance",
  why: "who asks at the right moment passes all that have waited longer outside the queue",
  file: "lib/core/lock/places.ts",
  edits: [["return isNext ? LIMITS.waitersMax : LIMITS.placesForAnyone;", "return isNext || !isNext ? LIMITS.waitersMax : 0;"]],
};

/** The shortest pause also where those in the queue came at one moment. */
export const EARLY_IN_A_BURST: Bug = {
  name: "early in a burst",
  why: "ids of one moment tell no order, so everybody outside asks as if it were next",
  file: "lib/core/lock/pace.ts",
  edits: [["const leastMs = eachMs < 1 ?", "const leastMs = eachMs < 0 ?"]],
};

/** A release as if ids always ended in the order of their times. */
export const ENDS_IN_ORDER: Bug = {
  name: "ends in order",
  why: "a release whose low watermark stays is refused, and written again",
  file: "lib/store/dynamo/ending.ts",
  edits: [
    [
      "shifted(command, reading, watermarkOf(seen.record)),\n  );\n  return {\n    ...write,\n    update: `${write.update} REMOVE q[0]",
      'shifted(command, reading, "rises"),\n  );\n  return {\n    ...write,\n    update: `${write.update} REMOVE q[0]',
    ],
  ],
};

/** The crowd of `tryAcquire` as it was: each call writes, also to a key that its process has just seen in use. */
export const WRITES_FIRST: Bug = {
  name: "tryAcquire writes first",
  why: "who only tries takes the write units that the holder's heartbeats need",
  file: "lib/store/dynamo/forms.ts",
  edits: [["(!attempt.decision || isOverByNow(attempt))", "(!attempt.decision || !attempt.command.wait || isOverByNow(attempt))"]],
};
