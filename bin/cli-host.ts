/** Who carries the commands out: what each of them is given by the program that was called. */
import type { ConnectionOptions } from "./connection.js";
import type { RunContext, CommandContext } from "./context.js";

/** Options that every command has. */
export interface GlobalOptions extends ConnectionOptions {
  readonly json?: boolean;
}

/** What a command of the program is carried out with. */
export interface CliHost {
  /** For a command that looks or operates. */
  context(options: GlobalOptions, mode: "changes" | "looks"): Promise<CommandContext>;
  /** For a command that runs another. */
  runContext(options: GlobalOptions & { readonly verbose?: boolean }): Promise<RunContext>;
  /** All that was given, in order. */
  readonly argv: readonly string[];
  readonly print: CommandContext["print"];
  /** The status to end with. */
  ends(status: number): void;
}
