/** The must-fail switches of a table in several Regions: see bugs.ts. Some are mistakes of the table, which holdfast relies on not to make. */
import type { Bug } from "./bug.js";
import { SLEEP_BUGS } from "./sleep-bugs.js";

const REGIONS = "lib/testing/regions.ts";

export const REGION_BUGS: readonly Bug[] = [
  {
    name: "last-writer-wins",
    why: "each Region decides a condition on its own copy, as a global table of eventual consistency does",
    file: REGIONS,
    inRegions: true,
    breaks: "S1",
    edits: [
      ["if (flight.isDoomed || this.#isUnseen(flight, item)) {", "if (Math.random() > 1) {"],
      [
        "const answer = carryOut(this.table);",
        `const copy = this.door(flight.door).copy;
    const answer = carryOut(copy);
    const [before, after] = [this.table.itemAt(item), copy.itemAt(item)];
    this.table.replicate(item, after);
    if (after) this.table.onWritten({ before, after });`,
      ],
    ],
  },
  {
    name: "eventual-read",
    why: "a strong read is answered by the Region's own copy: what another Region told is not known yet",
    file: "lib/testing/served-table.ts",
    inRegions: true,
    breaks: "S19",
    edits: [['operation === "GetItem" ? "read" : "write"', 'operation === "GetItem" ? "query" : "write"']],
  },
  {
    name: "conflict-taken-for-written",
    why: "a write that met one of another Region counts as carried out",
    file: "lib/store/dynamo/conflicts.ts",
    inRegions: true,
    edits: [
      [
        "if (!isWriteConflict(error) || attempt === ATTEMPTS) throw error;",
        "if (isWriteConflict(error)) return {} as Result;\n      throw error;",
      ],
    ],
  },
  {
    name: "conflict-taken-for-an-outage",
    why: "a write that met one of another Region is told as if the table could not be reached",
    file: "lib/store/dynamo/unavailable.ts",
    inRegions: true,
    breaks: "L11",
    edits: [
      ["const throttled = isThrottled(error) || isConflict;", "const throttled = isThrottled(error);"],
      ["  if (isConflict && sentOnce) return new KeyContended(said, { cause: error });\n", ""],
    ],
  },
  {
    name: "key-of-a-lost-region-kept",
    why: "a lease that is over keeps others out for a minute more: who was lost with a Region is waited for",
    file: "lib/core/lock/expiry.ts",
    inRegions: true,
    breaks: "L10",
    edits: [
      ["hold.expiresAtMs + hold.marginMs <= reading.earliestMs;", "hold.expiresAtMs + hold.marginMs + 60_000 <= reading.earliestMs;"],
    ],
  },
  {
    name: "take-sent-again-as-decided",
    why: "a take that met a write of another Region is sent again by the time at which it was decided: it is charged for the past",
    file: "lib/store/dynamo/dynamo-store.ts",
    noticedBy: ["test/store/conflicts.test.ts", "is decided again by the clocks of that moment, and the limit is still known"],
    breaks: "S17",
    edits: [["new DynamoLimits({ calls, ", "new DynamoLimits({ calls: this.#calls, "]],
  },
  {
    name: "roll-back-of-a-confirmed-set",
    why: "a refused request for a set releases its parts, although a repeat of it has confirmed them and told its caller so",
    file: "lib/store/set-in-parts.ts",
    breaks: "S13",
    noticedBy: ["test/store/set-in-parts.test.ts", "takes nothing from a repeat that was granted meanwhile"],
    edits: [["end(part, { pendingMs: pendingMsOf(part) })", "end(part)"]],
  },
  {
    name: "sweep-of-what-is-used",
    why: "a sweep deletes what was over when it looked, although somebody has used it since",
    file: "lib/store/dynamo/sweep.ts",
    breaks: "S1",
    noticedBy: ["test/store/sweep.test.ts", "deletes $kind that is over by both clocks, and neither before nor if one is used meanwhile"],
    edits: [["= :seen AND ${OVER}`", "> :seen OR NOT ${OVER} OR ${OVER}`"]],
  },
  {
    name: "told-in-one-region",
    why: "an agent tells a target in its own Region alone: one that waits in another is taken for dead, and its lease is released",
    file: "lib/service/agent.ts",
    inRegions: true,
    breaks: "L8",
    edits: [["regions.map((region) => tell(", "regions.slice(0, 1).map((region) => tell("]],
  },
];

/** The mistake about sleepers that breaks S18 in histories of several Regions too. */
export const SLEEP_BUGS_IN_REGIONS: readonly Bug[] = SLEEP_BUGS.filter(({ name }) => name === "gone-believed-by-all").map((bug) => ({
  ...bug,
  name: `${bug.name}-in-regions`,
  inRegions: true,
}));
