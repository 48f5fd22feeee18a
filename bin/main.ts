/** Carries a command line out, and tells what went wrong: once, in a line or two, with a status that says which kind it was. */
import { createRequire } from "node:module";
import { CommanderError } from "commander";
import type { CliHost, GlobalOptions } from "./cli-host.js";
import { constants } from "node:os";
import { CliError, Interrupted } from "./cli-error.js";
import { connect, ownerHere, whereOf } from "./connection.js";
import { EXITS, SIGNAL_BASE } from "./exit-codes.js";
import type { CommandMode } from "./format-failure.js";
import type { Where } from "./connection.js";
import { failureOf, formatFailure } from "./format-failure.js";
import { printerOn } from "./output.js";
import { programFor } from "./program.js";
import type { RunContext, CommandContext } from "./context.js";
import { Signals } from "./exec/signals.js";
import { plain, screenOn } from "./terminal.js";

/** The process that a command line belongs to: its environment, its output, and the signals that it is sent. */
export type CliProcess = Pick<NodeJS.Process, "env" | "stdout" | "stderr" | "on">;

/** Carries it out. Resolves with the status to end with; never rejects. */
export async function main(argv: readonly string[], host: CliProcess = process): Promise<number> {
  const { stdout, stderr } = host;
  // As it was given: what is set here, for the AWS SDK, is nobody else's.
  const env = { ...host.env };
  let status: number = EXITS.ok.status;
  let mode: CommandMode = "looks";
  let where: Where | undefined;
  let unprinted: CliError | undefined;
  let giveUp: (reason: Error) => void = () => undefined;
  const givenUp = new Promise<never>((_, reject) => (giveUp = reject));
  givenUp.catch(() => undefined); // Nobody may be waiting for it.
  const print = printerOn(stdout, {
    onClosed: () => {
      if (mode !== "runs") process.exit(SIGNAL_BASE + constants.signals.SIGPIPE);
    },
    // A command that runs goes on, and so does the record of its run.
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
      // Of a pipe isTTY is undefined, whatever its type says.
      const isWatched = (process.stderr.isTTY as boolean | undefined) === true;
      return { ...contextWith(locks, options), env, tell, owner, isWatched } satisfies RunContext;
    },
  };

  function contextWith(locks: CommandContext["locks"], { json = false }: GlobalOptions): CommandContext {
    return {
      locks,
      signals: new Signals(host, (name) => giveUp(new Interrupted(name))),
      screen: screenOn(stdout),
      asJson: json,
      print,
      say,
    };
  }

  const program = programFor(caller, version(), { writeOut: (text) => void print(text), writeErr: (text) => void printError(text) });
  async function carryOut(): Promise<void> {
    if (argv[0] === "complete") {
      const { complete } = await import("./completion.js");
      complete(program, argv.slice(argv[1] === "--" ? 2 : 1));
      return;
    }
    try {
      await Promise.race([program.parseAsync(argv, { from: "user" }), givenUp]);
    } catch (error) {
      if (!(error instanceof CommanderError)) throw error;
      if (error.code === "commander.help") status = EXITS.usage.status;
      else if (error.exitCode !== 0) throw misuse(error, argv); // Otherwise it is help or the version, and was printed.
    }
  }
  try {
    await carryOut();
    await print(""); // Behind all that was printed, so that its failure is known by now.
    if (unprinted && status === EXITS.ok.status) throw unprinted;
    return status;
  } catch (error) {
    const failure = failureOf(error, mode, where);
    await printError(`${formatFailure(failure, program.opts<GlobalOptions>().json === true)}\n`);
    return failure.status;
  }
}

/** A command line that the parser refused, and what it should have been. */
function misuse({ message }: CommanderError, argv: readonly string[]): CliError {
  const text = message.replace(/^error: /, "").replaceAll(/\s+/g, " ");
  const [name] = argv;
  const runsAnother = name === "lock" || name === "once";
  if (runsAnother && !argv.includes("--"))
    return new CliError("usage", text, { next: `What to run stands after --, as in: holdfast ${name} KEY -- COMMAND` });
  return new CliError("usage", text, { next: "See holdfast --help, or --help after a command." });
}

/** As published: of the package that this file is in. */
function version(): string {
  const manifest = createRequire(import.meta.url)("holdfast/package.json") as { readonly version: string };
  return manifest.version;
}
