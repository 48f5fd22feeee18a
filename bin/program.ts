/**
 * The command line: every command with its options, their meanings and an example. A command's code is loaded when it is called, so that
 * help appears at once.
 */
import { type OutputConfiguration, Command, Help, Option } from "commander";
import type { CliHost } from "./context.js";
import { addUiCommand } from "./ui/commands.js";
import { addCompletion, addInspectCommands, addOperateCommands } from "./inspect/commands.js";
import { addTableCommands } from "./upkeep/commands.js";
import { addRunCommands } from "./exec/commands.js";
import { addDevCommand } from "./serve/commands.js";

const ABOUT =
  "Locks on DynamoDB from the command line: runs a command while a key is held, once per key, or within a limit; " +
  "shows what is held, and ends what is stuck.";

const EXAMPLE = `
Example:
  $ export HOLDFAST_URL=http://127.0.0.1:4653
  $ holdfast lock nightly-report -- ./report.sh
  $ holdfast ls`;

/** The last line of every command's help. */
export const OF_ALL = "\nEvery command also takes --json, and where the locks are: see holdfast --help.";

/** Creates the program. `host` carries out its actions, and its help goes to `output`, by default to this process. */
export function programFor(host: CliHost, version: string, output: Pick<OutputConfiguration, "writeOut" | "writeErr"> = {}): Command {
  const program = new Command("holdfast")
    .description(ABOUT)
    .version(version, "-V, --version", "print the version")
    .helpOption("-h, --help", "print this, or the help of a command")
    .addHelpCommand(
      new Command("help")
        .usage("[COMMAND]")
        .helpOption(false)
        .argument("[command]")
        .description("print this, or the help of a command")
        .helpGroup("Other:"),
    )
    .usage("COMMAND [options]")
    .option("--json", "print JSON, errors too: one document, or one a line with watch")
    .optionsGroup("Where the locks are:")
    .addOption(new Option("--url <url>", "URL of the service (default: HOLDFAST_URL)").conflicts(["table"]))
    .addOption(new Option("--table <name>", "DynamoDB table to use directly (default: HOLDFAST_TABLE)").conflicts(["sign"]))
    .option(
      "--namespace <name>",
      "with --table, your namespace where there are tenants (default: HOLDFAST_NAMESPACE); with --url, for operators: the tenant's",
    )
    .option("--region <region>", "the table's region, or the one to sign for (default: AWS_REGION)")
    .option("--sign", "sign requests with AWS credentials (default for execute-api URLs)")
    .option("--no-sign", "never sign, not even requests to execute-api URLs")
    .addOption(
      new Option("--token-file <path>", "send the bearer token of this file, read again for each request").conflicts(["table", "sign"]),
    )
    .exitOverride()
    // Help goes to the common output; errors are reported by the caller.
    .configureOutput({ ...output, outputError: () => undefined })
    .configureHelp({ subcommandTerm: termOf, formatHelp: commandsFirst })
    .addHelpText("after", EXAMPLE);
  addRunCommands(program.commandsGroup("Hold:"), host);
  addInspectCommands(program.commandsGroup("Look:"), host);
  addUiCommand(program, host);
  addOperateCommands(program.commandsGroup("Operate:"), host);
  addTableCommands(program, host);
  addDevCommand(program.commandsGroup("Serve:"), host);
  addCompletion(program.commandsGroup("Other:"), host);
  for (const command of program.commands) command.addHelpText("after", OF_ALL);
  return program;
}

/** Returns a command as the list of commands shows it: short enough that the text beside it has room to wrap in 80 columns. */
function termOf(command: Command): string {
  const usage = command
    .usage()
    .replace(/ ?\[options\]/, "")
    .replace(" [ARGUMENT...]", "...");
  return `${command.name()} ${usage.trim()}`.trimEnd();
}

/** Returns the help; that of the program with the commands before the options, which are many and seldom needed. */
function commandsFirst(command: Command, helper: Help): string {
  const text = Help.prototype.formatHelp.call(helper, command, helper);
  if (command.parent) return text;
  const sections = text.trimEnd().split("\n\n");
  const isOfOptions = (section: string): boolean => /^.*\n +-/.test(section);
  return `${[...sections.filter((one) => !isOfOptions(one)), ...sections.filter(isOfOptions)].join("\n\n")}\n`;
}
