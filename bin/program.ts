/**
 * The command line: every command with its options, their meanings and an example. A command's code is loaded when it is called, so that
 * help appears at once.
 */
import type { OutputConfiguration } from "commander";
import { Command, Option } from "commander";
import type { CliHost } from "./cli-host.js";
import { addUiCommand } from "./console/commands.js";
import { addLookCommands } from "./inspect/commands.js";
import { addRunCommands } from "./exec/commands.js";
import { addDevCommand } from "./serve/commands.js";

const ABOUT =
  "Locks on DynamoDB from the command line: runs a command while a key is held, or once per key; " +
  "shows what is held, and ends what is stuck.";

const EXAMPLE = `
Example:
  $ export HOLDFAST_URL=http://127.0.0.1:4653
  $ holdfast lock nightly-report -- ./report.sh
  $ holdfast ls`;

/** The last line of every command's help. */
const OF_ALL = "\nEvery command also takes --json, and where the locks are: see holdfast --help.";

/** Creates the program. `host` carries out its actions, and its help goes to `output`, by default to this process. */
export function programFor(host: CliHost, version: string, output: Pick<OutputConfiguration, "writeOut" | "writeErr"> = {}): Command {
  const program = new Command("holdfast")
    .description(ABOUT)
    .version(version, "-V, --version", "print the version")
    .helpOption("-h, --help", "print this, or the help of a command")
    .addHelpCommand(
      new Command("help").usage("[COMMAND]").helpOption(false).argument("[command]").description("print this, or the help of a command"),
    )
    .usage("COMMAND [options]")
    .option("--json", "print JSON, errors too: one document, or one a line with watch")
    .optionsGroup("Where the locks are:")
    .addOption(new Option("--url <url>", "URL of the service (default: HOLDFAST_URL)").conflicts(["table", "namespace"]))
    .addOption(new Option("--table <name>", "DynamoDB table to use directly (default: HOLDFAST_TABLE)").conflicts(["sign"]))
    .option("--namespace <name>", "your namespace, on a table with tenants (default: HOLDFAST_NAMESPACE)")
    .option("--region <region>", "the table's region, or the one to sign for (default: AWS_REGION)")
    .option("--sign", "sign requests with AWS credentials (default for execute-api URLs)")
    .option("--no-sign", "never sign, not even requests to execute-api URLs")
    .exitOverride()
    // Help goes to the common output; errors are reported by the caller.
    .configureOutput({ ...output, outputError: () => undefined })
    .configureHelp({ subcommandTerm: (command) => `${command.name()} ${command.usage().replace(" [options]", "")}` })
    .addHelpText("after", EXAMPLE);
  addRunCommands(program, host);
  addLookCommands(program, host);
  addUiCommand(program, host);
  addDevCommand(program, host);
  for (const command of program.commands) command.addHelpText("after", OF_ALL);
  return program;
}
