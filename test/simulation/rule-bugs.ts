/** The must-fail switches of answers to callers and of requests' targets: see bugs.ts. */
import type { Bug } from "./bugs.js";

/** Mistakes in rules that leave the record consistent. Only an observer that knows each request and its time can find them. */
export const RULE_BUGS: readonly Bug[] = [
  {
    name: "expired-told-as-released",
    why: "a release that comes after the lease ran out is told that the hold lasted until then",
    file: "lib/core/lock/release.ts",
    edits: [['hold.broken === "forced" ? "broken" : "expired"', '"released"']],
  },
  {
    name: "broken-holder-renews",
    why: "a hold that an operator is ending goes on for as long as its holder likes",
    file: "lib/core/lock/renew.ts",
    edits: [["if (hold.broken) return", "if (reading.latestMs < 0) return"]],
  },
  {
    name: "priority-ignored",
    why: "whoever comes stands behind all, whatever its priority",
    file: "lib/core/lock/queue.ts",
    edits: [["({ priority }) => priority < waiter.priority", "() => false"]],
  },
  {
    name: "break-hits-newer-tokens",
    why: "a break that comes late, or again, ends the hold of whoever was granted the key since",
    file: "lib/core/lock/break.ts",
    edits: [["([, hold]) => hold.fencingToken === fencingToken", "([, hold]) => hold.fencingToken >= fencingToken"]],
  },
  {
    name: "lost-told-as-unknown",
    why: "a holder whose lease was taken over is not told so, although the key remembers",
    file: "lib/core/lock/release.ts",
    edits: [['taken: "lost",', 'taken: "unknown",']],
  },
  {
    name: "held-after-expiry",
    why: "a check says held for as long as nobody has taken the key over",
    file: "lib/core/lock/check.ts",
    edits: [["if (!isLive(hold, reading))", "if (reading.latestMs < 0)"]],
  },
];
