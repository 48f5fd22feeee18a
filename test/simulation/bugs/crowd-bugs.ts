/** The must-fail switches of crowds: see bugs.ts. */
import type { Bug } from "./bug.js";

const JOIN = "lib/store/dynamo/join.ts";
const ENDING = "lib/store/dynamo/ending.ts";
/** The entry of a place that was left stays in the queue. */
const ENTRY_STAYS = ["`q[${slot}] = :empty`", "`q[${slot}].zz = :empty`", ENDING] as const;

/** Mistakes by which a crowd takes more than there is, or loses count; and those of places that are left. */
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
    edits: [["jt.#me = f + :one, f = f + :one", "jt.#me = f, f = f + :one"]],
  },
  {
    name: "claim-past-those-before-it",
    why: "a waiter claims what is free beside the holders, though those who wait before it need it",
    file: "lib/core/lock/queue.ts",
    breaks: "L2",
    edits: [
      [
        "if (isAlive) occupants.push(first);",
        "if (isAsking || (isAlive && !(isAcquire && comesForItself(record, first, reading)))) occupants.push(first);",
      ],
    ],
  },
  {
    name: "joins-past-the-queue",
    why: "a lease joins a crowd at once, whoever has come to wait since its process looked",
    file: JOIN,
    breaks: "L2",
    edits: [['? [is.NOBODY_WAITS] : ["size(qi) = :places", ', '? ["NOT (cv = :zero)"] : ["NOT (cv = :places)", ']],
  },
  {
    name: "cancel-at-the-same-version",
    why: "a waiter's cancel leaves the version alone, like a keep-alive: a change that was decided before undoes it",
    file: ENDING,
    breaks: "S2",
    edits: [['ended.update, "v = v + :one", ...counted]', 'ended.update, "v = if_not_exists(v, :one)", ...counted]']],
  },
  {
    name: "left-place-read-as-a-waiter",
    why: "whoever reads the queue takes a place that was left for a waiter",
    file: "lib/store/dynamo/item.ts",
    edits: [ENTRY_STAYS, ["marks[place] === LEFT", 'entry["g"] === undefined']],
  },
  {
    name: "compaction-of-any-prefix",
    why: "one that joins makes tombstones of those it saw listed, and removes as many, though another has done so since",
    file: JOIN,
    breaks: "S7",
    noticedBy: ["test/store/forms.test.ts", "is refused once somebody else made tombstones of them"],
    edits: [["condition: [is.LISTED_AS_SEEN],", 'condition: ["NOT (v = :ended)"],']],
  },
  {
    name: "release-on-the-version",
    why: "a release that lost races is written on the record's version again, as often as others change it",
    file: "test/support/memory-store.ts",
    breaks: "L4",
    edits: [
      ["const endsAnyway = refusals > 0", "const endsAnyway = refusals < 0"],
      [
        "fits: (attempt) => attempt.refusals > 1 && isOwn(attempt)",
        "fits: (attempt) => attempt.refusals < 0 && isOwn(attempt)",
        "lib/store/dynamo/forms.ts",
      ],
    ],
  },
  {
    name: "crowd-as-it-was-seen",
    why: "in memory, a change that commutes is decided on the record that was read, and written over what the others wrote since",
    file: "test/support/memory-store.ts",
    edits: [
      [
        "const now = transition(present, command, reading, policy);",
        "const now = transition(present && seen?.record, command, reading, policy);",
      ],
    ],
  },
];
