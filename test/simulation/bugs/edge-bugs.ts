/** The must-fail switches of a record's edges: see bugs.ts. */
import type { Bug } from "./bug.js";

/** Mistakes that show only where a queue, a wait or an item is at one of its bounds. */
export const EDGE_BUGS: readonly Bug[] = [
  {
    name: "keep-alive-of-the-place-alone",
    why: "a waiter that came forward asks for less time than it has: its keep-alives are refused, until it gives up or is skipped",
    file: "lib/core/lock/pace.ts",
    breaks: "L4",
    noticedBy: ["test/core/queue.test.ts", "until later than before, though it came forward"],
    edits: [["const aliveUntilMs = Math.max(waiter.aliveUntilMs + 1, latestMs + ttlMs);", "const aliveUntilMs = latestMs + ttlMs;"]],
  },
  {
    name: "upgrade-of-who-left",
    why: "a reader that asked to upgrade keeps others from joining for 15 s, although it has left",
    file: "lib/store/dynamo/join.ts",
    breaks: "L4",
    noticedBy: ["test/store/form-states.test.ts", "leaves what the core would, or nothing: $state"],
    edits: [
      [
        "seen.upgrading && !holdOf(seen, seen.upgrading.leaseId) ? seen.upgrading.leaseId : undefined;",
        "reading.latestMs < 0 ? leaseId : undefined;",
      ],
    ],
  },
  {
    name: "queue-as-long-as-the-record",
    why: "behind readers or permits a waiter is appended as long as the record has room, whatever the size of the queue",
    file: "lib/store/dynamo/predicates.ts",
    breaks: "L4",
    noticedBy: ["test/store/forms.test.ts", "leaves what the core would, or is refused: %s"],
    edits: [["AND NOT (qb = :long)", "AND (NOT (qb = :long) OR qb = :long)"]],
  },
  {
    name: "grant-told-as-a-refusal",
    why: "a grant that is written before the key is read is told as the core decides on the record that it met, not as it was written",
    file: "lib/store/dynamo/holding.ts",
    breaks: "L1",
    noticedBy: [
      "test/store/forms.test.ts",
      "is told as it was written, though the core reads a higher low watermark where leases are listed as ended",
    ],
    edits: [["decides: (before) => grantBeside(before, command, reading, policy),", ""]],
  },
  {
    name: "names-of-conditions-uncounted",
    why: "a waiter counts as short by its owner alone, however long the name of its condition is",
    file: "lib/core/record-bytes.ts",
    breaks: "L4",
    noticedBy: ["test/core/queue-bounds.test.ts", "may be full by size if one waiter has a longer name, or a short one and more to say"],
    edits: [
      [
        "return waitersBytes([waiter]) > WAITER_SHARE_BYTES;",
        "return waitersBytes([{ ...waiter, condition: undefined }]) > WAITER_SHARE_BYTES;",
      ],
    ],
  },
  {
    name: "collected-while-it-waits",
    why: "keep-alives don't prolong the record: a member that waits longer than the retention is collected",
    file: "lib/core/lock/acquire.ts",
    breaks: "L5",
    noticedBy: [
      "test/core/conditions.test.ts",
      "keeps the record for a retention again by a keep-alive, if no more than half of one is left by the later clock",
    ],
    edits: [["inWaitSet: true, ttlAtSec }", "inWaitSet: true }"]],
  },
  {
    name: "place-lost-for-good",
    why: "a wait that loses its place asks with the same id only, which is too old for another place after 15 minutes",
    file: "lib/client/ask/until-granted.ts",
    breaks: "L2",
    noticedBy: ["test/client/acquire/lost-messages.test.ts", "%s waits on for the rest of its time"],
    edits: [['"lease-over", "lease-id-time"]', '"lease-over"]']],
  },
];
