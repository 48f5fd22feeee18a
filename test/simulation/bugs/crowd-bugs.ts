/** The must-fail switches of crowds: see bugs.ts. */
import type { Bug } from "./bug.js";

/** Mistakes by which a crowd takes more than there is, or loses count. */
export const CROWD_BUGS: readonly Bug[] = [
  {
    name: "crowd-without-a-count",
    why: "a permit joins as long as there is room for a lease: what others took since it looked is not counted",
    file: "lib/store/dynamo/predicates.ts",
    breaks: "S12",
    edits: [["size(h) < :most AND cp <= :room", "size(h) < :most AND (cp <= :room OR cp > :room)"]],
  },
  {
    name: "crowd-of-one-token",
    why: "a lease that joins takes the last token instead of the next",
    file: "lib/store/dynamo/join.ts",
    breaks: "S3",
    edits: [["jt.#in = f + :one, f = f + :one", "jt.#in = f, f = f + :one"]],
  },
  {
    name: "release-on-the-version",
    why: "a release that lost races is written on the record's version again, as often as others change it",
    file: "lib/store/compare-and-set.ts",
    breaks: "L4",
    edits: [["end: attempt > 0 && next", "end: attempt < 0 && next"]],
  },
  {
    name: "crowd-as-it-was-seen",
    why: "in memory, a change that commutes is decided on the record that was read, and written over what the others wrote since",
    file: "lib/store/memory-store.ts",
    edits: [
      [
        "const decide = (present: LockRecord | undefined) => transition(present, asked, reading, policy);",
        "const decide = (_present: LockRecord | undefined) => transition(_seen, asked, reading, policy);",
      ],
    ],
  },
];
