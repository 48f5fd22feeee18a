/**
 * Every state of a run × every command, with the outcome that each store must produce. `A` is the lease that the states
 * are about; `C` is new. A cell has the outcome, `+` if the record changed, the holder afterwards, and the run:
 * running, interrupted, to be Tried again, succeeded or failed, with its attempt, `!` for a takeover, `*` with a
 * checkpoint.
 */
import type { LockRecord } from "../../../lib/core/record.js";
import { type RunScene, KEEP_MS, small } from "../run-fixture.js";
import { A, B, C, leaseId, LEASE_MS, MARGIN_MS } from "../fixture.js";
import { type Column, playRow, rowOf } from "./state-table.js";

type Step = (run: RunScene) => Promise<unknown>;

const CHECKPOINT = small('{"page":2}');
const RESULT = { payload: small('"paid"') };

/** The commands in every state: the columns of the table. */
const COMMANDS: readonly Column<RunScene, void>[] = [
  ["start A", (run) => run.start(A)],
  ["start C", (run) => run.start(C)],
  ["renew A", (run) => run.renew(A)],
  ["renew A with a checkpoint", (run) => run.save(A, CHECKPOINT)],
  ["A succeeded", (run) => run.complete(A, "succeeded", RESULT)],
  ["A failed", (run) => run.complete(A, "failed", { payload: small('"no"') })],
  ["A to be tried again", (run) => run.complete(A, "retry", { payload: small('"not yet"') })],
  ["release A", (run) => run.release(A)],
  ["reset", (run) => run.reset()],
];

const at = (ms: number, aheadMs?: number): Step => async (run) => void run.at(ms, aheadMs); // prettier-ignore
const startA: Step = (run) => run.start(A);
const startB: Step = (run) => run.start(B);
const saveA: Step = (run) => run.save(A, CHECKPOINT);
const releaseA: Step = (run) => run.release(A);
const releaseB: Step = (run) => run.release(B);
const succeed = (id: string): Step => (run) => run.complete(id, "succeeded", RESULT); // prettier-ignore
const fail = (id: string): Step => (run) => run.complete(id, "failed", { payload: small('"no"') }); // prettier-ignore
const retry = (id: string): Step => (run) => run.complete(id, "retry", { payload: small('"not yet"') }); // prettier-ignore
const reset: Step = (run) => run.reset();
/** Ends eight other leases. After that, A is known only through the low watermark. */
const eightEnd: Step = async (run) => {
  for (let order = 0; order < 8; order++) await run.release(leaseId(1000 + order));
};
const EXPIRED = at(LEASE_MS);
const TAKEABLE = at(LEASE_MS + MARGIN_MS);

interface State {
  readonly state: string;
  readonly steps: readonly Step[];
  readonly cells: string;
}
const after = (state: string, steps: readonly Step[], ...cells: readonly string[]): State => ({ state, steps, cells: cells.join(" | ") });

// prettier-ignore
/** The table. Columns as in COMMANDS. */
export const RUN_STATES: readonly State[] = [
  after("never run", [],
    "granted +A r1", "granted +C r1", "lease-lost: never", "lease-lost: never",
    "lease-lost: never", "lease-lost: never", "lease-lost: never", "never +", "not-found"),
  after("given up before it came", [releaseA],
    "lease-over", "granted +C r1", "lease-lost: never", "lease-lost: never",
    "lease-lost: never", "lease-lost: never", "lease-lost: never", "never", "reset"),
  after("running", [startA],
    "replayed A r1", "run-in-progress A r1", "renewed +A r1", "renewed +A r1*",
    "recorded + s1", "recorded + f1", "recorded + t1", "released +", "run-in-progress A r1"),
  after("running, with a checkpoint", [startA, saveA],
    "replayed A r1*", "run-in-progress A r1*", "renewed +A r1*", "renewed +A r1*",
    "recorded + s1", "recorded + f1", "recorded + t1*", "released +", "run-in-progress A r1*"),
  after("past its end by the later clock", [startA, at(LEASE_MS - 1, 5_000)],
    "replayed A r1", "run-in-progress A r1", "renewed +A r1", "renewed +A r1*",
    "recorded + s1", "recorded + f1", "recorded + t1", "released +", "run-in-progress A r1"),
  after("past its end by both clocks", [startA, saveA, EXPIRED],
    "lease-over A r1*", "run-in-progress A r1*", "lease-lost: expired A r1*", "lease-lost: expired A r1*",
    "recorded + s1", "recorded + f1", "recorded + t1*", "expired +", "run-in-progress A r1*"),
  after("past its margin by the later", [startA, at(LEASE_MS + MARGIN_MS - 1, 9_000)],
    "lease-over A r1", "run-in-progress A r1", "lease-lost: expired A r1", "lease-lost: expired A r1",
    "recorded + s1", "recorded + f1", "recorded + t1", "expired +", "run-in-progress A r1"),
  after("past its margin by both", [startA, saveA, TAKEABLE],
    "lease-over A r1*", "granted +C r2!*", "lease-lost: expired A r1*", "lease-lost: expired A r1*",
    "recorded + s1", "recorded + f1", "recorded + t1*", "expired +", "reset +"),
  after("given up", [startA, saveA, releaseA],
    "lease-over", "granted +C r1", "lease-lost: released", "lease-lost: released",
    "lease-lost: released", "lease-lost: released", "lease-lost: released", "released", "reset"),
  after("succeeded", [startA, saveA, succeed(A)],
    "succeeded s1", "succeeded s1", "lease-lost: released s1", "lease-lost: released s1",
    "replayed s1", "outcome-differs s1", "outcome-differs s1", "released s1", "reset +"),
  after("succeeded past its lease", [startA, TAKEABLE, succeed(A)],
    "succeeded s1", "succeeded s1", "lease-lost: expired s1", "lease-lost: expired s1",
    "replayed s1", "outcome-differs s1", "outcome-differs s1", "expired s1", "reset +"),
  after("succeeded, forgotten by the later clock", [startA, succeed(A), at(KEEP_MS - 1, 5_000)],
    "succeeded s1", "succeeded s1", "lease-lost: released s1", "lease-lost: released s1",
    "replayed s1", "outcome-differs s1", "outcome-differs s1", "released s1", "reset +"),
  after("succeeded, forgotten by both", [startA, succeed(A), at(KEEP_MS)],
    "lease-over s1", "granted +C r1", "lease-lost: released s1", "lease-lost: released s1",
    "replayed s1", "outcome-differs s1", "outcome-differs s1", "released s1", "reset +"),
  after("succeeded, known by the floor", [startA, succeed(A), eightEnd],
    "succeeded s1", "succeeded s1", "lease-lost: taken s1", "lease-lost: taken s1",
    "replayed s1", "outcome-differs s1", "outcome-differs s1", "unknown s1", "reset +"),
  after("failed for good", [startA, saveA, fail(A)],
    "failed f1", "failed f1", "lease-lost: released f1", "lease-lost: released f1",
    "outcome-differs f1", "replayed f1", "outcome-differs f1", "released f1", "reset +"),
  after("to be tried again", [startA, saveA, retry(A)],
    "lease-over t1*", "granted +C r2*", "lease-lost: released t1*", "lease-lost: released t1*",
    "outcome-differs t1*", "outcome-differs t1*", "replayed t1*", "released t1*", "reset +"),
  after("tried again by B", [startA, saveA, retry(A), startB],
    "lease-over B r2*", "run-in-progress B r2*", "lease-lost: released B r2*", "lease-lost: released B r2*",
    "outcome-differs B r2*", "outcome-differs B r2*", "replayed B r2*", "released B r2*", "run-in-progress B r2*"),
  after("tried again by B, who gave up", [startA, retry(A), startB, releaseB],
    "lease-over t1", "granted +C r2", "lease-lost: released t1", "lease-lost: released t1",
    "outcome-differs t1", "outcome-differs t1", "replayed t1", "released t1", "reset +"),
  after("tried again by B, who failed, too", [startA, retry(A), startB, retry(B)],
    "lease-over t2", "granted +C r3", "lease-lost: released t2", "lease-lost: released t2",
    "lease-lost: released t2", "lease-lost: released t2", "replayed t2", "released t2", "reset +"),
  after("tried again by B, who succeeded", [startA, retry(A), startB, succeed(B)],
    "succeeded s2", "succeeded s2", "lease-lost: released s2", "lease-lost: released s2",
    "lease-lost: released s2", "lease-lost: released s2", "replayed s2", "released s2", "reset +"),
  after("B runs it, A is another's", [startB],
    "run-in-progress B r1", "run-in-progress B r1", "lease-lost: never B r1", "lease-lost: never B r1",
    "lease-lost: never B r1", "lease-lost: never B r1", "lease-lost: never B r1", "never +B r1", "run-in-progress B r1"),
  after("taken over by B", [startA, saveA, TAKEABLE, startB],
    "lease-over B r2!*", "run-in-progress B r2!*", "lease-lost: taken B r2!*", "lease-lost: taken B r2!*",
    "lease-lost: taken B r2!*", "lease-lost: taken B r2!*", "lease-lost: taken B r2!*", "lost B r2!*", "run-in-progress B r2!*"),
  after("taken over by B, who gave up", [startA, saveA, TAKEABLE, startB, releaseB],
    "lease-over i1*", "granted +C r2!*", "lease-lost: taken i1*", "lease-lost: taken i1*",
    "lease-lost: taken i1*", "lease-lost: taken i1*", "lease-lost: taken i1*", "lost i1*", "reset +"),
  after("taken over by B, who succeeded", [startA, saveA, TAKEABLE, startB, succeed(B)],
    "succeeded s2!", "succeeded s2!", "lease-lost: taken s2!", "lease-lost: taken s2!",
    "lease-lost: taken s2!", "lease-lost: taken s2!", "lease-lost: taken s2!", "lost s2!", "reset +"),
  after("reset when it had succeeded", [startA, succeed(A), reset],
    "lease-over", "granted +C r1", "lease-lost: released", "lease-lost: released",
    "replayed", "lease-lost: released", "lease-lost: released", "released", "reset"),
  after("reset when its runner was silent", [startA, saveA, TAKEABLE, reset],
    "lease-over", "granted +C r1", "lease-lost: broken", "lease-lost: broken",
    "lease-lost: broken", "lease-lost: broken", "lease-lost: broken", "lost", "reset"),
];

const LETTERS = { running: "r", interrupted: "i", retry: "t", succeeded: "s", failed: "f" } as const;

/** The record's description of the run. */
function show(record: LockRecord | undefined): string {
  const run = record?.run;
  return run ? `${LETTERS[run.state]}${run.attempt}${run.takeover ? "!" : ""}${run.checkpoint ? "*" : ""}` : "";
}

/** Sends every command twice to its own key in this state. */
export function playRun({ steps }: State, sceneOf: () => RunScene): ReturnType<typeof playRow> {
  const prepare = async (run: RunScene): Promise<void> => {
    for (const step of steps) await step(run);
  };
  return playRow({ columns: COMMANDS, sceneOf, prepare, show });
}

/** The row as the table expects it. */
export function expectedOfRun({ cells }: State): ReturnType<typeof rowOf> {
  return rowOf(COMMANDS, cells);
}
