/** Who carries the commands out: what each of them is given by the program that was called. */
import type { ConnectionOptions } from "./connection.js";
import type { RunSetting, Setting } from "./setting.js";

/** Options that every command has. */
export interface GlobalOptions extends ConnectionOptions {
  readonly json?: boolean;
}

/** What a command of the program is carried out with. */
export interface Caller {
  /** For a command that looks or operates. */
  setting(options: GlobalOptions, doing: "changes" | "looks"): Promise<Setting>;
  /** For a command that runs another. */
  runSetting(options: GlobalOptions & { readonly verbose?: boolean }): Promise<RunSetting>;
  /** All that was given, in order. */
  readonly argv: readonly string[];
  readonly print: Setting["print"];
  /** The status to end with. */
  ends(status: number): void;
}
