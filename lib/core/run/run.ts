/**
 * A run: work that happens once per key and whose result is stored. Its lease is like any other. A run adds the state
 * of the work, and the rule which lease may record its outcome.
 *
 *              start                      complete: succeeded, failed
 *   (nothing) ───────▶ running ──────────────────────────────▶ succeeded, failed ── keptUntil ──▶ (nothing)
 *                       ▲  │ complete: retry                                        or a reset
 *                       │  ▼
 *              start   retry                The next start takes over a running one whose lease ran out.
 */
import { touchedTtlAtSec, ttlAtSec } from "../change.js";
import type { ProlongedPayload } from "../commands.js";
import { type Refusal, refuse } from "../errors.js";
import { DEFAULTS } from "../limits.js";
import type { Checkpoint, Hold, LockRecord, LockPolicy, Payload, Run } from "../record.js";
import { type ClockReading, toSecondsUp } from "../time.js";
import { isReclaimable } from "../lock/expiry.js";

/** Year 9999, in epoch seconds: a record stored for ever is never collected. */
const NEVER_COLLECTED_AT_SEC = 253_402_300_799;

/**
 * Returns the run, or undefined once its final outcome is forgotten. By the earliest clock: a fast clock must not
 * repeat work that was done.
 */
export function runOf(record: LockRecord, reading: ClockReading): Run | undefined {
  const { run } = record;
  const keptUntilMs = run?.outcome?.keptUntilMs ?? Number.POSITIVE_INFINITY;
  return keptUntilMs <= reading.earliestMs ? undefined : run;
}

/** True if the work is over: every later caller gets its outcome. */
export function isOver(run: Run): run is Run & { readonly state: "succeeded" | "failed" } {
  return run.state === "succeeded" || run.state === "failed";
}

/** True if the work is under way: no other caller may start it. */
export function isRunning(record: LockRecord, reading: ClockReading): boolean {
  return Object.values(record.holds).some((hold) => !isReclaimable(hold, reading));
}

/** True if both fingerprints are equal, or one of them is empty. */
export function isSameWork(known: string, asked: string): boolean {
  return known === "" || asked === "" || known === asked;
}

/**
 * Returns the time from which the record of a run that starts now may be collected, in epoch seconds. It leaves enough
 * time for every outcome recorded within one retention of the start. So heartbeats and the outcome don't change it, and
 * cost one write each.
 */
export function startedTtlAtSec(hold: Hold, keepResultMs: number, policy: LockPolicy): number {
  return Math.min(ttlAtSec(hold, { ...policy, retentionMs: 2 * policy.retentionMs + keepResultMs }), NEVER_COLLECTED_AT_SEC);
}

/** Returns the TTL of a run's record after a renewal, in epoch seconds: usually unchanged, else with twice the retention. */
export function renewedTtlAtSec(record: LockRecord, hold: Pick<Hold, "expiresAtMs" | "marginMs">, policy: LockPolicy): number {
  return record.ttlAtSec >= ttlAtSec(hold, policy) ? record.ttlAtSec : ttlAtSec(hold, { ...policy, retentionMs: 2 * policy.retentionMs });
}

/** Returns the TTL of a finished run's record, in epoch seconds: after its outcome is forgotten, and never earlier than before. */
export function completedTtlAtSec(record: LockRecord, keptUntilMs: number, reading: ClockReading, policy: LockPolicy): number {
  return Math.max(touchedTtlAtSec(record, reading, policy), keptTtlAtSec(keptUntilMs, policy));
}

/** Returns the TTL of data that is needed until `keptUntilMs`. */
function keptTtlAtSec(keptUntilMs: number, { retentionMs }: Pick<LockPolicy, "retentionMs">): number {
  return Math.min(toSecondsUp(keptUntilMs + retentionMs), NEVER_COLLECTED_AT_SEC);
}

/** Returns the TTL of a payload's own item that is written now: not before the record's, nor before the payload is forgotten. */
export function payloadTtlAtSec(record: LockRecord, run: Run, reading: ClockReading): number {
  return Math.max(record.ttlAtSec, keptTtlAtSec(reading.latestMs + run.keepResultMs, DEFAULTS));
}

/** Returns the new TTL for the payload's own item, if the item could be collected before the record that refers to it. */
export function outlivedBy(payload: Payload | undefined, ttlAtSec: number): ProlongedPayload | undefined {
  if (payload?.ttlAtSec === undefined || payload.ttlAtSec >= ttlAtSec) return undefined;
  return { digest: payload.digest, ttlAtSec };
}

/** Returns the checkpoint with the new TTL of its own item; unchanged if it is a different checkpoint by now. */
export function withProlonged(saved: Checkpoint, { digest, ttlAtSec }: ProlongedPayload): Checkpoint {
  return saved.digest === digest && outlivedBy(saved, ttlAtSec) ? { ...saved, ttlAtSec } : saved;
}

/** True if the new checkpoint is no older than the stored one of the same lease. A late duplicate must not undo it. */
export function isLater({ sequence: before }: Checkpoint, { sequence }: Checkpoint): boolean {
  return before === undefined || sequence === undefined || sequence >= before;
}

/** True if the payload's text is stored, in the record or in an item of its own. The record may refer only to such a payload. */
export function isStored({ text, ttlAtSec: until }: Payload): boolean {
  return text !== undefined || until !== undefined;
}

/** Refuses a payload that is not stored: its lease got the run only after the service had decided not to store the text. */
export function refuseUnkept(): Refusal {
  return refuse("unavailable", { definite: true, detail: "The run was granted while this was under way" });
}
