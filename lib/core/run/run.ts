/**
 * A run: work that happens once per key and whose result is kept. Its lease is a lease like any other;
 * what is added is what became of the work, and who may say so.
 *
 *              start                      conclude: succeeded, failed
 *   (nothing) ───────▶ running ──────────────────────────────▶ succeeded, failed ── kept until ──▶ (nothing)
 *                       ▲  │ conclude: retry                                        or a reset
 *                       │  ▼
 *              start   retry                A running one whose lease ran out is taken over by the next start.
 */
import { touchedTtlAtSec, ttlAtSec } from "../change.js";
import type { ProlongedPayload } from "../commands.js";
import type { Refusal } from "../errors.js";
import { refuse } from "../errors.js";
import { DEFAULTS } from "../limits.js";
import type { Checkpoint, Hold, LockRecord, LockPolicy, Payload, Run } from "../record.js";
import { toSecondsUp } from "../time.js";
import type { ClockReading } from "../time.js";
import { isReclaimable } from "../lock/expiry.js";

/** Year 9999, in epoch seconds: a record kept for ever is never collected. */
const NEVER_COLLECTED_AT_SEC = 253_402_300_799;

/**
 * What is known of the run; a final outcome only for as long as it is kept. With the earlier clock: a
 * fast one must not run what was run.
 */
export function runOf(record: LockRecord, reading: ClockReading): Run | undefined {
  const { run } = record;
  const keptUntilMs = run?.outcome?.keptUntilMs;
  return keptUntilMs !== undefined && keptUntilMs <= reading.earliestMs ? undefined : run;
}

/** Whether the work is over, and its outcome what every later caller gets. */
export function isOver(run: Run): run is Run & { readonly state: "succeeded" | "failed" } {
  return run.state === "succeeded" || run.state === "failed";
}

/** Whether the work is under way: nobody else may start it. */
export function isRunning(record: LockRecord, reading: ClockReading): boolean {
  return Object.values(record.holds).some((hold) => !isReclaimable(hold, reading));
}

/** Whether both are about the same, as far as either says. */
export function isSameWork(known: string, asked: string): boolean {
  return known === "" || asked === "" || known === asked;
}

/**
 * When the record of a run that starts now may be collected. Late enough for every outcome recorded
 * within a retention of the start: heartbeats and outcome then leave it alone, and cost one write each.
 */
export function startedTtlAtSec(hold: Hold, keepResultMs: number, policy: LockPolicy): number {
  return Math.min(ttlAtSec(hold, { ...policy, retentionMs: 2 * policy.retentionMs + keepResultMs }), NEVER_COLLECTED_AT_SEC);
}

/** When the record of a run whose lease was renewed may be collected: mostly as before, else by a good stretch later. */
export function renewedTtlAtSec(record: LockRecord, hold: Pick<Hold, "expiresAtMs" | "marginMs">, policy: LockPolicy): number {
  return record.ttlAtSec >= ttlAtSec(hold, policy) ? record.ttlAtSec : ttlAtSec(hold, { ...policy, retentionMs: 2 * policy.retentionMs });
}

/** When the record of a run that is over may be collected: after its outcome is forgotten, and never earlier than before. */
export function completedTtlAtSec(record: LockRecord, keptUntilMs: number, reading: ClockReading, policy: LockPolicy): number {
  return Math.max(touchedTtlAtSec(record, reading, policy), keptTtlAtSec(keptUntilMs, policy));
}

/** Until when what is kept until `keptUntilMs` stays in the table. */
function keptTtlAtSec(keptUntilMs: number, { retentionMs }: Pick<LockPolicy, "retentionMs">): number {
  return Math.min(toSecondsUp(keptUntilMs + retentionMs), NEVER_COLLECTED_AT_SEC);
}

/** When the own item of a payload that is saved now may be collected: not before the record, nor before it is forgotten. */
export function payloadTtlAtSec(record: LockRecord, run: Run, reading: ClockReading): number {
  return Math.max(record.ttlAtSec, keptTtlAtSec(reading.latestMs + run.keepResultMs, DEFAULTS));
}

/** Until when the payload's own item must be kept, where it may be collected before the record that speaks of it. */
export function outlivedBy(payload: Payload | undefined, ttlAtSec: number): ProlongedPayload | undefined {
  if (payload?.ttlAtSec === undefined || payload.ttlAtSec >= ttlAtSec) return undefined;
  return { digest: payload.digest, ttlAtSec };
}

/** The checkpoint with its item kept until then; as it is, if it is another by now. */
export function withProlonged(saved: Checkpoint, { digest, ttlAtSec }: ProlongedPayload): Checkpoint {
  return saved.digest === digest && outlivedBy(saved, ttlAtSec) ? { ...saved, ttlAtSec } : saved;
}

/** Whether it came after what the same lease saved before, or is that again; a late duplicate must not undo it. */
export function isLater({ sequence: before }: Checkpoint, { sequence }: Checkpoint): boolean {
  return before === undefined || sequence === undefined || sequence >= before;
}

/** Whether the payload's text is somewhere: in the record, or on its own item. One that isn't must not be spoken of. */
export function isStored({ text, ttlAtSec: until }: Payload): boolean {
  return text !== undefined || until !== undefined;
}

/** The refusal of such a one: its lease came to hold the run only after its text should have been kept. */
export function refuseUnkept(): Refusal {
  return refuse("unavailable", { definite: true, detail: "The run was granted while this was under way" });
}
