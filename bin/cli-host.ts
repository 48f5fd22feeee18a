/** The host of the commands: the services that the running program provides to each of them. */
import type { ConnectionOptions } from "./connection.js";
import type { CommandContext, ProcessContext, RunContext } from "./context.js";

/** Options of every command. */
export interface GlobalOptions extends ConnectionOptions {
  readonly json?: boolean;
}

/** The services for carrying out a command. */
export interface CliHost {
  /** Returns the context of a command that inspects or operates. */
  context(options: GlobalOptions, mode: "changes" | "looks"): Promise<CommandContext>;
  /** Returns the context of a command that runs another command. */
  runContext(options: GlobalOptions & { readonly verbose?: boolean }): Promise<RunContext>;
  /** Returns the context of a command that needs no locks from elsewhere. */
  processContext(options: GlobalOptions): ProcessContext;
  /** All arguments, in order. */
  readonly argv: readonly string[];
  readonly print: CommandContext["print"];
  /** Sets the exit status. */
  ends(status: number): void;
}
