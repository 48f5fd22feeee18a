/**
 * Supervises a command under a lease:
 *
 * 1. It runs, and signals of this process are forwarded to it.
 * 2. If the lease is lost, or no renewal succeeded and the time left is just enough to end the command, the command gets SIGTERM. After
 *    that time, it gets SIGKILL, with all processes that it started.
 * 3. The result is its outcome, with a flag if it was cut off.
 *
 * So a command ends before its lease expires. If this process is killed or stands still, its watchdog ends the command by the same rule
 * (watchdog.ts). The command can still overlap with the next holder if it is frozen together with this process and its watchdog, or if an
 * operator ends the lease by force; fencing tokens protect against that.
 */
import { formatDuration } from "../../console/text/duration.js";
import { CliError } from "../cli-error.js";
import type { Signals } from "../context.js";
import { type ChildEnd, type ChildArgs, Child } from "./child.js";
import type { EndTimes } from "./guard.js";

/** The part of a lease on which a command depends. */
export interface LeaseTime {
  /** Aborts when the lease is lost. */
  readonly signal: AbortSignal;
  /** Returns the time for which it is still held without a renewal, in ms. */
  remainingMs(): number;
}

/** The hold of a command that depends on no lease. It ends by itself, by a signal, or with this process. */
export const NO_LEASE: LeaseTime = { signal: new AbortController().signal, remainingMs: () => Number.MAX_SAFE_INTEGER };

export type CommandOutcome = ChildEnd & {
  /** True if the command was asked to end because of the lease. */
  readonly cutOff: boolean;
  /** True if the lease was still held when the command had ended. */
  readonly inTime: boolean;
};

/** The longest timer, in ms: timers don't run while the machine is frozen. */
const LONGEST_NAP_MS = 500;
/**
 * This process is ahead of its watchdog by this part of the time between SIGTERM and SIGKILL, and at most by this many ms. So only one of
 * them asks the command to end, and a command that had to be killed is known to have ended while the lease was still held.
 */
const AHEAD_PART = 1 / 20;
const LONGEST_AHEAD_MS = 100;

/** Runs the command to its end. */
export async function supervise(args: ChildArgs, hold: LeaseTime, signals: Signals): Promise<CommandOutcome> {
  const { killAfterMs } = args;
  const aheadMs = Math.min(killAfterMs * AHEAD_PART, LONGEST_AHEAD_MS);
  const endingAfter = (remainingMs: number): EndTimes => ({ termInMs: remainingMs - killAfterMs, killInMs: remainingMs });
  const child = new Child(args, endingAfter(hold.remainingMs()));
  const cutting = new AbortController();
  let timer: NodeJS.Timeout | undefined;

  const cut = (): void => {
    if (cutting.signal.aborted) return;
    cutting.abort();
    clearTimeout(timer);
    child.terminate();
    timer = setTimeout(() => child.signal("SIGKILL"), killAfterMs);
  };
  const check = (): void => {
    const remainingMs = hold.remainingMs();
    const leftMs = remainingMs - killAfterMs - aheadMs;
    if (leftMs <= 0) return cut();
    child.watchdog.tell(endingAfter(remainingMs));
    timer = setTimeout(check, Math.min(Math.ceil(leftMs), LONGEST_NAP_MS));
  };

  signals.handTo((name) => child.handOn(name));
  hold.signal.addEventListener("abort", cut, { once: true });
  check();
  try {
    const ended = await child.ended;
    const inTime = hold.remainingMs() > 0;
    const cutOff = (await child.watchdog.dismiss()) || cutting.signal.aborted;
    if (cutOff) child.signal("SIGKILL"); // Processes that it started and left behind must end too.
    return { ...ended, cutOff, inTime };
  } finally {
    clearTimeout(timer);
    hold.signal.removeEventListener("abort", cut);
    await child.watchdog.dismiss();
  }
}

/** Returns the command's own status. @throws CliError if it could not be started. */
export function statusOf(outcome: CommandOutcome): number {
  if (!outcome.started) throw new CliError(outcome.exit, outcome.why);
  return outcome.status;
}

/** The causes of a lost lease. */
export interface Loss {
  /** The reason of the loss. It doesn't count for a command that was ended while the lease was still held. */
  readonly why: string;
  /** The time for which the command printed nothing, in ms, if the lease was lost for that. */
  readonly silentMs?: number | undefined;
  /** The answer to the last renewal that failed; `""` if none was. */
  readonly lastAnswer: string;
}

/** Returns the error for a lost lease. */
export function lostUnder(key: string, outcome: CommandOutcome, { why, silentMs, lastAnswer }: Loss): CliError {
  const how = outcome.cutOff ? "the command was ended" : `the command had ended${outcome.started ? ` with ${outcome.status}` : ""}`;
  if (outcome.cutOff && outcome.inTime) {
    const last = lastAnswer === "" ? "" : ` (the last one: ${lastAnswer})`;
    return new CliError("lost", `${key}: no renewal of the lease succeeded${last}, and ${how} while it was still held`, {
      next: "Nobody else held the key meanwhile. What the command left undone is its own affair.",
    });
  }
  if (silentMs !== undefined) {
    return new CliError("lost", `${key}: the command printed nothing for ${formatDuration(silentMs)}, so its lease was lost, and ${how}`, {
      next: "The key stayed held while it ended. Raise --progress if it prints more rarely.",
    });
  }
  return new CliError("lost", `the lease was lost while the command ran, and ${how}: ${why}`, {
    next: "Another may have held the key before it ended: look at what it did before it runs again.",
  });
}
