/** `holdfast limit`: runs a command when a limit lets it start, and holds a permit meanwhile if so many may run at once. */
import { type Rate, LimitExceededError, LockTimeoutError } from "../../lib/index.js";
import { CliError } from "../cli-error.js";
import type { RunContext } from "../context.js";
import { formatDuration, formatDurationUp } from "../duration.js";
import { ratesText } from "../values.js";
import { sayLater } from "../inspect/waiting.js";
import { type CommandArgs, notGot, runWhenGranted } from "./lock.js";

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
  return new CliError("notGot", `${key} has no room under ${ratesText(rates)}${within}: try again in ${formatDurationUp(retryAfterMs)}`, {
    code,
    next: `The command was not run. Wait longer by --wait, or look: holdfast limits ${key}`,
    status,
  });
}
