/** Carries a command line out, and tells what went wrong: once, in a line or two, with a status that says which kind it was. */
import { createRequire } from "node:module";
import { CommanderError } from "commander";
import type { Caller, GlobalOptions } from "./caller.js";
import { constants } from "node:os";
import { Complaint, Interrupted } from "./complaint.js";
import { connect, ownerHere, whereOf } from "./connection.js";
import { EXITS, SIGNAL_BASE } from "./exit-codes.js";
import type { Doing } from "./failure.js";
import type { Where } from "./connection.js";
import { failureOf, told } from "./failure.js";
import { printerOn } from "./output.js";
import { programFor } from "./program.js";
import type { RunSetting, Setting } from "./setting.js";
import { Signals } from "./signals.js";
import { plain, screenOn } from "./terminal.js";

/** The process that a command line belongs to: its environment, its output, and the signals that it is sent. */
export type CliHost = Pick<NodeJS.Process, "env" | "stdout" | "stderr" | "on">;

/** Carries it out. Resolves with the status to end with; never rejects. */
export async function main(argv: readonly string[], host: CliHost = process): Promise<number> {
  const { stdout, stderr } = host;
  // As it was given: what is set here, for the AWS SDK, is nobody else's.
  const env = { ...host.env };
  let status: number = EXITS.ok.status;
  let doing: Doing = "looks";
  let where: Where | undefined;
  let unprinted: Complaint | undefined;
  let giveUp: (reason: Error) => void = () => undefined;
  const givenUp = new Promise<never>((_, reject) => (giveUp = reject));
  givenUp.catch(() => undefined); // Nobody may be waiting for it.
  const print = printerOn(stdout, {
    onClosed: () => {
      if (doing !== "runs") process.exit(SIGNAL_BASE + constants.signals.SIGPIPE);
    },
    // A command that runs goes on, and so does the record of its run.
    onFailed: ({ message }) => {
      unprinted = new Complaint("notPrinted", `the output could not be written: ${message}`);
      if (doing !== "runs") giveUp(unprinted);
    },
  });
  const printError = printerOn(stderr, { onClosed: () => undefined, onFailed: () => undefined });
  const say = (line: string): void => void printError(`holdfast: ${plain(line)}\n`);

  const caller: Caller = {
    argv,
    print,
    ends: (ended) => void (status = ended),
    async setting(options, what) {
      doing = what;
      where = whereOf(options, env);
      return settingWith(await connect(options, env), options);
    },
    async runSetting({ verbose = false, ...options }) {
      doing = "runs";
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
      return { ...settingWith(locks, options), env, tell, owner, isWatched } satisfies RunSetting;
    },
  };

  function settingWith(locks: Setting["locks"], { json = false }: GlobalOptions): Setting {
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
    const failure = failureOf(error, doing, where);
    await printError(`${told(failure, program.opts<GlobalOptions>().json === true)}\n`);
    return failure.status;
  }
}

/** A command line that the parser refused, and what it should have been. */
function misuse({ message }: CommanderError, argv: readonly string[]): Complaint {
  const text = message.replace(/^error: /, "").replaceAll(/\s+/g, " ");
  const [name] = argv;
  const runsAnother = name === "lock" || name === "once";
  if (runsAnother && !argv.includes("--"))
    return new Complaint("usage", text, { next: `What to run stands after --, as in: holdfast ${name} KEY -- COMMAND` });
  return new Complaint("usage", text, { next: "See holdfast --help, or --help after a command." });
}

/** As published: of the package that this file is in. */
function version(): string {
  const manifest = createRequire(import.meta.url)("holdfast/package.json") as { readonly version: string };
  return manifest.version;
}
