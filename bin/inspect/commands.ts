/** The commands that inspect locks, runs and limits, and operate locks and runs. */
import { Argument, Command, Option } from "commander";
import { CliError } from "../cli-error.js";
import type { CliHost, CommandContext, GlobalOptions } from "../context.js";
import type { BreakOptions, ResetOptions } from "../operate.js";
import type { LsArgs, RunsArgs } from "./lists.js";
import { whereIfGiven } from "../connection.js";
import { count, defaulted, duration, rate, reason, some, time } from "../values.js";
import { LISTED_STATES } from "../../console/text/run-text.js";
import type { Rate } from "../../lib/index.js";

const SHELLS = ["bash", "zsh", "fish"] as const;
const MOST = 1000;
/** The occurrences of a schedule that are shown by default. */
const MOST_TICKS = "20";
/** The allowed poll intervals: a shorter one only adds cost, a longer one is no longer a watch. */
const INTERVAL = { leastMs: 200, mostMs: 3_600_000 };

/** Returns what makes an action of a function that uses the locks. */
function withLocks(program: Command, host: CliHost, mode: "changes" | "reads") {
  return <Args extends readonly unknown[]>(act: (context: CommandContext, ...args: Args) => Promise<number>) =>
    async (...args: Args): Promise<void> =>
      host.ends(await act(await host.context(program.opts<GlobalOptions>(), mode), ...args));
}

export function addInspectCommands(program: Command, host: CliHost): void {
  const reading = withLocks(program, host, "reads");
  resumable(listing(program.command("ls"), "ls ORDER_"))
    .summary("list held keys")
    .description("List held keys: who holds each, how, since when and for how long.")
    .option("--owner <text>", "only those of this owner")
    .action(
      reading(async (context, prefix: string, options: Omit<LsArgs, "prefix">) => (await lists()).ls({ prefix, ...options }, context)),
    );
  onKey(program.command("show"), "[options]", "show ORDER_1231")
    .summary("show who holds a key, and who waits")
    .description("Show one key: who holds it, and who waits for it.")
    .option("--run", "show the run of that key and its outcome instead")
    .action(
      reading(async (context, key: string, options: { readonly run?: boolean }) => {
        const { show, showRun } = await import("./show.js");
        return options.run ? showRun(key, context) : show(key, context);
      }),
    );
  addHistory(program, host);
  listing(program.command("watch"), "watch ORDER_")
    .summary("show held keys as they change")
    .description("Show held keys as they change, until Ctrl-C. On a pipe, a line for each hold that began or ended.")
    .addOption(defaulted("--interval <duration>", "between looks, 200ms to 1h", duration, "1s"))
    .action(
      reading(async (context, prefix: string, { interval: intervalMs, max }: { interval: number; max: number }) => {
        if (intervalMs < INTERVAL.leastMs || intervalMs > INTERVAL.mostMs)
          throw new CliError("usage", "--interval: must be from 200ms to 1h");
        const { watch } = await import("./watch.js");
        return watch({ prefix, intervalMs, max }, context);
      }),
    );
  resumable(listing(program.command("runs"), "runs report: --state failed"))
    .summary("list runs and their states")
    .description("List runs: the state and the attempt of each.")
    .addOption(new Option("--state <state>", "only these").choices(LISTED_STATES))
    .action(
      reading(async (context, prefix: string, options: Omit<RunsArgs, "prefix">) => (await lists()).runs({ prefix, ...options }, context)),
    );
  program
    .command("ticks")
    .argument("<name>")
    .usage("NAME [options]")
    .summary("list a schedule's last occurrences")
    .description("List the last occurrences of a schedule: the state of each, and the time after the one before.")
    .option("--within <duration>", "fail if none was done in this time", duration)
    .addOption(defaulted("--max <n>", "show at most so many", some, MOST_TICKS))
    .addHelpText("after", example("ticks nightly --within 25h"))
    .action(
      reading(async (context, name: string, { max, within: withinMs }: { max: number; within?: number }) =>
        (await lists()).ticks({ name, max, withinMs }, context),
      ),
    );
  listing(program.command("limits"), "limits partner-")
    .summary("list limits that are in use")
    .description("List the limits in use: their rates and permits, what is left of each, who waits, and when all is back.")
    .action(reading(async (context, prefix: string, { max }: { max: number }) => (await lists()).limits({ prefix, max }, context)))
    .addCommand(limitReset(program, host))
    .addCommand(limitShut(program, host));
}

/** The options of `history`. */
interface HistoryOptions {
  readonly since: number;
  readonly at?: number;
  readonly max: number;
  readonly logGroup?: string;
  readonly log?: string;
}

/** Adds the command that reads the log. It needs the service only to say what the key is now. */
function addHistory(program: Command, host: CliHost): void {
  onKey(program.command("history"), "[options]", "history ORDER_1231 --since 7d")
    .summary("show who held a key, and how each hold ended")
    .description("Show who held a key by the service's log: from when to when, how many waited, and how it ended, the newest last.")
    .addOption(defaulted("--since <duration>", "how far back to read; with --at, before it and after it", duration, "1d"))
    .option("--at <time>", "only who held it then, and who waited: 2026-11-22T03:00, in local time, or with Z", time)
    .option("--max <n>", "show at most so many holds, the newest", some, MOST)
    .option("--log-group <name>", "the service's log group (default: HOLDFAST_LOG_GROUP); that of a local service isn't needed")
    .addOption(new Option("--log <file>", "read an exported log, with a line of JSON each; - is stdin").conflicts(["logGroup"]))
    .action(async (key: string, { since: sinceMs, at: atMs, max, logGroup, log: file }: HistoryOptions) => {
      const globals = program.opts<GlobalOptions>();
      // An exported log doesn't say which service wrote it.
      const context = file === undefined ? await host.contextIfGiven(globals) : host.processContext(globals);
      const { history } = await import("./history.js");
      const { logGroupOf } = await import("../insights.js");
      const place = { file, group: logGroupOf({ logGroup }, context.env), url: whereIfGiven(globals, context.env)?.url };
      host.ends(await history({ key, sinceMs, atMs, max }, place, globals, context));
    });
}

/** Returns the command that shuts a limit. */
function limitShut(program: Command, host: CliHost): Command {
  const command = new Command("shut")
    .argument("<name>")
    .usage("NAME [options]")
    .addHelpText("after", example('limits shut partner-api --for 30m --reason "the partner is down"'));
  return command
    .summary("let nothing start from a limit for a time")
    .description("Let nothing start from a limit for a time, whoever takes. What was granted before starts all the same.")
    .requiredOption("--for <duration>", "how long, at most 24h", duration)
    .option("--rate <rate>", "its rate, as of limit (default: that of its users; needed if it is full)", rate)
    .requiredOption("--reason <text>", "why; it is logged", reason)
    .exitOverride()
    .configureOutput({ outputError: () => undefined })
    .action(
      withLocks(
        program,
        host,
        "changes",
      )(async (context, name: string, { for: forMs, reason, rate: rates }: { for: number; reason: string; rate?: readonly Rate[] }) =>
        (await import("../operate.js")).shutLimit(name, { forMs, reason, rates }, context),
      ),
    );
}

/** Returns the command that gives back all of a limit. */
function limitReset(program: Command, host: CliHost): Command {
  const command = new Command("reset")
    .argument("<name>")
    .usage("NAME --reason TEXT")
    .addHelpText("after", example('limits reset partner-api --reason "wrong rates"'));
  return command
    .summary("give back all of a limit")
    .description("Give back all that was taken from a limit: the next take may bring other rates.")
    .requiredOption("--reason <text>", "why; it is logged", reason)
    .exitOverride()
    .configureOutput({ outputError: () => undefined })
    .action(
      withLocks(
        program,
        host,
        "changes",
      )(async (context, name: string, { reason }: { reason: string }) => (await import("../operate.js")).resetLimit(name, reason, context)),
    );
}

export function addOperateCommands(program: Command, host: CliHost): void {
  const changing = withLocks(program, host, "changes");
  onKey(program.command("break"), "--reason TEXT [options]", 'break ORDER_1231 --reason "its machine is gone"')
    .summary("end a hold that is stuck")
    .description("End a hold that is stuck. It can't be renewed any more; with --drain it ends before its lease does.")
    .requiredOption("--reason <text>", "why; it is logged", reason)
    .option("--token <n>", "fencing token of the hold, from show (default: the only hold; a terminal asks first)", count)
    .option("--drain <duration>", "end it by then, by force: then only tokens protect", duration)
    .option("-y, --yes", "don't ask for confirmation")
    .action(
      changing(async (context, key: string, options: BreakOptions) => (await import("../operate.js")).breakHold(key, options, context)),
    );
  onKey(program.command("reset"), "--reason TEXT [options]", 'reset report:2026-01-31 --reason "the source was wrong"')
    .summary("forget a run")
    .description("Forget a run that is over or was given up: the next start is a first attempt.")
    .requiredOption("--reason <text>", "why; it is logged", reason)
    .option("-y, --yes", "don't ask before a checkpoint is dropped")
    .action(changing(async (context, key: string, options: ResetOptions) => (await import("../operate.js")).reset(key, options, context)));
}

/** Adds the command that makes a shell complete. */
export function addCompletion(program: Command, host: CliHost): void {
  program
    .command("completion")
    .summary("complete on TAB")
    .description("Print what a shell needs to complete the commands and options of holdfast.")
    .addArgument(new Argument("<shell>").choices(SHELLS))
    .usage("bash|zsh|fish")
    .addHelpText("after", "\nExample:\n  $ source <(holdfast completion bash)")
    .action(async (shell: (typeof SHELLS)[number]) => {
      const { scriptFor } = await import("../completion.js");
      await host.print(scriptFor(shell));
    });
}

const lists = () => import("./lists.js");

function listing(command: Command, line: string): Command {
  return command
    .argument("[prefix]", "", "")
    .usage("[PREFIX] [options]")
    .option("--max <n>", "show at most so many keys", some, MOST)
    .addHelpText("after", example(line));
}

function onKey(command: Command, options: string, line: string): Command {
  return command.argument("<key>").usage(`KEY ${options}`).addHelpText("after", example(line));
}

/** Adds the option that goes on with a list. */
function resumable(command: Command): Command {
  return command.option("--cursor <text>", "go on where an earlier list ended, as it said");
}

/** Returns the end of a command's help, with one line of it. */
export function example(line: string): string {
  return `\nExample:\n  $ holdfast ${line}`;
}
