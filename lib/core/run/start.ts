/**
 * Start: runs the work, or returns its outcome. The first rule that matches decides. Each line is a row of the
 * precedence table in the tests:
 *
 *  1. the id runs already          → the same lease and attempt, replayed; or 403, 410, 422 lease-reused
 *  2. the work is over and stored  → its outcome; or 422 fingerprint-mismatch
 *  3. the id ended, or its time is out of bounds → 410 lease-over, 422 lease-id-time
 *  4. the fingerprint differs      → 422 fingerprint-mismatch
 *  5. another lease runs it        → 409 run-in-progress
 *  6. it was tried too often       → 409 attempts-exhausted
 *  7. otherwise                    → granted: the next attempt, a takeover if the last one ended without an outcome
 */
import { newHold, refuseReplay, refuseNewLease, takeOver } from "../lock/grant.js";
import { change } from "../change.js";
import type { Decision, Finished, LeaseEvent, LeaseView, Running, Start } from "../commands.js";
import { EMPTY_RECORD, holdOf } from "../lock/tombstones.js";
import { type Refusal, refuse } from "../errors.js";
import type { Checkpoint, Hold, LockRecord, LockPolicy, Run } from "../record.js";
import { isOver, isRunning, isSameWork, outlivedBy, runOf, startedTtlAtSec } from "./run.js";
import type { ClockReading } from "../time.js";
import { freeInMs, leaseView } from "../lock/views.js";

/** Decides a start: granted, the recorded outcome, or a refusal. */
export function start(record: LockRecord | undefined, command: Start, reading: ClockReading, policy: LockPolicy): Decision<Start> {
  const { key, leaseId } = command;
  const before = record ?? EMPTY_RECORD;
  const mine = holdOf(before, leaseId);
  if (mine && before.run) return replay(before, mine, before.run, command, reading);

  const run = runOf(before, reading);
  const mismatch = run && !isSameWork(run.fingerprint, command.fingerprint) ? refuse("fingerprint-mismatch") : undefined;
  if (run && isOver(run)) return { answer: mismatch ?? finished(run), events: [] };
  const refusal = refuseNewLease(before, leaseId, reading) ?? mismatch ?? refuseNow(before, run, command, reading);
  if (refusal) return { answer: refusal, events: [] };

  const { rest, ended } = takeOver(before, reading);
  const hold = newHold(rest, command, reading, policy);
  const started = nextAttempt(run, ended.length > 0, command);
  const next = change(rest, reading, {
    holds: { [leaseId]: hold },
    fencingToken: hold.fencingToken,
    fenceFloor: hold.fencingToken,
    run: started,
    ttlAtSec: startedTtlAtSec(hold, command.keepResultMs, policy),
  });
  const { owner, principal, fencingToken } = hold;
  const granted: LeaseEvent = { event: "granted", leaseId, owner, principal, fencingToken, attempt: started.attempt };
  const answer = running("granted", leaseView(key, leaseId, hold, next, reading), started, next.ttlAtSec);
  return { answer, next, events: [...ended, granted] };
}

/** Returns the attempt after `run`, with its fingerprint and its checkpoint. */
export function nextAttempt(run: Run | undefined, tookOver: boolean, { fingerprint, keepResultMs }: Start): Run {
  return {
    state: "running",
    attempt: (run?.attempt ?? 0) + 1,
    takeover: tookOver || run?.state === "interrupted",
    fingerprint: fingerprint || (run?.fingerprint ?? ""),
    keepResultMs,
    ...(run?.unknown && { unknown: run.unknown }),
    ...(run?.checkpoint && { checkpoint: uncounted(run.checkpoint) }),
    // The lease that recorded it may send its outcome again, which must be recognised.
    ...(run?.outcome && { outcome: run.outcome }),
  };
}

/** Removes the number of a checkpoint: the next lease numbers its own from the beginning. */
function uncounted({ sequence: _ofAnother, ...checkpoint }: Checkpoint): Checkpoint {
  return checkpoint;
}

/** Refuses a start while the work runs, or after its last attempt. */
function refuseNow(record: LockRecord, run: Run | undefined, { maxAttempts }: Start, reading: ClockReading): Refusal | undefined {
  if (isRunning(record, reading)) return refuse("run-in-progress", { retryAfterMs: freeInMs(record, reading) });
  if (run && maxAttempts > 0 && run.attempt >= maxAttempts) {
    // Most runs that come here had an outcome, such as a declined card, and reported it as a failed attempt: name how it is reported.
    const advice = 'A failure that no retry changes ends a run at once: FinalError, --final, "retryable": false';
    const detail = `The run was attempted ${run.attempt} times, of ${maxAttempts} at most: reset it, or allow more attempts (maxAttempts). ${advice}`;
    return refuse("attempts-exhausted", { detail });
  }
  return undefined;
}

/** Decides a repeated start. */
function replay(record: LockRecord, hold: Hold, run: Run, command: Start, reading: ClockReading): Decision<Start> {
  const refusal = refuseReplay(record, hold, command, reading);
  if (refusal) return { answer: refusal, events: [] };
  const { key, leaseId, principal } = command;
  const { owner, fencingToken } = hold;
  const replayed: LeaseEvent = { event: "replayed", leaseId, owner, principal, fencingToken, attempt: run.attempt };
  return { answer: running("replayed", leaseView(key, leaseId, hold, record, reading), run, record.ttlAtSec), events: [replayed] };
}

/** Answers with a lease on a run, whose item is kept until `ttlAtSec`. */
function running(how: Running["how"], lease: LeaseView, { attempt, takeover, checkpoint }: Run, ttlAtSec: number): Running {
  const outlived = outlivedBy(checkpoint, ttlAtSec);
  return { ok: true, state: "running", how, lease, attempt, takeover, ...(checkpoint && { checkpoint }), ...(outlived && { outlived }) };
}

function finished({ state, attempt, outcome }: Run & { readonly state: Finished["state"] }): Finished {
  const { payload, omitted } = outcome ?? {};
  return { ok: true, state, attempt, ...(payload && { payload }), ...(omitted && { omitted }) };
}
