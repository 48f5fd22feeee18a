/** Carries out a command line and reports a failure once, in a line or two, with a status for its kind. */
import { createRequire } from "node:module";
import { setTimeout as delay } from "node:timers/promises";
import { type Command, CommanderError } from "commander";
import { CliError, Interrupted } from "./cli-error.js";
import type { Where } from "./connection.js";
import type { KeyKind } from "./completion.js";
import { connect, ownerHere, whereIfGiven, whereOf } from "./connection.js";
import { type CliHost, type CommandContext, type GlobalOptions, type ProcessContext, type RunContext, Signals } from "./context.js";
import { EXITS, statusOfSignal } from "./exit-codes.js";
import { type CommandMode, type Failure, failureOf, formatFailure, RUNNING } from "./format-failure.js";
import { plain } from "../console/text/plain-text.js";
import { programFor } from "./program.js";
import { printerOn, screenOn } from "./terminal.js";

/** The process of a command line: its environment, its output, and its signals. */
export type CliProcess = Pick<NodeJS.Process, "env" | "stdout" | "stderr" | "on">;

/** Carries out a command line. Resolves with the exit status; never rejects. */
export function main(argv: readonly string[], host: CliProcess = process): Promise<number> {
  return new CommandLine(argv, host).end();
}

/** A command line that is carried out: the host of its command, and what is known for the report of a failure. */
class CommandLine implements CliHost {
  readonly argv: readonly string[];
  readonly print: CliHost["print"];
  readonly #host: CliProcess;
  /** A copy: variables that are set here, for the AWS SDK, must not reach the command. */
  readonly #env: NodeJS.ProcessEnv;
  readonly #printError: CliHost["print"];
  readonly #say = (line: string): void => void this.#printError(`holdfast: ${plain(line)}\n`);
  #status: number = EXITS.ok.status;
  #mode: CommandMode = "reads";
  #command = "";
  #where: Where | undefined;
  #unprinted: CliError | undefined;
  #giveUp: (reason: Error) => void = () => undefined;
  /** Rejects when the command is given up. */
  readonly #givenUp = new Promise<never>((_, reject) => (this.#giveUp = reject));

  constructor(argv: readonly string[], host: CliProcess) {
    this.argv = argv;
    this.#host = host;
    this.#env = { ...host.env };
    this.#givenUp.catch(() => undefined); // Avoids an unhandled rejection.
    this.print = printerOn(host.stdout, {
      onClosed: () => {
        if (this.#mode !== "runs") process.exit(statusOfSignal("SIGPIPE"));
      },
      // A running command goes on, and so does the record of its run.
      onFailed: ({ message }) => {
        this.#unprinted = new CliError("notPrinted", `the output could not be written: ${message}`);
        if (this.#mode !== "runs") this.#giveUp(this.#unprinted);
      },
    });
    this.#printError = printerOn(host.stderr, { onClosed: () => undefined, onFailed: () => undefined });
  }

  ends(status: number): void {
    this.#status = status;
  }

  async context(options: GlobalOptions, mode: CommandMode): Promise<CommandContext> {
    this.#mode = mode;
    this.#where = whereOf(options, this.#env);
    const locks = await connect(options, this.#env);
    return { ...this.processContext(options), locks };
  }

  async contextIfGiven(options: GlobalOptions): Promise<ProcessContext> {
    return whereIfGiven(options, this.#env) ? this.context(options, "reads") : this.processContext(options);
  }

  async runContext({ verbose = false, ...options }: GlobalOptions & { readonly verbose?: boolean }): Promise<RunContext> {
    this.#mode = "runs";
    this.#where = whereOf(options, this.#env);
    if (this.#where.namespace !== undefined)
      throw new CliError(
        "usage",
        "--namespace: a service knows its caller's own; with --url, only commands that look, break or reset take it",
      );
    const owner = options.owner ?? ownerHere();
    const tell = verbose ? this.#say : () => undefined;
    const lost = new Set<number | undefined>();
    let renewFailure = "";
    const locks = await connect({ ...options, owner }, this.#env, ({ type, key, fencingToken, error }) => {
      const why = error instanceof Error ? error.message : "";
      if (type === "lost") lost.add(fencingToken);
      else if (type === "renew-failed") {
        renewFailure = why;
        tell(`${key} could not be renewed yet: ${why}`);
      } else if (type === "release-failed" && !lost.has(fencingToken)) this.#say(`${key} is free only when its lease is over: ${why}`);
    });
    // For a pipe, isTTY is undefined, whatever its type says.
    const tellsWaits = verbose || (process.stderr.isTTY as boolean | undefined) === true;
    const printError = this.#printError;
    return { ...this.processContext(options), locks, tell, printError, owner, tellsWaits, lastRenewFailure: () => renewFailure };
  }

  processContext({ json = false }: GlobalOptions): ProcessContext {
    return {
      env: this.#env,
      version: version(),
      signals: new Signals(this.#host, (name) => this.#giveUp(new Interrupted(name))),
      screen: screenOn(this.#host.stdout),
      asJson: json,
      print: this.print,
      say: this.#say,
      warn: (error) => {
        const failure = this.#failureOf(error);
        if (json) void this.#printError(`${formatFailure(failure, true)}\n`);
        else this.#say(failure.message);
      },
    };
  }

  /** Carries it out and reports a failure. Resolves with the exit status; never rejects. */
  async end(): Promise<number> {
    const output = { writeOut: (text: string) => void this.print(text), writeErr: (text: string) => void this.#printError(text) };
    const program = programFor(this, version(), output);
    program.hook("preAction", (_program, called) => void (this.#command = called.name()));
    try {
      await this.#carryOut(program);
      await this.print(""); // Waits for everything printed before, so that a failure is known.
      if (this.#unprinted && this.#status === EXITS.ok.status) throw this.#unprinted;
      return this.#status;
    } catch (error) {
      const failure = this.#failureOf(error);
      await this.#printError(`${formatFailure(failure, program.opts<GlobalOptions>().json === true)}\n`);
      return failure.status;
    }
  }

  #failureOf(error: unknown): Failure {
    return failureOf(error, this.#mode, this.#where, this.#command);
  }

  async #carryOut(program: Command): Promise<void> {
    const { argv } = this;
    if (argv[0] === "complete") {
      const { complete } = await import("./completion.js");
      await complete(program, argv.slice(argv[1] === "--" ? 2 : 1), (of, prefix) => keysFor(of, prefix, this.#env));
      return;
    }
    try {
      await Promise.race([program.parseAsync(argv, { from: "user" }), this.#givenUp]);
    } catch (error) {
      if (!(error instanceof CommanderError)) throw error;
      if (error.exitCode === 0) return; // Help or the version was printed.
      if (error.code !== "commander.help") throw misuse(error, argv);
      this.#status = EXITS.usage.status;
    }
  }
}

/** The largest number of keys to choose from, and the time limit for asking for them, in ms: a person waits for them. */
const KEYS = { max: 50, withinMs: 1000 };

/** Returns keys that begin with `prefix`, from the service or table of the environment; none if it doesn't answer in time. */
async function keysFor(of: KeyKind, prefix: string, env: NodeJS.ProcessEnv): Promise<readonly string[]> {
  const locks = await connect({}, env);
  const query = { prefix, max: KEYS.max };
  const listed = (of === "locks" ? locks : locks[of]).list(query).then(({ items }) => items.map(({ key }) => key));
  return Promise.race([listed.catch(() => []), delay(KEYS.withinMs, [])]);
}

/** Words of other tools, and the command that does it here. */
const OTHER_WORDS = new Map([
  ...["unlock", "release", "force-release", "kill"].map((word) => [word, "break"] as const),
  ...["acquire", "with", "run", "exec"].map((word) => [word, "lock"] as const),
  ...["list", "locks", "ps"].map((word) => [word, "ls"] as const),
  ...["limiter", "throttle", "rate-limit"].map((word) => [word, "limit"] as const),
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
  if (RUNNING.includes(name) && !argv.includes("--"))
    return new CliError("usage", text, { next: `What to run stands after --, as in: holdfast ${name} KEY -- COMMAND` });
  return new CliError("usage", text, { next: "See holdfast --help, or --help after a command." });
}

/** Returns the version of the package that contains this file. */
export function version(): string {
  const manifest = createRequire(import.meta.url)("holdfast/package.json") as { readonly version: string };
  return manifest.version;
}
