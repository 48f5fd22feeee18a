/**
 * The context of a `holdfast` command: the lock client, and the user or program that called it, with its signals. They end the process unless
 * an operation handles them. The host provides the context.
 */
import type { LockClient } from "../lib/index.js";
import type { ConnectionOptions } from "./connection.js";
import type { Screen } from "./terminal.js";

/** The context of commands that need no locks from elsewhere. */
export interface ProcessContext {
  /** The environment, as this process received it. */
  readonly env: NodeJS.ProcessEnv;
  readonly version: string;
  readonly signals: Signals;
  readonly screen: Screen;
  readonly asJson: boolean;
  /** Prints to stdout. Resolves when more can be printed. */
  readonly print: (text: string | Uint8Array) => Promise<void>;
  /** Prints a line to stderr, separate from the output. */
  readonly say: (line: string) => void;
  /** Prints to stderr a failure that doesn't end the command: a line, or with `--json` an object. */
  readonly warn: (error: unknown) => void;
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
  /** Prints to stderr what the other command printed there. Resolves when more can be printed. */
  readonly printError: CliHost["print"];
  /** Returns what the last renewal that failed was answered; `""` if none has failed. */
  readonly lastRenewFailure: () => string;
}

/** Options of every command. */
export interface GlobalOptions extends ConnectionOptions {
  readonly json?: boolean;
}

/** The services for carrying out a command. */
export interface CliHost {
  /** Returns the context of a command that inspects or operates. */
  context(options: GlobalOptions, mode: "changes" | "reads"): Promise<CommandContext>;
  /** Returns the context of a command that reads, with the client only if the service or the table is given. */
  contextIfGiven(options: GlobalOptions): Promise<ProcessContext & { readonly locks?: LockClient }>;
  /** Returns the context of a command that runs another command. */
  runContext(options: GlobalOptions & { readonly verbose?: boolean }): Promise<RunContext>;
  /** Returns the context of a command that needs no locks from elsewhere. */
  processContext(options: GlobalOptions): ProcessContext;
  readonly argv: readonly string[];
  readonly print: CommandContext["print"];
  ends(status: number): void;
}

/** The signals that would end this process alone, without the command that it runs. A system that doesn't have one never sends it. */
const CAUGHT = [
  ...(["SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2"] as const),
  ...(["SIGALRM", "SIGVTALRM", "SIGXCPU", "SIGXFSZ", "SIGIO", "SIGPWR", "SIGSTKFLT"] as const),
] satisfies readonly NodeJS.Signals[];

/** Handles signals from its construction on. */
export class Signals {
  readonly #end: (name: NodeJS.Signals) => void;
  #listener: (name: NodeJS.Signals) => void;

  /**
   * @param host the process that receives the signals
   * @param end cancels the current operation at once
   */
  constructor(host: Pick<NodeJS.Process, "on">, end: (name: NodeJS.Signals) => void) {
    this.#end = this.#listener = end;
    for (const name of CAUGHT) host.on(name, () => this.#listener(name));
  }

  /** Passes all further signals to `listener` only. */
  handTo(listener: (name: NodeJS.Signals) => void): void {
    this.#listener = listener;
  }

  /** Offers each SIGINT to `listener`. One that it refuses, by `false`, ends the process, as all other signals do. */
  offerInterrupts(listener: () => boolean): void {
    this.#listener = (name) => {
      if (name !== "SIGINT" || !listener()) this.#end(name);
    };
  }

  /** Makes signals end the process again. */
  handBack(): void {
    this.#listener = this.#end;
  }
}
