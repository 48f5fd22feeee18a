/** Carries out a command line and reports a failure once, in a line or two, with a status for its kind. */
import { createRequire } from "node:module";
import { CommanderError } from "commander";
import type { CliHost, GlobalOptions } from "./cli-host.js";
import { constants } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { CliError, Interrupted } from "./cli-error.js";
import { connect, ownerHere, whereOf } from "./connection.js";
import { EXITS, SIGNAL_BASE } from "./exit-codes.js";
import type { CommandMode } from "./format-failure.js";
import type { Where } from "./connection.js";
import { failureOf, formatFailure } from "./format-failure.js";
import { printerOn } from "./output.js";
import { programFor } from "./program.js";
import type { CommandContext, ProcessContext, RunContext } from "./context.js";
import { Signals } from "./exec/signals.js";
import { plain } from "./plain-text.js";
import { screenOn } from "./terminal.js";

/** The process of a command line: its environment, its output, and its signals. */
export type CliProcess = Pick<NodeJS.Process, "env" | "stdout" | "stderr" | "on">;

/** Carries out a command line. Resolves with the exit status; never rejects. */
// Over 60 lines: the host that it gives to the commands shares its variables.
export async function main(argv: readonly string[], host: CliProcess = process): Promise<number> {
  const { stdout, stderr } = host;
  // A copy: variables that are set here, for the AWS SDK, must not reach the command.
  const env = { ...host.env };
  let status: number = EXITS.ok.status;
  let mode: CommandMode = "looks";
  let command = "";
  let where: Where | undefined;
  let unprinted: CliError | undefined;
  let giveUp: (reason: Error) => void = () => undefined;
  const givenUp = new Promise<never>((_, reject) => (giveUp = reject));
  givenUp.catch(() => undefined); // Avoids an unhandled rejection.
  const print = printerOn(stdout, {
    onClosed: () => {
      if (mode !== "runs") process.exit(SIGNAL_BASE + constants.signals.SIGPIPE);
    },
    // A running command goes on, and so does the record of its run.
    onFailed: ({ message }) => {
      unprinted = new CliError("notPrinted", `the output could not be written: ${message}`);
      if (mode !== "runs") giveUp(unprinted);
    },
  });
  const printError = printerOn(stderr, { onClosed: () => undefined, onFailed: () => undefined });
  const say = (line: string): void => void printError(`holdfast: ${plain(line)}\n`);

  const caller: CliHost = {
    argv,
    print,
    ends: (ended) => void (status = ended),
    processContext,
    async context(options, what) {
      mode = what;
      where = whereOf(options, env);
      return contextWith(await connect(options, env), options);
    },
    async runContext({ verbose = false, ...options }) {
      mode = "runs";
      where = whereOf(options, env);
      const owner = options.owner ?? ownerHere();
      const tell = verbose ? say : () => undefined;
      const lost = new Set<number | undefined>();
      const locks = await connect({ ...options, owner }, env, ({ type, key, fencingToken, error }) => {
        const why = error instanceof Error ? error.message : "";
        if (type === "lost") lost.add(fencingToken);
        else if (type === "renew-failed") tell(`${key} could not be renewed yet: ${why}`);
        else if (type === "release-failed" && !lost.has(fencingToken)) say(`${key} is free only when its lease is over: ${why}`);
      });
      // For a pipe, isTTY is undefined, whatever its type says.
      const tellsWaits = verbose || (process.stderr.isTTY as boolean | undefined) === true;
      return { ...contextWith(locks, options), tell, owner, tellsWaits } satisfies RunContext;
    },
  };

  function contextWith(locks: CommandContext["locks"], options: GlobalOptions): CommandContext {
    return { ...processContext(options), locks };
  }

  function processContext({ json = false }: GlobalOptions): ProcessContext {
    return {
      env,
      version: version(),
      signals: new Signals(host, (name) => giveUp(new Interrupted(name))),
      screen: screenOn(stdout),
      asJson: json,
      print,
      say,
    };
  }

  const program = programFor(caller, version(), { writeOut: (text) => void print(text), writeErr: (text) => void printError(text) });
  program.hook("preAction", (_program, called) => void (command = called.name()));
  async function carryOut(): Promise<void> {
    if (argv[0] === "complete") {
      const { complete } = await import("./completion.js");
      await complete(program, argv.slice(argv[1] === "--" ? 2 : 1), (of, prefix) => keysFor(of, prefix, env));
      return;
    }
    try {
      await Promise.race([program.parseAsync(argv, { from: "user" }), givenUp]);
    } catch (error) {
      if (!(error instanceof CommanderError)) throw error;
      if (error.exitCode === 0) return; // Help or the version was printed.
      if (error.code !== "commander.help") throw misuse(error, argv);
      status = EXITS.usage.status;
    }
  }
  try {
    await carryOut();
    await print(""); // Waits for everything printed before, so that a failure is known.
    if (unprinted && status === EXITS.ok.status) throw unprinted;
    return status;
  } catch (error) {
    const failure = failureOf(error, mode, where, command);
    await printError(`${formatFailure(failure, program.opts<GlobalOptions>().json === true)}\n`);
    return failure.status;
  }
}

/** The largest number of keys to choose from, and the time limit for asking for them, in ms: a person waits for them. */
const KEYS = { max: 50, withinMs: 1000 };

/** Returns keys that begin with `prefix`, from the service or table of the environment; none if it doesn't answer in time. */
async function keysFor(of: "locks" | "runs", prefix: string, env: NodeJS.ProcessEnv): Promise<readonly string[]> {
  const locks = await connect({}, env);
  const query = { prefix, max: KEYS.max };
  const listed = (of === "runs" ? locks.runs.list(query) : locks.list(query)).then(({ items }) => items.map(({ key }) => key));
  return Promise.race([listed.catch(() => []), delay(KEYS.withinMs, [])]);
}

/** Words of other tools, and the command that does it here. */
const OTHER_WORDS = new Map([
  ...["unlock", "release", "force-release", "kill"].map((word) => [word, "break"] as const),
  ...["acquire", "with", "run", "exec"].map((word) => [word, "lock"] as const),
  ...["list", "locks", "ps"].map((word) => [word, "ls"] as const),
  ...["status", "inspect", "get", "describe"].map((word) => [word, "show"] as const),
]);

/** Returns the error for a command line that the parser refused, with advice. */
function misuse({ message }: CommanderError, argv: readonly string[]): CliError {
  const text = message.replace(/^error: /, "").replaceAll(/\s+/g, " ");
  const [name = ""] = argv;
  const meant = OTHER_WORDS.get(name);
  if (meant !== undefined && text.startsWith("unknown command"))
    return new CliError("usage", `unknown command '${name}'`, {
      next: `Is it holdfast ${meant} that you want? See holdfast ${meant} --help.`,
    });
  const runsAnother = name === "lock" || name === "once";
  if (runsAnother && !argv.includes("--"))
    return new CliError("usage", text, { next: `What to run stands after --, as in: holdfast ${name} KEY -- COMMAND` });
  return new CliError("usage", text, { next: "See holdfast --help, or --help after a command." });
}

/** Returns the version of the package that contains this file. */
function version(): string {
  const manifest = createRequire(import.meta.url)("holdfast/package.json") as { readonly version: string };
  return manifest.version;
}
