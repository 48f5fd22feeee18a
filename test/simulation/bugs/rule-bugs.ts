/** The must-fail switches of answers to callers and of requests' targets: see bugs.ts. */
import type { Bug } from "./bug.js";

/** Mistakes in rules that leave the record consistent. Only an observer that knows each request and its time can find them. */
export const RULE_BUGS: readonly Bug[] = [
  {
    name: "expired-told-as-released",
    why: "a release after the lease ran out is reported as held until then",
    file: "lib/core/lock/release.ts",
    edits: [['hold.broken === "forced" ? "broken" : "expired"', '"released"']],
  },
  {
    name: "broken-holder-renews",
    why: "a hold that an operator is ending continues for as long as its holder likes",
    file: "lib/core/lock/renew.ts",
    edits: [["if (hold.broken) return", "if (reading.latestMs < 0) return"]],
  },
  {
    name: "priority-ignored",
    why: "new arrivals go behind all waiters, whatever their priority",
    file: "lib/core/lock/places.ts",
    edits: [["({ priority }) => priority < waiter.priority", "() => false"]],
  },
  {
    name: "break-hits-newer-tokens",
    why: "a late or repeated break ends the hold of a later holder",
    file: "lib/core/lock/break.ts",
    edits: [["([, hold]) => hold.fencingToken === fencingToken", "([, hold]) => hold.fencingToken >= fencingToken"]],
  },
  {
    name: "lost-told-as-unknown",
    why: "a holder whose lease was taken over doesn't learn it, although the key remembers",
    file: "lib/core/lock/release.ts",
    edits: [['taken: "lost",', 'taken: "unknown",']],
  },
  {
    name: "held-after-expiry",
    why: "a check reports held until somebody takes the key over",
    file: "lib/core/lock/check.ts",
    edits: [["if (!isLive(hold, reading))", "if (reading.latestMs < 0)"]],
  },
];
