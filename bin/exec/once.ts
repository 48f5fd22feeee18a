/** `holdfast once`: runs a command once per key. Later callers get its output and its status. */
import {
  type LockClient,
  type Run,
  type RunningBefore,
  type RunResult,
  LockError,
  LockLostError,
  LockTimeoutError,
} from "../../lib/index.js";
import { CliError } from "../cli-error.js";
import { formatDuration } from "../../console/text/duration.js";
import { lostUnder, statusOf, supervise } from "./supervise.js";
import type { CommandResult } from "./stored-output.js";
import { type CommandArgs, waitFor } from "./lock.js";
import { OutputBuffer, replayOf } from "./stored-output.js";
import type { RunContext } from "../context.js";
import { plainLines } from "../../console/text/plain-text.js";
import type { CommandOutcome } from "./supervise.js";

/** The command, its key, and the storage of its result. */
export interface OnceArgs extends CommandArgs {
  readonly keepResultMs: number | "forever";
  readonly maxAttempts: number;
  readonly fingerprint: string | undefined;
  /** The key is a schedule's name, and the command runs once for each multiple of this interval, in ms. */
  readonly tickMs: number | undefined;
  /** The statuses other than 0 that are stored and replayed. After any other, the next caller runs the command again. */
  readonly finalStatuses: readonly number[];
  /** The treatment of output that can't be stored: an error, or left out. */
  readonly largeOutput: "error" | "drop";
}

/** The attempt failed, and the next caller runs the command again. `holdfast runs` shows its message. */
class Failed extends Error {
  override readonly name = "CommandFailed";
}

/** Runs the command, or returns the outcome of an earlier run. @throws CliError, or the error that prevented the command from running */
export async function once(args: OnceArgs, context: RunContext): Promise<number> {
  const { key } = args;
  const { locks, signals, tell } = context;
  const waiting = waitFor(key, signals);
  const course: { outcome?: CommandOutcome } = {};
  try {
    const { value, replayed, attempt } = await begun(args, locks, waiting, async (run) => {
      waiting.throwIfAborted();
      const { idempotencyKey, takeover, fencingToken } = run;
      tell(`${idempotencyKey}: attempt ${run.attempt}${takeover ? ", taken over from one that did not end" : ""}, token ${fencingToken}`);
      return attemptOf(run, args, context, course);
    });
    if (replayed) tell(`${key} was done before, in attempt ${attempt}`);
    return await shown(value, replayed, args, context);
  } catch (error) {
    if (error instanceof LockTimeoutError) throw stillRun(args);
    if (error instanceof LockError && error.code === "attempts-exhausted") {
      throw new CliError("refused", error.message, {
        code: error.code,
        next: `The command was not run. To have it begin anew: holdfast reset ${key} --reason …`,
      });
    }
    const { outcome } = course;
    if (!outcome) throw error;
    const why = error instanceof Error ? error.message : "";
    if (outcome.cutOff || error instanceof LockLostError) throw lostUnder(key, outcome, { why, lastAnswer: context.lastRenewFailure() });
    if (error instanceof Failed) return statusOf(outcome);
    if (!(error instanceof LockError) || !outcome.started) throw error;
    throw new CliError(
      "unavailable",
      `${key}: the command ended with ${outcome.status}, and that was perhaps not recorded: ${error.message}`,
      { next: "The next caller may run it again." },
    );
  }
}

/** Starts the run of the key, or of the last occurrence of the schedule. @throws CliError if that is running, or skipped */
async function begun(
  args: OnceArgs,
  locks: LockClient,
  signal: AbortSignal,
  work: (run: Run) => Promise<CommandResult>,
): Promise<RunResult<unknown>> {
  // In an invocation, a run ends when its outcome is recorded or can't be any more: with this process, its record would end too early.
  const view = locks.forInvocation({ getRemainingTimeInMillis: () => Number.POSITIVE_INFINITY });
  const { key, tickMs, waitMs, keepResultMs, maxAttempts, fingerprint: payload, conflictStatus: status } = args;
  const options = { waitMs, maxAttempts, signal };
  if (tickMs === undefined) return view.runOnce<unknown>(key, { ...options, keepResultMs, payload }, work);
  const keepMs = keepResultMs === "forever" ? keepResultMs : Math.max(keepResultMs, tickMs);
  // The caller of this command decides when: a crontab's 3 o'clock is in the day that began at midnight.
  const result = await view.tick<unknown>(key, { ...options, everyMs: tickMs, maxLateMs: tickMs, keepMs }, work);
  if (result.how === "running") throw stillRun(args);
  if (result.how === "skipped" || result.how === "too-late") {
    const why =
      result.how === "skipped"
        ? `skipped: ${namesOf(result.running)} was running`
        : `${formatDuration(result.lateMs)} late, at most ${formatDuration(tickMs)}`;
    throw new CliError("notGot", `${key}: the occurrence of ${result.occurrence.toISOString()} is ${why}`, {
      next: "The command was not run, and will not be for this occurrence.",
      status,
    });
  }
  return { value: result.value, replayed: result.how === "done-before", attempt: result.attempt };
}

function namesOf(running: readonly RunningBefore[]): string {
  return running.map(({ owner, heldMs }) => `${owner || "another"} for ${formatDuration(heldMs)}`).join(", ") || "another";
}

function stillRun({ key, tickMs, waitMs, conflictStatus: status }: OnceArgs): CliError {
  const look = tickMs === undefined ? `holdfast show --run ${key}` : `holdfast runs ${key}_`;
  return new CliError("notGot", `${key} is still run by another${waitMs > 0 ? ` after ${formatDuration(waitMs)}` : ""}`, {
    next: `The command was not run. Wait longer by --wait, or look: ${look}`,
    status,
  });
}

/** Makes one attempt. Returns the result to store. @throws Failed if the command is to be tried again */
async function attemptOf(
  run: Run,
  args: OnceArgs,
  { env, signals, print }: RunContext,
  course: { outcome?: CommandOutcome },
): Promise<CommandResult> {
  const { command, killAfterMs, finalStatuses } = args;
  const output = new OutputBuffer();
  const onOutput = async (chunk: Buffer): Promise<void> => {
    output.add(chunk);
    await print(chunk);
  };
  const work = { command, killAfterMs, env: { ...env, ...environmentOf(run) }, onOutput };
  const outcome = (course.outcome = await supervise(work, run, signals));
  if (outcome.cutOff) throw new Failed(`cut off: the lease was ${outcome.inTime ? "not renewed" : "lost"}`);
  if (!outcome.started) throw new Failed(outcome.why);
  if (outcome.by) throw new Failed(`ended by ${outcome.by}`);
  if (outcome.status !== 0 && !finalStatuses.includes(outcome.status)) throw new Failed(`exit status ${outcome.status}`);
  return output.result(outcome.status);
}

function environmentOf({ idempotencyKey, attempt, takeover, fencingToken }: Run): NodeJS.ProcessEnv {
  return {
    HOLDFAST_KEY: idempotencyKey,
    HOLDFAST_IDEMPOTENCY_KEY: idempotencyKey,
    HOLDFAST_ATTEMPT: String(attempt),
    HOLDFAST_TAKEOVER: String(takeover),
    HOLDFAST_FENCING_TOKEN: String(fencingToken),
  };
}

/** Returns the status; prints the stored output of an earlier run. */
async function shown(
  value: unknown,
  replayed: boolean,
  { key, largeOutput }: OnceArgs,
  { print, say, screen }: RunContext,
): Promise<number> {
  const replay = replayOf(value);
  if (!("omittedBytes" in replay)) {
    // It may be from anybody: what a terminal must not obey is left out there, and nothing is changed elsewhere.
    if (replayed) await print(screen.columns === undefined ? replay.stdout : plainLines(replay.stdout.toString("utf8")));
    return replay.exitCode;
  }
  const what = `what the command printed was not kept: ${replay.omittedBytes} bytes are too many`;
  if (largeOutput === "error") {
    throw new CliError("notKept", `${key} is done, with status ${replay.exitCode}; ${what}`, {
      next: "It will not run again. With --large-output drop this is no error.",
    });
  }
  if (replayed) say(`${key}: ${what}`);
  return replay.exitCode;
}
