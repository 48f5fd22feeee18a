/** `holdfast lock`: runs a command while its key is held. */
import type { HolderView, Lease, LockClient } from "../../lib/index.js";
import { LockLostError, LockTimeoutError } from "../../lib/index.js";
import { CliError, Interrupted } from "../cli-error.js";
import { formatDuration } from "../duration.js";
import { lostUnder, NO_LEASE, statusOf, supervise } from "./supervise.js";
import type { RunContext } from "../context.js";
import type { Outcome } from "./supervise.js";
import { tellWaiting } from "../inspect/waiting.js";

/** The key, the way to hold it, and the command. */
export interface LockArgs {
  readonly key: string;
  readonly command: readonly string[];
  readonly leaseMs: number;
  readonly waitMs: number;
  readonly killAfterMs: number;
  readonly mode: "exclusive" | "shared";
  readonly limit?: number;
  readonly permits?: number;
  readonly priority?: number;
  /** The exit status if the key was not granted. */
  readonly conflictStatus: number;
}

/** Holds the key while the command runs. @throws CliError, or the error that prevented the command from running */
export async function lock(args: LockArgs, context: RunContext): Promise<number> {
  const { key, command: _command, killAfterMs: _killAfterMs, conflictStatus, ...asked } = args;
  const { locks } = context;
  return runWhenGranted(args, context, {
    grant: (signal, work) => locks.withLock(key, { ...asked, signal }, work),
    tellWaiting: (end) => tellWaiting(key, context, end),
    refusalOf: async (error) => (error instanceof LockTimeoutError ? notGot(key, args.waitMs, locks, conflictStatus) : undefined),
  });
}

/** The gate that a command waits before: a key or a limit. */
export interface Gate {
  /** Waits, and runs `work` with the lease that it got, if there is one. */
  readonly grant: (signal: AbortSignal, work: (lease: Lease | undefined) => Promise<void>) => Promise<void>;
  /** Says on stderr what is waited for, until `end` aborts. */
  readonly tellWaiting: (end: AbortSignal) => Promise<void>;
  /** Returns the error to report if the wait was in vain; undefined: the error itself. */
  readonly refusalOf: (error: unknown) => Promise<CliError | undefined>;
}

/** Runs the command when the gate grants it, and returns its status. @throws CliError, or the error that prevented the command from running */
export async function runWhenGranted(
  { key, command, waitMs, killAfterMs }: Pick<LockArgs, "key" | "command" | "waitMs" | "killAfterMs">,
  context: RunContext,
  gate: Gate,
): Promise<number> {
  const { signals, env, tell, tellsWaits } = context;
  const waiting = new AbortController();
  signals.handTo((name) => waiting.abort(new Interrupted(name, `given up by ${name} while waiting for ${key}: the command was not run`)));
  const course: { outcome?: Outcome } = {};
  const got = new AbortController();
  if (tellsWaits && waitMs > 0) void gate.tellWaiting(got.signal);
  try {
    await gate.grant(waiting.signal, async (lease) => {
      got.abort();
      waiting.signal.throwIfAborted();
      tell(lease ? `${key} is held under token ${lease.fencingToken}` : `${key} lets it start`);
      const work = { command, killAfterMs, env: { ...env, HOLDFAST_KEY: key, ...(lease && environmentOf(lease)) } };
      course.outcome = await supervise(work, lease ?? NO_LEASE, signals);
    });
  } catch (error) {
    const { outcome } = course;
    if (outcome && error instanceof LockLostError) throw lostUnder(key, outcome, error.message);
    throw (outcome ? undefined : await gate.refusalOf(error)) ?? error;
  } finally {
    got.abort();
  }
  const { outcome } = course;
  if (!outcome) throw new CliError("internal", `${key}: the command did not run`);
  if (outcome.cutOff) throw lostUnder(key, outcome, "it ran out");
  return statusOf(outcome);
}

function environmentOf({ fencingToken, fenceFloor }: Lease): NodeJS.ProcessEnv {
  return { HOLDFAST_FENCING_TOKEN: String(fencingToken), HOLDFAST_FENCE_FLOOR: String(fenceFloor) };
}

/** Returns the error for a key that was not granted in time. It names the holder, if that can be read. */
export async function notGot(key: string, waitMs: number, locks: LockClient, status: number): Promise<CliError> {
  const holders = await holdersOf(key, locks);
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

/** Returns the holders for an error message; an empty list if they can't be read. */
async function holdersOf(key: string, locks: LockClient): Promise<readonly HolderView[]> {
  try {
    return (await locks.inspect(key)).holders;
  } catch {
    return [];
  }
}
