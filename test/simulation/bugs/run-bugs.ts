/** The must-fail switches of runs: see bugs.ts. */
import type { Bug } from "./bug.js";

/** Mistakes in the parts of runs beyond their leases. */
export const RUN_BUGS: readonly Bug[] = [
  {
    name: "outcome-unconditional",
    why: "an outcome is recorded even if the attempt lost the run: a zombie overwrites its successor's",
    file: "lib/core/run/complete.ts",
    edits: [
      [
        "if (!record?.run || !hold) return completeWithoutHold(record, command, reading);",
        `if (!record?.run) return completeWithoutHold(record, command, reading);
        if (!hold) return { answer: { ok: true, how: "recorded" }, next: change(record, reading, { run: completed(record.run, { owner: "", grantedAtMs: 0 } as Hold, command, reading) }), events: [] };`,
      ],
    ],
  },
  {
    name: "takeover-without-attempt",
    why: "a takeover continues the attempt that it found, as if nothing had begun",
    file: "lib/core/run/start.ts",
    edits: [
      ["attempt: (run?.attempt ?? 0) + 1,", "attempt: (run?.attempt ?? 0) + (tookOver ? 0 : 1),"],
      ['takeover: tookOver || run?.state === "interrupted",', "takeover: false,"],
    ],
  },
  {
    name: "fingerprint-ignored",
    why: "the key alone identifies the work: another payload gets the first one's result",
    file: "lib/core/run/run.ts",
    edits: [['return known === "" || asked === "" || known === asked;', "return true;"]],
  },
  {
    name: "forgotten-by-the-later-clock",
    why: "a fast server clock forgets an outcome early, and the work is done again",
    file: "lib/core/run/run.ts",
    edits: [["keptUntilMs <= reading.earliestMs ?", "keptUntilMs <= reading.latestMs ?"]],
  },
  {
    name: "collected-while-kept",
    why: "the record of a run is collected like a lock's, a retention after its last use, together with its outcome",
    file: "lib/core/run/run.ts",
    edits: [
      ["retentionMs: 2 * policy.retentionMs + keepResultMs }", "retentionMs: 2 * policy.retentionMs }"],
      [
        "return Math.max(touchedTtlAtSec(record, reading, policy), keptTtlAtSec(keptUntilMs, policy));",
        "return touchedTtlAtSec(record, reading, policy);",
      ],
    ],
  },
  {
    name: "run-over-at-its-expiry",
    why: "a run counts as over when its lease does, without the margin for a runner that still treats it as held",
    file: "lib/core/run/run.ts",
    edits: [["some((hold) => !isReclaimable(hold, reading))", "some((hold) => hold.expiresAtMs > reading.earliestMs)"]],
  },
  {
    name: "started-beside-another",
    why: "a start looks for an outcome, and not for an attempt that still runs",
    file: "lib/core/run/start.ts",
    breaks: "R1",
    edits: [["if (isRunning(record, reading)) return", "if (reading.latestMs < 0 && isRunning(record, reading)) return"]],
  },
  {
    name: "reset-without-looking",
    why: "an operator's reset ends a running attempt: two run it then",
    file: "lib/core/run/reset.ts",
    edits: [["if (isRunning(record, reading))", "if (reading.latestMs < 0 && isRunning(record, reading))"]],
  },
  {
    name: "given-up-takeover-forgotten",
    why: "a takeover abandoned before it began leaves no trace of the interrupted attempt",
    file: "lib/core/lock/release.ts",
    edits: [['state: takeover ? "interrupted" : "retry"', 'state: "retry"']],
  },
  {
    name: "given-up-after-it-began",
    why: "work whose invocation ends is abandoned like a lock, and counts as never started",
    file: "lib/client/hold/holds.ts",
    edits: [
      ['if (lease.kind === "locks" && !this.#registry.works.has(lease)) void this.tryRelease(lease);', "void this.tryRelease(lease);"],
    ],
  },
  {
    name: "outcome-before-belief-ends",
    why: "the runner treats the run as held while its outcome is sent: once it is answered, the next one runs beside it",
    file: "lib/client/hold/lease.ts",
    breaks: "R1",
    edits: [['else recording.abandon();\n    this.abandon("released");', "else recording.abandon();"]],
  },
  {
    name: "checkpoints-as-they-come",
    why: "a slow save undoes a later one that was already confirmed",
    file: "lib/core/run/run.ts",
    edits: [["{ sequence }: Checkpoint): boolean {", "{ sequence }: Checkpoint): boolean {\n  if (before !== sequence) return true;"]],
  },
  {
    name: "last-outcome-alone",
    why: "only the latest outcome is recognised when it is repeated: a repeat of an earlier one is reported as taken over",
    file: "lib/core/run/complete.ts",
    edits: [["before?.outcome === outcomeDigest(command)", 'before?.outcome === ""']],
  },
  {
    name: "checkpoint-prolonged-by-a-save",
    why: "extending a checkpoint's item saves it again as the first of its lease: it undoes a later one",
    file: "lib/core/run/run.ts",
    edits: [
      ["return { digest: payload.digest, ttlAtSec };", "return { ...payload, ttlAtSec };"],
      [
        "{ digest, ttlAtSec }: ProlongedPayload): Checkpoint {\n  return saved.digest === digest && outlivedBy(saved, ttlAtSec) ? { ...saved, ttlAtSec } : saved;",
        "again: ProlongedPayload): Checkpoint {\n  return isLater(saved, { sequence: 0 }) ? { ...again, sequence: 0 } : saved;",
      ],
    ],
  },
];
