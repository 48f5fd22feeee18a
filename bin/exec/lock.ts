/** `holdfast lock`: runs a command while its key is held. */
import type { HolderView, Lease, LockClient } from "../../lib/index.js";
import { LockLostError, LockTimeoutError } from "../../lib/index.js";
import { CliError, Interrupted } from "../cli-error.js";
import { formatDuration } from "../duration.js";
import { lostUnder, statusOf, supervise } from "./supervise.js";
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
  const { key, command, killAfterMs, conflictStatus, ...asked } = args;
  const { locks, signals, env, tell, tellsWaits } = context;
  const waiting = new AbortController();
  signals.handTo((name) => waiting.abort(new Interrupted(name, `given up by ${name} while waiting for ${key}: the command was not run`)));
  const course: { outcome?: Outcome } = {};
  const got = new AbortController();
  if (tellsWaits && args.waitMs > 0) void tellWaiting(key, context, got.signal);
  try {
    await locks.withLock(key, { ...asked, signal: waiting.signal }, async (lease) => {
      got.abort();
      waiting.signal.throwIfAborted();
      tell(`${key} is held under token ${lease.fencingToken}`);
      const work = { command, killAfterMs, env: { ...env, ...environmentOf(lease) } };
      course.outcome = await supervise(work, lease, signals);
    });
  } catch (error) {
    const { outcome } = course;
    if (outcome && error instanceof LockLostError) throw lostUnder(key, outcome, error.message);
    if (!outcome && error instanceof LockTimeoutError) throw notGot(key, args.waitMs, await holdersOf(key, locks), conflictStatus);
    throw error;
  } finally {
    got.abort();
  }
  const { outcome } = course;
  if (!outcome) throw new CliError("internal", `${key}: the command did not run`);
  if (outcome.cutOff) throw lostUnder(key, outcome, "it ran out");
  return statusOf(outcome);
}

function environmentOf({ key, fencingToken, fenceFloor }: Lease): NodeJS.ProcessEnv {
  return { HOLDFAST_KEY: key, HOLDFAST_FENCING_TOKEN: String(fencingToken), HOLDFAST_FENCE_FLOOR: String(fenceFloor) };
}

function notGot(key: string, waitMs: number, holders: readonly HolderView[], status: number): CliError {
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
