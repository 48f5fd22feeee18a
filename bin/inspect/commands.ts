/** The commands that inspect locks, runs and limits, and operate locks and runs. */
import type { Command } from "commander";
import { Argument, Option } from "commander";
import { CliError } from "../cli-error.js";
import type { CliHost, CommandContext, GlobalOptions } from "../context.js";
import type { RunsArgs } from "./lists.js";
import { count, duration, some } from "../values.js";

const RUN_STATES = ["running", "interrupted", "succeeded", "failed"] satisfies NonNullable<RunsArgs["state"]>[];
const SHELLS = ["bash", "zsh"] as const;
const MOST = 1000;
/** The allowed poll intervals: a shorter one only adds cost, a longer one is no longer a watch. */
const INTERVAL = { leastMs: 200, mostMs: 3_600_000, default: "1s" };

interface ListOptions {
  readonly max: number;
}

/** Wraps an action that uses the locks. */
type WithLocks = <A extends readonly unknown[]>(
  mode: "changes" | "looks",
  act: (context: CommandContext, ...given: A) => Promise<number>,
) => (...given: A) => Promise<void>;

/** Adds the commands that inspect. */
export function addLookCommands(program: Command, host: CliHost): void {
  const withLocks = withLocksOf(program, host);
  addLs(program, withLocks);
  addShow(program, withLocks);
  addWatch(program, withLocks);
  addRuns(program, withLocks);
  addLimits(program, withLocks);
}

/** Adds the commands that operate. */
export function addOperateCommands(program: Command, host: CliHost): void {
  const withLocks = withLocksOf(program, host);
  addBreak(program, withLocks);
  addReset(program, withLocks);
}

function withLocksOf(program: Command, host: CliHost): WithLocks {
  return (mode, act) =>
    async (...given) =>
      host.ends(await act(await host.context(program.opts<GlobalOptions>(), mode), ...given));
}

function addLs(program: Command, withLocks: WithLocks): void {
  listing(program.command("ls"))
    .summary("list held keys")
    .description("List held keys: who holds each, how, since when and for how long.")
    .option("--owner <text>", "only those of this owner")
    .addHelpText("after", example("holdfast ls ORDER_"))
    .action(
      withLocks("looks", async (context, prefix: string | undefined, options: ListOptions & { readonly owner?: string }) => {
        const { ls } = await import("./lists.js");
        return ls({ prefix: prefix ?? "", ...options }, context);
      }),
    );
}

function addShow(program: Command, withLocks: WithLocks): void {
  program
    .command("show")
    .summary("show who holds a key, and who waits")
    .description("Show one key: who holds it, and who waits for it.")
    .argument("<key>")
    .usage("KEY [options]")
    .option("--run", "show the run of that key and its outcome instead")
    .addHelpText("after", example("holdfast show ORDER_1231"))
    .action(
      withLocks("looks", async (context, key: string, options: { readonly run?: boolean }) => {
        const { show, showRun } = await import("./show.js");
        return options.run ? showRun(key, context) : show(key, context);
      }),
    );
}

function addBreak(program: Command, withLocks: WithLocks): void {
  program
    .command("break")
    .summary("end a hold that is stuck")
    .description("End a hold that is stuck. It can't be renewed any more; with --drain it ends before its lease does.")
    .argument("<key>")
    .usage("KEY --reason TEXT [options]")
    .requiredOption("--reason <text>", "why; it is logged")
    .option("--token <n>", "fencing token of the hold, from show (default: the only hold, if you confirm)", count)
    .addOption(new Option("--drain <duration>", "end it by then, by force: then only tokens protect").argParser(duration))
    .option("-y, --yes", "don't ask for confirmation")
    .addHelpText("after", example('holdfast break ORDER_1231 --reason "its machine is gone"'))
    .action(
      withLocks("changes", async (context, key: string, options: { reason: string; token?: number; drain?: number; yes?: boolean }) => {
        const { reason, token, drain, yes = false } = options;
        const { breakHold } = await import("../operate.js");
        const which = { ...(token !== undefined && { fencingToken: token }), ...(drain !== undefined && { drainMs: drain }) };
        return breakHold({ key, reason, asks: !yes, ...which }, context);
      }),
    );
}

function addWatch(program: Command, withLocks: WithLocks): void {
  listing(program.command("watch"))
    .summary("show held keys as they change")
    .description("Show held keys as they change, until Ctrl-C. On a pipe, a line for each hold that began or ended.")
    .addOption(
      new Option("--interval <duration>", "between looks, 200ms to 1h")
        .argParser(duration)
        .default(duration(INTERVAL.default), INTERVAL.default),
    )
    .addHelpText("after", example("holdfast watch ORDER_"))
    .action(
      withLocks("looks", async (context, prefix: string | undefined, { interval: intervalMs, max }: ListOptions & { interval: number }) => {
        if (intervalMs < INTERVAL.leastMs || intervalMs > INTERVAL.mostMs)
          throw new CliError("usage", "--interval: must be from 200ms to 1h");
        const { watch } = await import("./watch.js");
        return watch({ prefix: prefix ?? "", intervalMs, max }, context);
      }),
    );
}

function addRuns(program: Command, withLocks: WithLocks): void {
  listing(program.command("runs"))
    .summary("list runs and their states")
    .description("List runs: the state and the attempt of each.")
    .addOption(new Option("--state <state>", "only these").choices(RUN_STATES))
    .addHelpText("after", example("holdfast runs report: --state failed"))
    .action(
      withLocks("looks", async (context, prefix: string | undefined, options: Omit<RunsArgs, "prefix">) => {
        const { runs } = await import("./lists.js");
        return runs({ prefix: prefix ?? "", ...options }, context);
      }),
    );
}

function addLimits(program: Command, withLocks: WithLocks): void {
  listing(program.command("limits"))
    .summary("list limits that are in use")
    .description("List the limits that are not full: their rates, what is left of each, and when they are full again.")
    .addHelpText("after", example("holdfast limits partner-"))
    .action(
      withLocks("looks", async (context, prefix: string | undefined, { max }: ListOptions) => {
        const { limits } = await import("./lists.js");
        return limits({ prefix: prefix ?? "", max }, context);
      }),
    );
}

function addReset(program: Command, withLocks: WithLocks): void {
  program
    .command("reset")
    .summary("forget a run")
    .description("Forget a run that is over or was given up: the next start is a first attempt.")
    .argument("<key>")
    .usage("KEY --reason TEXT")
    .requiredOption("--reason <text>", "why; it is logged")
    .addHelpText("after", example('holdfast reset report:2026-01-31 --reason "the source was wrong"'))
    .action(
      withLocks("changes", async (context, key: string, { reason }: { readonly reason: string }) => {
        const { reset } = await import("../operate.js");
        return reset(key, reason, context);
      }),
    );
}

/** Adds the command that makes a shell complete. */
export function addCompletion(program: Command, host: CliHost): void {
  program
    .command("completion")
    .summary("complete on TAB")
    .description("Print what a shell needs to complete the commands and options of holdfast.")
    .addArgument(new Argument("<shell>").choices(SHELLS))
    .usage("bash|zsh")
    .addHelpText("after", example("source <(holdfast completion bash)"))
    .action(async (shell: (typeof SHELLS)[number]) => {
      const { scriptFor } = await import("../completion.js");
      await host.print(scriptFor(shell));
    });
}

function listing(command: Command): Command {
  return command.argument("[prefix]").usage("[PREFIX] [options]").option("--max <n>", "show at most so many keys", some, MOST);
}

function example(line: string): string {
  return `\nExample:\n  $ ${line}`;
}
