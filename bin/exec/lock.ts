/** `holdfast lock` runs a command while its key is held; `holdfast limit`, when a limit lets it start, holding a permit if so many may run at once. */
import {
  type AcquireOptions,
  type Lease,
  type LockClient,
  type Rate,
  LimitExceededError,
  LockLostError,
  LockTimeoutError,
} from "../../lib/index.js";
import { CliError, Interrupted } from "../cli-error.js";
import { formatDuration, formatDurationUp, rateText } from "../../console/text/duration.js";
import { lostUnder, NO_LEASE, statusOf, supervise } from "./supervise.js";
import type { RunContext, Signals } from "../context.js";
import type { CommandOutcome } from "./supervise.js";
import { sayLater, tellWaiting } from "../inspect/waiting.js";

/** A command, and the key under which it runs. */
export interface CommandArgs {
  readonly key: string;
  readonly command: readonly string[];
  readonly waitMs: number;
  readonly killAfterMs: number;
  /** The exit status if the key was not granted. */
  readonly conflictStatus: number;
}

/** The command, its key, and the way to hold it. */
export type LockArgs = CommandArgs & Pick<AcquireOptions, "mode" | "limit" | "permits" | "priority">;

/** Holds the key while the command runs. @throws CliError, or the error that prevented the command from running */
export async function lock(args: LockArgs, context: RunContext): Promise<number> {
  const { key, command: _command, killAfterMs: _killAfterMs, conflictStatus, ...options } = args;
  const { locks } = context;
  return runWhenGranted(args, context, {
    grant: (signal, work) => locks.withLock(key, { ...options, signal }, work),
    tellWaiting: (end) => tellWaiting(key, context, end),
    refusalOf: async (error) => (error instanceof LockTimeoutError ? notGot(key, args.waitMs, locks, conflictStatus) : undefined),
  });
}

/** The limit, how much to take of it, and the command. */
export interface LimitArgs extends CommandArgs {
  readonly rates: readonly Rate[];
  readonly cost: number | undefined;
  /** The most commands at once. Each holds a permit with a lease. */
  readonly concurrent: number | undefined;
}

/** Takes from the limit, and runs the command. @throws CliError, or the error that prevented the command from running */
export async function limit(args: LimitArgs, context: RunContext): Promise<number> {
  const { key, rates, cost, concurrent, waitMs, conflictStatus } = args;
  const { locks, say } = context;
  const limiter = locks.limiter(key, { rates, concurrent });
  return runWhenGranted(args, context, {
    grant: (signal, work) => limiter.run({ cost, waitMs, signal }, work),
    tellWaiting: (end) => sayLater(say, `waiting for room under ${key}, for at most ${formatDuration(waitMs)}`, end),
    async refusalOf(error) {
      if (error instanceof LockTimeoutError) return notGot(key, waitMs, locks, conflictStatus);
      return error instanceof LimitExceededError ? noRoom(args, error) : undefined;
    },
  });
}

function noRoom({ key, rates, waitMs, conflictStatus: status }: LimitArgs, { code, retryAfterMs }: LimitExceededError): CliError {
  const within = waitMs > 0 ? ` within ${formatDuration(waitMs)}` : "";
  return new CliError(
    "notGot",
    `${key} has no room under ${rates.map(rateText).join(", ")}${within}: try again in ${formatDurationUp(retryAfterMs)}`,
    { code, next: `The command was not run. Wait longer by --wait, or look: holdfast limits ${key}`, status },
  );
}

/** The gate that a command waits before: a key or a limit. */
interface CommandGate {
  /** Waits, and runs `work` with the lease that it got, if there is one. */
  readonly grant: (signal: AbortSignal, work: (lease: Lease | undefined) => Promise<void>) => Promise<void>;
  /** Says on stderr what is waited for, until `end` aborts. */
  readonly tellWaiting: (end: AbortSignal) => Promise<void>;
  /** Returns the error to report if the wait was in vain; undefined: the error itself. */
  readonly refusalOf: (error: unknown) => Promise<CliError | undefined>;
}

/** Runs the command when the gate grants it, and returns its status. @throws CliError, or the error that prevented the command from running */
async function runWhenGranted(
  { key, command, waitMs, killAfterMs }: Omit<CommandArgs, "conflictStatus">,
  context: RunContext,
  gate: CommandGate,
): Promise<number> {
  const { signals, env, tell, tellsWaits } = context;
  const waiting = waitFor(key, signals);
  const course: { outcome?: CommandOutcome } = {};
  const got = new AbortController();
  if (tellsWaits && waitMs > 0) void gate.tellWaiting(got.signal);
  try {
    await gate.grant(waiting, async (lease) => {
      got.abort();
      waiting.throwIfAborted();
      tell(lease ? `${key} is held under token ${lease.fencingToken}` : `${key} lets it start`);
      const tokens = lease && { HOLDFAST_FENCING_TOKEN: `${lease.fencingToken}`, HOLDFAST_FENCE_FLOOR: `${lease.fenceFloor}` };
      const work = { command, killAfterMs, env: { ...env, HOLDFAST_KEY: key, ...tokens } };
      course.outcome = await supervise(work, lease ?? NO_LEASE, signals);
    });
  } catch (error) {
    const { outcome } = course;
    if (outcome && error instanceof LockLostError)
      throw lostUnder(key, outcome, { why: error.message, lastAnswer: context.lastRenewFailure() });
    throw (outcome ? undefined : await gate.refusalOf(error)) ?? error;
  } finally {
    got.abort();
  }
  const { outcome } = course;
  if (!outcome) throw new CliError("internal", `${key}: the command did not run`);
  if (outcome.cutOff) throw lostUnder(key, outcome, { why: "it ran out", lastAnswer: context.lastRenewFailure() });
  return statusOf(outcome);
}

/** Returns a signal that aborts when a signal of this process ends the wait for a key. */
export function waitFor(key: string, signals: Signals): AbortSignal {
  const waiting = new AbortController();
  signals.handTo((name) => waiting.abort(new Interrupted(name, `given up by ${name} while waiting for ${key}: the command was not run`)));
  return waiting.signal;
}

/** Returns the error for a key that was not granted in time. It names the holder, if that can be read. */
async function notGot(key: string, waitMs: number, locks: LockClient, status: number): Promise<CliError> {
  const { holders } = await locks.inspect(key).catch(() => ({ holders: [] }));
  const [first] = holders;
  const others = holders.length > 1 ? ` and ${holders.length - 1} more` : "";
  const who = first
    ? `held by ${first.owner || "another"}${others} (token ${first.fencingToken}, for ${formatDuration(first.heldMs)}, ` +
      `${formatDuration(first.remainingMs)} left)`
    : "others came first";
  return new CliError("notGot", `could not lock ${key}${waitMs > 0 ? ` within ${formatDuration(waitMs)}` : ""}: ${who}`, {
    next: `The command was not run. Wait longer by --wait, or look: holdfast show ${key}`,
    status,
  });
}
