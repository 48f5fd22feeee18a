/**
 * The rules of the watchdog's process: when it ends a command. It learns by messages for how long the lease is held, and measures that time
 * by its own clocks, as a lease does. So the command ends with its lease even if its holder stands still.
 */
import { type Clock, type Instant, type Timer, elapsedMs, instantOf } from "../../lib/core/time.js";

/** The times of a command's end. */
export interface EndTimes {
  /** The time until SIGTERM, in ms; null: the holder has sent it. */
  readonly termInMs: number | null;
  /** The time until SIGKILL, in ms. */
  readonly killInMs: number;
}

/** A message of the holder: its command, a process or a group as a negative number; or the end of it, counted from a time by the wall clock. */
export type GuardMessage = { readonly target: number } | (EndTimes & { readonly sentWallMs: number });

/** The means of a guard. */
export interface GuardDeps {
  readonly clock: Clock;
  /** The time between SIGTERM and SIGKILL once the holder is gone, in ms. */
  readonly killAfterMs: number;
  readonly signal: (target: number, name: NodeJS.Signals) => void;
  /** Called when the guard, not the holder, has sent SIGTERM. */
  readonly onTerm: () => void;
}

/** A time that is over `ms` after `since`. */
interface DueTime {
  readonly since: Instant;
  readonly ms: number;
}

/** The longest timer, in ms: timers stand still while the machine sleeps. */
const LONGEST_PAUSE_MS = 500;

/** Ends one command: with its lease, or when its holder is gone. */
export class Guard {
  readonly #deps: GuardDeps;
  #target: number | undefined;
  #term: DueTime | undefined;
  #kill: DueTime | undefined;
  /** True once SIGTERM was sent: from then on no message moves the end to a later time. */
  #isTermed = false;
  #timer: Timer | undefined;

  constructor(deps: GuardDeps) {
    this.#deps = deps;
  }

  /** Takes a message of the holder. */
  hear(message: GuardMessage): void {
    if ("target" in message) this.#target = message.target;
    else this.#setEnd(message);
    this.#check();
  }

  /** Ends the command now, because its holder is gone. */
  holderGone(): void {
    if (this.#target === undefined) return;
    this.#sendTerm(this.#target);
    this.#killBy({ since: instantOf(this.#deps.clock), ms: this.#deps.killAfterMs });
    this.#check();
  }

  #setEnd({ sentWallMs, termInMs, killInMs }: EndTimes & { readonly sentWallMs: number }): void {
    // The message may have waited to be read: only the wall clock knows for how long.
    const since = { wallMs: sentWallMs, monotonicMs: this.#deps.clock.monotonicMs() };
    if (termInMs === null) this.#isTermed = true;
    else this.#term = { since, ms: termInMs };
    this.#killBy({ since, ms: killInMs });
  }

  #killBy(due: DueTime): void {
    if (!this.#isTermed || !this.#kill || this.#leftMs(due) < this.#leftMs(this.#kill)) this.#kill = due;
  }

  #check(): void {
    this.#timer?.cancel();
    if (this.#target === undefined || !this.#kill) return;
    const killInMs = this.#leftMs(this.#kill);
    if (killInMs <= 0) {
      this.#deps.signal(this.#target, "SIGKILL");
      this.#target = undefined;
      return;
    }
    const termInMs = this.#term && !this.#isTermed ? this.#leftMs(this.#term) : killInMs;
    if (termInMs <= 0) this.#sendTerm(this.#target);
    this.#timer = this.#deps.clock.after(Math.min(termInMs > 0 ? termInMs : killInMs, LONGEST_PAUSE_MS), () => this.#check());
  }

  #sendTerm(target: number): void {
    if (this.#isTermed) return;
    this.#isTermed = true;
    this.#deps.signal(target, "SIGTERM");
    this.#deps.signal(target, "SIGCONT"); // A stopped process would not handle SIGTERM.
    this.#deps.onTerm();
  }

  #leftMs({ since, ms }: DueTime): number {
    return ms - elapsedMs(since, instantOf(this.#deps.clock));
  }
}
