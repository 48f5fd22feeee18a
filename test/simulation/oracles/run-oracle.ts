/**
 * The oracle of runs. It checks R2, R3 and R4 by the writes to the table, the clients' requests and the answers to them. It knows how each
 * attempt ended because it saw the write that ended it.
 */
import { DEFAULTS } from "../../../lib/core/limits.js";
import type { LockRecord, Payload, Run as RunRecord } from "../../../lib/core/record.js";
import type { Run } from "../../../lib/client/calls/run/run-once.js";
import type { Attempt, FinalOutcome, RunTruth, Said, Told } from "./run-truth.js";
import { type Body, RunRequests } from "./run-requests.js";
import { aboutOf, fingerprintOf, forget, heldOutcome, newRunTruth, serialOf, wasSo } from "./run-truth.js";
import type { Bench } from "./verdict.js";

/** One write to a run's record, and the true time of its decision. */
export interface Written {
  readonly before: LockRecord | undefined;
  readonly next: LockRecord;
  readonly decidedAtMs: number;
}

/** Checks the runs of one history. */
export class RunOracle {
  readonly asked = new RunRequests();
  readonly #truths = new Map<string, RunTruth>();

  /** Returns the text of a payload that is stored in its own item. */
  textBeside: (key: string, digest: string) => string | undefined = () => undefined;

  constructor(private readonly bench: Bench) {}

  written(key: string, { before, next, decidedAtMs }: Written): void {
    const truth = this.#truth(key);
    const ended = leaseOnlyIn(before, next);
    const granted = leaseOnlyIn(next, before);
    const recordedBy = next.run?.outcome?.recordedBy;
    if (recordedBy !== undefined && recordedBy !== before?.run?.outcome?.recordedBy && recordedBy !== ended)
      this.bench.fail("R2", `${key}: an outcome was recorded by a lease that did not hold the run`);
    if (ended !== undefined) this.#ended(key, truth, ended, granted !== undefined, next, decidedAtMs);
    else if (before?.run && !next.run) this.#wasReset(key, truth);
    if (granted !== undefined) this.#started(key, truth, granted, next, decidedAtMs);
    else this.#sawCheckpoint(key, truth, next);
    this.#compare(key, truth, next);
  }

  collected(key: string): void {
    const truth = this.#truth(key);
    this.bench.coverage.runsCollected++;
    this.#forgotten(key, truth, this.bench.now(), "collected");
    forget(truth, this.bench.now());
  }

  /** Checks the answer to a start: the caller runs the work, or gets its outcome. */
  answeredStart(key: string, leaseId: string, { atMs, statusCode, answer }: { atMs: number; statusCode: number; answer: Body }): void {
    const { state, attempt, takeover, fencingToken, code, result, error } = answer;
    if (code === "fingerprint-mismatch") this.bench.coverage.mismatches++;
    if (statusCode >= 300) return;
    if (state !== "running") {
      this.bench.coverage.replays++;
      const text = JSON.stringify(state === "failed" ? error : result);
      const fingerprint = this.asked.startOf(leaseId).fingerprint;
      const outcome = this.#soOrNot(key, { state: state as Told["state"], attempt: attempt as number, text, sinceMs: atMs });
      return this.#same(key, outcome?.fingerprint, fingerprint);
    }
    const known = this.#truth(key).byToken.get(fencingToken as number);
    if (known?.leaseId !== leaseId || known.number !== attempt || known.takeover !== takeover)
      this.bench.fail("R3", `${key}: was told of attempt ${String(attempt)}, takeover ${String(takeover)}, and it is not so`);
  }

  /** Checks the answer to a lease's request to record this outcome. */
  answeredOutcome(key: string, leaseId: string, said: Said, statusCode: number, nobodyHears: boolean): void {
    const { recorded, attempts } = this.#truth(key);
    if (statusCode === 410) this.bench.coverage.zombieOutcomesRefused++;
    if (statusCode === 200 && recorded.get(leaseId) !== said.text)
      this.bench.fail("R2", `${key}: told that its outcome is recorded, and it is not`);
    if (statusCode === 409) this.bench.fail("R2", `${key}: told that it recorded another outcome, and it did not`);
    if (statusCode === 410 && !nobodyHears && attempts.some((attempt) => attempt.leaseId === leaseId && attempt.end === "outcome"))
      this.bench.fail("R2", `${key}: told that its outcome is not recorded, and it is`);
  }

  /** Checks a replayed outcome that a client got for `about`. */
  toldReplay(key: string, about: string, told: Told): void {
    this.#soOrNot(key, told);
    this.#same(key, aboutOf(told.text), about);
  }

  /** Checks an answer that the outcome of a client's own work is recorded. */
  toldRecorded(key: string, attempt: number, value: unknown): void {
    const text = JSON.stringify(value);
    if (!this.#truth(key).outcomes.some((one) => one.attempt === attempt && one.state === "succeeded" && one.text === text))
      this.bench.fail("R2", `${key}: told that attempt ${attempt} is recorded, and it is not`);
  }

  /** Checks an answer that the run was taken over and that the outcome of the client's work isn't recorded. */
  toldNotRecorded({ idempotencyKey: key, fencingToken }: Run): void {
    const attempt = this.#truth(key).attempts.find(({ token }) => token === fencingToken);
    if (attempt?.end === "outcome")
      this.bench.fail("R2", `${key}: told that attempt ${attempt.number} was lost, and its outcome is recorded`);
  }

  /** Checks the start of an attempt's work, with the facts that the attempt got about itself. */
  begun({ idempotencyKey: key, fencingToken, attempt, takeover, checkpoint }: Run): void {
    const known = this.#truth(key).byToken.get(fencingToken);
    if (!known) return this.bench.fail("S8", `${key}: was told a token ${fencingToken} that nobody was granted`);
    known.isBegun = true;
    if (known.number !== attempt || known.takeover !== takeover)
      this.bench.fail("R3", `${key}: attempt ${known.number}, takeover ${known.takeover}, runs as ${attempt}, ${takeover}`);
    if (JSON.stringify(checkpoint) !== known.checkpoint) this.bench.fail("R3", `${key}: runs from another checkpoint than the last saved`);
  }

  /** Records an acknowledged checkpoint. The holder of the lease knows of no later one. */
  acknowledged(key: string, leaseId: string, serial: number): void {
    const truth = this.#truth(key);
    const attempt = truth.attempts.find((one) => one.leaseId === leaseId);
    if (attempt) attempt.savedSerial = serial;
    this.#checkSaved(key, truth);
  }

  /** Records that a client got the confirmation of its checkpoint. */
  toldSaved({ idempotencyKey: key, fencingToken }: Run, serial: number): void {
    const attempt = this.#truth(key).byToken.get(fencingToken);
    if (attempt) attempt.savedSerial = serial;
  }

  /** Checks that a reported outcome was true at some instant since the request. */
  #soOrNot(key: string, told: Told): FinalOutcome | undefined {
    const outcome = this.#truth(key).outcomes.find((one) => wasSo(one, told));
    if (!outcome) this.bench.fail("R2", `${key}: a replay tells of attempt ${told.attempt}: ${told.state} ${told.text}, and it was not so`);
    return outcome;
  }

  #same(key: string, known = "", asked: string): void {
    if (known !== "" && asked !== "" && known !== asked) this.bench.fail("R4", `${key}: replayed for another payload`);
  }

  #ended(key: string, truth: RunTruth, leaseId: string, wasTaken: boolean, next: LockRecord, decidedAtMs: number): void {
    const last = truth.attempts.at(-1);
    if (last?.leaseId !== leaseId) return this.bench.fail("R3", `${key}: what ended was not the latest attempt`);
    if (wasTaken) last.end = "silent";
    else if (next.run?.outcome?.recordedBy === leaseId) this.#recorded(key, truth, last, next.run, decidedAtMs);
    else if (next.tombstones.some((ended) => ended.leaseId === leaseId && ended.ending === "broken")) this.#wasReset(key, truth);
    else {
      this.bench.coverage.runsGivenUp++;
      if (last.isBegun) this.bench.fail("R3", `${key}: attempt ${last.number} counts as never started, and its work was begun`);
      truth.attempts.pop();
      if (truth.attempts.length === 0) forget(truth, this.bench.now());
    }
  }

  #recorded(key: string, truth: RunTruth, last: Attempt, { state, outcome }: RunRecord, decidedAtMs: number): void {
    const said = this.asked.outcomeOf(last.leaseId);
    const text = this.#textOf(key, outcome?.payload);
    if (said?.state !== state || said.text !== text) this.bench.fail("R2", `${key}: recorded ${state} ${text}, which nobody said`);
    last.end = "outcome";
    truth.recorded.set(last.leaseId, text);
    if (state !== "succeeded" && state !== "failed") return;
    this.bench.coverage.outcomes++;
    truth.checkpoint = undefined;
    truth.current = {
      state,
      text,
      recordedBy: last.leaseId,
      attempt: last.number,
      fingerprint: fingerprintOf(truth),
      keptUntilMs: decidedAtMs + this.asked.startOf(last.leaseId).keepMs,
      sinceMs: this.bench.now(),
      untilMs: Number.POSITIVE_INFINITY,
    };
    truth.outcomes.push(truth.current);
  }

  #started(key: string, truth: RunTruth, leaseId: string, { holds, run }: LockRecord, decidedAtMs: number): void {
    this.bench.coverage.runStarts++;
    if (truth.current) {
      this.bench.coverage.outcomesForgotten++;
      this.#forgotten(key, truth, decidedAtMs, "run again");
      forget(truth, this.bench.now());
    }
    const { fingerprint } = this.asked.startOf(leaseId);
    const known = fingerprintOf(truth);
    if (known !== "" && fingerprint !== "" && known !== fingerprint) this.bench.fail("R4", `${key}: started for another payload`);
    const { attempts, checkpoint } = truth;
    const takeover = attempts.at(-1)?.end === "silent";
    const token = holds[leaseId]?.fencingToken ?? 0;
    const attempt: Attempt = {
      leaseId,
      token,
      number: attempts.length + 1,
      takeover,
      fingerprint,
      checkpoint,
      isBegun: false,
      savedSerial: 0,
    };
    if (takeover) this.bench.coverage.runTakeovers++;
    if (takeover && checkpoint !== undefined) this.bench.coverage.checkpointsHanded++;
    if (run?.takeover !== takeover)
      this.bench.fail("R3", `${key}: attempt ${attempt.number} says takeover ${run?.takeover}, and it is not so`);
    if (this.#textOf(key, run?.checkpoint) !== checkpoint)
      this.bench.fail("R3", `${key}: attempt ${attempt.number} lacks the last checkpoint`);
    const saved = Math.max(0, ...attempts.map(({ savedSerial }) => savedSerial));
    if (serialOf(checkpoint) < saved)
      this.bench.fail("R3", `${key}: checkpoint ${saved} was saved, and ${serialOf(checkpoint)} is handed on`);
    attempts.push(attempt);
    truth.byToken.set(token, attempt);
  }

  #sawCheckpoint(key: string, truth: RunTruth, { holds, run }: LockRecord): void {
    const text = this.#textOf(key, run?.checkpoint);
    if (text === truth.checkpoint) return;
    const [holder = ""] = Object.keys(holds);
    if (text === undefined || !this.asked.wasSaved(holder, text))
      this.bench.fail("R3", `${key}: its checkpoint became one that its lease never saved`);
    truth.checkpoint = text;
    this.#checkSaved(key, truth);
  }

  /** Checks that an acknowledged checkpoint is replaced only by a newer one. */
  #checkSaved(key: string, { attempts, checkpoint }: RunTruth): void {
    const saved = attempts.at(-1)?.savedSerial ?? 0;
    if (serialOf(checkpoint) < saved)
      this.bench.fail("R3", `${key}: checkpoint ${saved} was acknowledged, and ${serialOf(checkpoint)} is there`);
  }

  #wasReset(key: string, truth: RunTruth): void {
    this.bench.coverage.runsReset++;
    if (!this.asked.isBeingReset(key)) this.bench.fail("R2", `${key}: was forgotten although nobody reset it`);
    forget(truth, this.bench.now());
  }

  /** Checks that the outcome is forgotten at true time `atMs` no earlier than its retention allows, less both clocks' errors. */
  #forgotten(key: string, { current }: RunTruth, atMs: number, how: string): void {
    const tooEarlyMs = (current?.keptUntilMs ?? 0) - 2 * DEFAULTS.clockErrorMs - atMs;
    if (tooEarlyMs > 0) this.bench.fail("R2", `${key}: ${how} although its outcome is kept for ${Math.round(tooEarlyMs)} ms more`);
  }

  /** Checks that the record matches the true state after any write. */
  #compare(key: string, truth: RunTruth, { run }: LockRecord): void {
    const { current, attempts } = truth;
    if ((run?.attempt ?? 0) !== attempts.length)
      this.bench.fail("R3", `${key}: attempt ${attempts.length} is counted as ${run?.attempt ?? 0}`);
    if (current && heldOutcome(current, run) && this.#textOf(key, run?.outcome?.payload) === current.text) return;
    if (current) this.bench.fail("R2", `${key}: the outcome of attempt ${current.attempt} changed after it was recorded`);
  }

  #textOf(key: string, payload: Payload | undefined): string | undefined {
    return payload && (payload.text ?? this.textBeside(key, payload.digest));
  }

  #truth(key: string): RunTruth {
    let truth = this.#truths.get(key);
    if (!truth) this.#truths.set(key, (truth = newRunTruth()));
    return truth;
  }
}

/** Returns the lease that holds in one record and not in the other. */
function leaseOnlyIn(record: LockRecord | undefined, other: LockRecord | undefined): string | undefined {
  return Object.keys(record?.holds ?? {}).find((leaseId) => !Object.hasOwn(other?.holds ?? {}, leaseId));
}
