/** Carries a command line out, and tells what went wrong: once, in a line or two, with a status that says which kind it was. */
import { createRequire } from "node:module";
import { CommanderError } from "commander";
import type { Caller, GlobalOptions } from "./caller.js";
import { Complaint } from "./complaint.js";
import { connect, whereOf } from "./connection.js";
import { EXITS } from "./exit-codes.js";
import type { Doing } from "./failure.js";
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
  let table: string | undefined;
  const print = printerOn(stdout, () => doing === "runs");
  const printError = printerOn(stderr, () => true);
  const say = (line: string): void => void printError(`holdfast: ${plain(line)}\n`);

  const caller: Caller = {
    argv,
    print,
    ends: (ended) => void (status = ended),
    async setting(options, what) {
      doing = what;
      ({ table } = whereOf(options, env));
      return settingWith(await connect(options, env), options);
    },
    async runSetting({ verbose = false, ...options }) {
      doing = "runs";
      ({ table } = whereOf(options, env));
      const tell = verbose ? say : () => undefined;
      const lost = new Set<number | undefined>();
      const locks = await connect(options, env, ({ type, key, fencingToken, error }) => {
        const why = error instanceof Error ? error.message : "";
        if (type === "lost") lost.add(fencingToken);
        else if (type === "renew-failed") tell(`${key} could not be renewed yet: ${why}`);
        else if (type === "release-failed" && !lost.has(fencingToken)) say(`${key} is free only when its lease is over: ${why}`);
      });
      return { ...settingWith(locks, options), env, tell } satisfies RunSetting;
    },
  };

  function settingWith(locks: Setting["locks"], { json = false }: GlobalOptions): Setting {
    return { locks, signals: new Signals(host), screen: screenOn(stdout), asJson: json, print, say };
  }

  const program = programFor(caller, version(), { writeOut: (text) => void print(text), writeErr: (text) => void printError(text) });
  if (argv[0] === "complete") {
    const { complete } = await import("./completion.js");
    complete(program, argv.slice(argv[1] === "--" ? 2 : 1));
    return EXITS.ok.status;
  }
  try {
    await program.parseAsync(argv, { from: "user" });
    return status;
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return EXITS.ok.status; // Help or the version, and it is printed.
    if (error instanceof CommanderError && error.code === "commander.help") return EXITS.usage.status;
    const failure = failureOf(error instanceof CommanderError ? misuse(error, argv) : error, doing, table);
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
