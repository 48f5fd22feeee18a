/** The command that opens the console on a service or a table, `ui`, with its options. */
import type { Command } from "commander";
import type { CliHost, GlobalOptions } from "../context.js";
import { whereOf } from "../connection.js";
import { failureOf } from "../format-failure.js";
import { port, portsFrom } from "../values.js";

interface UiOptions {
  readonly port?: number;
  readonly allowChanges?: boolean;
  readonly logGroup?: string;
}

/** The first port to try, above those of `dev`. */
export const UI_PORT = 4663;

const EXAMPLES = `
Example:
  $ holdfast ui --url https://abc123.execute-api.eu-central-1.amazonaws.com
  $ holdfast ui --table holdfast --region eu-central-1 --allow-changes`;

export function addUiCommand(program: Command, host: CliHost): void {
  program
    .command("ui")
    .summary("show locks and runs in the browser")
    .description("Show locks and runs in the browser until Ctrl-C: a page on this machine that uses your own credentials. It only reads.")
    .option("-p, --port <n>", `where to listen; 0: any free port (default: ${UI_PORT} or one of the next nine)`, port)
    .option("--allow-changes", "let the page break holds, and reset runs and limits")
    .option("--log-group <name>", "the service's log group (output LogGroupName), to read a key's history (default: HOLDFAST_LOG_GROUP)")
    .addHelpText("after", EXAMPLES)
    .action(async ({ port: requestedPort, allowChanges = false, logGroup }: UiOptions) => {
      const globals = program.opts<GlobalOptions>();
      const context = await host.context({ ...globals, retryReads: false }, "reads");
      const at = whereOf(globals, context.env);
      const { url, table } = at;
      const { ui } = await import("./ui.js");
      const hosts = url?.split(",").map((one) => new URL(one).host);
      const where = hosts?.join(", ") ?? `table ${table}`;
      const cliOptions = url === undefined ? `--table ${table}` : `--url ${url}`;
      const { logGroupOf, deployedLog: logIn } = await import("../insights.js");
      const group = logGroupOf({ logGroup }, context.env);
      const deployedLog = group === undefined ? undefined : await logIn(group, globals, context.env);
      const adviceOn = (error: unknown): string => failureOf(error, "reads", at, "ui").next;
      const shown = { where, canChange: allowChanges, cliOptions, deployedLog, adviceOn };
      host.ends(await ui({ ports: portsFrom(UI_PORT, requestedPort), ...shown }, context));
    });
}
