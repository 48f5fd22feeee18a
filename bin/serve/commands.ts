/** The command that serves the API on this machine, `dev`, with its options. */
import { type Command, InvalidArgumentError } from "commander";
import { CliError } from "../cli-error.js";
import type { CliHost, GlobalOptions } from "../context.js";
import { PORT_RULE, countAfterDashes, duration, isPort, port, portsFrom } from "../values.js";

interface DevOptions {
  readonly port?: number;
  readonly endpoint?: string;
  readonly likeDynamodb?: boolean;
  readonly regions?: readonly string[];
  readonly seed?: string;
  readonly allowHost?: readonly string[];
  readonly clockSkew?: number;
  readonly verbose?: boolean;
}

/** The first port to try: 8787, that of `npm start`, is other tools' default too. */
export const DEV_PORT = 4653;
const DEFAULT_TABLE = "holdfast";

const EXAMPLES = `
Example:
  $ holdfast dev
  $ holdfast dev -- npm test`;

export function addDevCommand(program: Command, host: CliHost): void {
  program
    .command("dev")
    .summary("serve the API on this machine, for development")
    .description(
      "Serve the API on this machine until Ctrl-C, and log who gets what. " +
        "With a command, serve it while the command runs, with HOLDFAST_URL set, and end with its status.",
    )
    .argument("[command...]")
    .usage("[options] [-- COMMAND [ARGUMENT...]]")
    .option("-p, --port <n>", `where to listen; 0: any free port (default: ${DEV_PORT} or one of the next nine; for a command any)`, port)
    .option("--endpoint <url>", "keep the locks in the DynamoDB there, not in memory; not AWS. --table names the table")
    .option("--like-dynamodb", "give the locks in memory DynamoDB's latency, units and throttles, for a load test")
    .option(
      "--regions <names>",
      "a table in memory with a service in each of 2 or 3 Regions, which can be cut off: us-east-1,us-east-2",
      regionsOf,
    )
    .option("--seed <file>", "begin with the locks and runs of a JSON file")
    .option("--allow-host <name>", "a name of this machine that requests may come by, beside localhost; repeat it for more", also)
    .option("--clock-skew <duration>", "set the service's clock ahead, to practise an incident: beyond 10s it decides nothing", duration)
    .option("-v, --verbose", "log on stderr while the command runs")
    .addHelpText("after", EXAMPLES)
    .action(async (words: readonly string[], options: DevOptions) => {
      const command = commandOf(words, host.argv);
      const { url, table = DEFAULT_TABLE, ...globals } = program.opts<GlobalOptions>();
      if (url !== undefined) throw new CliError("usage", "--url: dev serves the API itself", { next: "Leave it out, or say --port." });
      const { endpoint, likeDynamodb = false, regions, seed, clockSkew: clockSkewMs, port: requestedPort, verbose = false } = options;
      const { allowHost: allowedHosts = [] } = options;
      if (seed !== undefined && clockSkewMs !== undefined)
        throw new CliError("usage", "--seed: not with --clock-skew, which may refuse it");
      if (likeDynamodb && endpoint !== undefined)
        throw new CliError("usage", "--like-dynamodb: keeps the locks in memory, not at --endpoint");
      if (regions && (likeDynamodb || endpoint !== undefined || clockSkewMs !== undefined))
        throw new CliError("usage", "--regions: has a table of its own, so not with --endpoint, --like-dynamodb or --clock-skew");
      const context = host.processContext(globals);
      const { dev } = await import("./dev.js");
      const inMemory = likeDynamodb ? "like-dynamodb" : undefined;
      const storage = endpoint === undefined ? inMemory : { endpoint, tableName: table };
      const ports = portsFrom(DEV_PORT, requestedPort ?? (command.length > 0 ? 0 : undefined));
      host.ends(await dev({ ports, table: storage, regions, seedFile: seed, allowedHosts, clockSkewMs, verbose, command }, context));
    });
}

/** Returns the Regions in a text. @throws InvalidArgumentError if they are not 2 or 3 different names */
function regionsOf(text: string): readonly string[] {
  const regions = text.split(",");
  const isRight = new Set(regions).size === regions.length && regions.every((region) => /^[a-z]+(-[a-z]+)+-\d+$/.test(region));
  if (!isRight || regions.length < 2 || regions.length > 3)
    throw new InvalidArgumentError("Give 2 or 3 different Regions with commas, such as us-east-1,us-east-2.");
  return regions;
}

/** Returns the values of an option that may be repeated. */
function also(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}

/** Returns the command after `--`; empty if there is none. @throws CliError if words stand before it */
function commandOf(words: readonly string[], argv: readonly string[]): readonly string[] {
  if (words.length === countAfterDashes(argv)) return words;
  const [first = ""] = words;
  if (!argv.includes("--") && words.length === 1 && /^\d+$/.test(first))
    throw new CliError("usage", `dev: unexpected argument ${JSON.stringify(first)}`, {
      next: isPort(Number(first)) ? `Did you mean --port ${first}?` : `A port is given by --port, ${PORT_RULE}.`,
    });
  throw new CliError("usage", "dev: put -- before the command", { next: `holdfast dev -- ${words.join(" ")}` });
}
