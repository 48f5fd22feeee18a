/**
 * The must-fail switches. Each is one plausible mistake, patched into the production source while it is bundled for the simulation. If the
 * simulation doesn't find a mistake that is switched on, the simulation is broken. It is an error if a patch's text isn't found exactly
 * once: the code has changed.
 */

import type { Bug } from "./bug.js";
import { CONDITION_BUGS } from "./condition-bugs.js";
import { CROWD_BUGS } from "./crowd-bugs.js";
import { EDGE_BUGS } from "./edge-bugs.js";
import { KIND_BUGS } from "./kind-bugs.js";
import { LIMIT_BUGS } from "./limit-bugs.js";
import { QUEUE_BUGS } from "./queue-bugs.js";
import { REGION_BUGS } from "./region-bugs.js";
import { RECORD_BUGS } from "./record-bugs.js";
import { RULE_BUGS } from "./rule-bugs.js";
import { RUN_BUGS } from "./run-bugs.js";
import { SLEEP_BUGS } from "./sleep-bugs.js";
import { STORE_BUGS } from "./store-bugs.js";
import { WAY_BUGS } from "./way-bugs.js";

/** Mistakes of plain locks. */
export const LOCK_BUGS: readonly Bug[] = [
  {
    name: "heartbeats-without-progress",
    why: "heartbeats go on although the work shows no progress: work that hangs keeps its key for ever",
    file: "lib/client/hold/keep-alive.ts",
    breaks: "L1",
    noticedBy: [
      "test/client/lease/progress.test.ts",
      "is lost after a silence of that time, which the grant begins, and sends no more heartbeats",
    ],
    edits: [["this.#lease.lose(this.#loss(`no progress", "void (this.#loss(`no progress"]],
  },
  {
    name: "release-without-owner-check",
    why: "a release frees any holder of the key, like an unconditional unlock",
    file: "lib/core/lock/release.ts",
    edits: [
      [
        "const { leaseId, principal } = command;\n  const before = record ?? EMPTY_RECORD;",
        `const { principal } = command;
  const before = record ?? EMPTY_RECORD;
  const [leaseId, hold] = Object.entries(before.holds)[0] ?? [command.leaseId, undefined];`,
      ],
      ["  const hold = holdOf(before, leaseId);\n", ""],
      ['if (hold.principal !== "" && hold.principal !== principal) return { answer: refuse("forbidden"), events: [] };', ""],
    ],
  },
  {
    name: "token-from-a-counter",
    why: "a counter in the item restarts when garbage collection removes the item",
    file: "lib/core/lock/grant.ts",
    edits: [["return Math.max(fencingToken + 1, likelyMs);", "return Math.max(fencingToken + 1, 0 * likelyMs);"]],
  },
  {
    name: "margin-of-e",
    why: "the margin covers one clock's error, although the other may be off in the opposite direction",
    file: "lib/core/limits.ts",
    edits: [["return Math.ceil(2 * clockErrorMs + 2 * DEFAULTS.clockRateError * leaseMs) + 1;", "return clockErrorMs;"]],
  },
  {
    name: "deadline-from-receipt",
    why: "the lease counts from the arrival of its reply: a slow reply stretches it",
    file: "lib/client/wire/retry.ts",
    edits: [["honest(outcome, ambiguous), sentAt, ambiguous", "honest(outcome, ambiguous), sentAt: instantOf(clock), ambiguous"]],
  },
  {
    name: "lease-ms-for-remaining-ms",
    why: "a replay of an earlier grant counts as a full lease",
    file: "lib/client/ask/deadline.ts",
    edits: [["Math.min(lease.remainingMs, lease.leaseMs)", "lease.leaseMs"]],
  },
  {
    name: "remaining-by-the-earlier-clock",
    why: "a slow server clock reports more remaining time than there is",
    file: "lib/core/lock/views.ts",
    edits: [
      [
        "remainingMs: Math.max(0, Math.min(hold.expiresAtMs - reading.latestMs, hold.leaseMs)),\n    renewAfterMs",
        "remainingMs: Math.max(0, Math.min(hold.expiresAtMs - reading.earliestMs, hold.leaseMs)),\n    renewAfterMs",
      ],
    ],
  },
  {
    name: "ring-without-floor",
    why: "only the last eight ends are remembered: an older late duplicate is granted as new",
    file: "lib/core/lock/tombstones.ts",
    edits: [["lowWatermark: leaseId > lowWatermark ? leaseId : lowWatermark };", "lowWatermark };"]],
  },
  {
    name: "renewal-that-shortens",
    why: "a renewal always sets the expiry: a shorter or late one takes time away",
    file: "lib/core/lock/renew.ts",
    edits: [["if (expiresAtMs < hold.expiresAtMs) return hold;", ""]],
  },
  {
    name: "release-before-belief-ends",
    why: "the holder treats the lease as held until the release is answered: the next one holds before",
    file: "lib/client/hold/lease.ts",
    breaks: "S1",
    edits: [
      ['Promise<LeaseState> {\n    this.abandon("released");', "Promise<LeaseState> {"],
      ["return answer.state;", 'this.abandon("released");\n    return answer.state;'],
    ],
  },
  {
    name: "takeover-by-the-later-clock",
    why: "a fast server clock takes over from a holder that still treats the lease as held",
    file: "lib/core/lock/expiry.ts",
    breaks: "S1",
    edits: [["hold.expiresAtMs + hold.marginMs <= reading.earliestMs;", "hold.expiresAtMs + hold.marginMs <= reading.latestMs;"]],
  },
  {
    name: "monotonic-clock-alone",
    why: "a frozen sandbox stops this clock: the holder wakes up and treats the lease as held",
    file: "lib/core/time.ts",
    edits: [
      ["return Math.max(now.monotonicMs - since.monotonicMs, now.wallMs - since.wallMs);", "return now.monotonicMs - since.monotonicMs;"],
    ],
  },
  {
    name: "wall-clock-alone",
    why: "a correction of the machine's time gives the holder the lease a second time",
    file: "lib/core/time.ts",
    edits: [["return Math.max(now.monotonicMs - since.monotonicMs, now.wallMs - since.wallMs);", "return now.wallMs - since.wallMs;"]],
  },
  {
    name: "acquire-again-extends",
    why: "a late duplicate of an acquire extends a lease that nobody renewed",
    file: "lib/core/lock/acquire.ts",
    edits: [
      [
        'hold.principal === "" ? change(record, reading, { holds: { ...record.holds, [leaseId]: { ...hold, principal } } }) : undefined;',
        "change(record, reading, { holds: { ...record.holds, [leaseId]: { ...hold, principal, expiresAtMs: reading.latestMs + hold.leaseMs } } });",
      ],
    ],
  },
  {
    name: "version-from-nothing",
    why: "a collected item restarts its versions, and a write conditional on the old one succeeds",
    file: "lib/core/change.ts",
    edits: [["(record.version === 0 ? reading.latestMs : record.version) + 1", "record.version + 1"]],
  },
  {
    name: "signal-before-the-loss",
    why: "the signal of a lost lease fires while isHeld() still says true",
    file: "lib/client/hold/lease.ts",
    edits: [
      [
        "    this.#over = over;\n    this.endReason = reason;\n    this.keeper?.end();\n    this.#lost.abortBy(errorOf);\n",
        "    this.#lost.abortBy(errorOf);\n    this.#over = over;\n    this.endReason = reason;\n    this.keeper?.end();\n",
      ],
    ],
  },
];

/** All bugs, by name. */
export const BUGS: readonly Bug[] = [
  ...LOCK_BUGS,
  ...RUN_BUGS,
  ...KIND_BUGS,
  ...QUEUE_BUGS,
  ...RECORD_BUGS,
  ...RULE_BUGS,
  ...STORE_BUGS,
  ...CONDITION_BUGS,
  ...WAY_BUGS,
  ...CROWD_BUGS,
  ...EDGE_BUGS,
  ...LIMIT_BUGS,
  ...SLEEP_BUGS,
  ...REGION_BUGS,
];
