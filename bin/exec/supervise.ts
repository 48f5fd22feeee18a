/**
 * Supervises a command under a lease:
 *
 * 1. It runs, and signals of this process are forwarded to it.
 * 2. If the lease is lost, or no renewal succeeded and the time left is just enough to end the command, the command gets SIGTERM. After
 *    that time, it gets SIGKILL, with all processes that it started.
 * 3. The result is its outcome, with a flag if it was cut off.
 *
 * So a command ends before its lease expires, as long as this process runs and its clock advances. The command can still overlap with the
 * next holder if it is frozen together with this process, or if an operator ends the lease by force; fencing tokens protect against that.
 */
import type { Ended, ChildArgs } from "./child.js";
import { Child } from "./child.js";
import type { Signals } from "./signals.js";

/** The part of a lease on which a command depends. */
export interface Hold {
  /** Aborts when the lease is lost. */
  readonly signal: AbortSignal;
  /** Returns the time for which it is still held without a renewal, in ms. If absent, that is unknown, and only the signal counts. */
  readonly remainingMs?: () => number;
}

/** The outcome, and true if the command was cut off because of the lease. */
export type Outcome = Ended & { readonly cutOff: boolean };

/** The longest timer, in ms: timers don't run while the machine is frozen. */
const LONGEST_NAP_MS = 500;

/** Runs the command to its end. */
export async function supervise(args: ChildArgs, hold: Hold, signals: Signals): Promise<Outcome> {
  const child = new Child(args);
  const cutting = new AbortController();
  let timer: NodeJS.Timeout | undefined;

  const cut = (): void => {
    if (cutting.signal.aborted) return;
    cutting.abort();
    clearTimeout(timer);
    child.signal("SIGTERM");
    child.signal("SIGCONT"); // A stopped process would not handle SIGTERM.
    timer = setTimeout(() => child.signal("SIGKILL"), args.killAfterMs);
  };
  const look = (remainingMs: () => number): void => {
    const leftMs = remainingMs() - args.killAfterMs;
    if (leftMs <= 0) cut();
    else timer = setTimeout(() => look(remainingMs), Math.min(Math.ceil(leftMs), LONGEST_NAP_MS));
  };

  signals.handTo((name) => child.handOn(name));
  hold.signal.addEventListener("abort", cut, { once: true });
  if (hold.signal.aborted) cut();
  else if (hold.remainingMs) look(hold.remainingMs);
  try {
    const ended = await child.ended;
    const cutOff = cutting.signal.aborted;
    if (cutOff) child.signal("SIGKILL"); // Processes that it started and left behind must end too.
    return { ...ended, cutOff };
  } finally {
    clearTimeout(timer);
    hold.signal.removeEventListener("abort", cut);
  }
}
