/**
 * A command under a lease:
 *
 *  1. it runs; signals that this process is sent are handed on to it;
 *  2. when the lease is lost, or no renewal landed and what is left of it is the time to end a command, it is asked to
 *     end (SIGTERM), and after that time made to (SIGKILL), with all that it started;
 *  3. how it ended is told, and whether it was cut off.
 *
 * So a command whose lease runs out is over before the lease is, as long as this process runs and its clock goes. One
 * that is frozen together with it, or whose lease an operator ended by force, may still overlap: that is the token's.
 */
import type { Ended, ChildArgs } from "./child.js";
import { Child } from "./child.js";
import type { Signals } from "./signals.js";

/** What of a lease a command depends on. */
export interface Hold {
  /** Aborts when the lease is lost. */
  readonly signal: AbortSignal;
  /** For how long it is still held without a renewal, in ms. Absent: that isn't known, and its end is awaited. */
  readonly remainingMs?: () => number;
}

/** How it ended, and whether that was because of the lease. */
export type Outcome = Ended & { readonly cutOff: boolean };

/** The lease is looked at so often at least: a timer counts time that a frozen machine did not have. */
const LONGEST_NAP_MS = 500;

/** Runs it to its end. */
export async function supervise(args: ChildArgs, hold: Hold, signals: Signals): Promise<Outcome> {
  const child = new Child(args);
  const cutting = new AbortController();
  let timer: NodeJS.Timeout | undefined;

  const cut = (): void => {
    if (cutting.signal.aborted) return;
    cutting.abort();
    clearTimeout(timer);
    child.signal("SIGTERM");
    child.signal("SIGCONT"); // One that is stopped would hear nothing.
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
    if (cutOff) child.signal("SIGKILL"); // What it started and left behind must not go on either.
    return { ...ended, cutOff };
  } finally {
    clearTimeout(timer);
    hold.signal.removeEventListener("abort", cut);
  }
}
