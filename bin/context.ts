/** What a command of `holdfast` works with: the locks, and the person or program that called it. */
import type { LockClient } from "../lib/index.js";
import type { Signals } from "./exec/signals.js";
import type { Screen } from "./terminal.js";

/** For commands that look and operate. */
export interface CommandContext {
  readonly locks: LockClient;
  readonly signals: Signals;
  /** What stdout is shown on. */
  readonly screen: Screen;
  readonly asJson: boolean;
  /** Prints to stdout; resolves when more may be printed. */
  readonly print: (text: string | Uint8Array) => Promise<void>;
  /** Says a line on stderr, where it is in nobody's way. */
  readonly say: (line: string) => void;
}

/** For commands that run another. */
export interface RunContext extends CommandContext {
  /** The label under which it holds and waits. */
  readonly owner: string;
  /** Whether a person reads stderr at a terminal. */
  readonly isWatched: boolean;
  /** The environment of the command that is run, as this process was given it. */
  readonly env: NodeJS.ProcessEnv;
  /** Says a line on stderr to who wants to hear everything. */
  readonly tell: (line: string) => void;
}
