/** The context of a `holdfast` command: the lock client, and the user or program that called it. */
import type { LockClient } from "../lib/index.js";
import type { Signals } from "./exec/signals.js";
import type { Screen } from "./terminal.js";

/** The context of commands that need no locks from elsewhere. */
export interface ProcessContext {
  /** The environment, as this process received it. */
  readonly env: NodeJS.ProcessEnv;
  /** The version of the package. */
  readonly version: string;
  readonly signals: Signals;
  /** The screen of stdout. */
  readonly screen: Screen;
  readonly asJson: boolean;
  /** Prints to stdout. Resolves when more can be printed. */
  readonly print: (text: string | Uint8Array) => Promise<void>;
  /** Prints a line to stderr, separate from the output. */
  readonly say: (line: string) => void;
}

/** The context of commands that inspect and operate. */
export interface CommandContext extends ProcessContext {
  readonly locks: LockClient;
}

/** The context of commands that run another command. */
export interface RunContext extends CommandContext {
  /** The owner label of its leases and waits. */
  readonly owner: string;
  /** True to say for whom a command waits: stderr is a terminal, or `--verbose` is given. */
  readonly tellsWaits: boolean;
  /** Prints a line to stderr with `--verbose`. */
  readonly tell: (line: string) => void;
}
