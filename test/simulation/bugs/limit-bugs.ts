/** The must-fail switches of limits: see bugs.ts. */
import type { Bug } from "./bug.js";

const CORE = "lib/core/rate.ts";
const STORE = "lib/store/dynamo/limit-store.ts";
const WRITE = "lib/store/dynamo/limit-write.ts";

/** Mistakes by which more starts than a limit allows, or by which a full one refuses. */
export const LIMIT_BUGS: readonly Bug[] = [
  {
    name: "one-clock-for-both",
    why: "a take is dated by the clock by which inflow counts: a slow one empties the bucket of a time long past",
    file: CORE,
    breaks: "S17",
    noticedBy: ["test/core/rate.test.ts", "is dated by the later clock in any case"],
    edits: [
      ["Math.max(bucket.fullAtUs, latestMs * 1000)", "Math.max(bucket.fullAtUs, earliestMs * 1000)"],
      ["cost: number, { latestMs }: ClockReading", "cost: number, { earliestMs }: ClockReading"],
    ],
  },
  {
    name: "inflow-by-the-later-clock",
    why: "inflow counts by the later clock also while the two disagree: a fast one fills the bucket ahead of time",
    file: CORE,
    breaks: "S17",
    edits: [["return doAgree(reading) ? reading.latestMs : reading.earliestMs;", "return reading.latestMs;"]],
  },
  {
    name: "full-bucket-charged-from-the-past",
    why: "a bucket that is full is charged from when it became full, not from now: what nobody used adds up",
    file: CORE,
    breaks: "S17",
    noticedBy: ["test/core/rate.test.ts", "never makes a bucket fuller than its burst"],
    edits: [["Math.max(bucket.fullAtUs, latestMs * 1000)", "(bucket.fullAtUs || latestMs * 1000)"]],
  },
  {
    name: "answer-by-what-was-seen",
    why: "a take is answered by the limit that the process saw, and not by the one that its write found: two get the same start",
    file: STORE,
    breaks: "S17",
    edits: [["return takenFrom(limit.record, take, reading)", "return decideTake(known?.record, take, reading).answer"]],
  },
  {
    name: "limit-collected-before-it-is-full",
    why: "the item of a limit is kept for the retention alone, also if the limit takes longer to fill",
    file: WRITE,
    breaks: "S17",
    edits: [["reading.earliestMs + waitMs + fillMs(rates) + policy.retentionMs", "reading.earliestMs + waitMs + policy.retentionMs"]],
  },
  {
    name: "latest-candidate-replaced",
    why: "a take replaces a candidate though it is after now and alone the latest: what it stood for is forgotten",
    file: WRITE,
    breaks: "S17",
    edits: [["`(NOT (${name} > :now) OR", "`(NOT (attribute_exists(nothing) AND ${name} > :now) OR"]],
  },
  {
    name: "late-candidate-overlooked",
    why: "a take fits all candidates but the last, which may be the latest",
    file: WRITE,
    breaks: "S17",
    edits: [["candidates.map((name) => `NOT (${name} > :fits", "candidates.slice(0, -1).map((name) => `NOT (${name} > :fits"]],
  },
  {
    name: "candidate-not-charged",
    why: "a take charges all candidates but the last, which may be the latest",
    file: WRITE,
    breaks: "S17",
    edits: [["+ :charge${rate}`;", '+ ${name === names.at(-1) ? ":zero" : `:charge${rate}`}`;']],
  },
  {
    name: "started-on-the-answer",
    why: "a client takes a start in the future for a start now",
    file: "lib/client/calls/limiter.ts",
    breaks: "S17",
    edits: [["if (startInMs > 0) await pause", "if (startInMs < 0) await pause"]],
  },
  {
    name: "shorter-shut-wins",
    why: "a shut takes the place of one that lasts longer",
    file: WRITE,
    breaks: "S20",
    edits: [["AND NOT (g0 > :shut)`", "AND NOT (attribute_exists(nothing) AND g0 > :shut)`"]],
  },
  {
    name: "shut-forgotten-by-a-take",
    why: "a take may replace the first candidate, which a shut raised: a take that waits until the end opens the limit",
    file: WRITE,
    breaks: "S20",
    edits: [
      ["place !== 0 && !latest.includes(place)", "place === 0"],
      ["`(NOT (${name} > :now) OR", "`(NOT (attribute_exists(nothing) AND ${name} > :now) OR"],
    ],
  },
  {
    name: "shut-collected-with-its-item",
    why: "the item of a limit that is shut is kept as if it had been taken from: it is collected before the time is over",
    file: WRITE,
    breaks: "S20",
    edits: [["reading.latestMs + takeWaitMaxMs + fillMs(rates)", "reading.latestMs + fillMs(rates)"]],
  },
  {
    name: "shut-by-the-earlier-clock",
    why: "a shut counts from the earlier of its clocks: where one is slow it ends before its time",
    file: CORE,
    breaks: "S20",
    edits: [
      ["forMs: number, { latestMs }: ClockReading", "forMs: number, { earliestMs }: ClockReading"],
      ["return (latestMs + forMs) * 1000", "return (earliestMs + forMs) * 1000"],
    ],
  },
  {
    name: "shut-leaves-the-burst",
    why: "a shut makes the bucket full at its end: until then there is room for all but what flows in",
    file: CORE,
    breaks: "S20",
    edits: [["forMs) * 1000 + spanUs(rate) - chargeUs(rate, 1)", "forMs) * 1000"]],
  },
  {
    name: "room-beside-itself",
    why: "a take must fit beside its own charge: one of the whole burst never does",
    file: CORE,
    breaks: "L7",
    edits: [["* 1000 + spanUs(rate) - chargeUs(rate, take.cost);", "* 1000 + spanUs(rate) - 2 * chargeUs(rate, take.cost);"]],
  },
  {
    name: "refused-for-good",
    why: "a client that was refused once remembers that for ever, and asks nobody",
    file: "lib/client/ask/refused-takes.ts",
    breaks: "L7",
    edits: [
      [
        "sinceMs > REFUSED_FOR_MS || leftMs <= 0 ? undefined : { code, retryAfterMs: leftMs }",
        "{ code, retryAfterMs: Math.max(1, leftMs) }",
      ],
    ],
  },
];
