/** The must-fail switches of all kinds of locks except the plain lock: see bugs.ts. */
import type { Bug } from "./bug.js";

/** Mistakes in the rules of compatibility between leases. */
export const KIND_BUGS: readonly Bug[] = [
  {
    name: "levels-counted-by-calls",
    why: "every call of a level counts, repeats included, and nobody releases the extra ones",
    file: "lib/core/lock/acquire.ts",
    edits: [
      [
        'hold.principal === "" ? change(',
        `hold.scope !== undefined
      ? change(record, reading, { holds: { ...record.holds, [leaseId.slice(0, -1) + (leaseId.endsWith("0") ? "1" : "0")]: hold } })
      : hold.principal === "" ? change(`,
      ],
    ],
  },
  {
    name: "joined-without-a-living-level",
    why: "a scope continues under its token although the last of its levels ran out long ago",
    file: "lib/core/lock/compatibility.ts",
    edits: [["hold.scope === scope && isLive(hold, reading)", "hold.scope === scope"]],
  },
  {
    name: "outer-release-ends-all-levels",
    why: "the release of one level frees the key, and other levels still treat it as held",
    file: "lib/core/lock/release.ts",
    edits: [
      [
        "const now = advance(ended, reading);",
        `const now = advance(hold.scope === undefined ? ended : Object.keys(ended.holds).reduce((rest, level) => endLease(rest, level, ending, reading), ended), reading);`,
      ],
    ],
  },
  {
    name: "upgrade-beside-readers",
    why: "a reader becomes the writer without a check of the other readers",
    file: "lib/core/lock/change-mode.ts",
    edits: [["if (occupantsOf(record, reading).length > 1)", "if (mode === 'shared' && occupantsOf(record, reading).length > 1)"]],
  },
  {
    name: "mode-without-its-token",
    why: "a late duplicate of a change that was undone since changes the mode again",
    file: "lib/core/lock/change-mode.ts",
    edits: [["hold.mode !== mode && hold.fencingToken !== fencingToken", "hold.fencingToken < fencingToken"]],
  },
  {
    name: "permits-without-a-margin",
    why: "a permit goes to the next caller at its expiry, without a margin",
    file: "lib/core/lock/grant.ts",
    breaks: "S9",
    noticedBy: ["test/core/kinds.test.ts", "'a new lease of another'"],
    edits: [["marginMs: policy.marginMs(leaseMs),", "marginMs: command.limit > 1 ? 0 : policy.marginMs(leaseMs),"]],
  },
  {
    name: "permits-counted-by-leases",
    why: "a lease of two permits counts as one",
    file: "lib/core/lock/compatibility.ts",
    edits: [
      ["out += permits;", "out += 1;"],
      ["out += Math.max(0, permits - counted);", "out += counted > 0 ? 0 : 1;"],
    ],
  },
  {
    name: "a-set-in-parts",
    why: "the keys of a set are written one by one: an interruption leaves a part of the set",
    file: "lib/store/compare-and-set.ts",
    edits: [
      [
        "const result = await replaceAll(changes);",
        `let result = await replaceAll(changes.slice(0, 1));
    if (result.written && changes.length > 1) result = await replaceAll(changes.slice(1));`,
      ],
    ],
  },
  {
    name: "readers-fence-each-other",
    why: "every reader raises the fence floor, and a resource refuses the concurrent readers",
    file: "lib/core/lock/acquire.ts",
    edits: [["fenceFloor: others ? rest.fenceFloor : hold.fencingToken,", "fenceFloor: hold.fencingToken,"]],
  },
  {
    name: "set-granted-by-its-changes",
    why: "only the changed keys of a set are written on condition: one that was already held may be released meanwhile",
    file: "lib/store/compare-and-set.ts",
    edits: [["const result = await replaceAll(changes);", "const result = await replaceAll(changes.filter(({ next }) => next));"]],
  },
  {
    name: "set-told-by-assignment",
    why: "the ends of a set's leases are assigned by key: the key __proto__ makes no member",
    file: "lib/service/sets.ts",
    edits: [["states: Object.fromEntries(states)", "states: states.reduce((told, [key, state]) => ((told[key] = state), told), {})"]],
  },
];
