/** The must-fail switches of conditions: see bugs.ts. */
import type { Bug } from "./bug.js";

/** Mistakes by which a notify is lost, or counts twice. */
export const CONDITION_BUGS: readonly Bug[] = [
  {
    name: "wait-in-two-writes",
    why: "a wait frees the key with one write and joins the wait set with the next: a notify between the two is lost",
    file: "lib/core/lock/condition.ts",
    breaks: "L5",
    noticedBy: ["test/core/conditions.test.ts", "frees the key and joins the wait set in one change"],
    edits: [
      ["const now = advanceIfQueued(withWaitSet(ended, waitSet), reading);", "const now = advanceIfQueued(ended, reading);"],
      ["answer: memberView(next, member),\n    next,", 'answer: refuse("unavailable"),\n    next,'],
      [
        "if (!waiting) return undefined;",
        "if (record && !waiting) { const late = { ...waiterFor(to, reading), condition: arguments[1].condition }; const next = change(withWaitSet(record, [...liveMembers(record, reading), late]), reading, {}); return { answer: memberView(next, late), next, events: [] }; }\n  if (!waiting) return undefined;",
      ],
    ],
  },
  {
    name: "notify-counted-by-requests",
    why: "each request is a notify: one that is repeated after a lost answer wakes a second waiter",
    file: "lib/core/lock/condition.ts",
    breaks: "S16",
    edits: [["sequence <= notified.sequence\n", "sequence < 0\n"]],
  },
  {
    name: "notify-dies-with-its-waiter",
    why: "a waiter that was notified and dies before it has the key takes its notify with it: the others wait on",
    file: "lib/core/lock/queue.ts",
    breaks: "L5",
    edits: [["return now.record.waitSet ? passOn(now, [...skipped, ...offered.skipped], reading, by) : now;", "return now;"]],
  },
];
