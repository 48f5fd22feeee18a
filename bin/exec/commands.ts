/** The commands that run another command, `lock`, `once` and `limit`, with their options. */
import { type Command, Option } from "commander";
import { CliError } from "../cli-error.js";
import { EXITS } from "../exit-codes.js";
import type { CommandArgs, KeyUse, LimitArgs, LockArgs } from "./lock.js";
import type { OnceArgs } from "./once.js";
import type { CliHost, GlobalOptions, RunContext } from "../context.js";
import {
  andBefore,
  count,
  countAfterDashes,
  defaulted,
  duration,
  durationOrForever,
  exitStatus,
  exitStatuses,
  rate,
  some,
} from "../values.js";

/** The parsed options of all three. */
interface CommonFlags extends GlobalOptions {
  readonly lease: number;
  /** The time to wait, in ms; false: don't wait. */
  readonly wait: number | false;
  readonly killAfter?: number;
  readonly conflictExitCode: number;
  readonly verbose?: boolean;
}

interface LockOptions extends CommonFlags, Pick<LockArgs, "limit" | "permits" | "priority"> {
  readonly progress?: number;
  readonly shared?: boolean;
  readonly alsoShared?: readonly string[];
}

interface OnceFlags extends CommonFlags, Pick<OnceArgs, "maxAttempts" | "fingerprint" | "largeOutput"> {
  readonly keep: number | "forever";
  readonly tick?: number;
  readonly final?: readonly number[];
}

type LimitOptions = CommonFlags & Pick<LimitArgs, "cost" | "concurrent"> & { readonly rate: LimitArgs["rates"] };

/** The default share of its lease that a command has to end. */
const ENDING_PART = 1 / 6;
/** The longest default time to end, in ms. */
const LONGEST_ENDING_MS = 5000;

const LOCK_EXAMPLE = `
Example: one at a time across all machines; later callers wait up to a minute.
  $ holdfast lock nightly-report --wait 1m -- ./report.sh --all

The command finds HOLDFAST_KEY, HOLDFAST_FENCING_TOKEN and HOLDFAST_FENCE_FLOOR
in its environment; with several keys, the tokens in HOLDFAST_FENCING_TOKENS as
JSON.`;

const ONCE_EXAMPLE = `
Example: two schedulers start it; it runs once a day, and both print the same.
  $ holdfast once "report:$(date +%F)" --keep 7d -- ./report.sh

The command finds HOLDFAST_KEY, HOLDFAST_IDEMPOTENCY_KEY, HOLDFAST_ATTEMPT,
HOLDFAST_TAKEOVER (true or false) and HOLDFAST_FENCING_TOKEN in its environment.`;

const LIMIT_EXAMPLE = `
Example: 100 a minute, 5 of them in a second, and 2 at once, on all machines.
  $ holdfast limit partner --rate 100/1m --rate 5/1s --concurrent 2 -- ./call

The command finds HOLDFAST_KEY in its environment, and with --concurrent, as
under lock, HOLDFAST_FENCING_TOKEN and HOLDFAST_FENCE_FLOOR.`;

/** Adds the commands `lock`, `once` and `limit`. */
export function addRunCommands(program: Command, host: CliHost): void {
  addLock(program, host);
  addOnce(program, host);
  addLimit(program, host);
}

function addLock(program: Command, host: CliHost): void {
  const command = program.command("lock");
  withCommon<LockOptions>(command, host, (options, { key, ...args }, _called, more) => {
    const { limit, permits, priority, progress, lease, shared, alsoShared = [] } = options;
    if (progress !== undefined && progress < lease) {
      throw new CliError("usage", "--progress: must be at least --lease", {
        next: "A command that prints nothing keeps its key until that time, and the rest of the lease, is over.",
      });
    }
    if (permits !== undefined && permits > 1 && limit === undefined) {
      throw new CliError("usage", "--permits: needs --limit, how many permits there are", {
        next: "All who use the key say the same limit.",
      });
    }
    const mode = shared ? "shared" : "exclusive";
    const others: readonly KeyUse[] = [...more.map((other) => ({ key: other, mode }) as const), ...alsoShared.map(sharedUse)];
    const [single] = Object.entries({ limit, permits, priority }).flatMap(([name, value]) => (value === undefined ? [] : [name]));
    if (others.length > 0 && single !== undefined) throw new CliError("usage", `--${single}: not with several keys`);
    return async (context) => {
      const { lock } = await import("./lock.js");
      return lock({ ...args, uses: [{ key, mode }, ...others], limit, permits, priority, progressMs: progress }, context);
    };
  })
    .usage("KEY... [options] -- COMMAND [ARGUMENT...]")
    .summary("run a command while the key is held")
    .description("Run a command while a key is held, or several, all or none, and end with its status.")
    .option("-s, --shared", "share the key with other --shared holders; exclude writers")
    .option("--also-shared <key>", "one more key to hold, shared; repeat it for more", andBefore)
    .option("--limit <n>", "use the key as a semaphore with this many permits", count)
    .option("--permits <n>", "how many of the semaphore's permits to take", count)
    .option("--priority <n>", "priority in the queue, 0 to 9; higher goes first", count)
    .option("--progress <duration>", "end the command, and give the key up, if it prints nothing for so long; at least --lease", duration)
    .addHelpText("after", LOCK_EXAMPLE);
}

function sharedUse(key: string): KeyUse {
  return { key, mode: "shared" };
}

function addOnce(program: Command, host: CliHost): void {
  withCommon<OnceFlags>(program.command("once"), host, ({ keep, tick, final = [], ...options }, args) => {
    const { maxAttempts, fingerprint, largeOutput } = options;
    if (tick !== undefined && fingerprint !== undefined)
      throw new CliError("usage", "--fingerprint: not with --tick, whose input is the time");
    return async (context) => {
      const { once } = await import("./once.js");
      const stored = { keepResultMs: keep, finalStatuses: final, largeOutput };
      return once({ ...args, ...stored, maxAttempts, fingerprint, tickMs: tick }, context);
    };
  })
    .summary("run a command once per key")
    .description("Run a command once per key. Later callers get its output and its status.")
    .addOption(
      defaulted(
        "--keep <duration>",
        "how long to keep the output and the exit status: up to 365d, or forever; with --tick at least the interval",
        durationOrForever,
        "1d",
      ),
    )
    .option("--fingerprint <text>", "identifies the input: the same key with another one is refused")
    .option(
      "--tick <duration>",
      "KEY is a schedule's name: run once for each multiple of this, such as 1h, and never two at once",
      duration,
    )
    .option("--max-attempts <n>", "how often it may be started; 0: no end", count, 5)
    .option("--final <statuses>", "exit statuses to keep besides 0, e.g. 1,2; after any other, the next caller runs it again", exitStatuses)
    .addOption(
      new Option("--large-output <what>", "output over 256 KB is not kept")
        .choices(["error", "drop"] satisfies OnceArgs["largeOutput"][])
        .default("error"),
    )
    .addHelpText("after", ONCE_EXAMPLE);
}

function addLimit(program: Command, host: CliHost): void {
  withCommon<LimitOptions>(program.command("limit"), host, ({ rate: rates, cost, concurrent }, args, called) => {
    if (concurrent === undefined && called.getOptionValueSource("lease") === "cli")
      throw new CliError("usage", "--lease: needs --concurrent: without it nothing is held");
    return async (context) => {
      const { limit } = await import("./lock.js");
      return limit({ ...args, rates, cost, concurrent }, context);
    };
  })
    .summary("run a command when a limit lets it start")
    .description("Run a command when a limit lets it start: so many in a time and, with --concurrent, so many at once.")
    .requiredOption("--rate <rate>", "at most so many in a time, as 100/1m; 5/1s/2: 5 flow in, in bursts of 2; repeat it for more", rate)
    .option("--cost <n>", "how much to take of each rate (default: 1)", some)
    .option("--concurrent <n>", "how many may run at once; each holds a permit with a lease", some)
    .addHelpText("after", LIMIT_EXAMPLE);
}

/** Checks the options of one command, and the keys after the first. Returns what runs it in its context. */
type Prepare<Options> = (
  options: Options,
  args: CommandArgs,
  called: Command,
  more: readonly string[],
) => (context: RunContext) => Promise<number>;

/** Gives a command the arguments and options of all three, and its action. */
function withCommon<Options extends CommonFlags>(command: Command, host: CliHost, prepare: Prepare<Options>): Command {
  const names = new Set<string>();
  for (const name of ["wait", "no-wait"]) {
    // To the parser these are one option, of which the last counts.
    command.on(`option:${name}`, () => {
      if (names.add(name).size > 1) throw new CliError("usage", "use either --wait or --no-wait");
    });
  }
  return command
    .argument("<key>")
    .argument("[command...]")
    .usage("KEY [options] -- COMMAND [ARGUMENT...]")
    .addOption(defaulted("--lease <duration>", "how long it is held if this machine dies", duration, "30s"))
    .addOption(defaulted("-w, --wait <duration>", "how long to wait for it", duration, "45s"))
    .option("-n, --no-wait", "fail immediately if it would have to wait")
    .option("--owner <text>", "a label for people (default: user@host:pid)")
    .option(
      "-k, --kill-after <duration>",
      `from SIGTERM to SIGKILL when the lease is lost (default: a sixth of it, at most ${LONGEST_ENDING_MS / 1000}s)`,
      duration,
    )
    .option("-E, --conflict-exit-code <status>", "exit status if it was not granted", exitStatus, EXITS.notGot.status)
    .option("-v, --verbose", "say on stderr what happens")
    .action(async (key: string, words: readonly string[], _options: Options, called: Command) => {
      const options = called.optsWithGlobals<Options>();
      const { command, more } = aroundDashes(called.name(), key, host.argv, words);
      const run = prepare(options, argsOf(key, command, options), called, more);
      host.ends(await run(await host.runContext({ ...options, leaseMs: options.lease })));
    });
}

/** Returns the common arguments of all three commands. @throws CliError if options contradict each other */
function argsOf(key: string, command: readonly string[], options: CommonFlags): CommandArgs {
  const { lease: leaseMs, wait, killAfter, conflictExitCode: conflictStatus } = options;
  const killAfterMs = killAfter ?? Math.min(LONGEST_ENDING_MS, Math.floor(leaseMs * ENDING_PART));
  if (killAfterMs > leaseMs / 2) {
    throw new CliError("usage", "--kill-after: must be at most half of --lease", {
      next: "The command is asked to end that long before the lease is over; before that there must be time to renew it.",
    });
  }
  return { key, command, waitMs: wait === false ? 0 : wait, killAfterMs, conflictStatus };
}

/** Commands that take several keys. */
const SEVERAL_KEYS: ReadonlySet<string> = new Set(["lock"]);

/** Returns the command, which is everything after `--`, and the keys after the first. @throws CliError if one is missing or in the wrong place */
function aroundDashes(name: string, key: string, argv: readonly string[], words: readonly string[]) {
  const after = countAfterDashes(argv);
  const more = words.slice(0, Math.max(0, words.length - after));
  if (after > 0 && after <= words.length && (more.length === 0 || SEVERAL_KEYS.has(name)))
    return { command: words.slice(more.length), more };
  if (!argv.includes("--") && words.length > 0) {
    throw new CliError("usage", `${name}: put -- before the command`, { next: `holdfast ${name} ${key} -- ${words.join(" ")}` });
  }
  const [unexpected] = more;
  const misplaced = unexpected === undefined ? "there is no KEY before --" : `unexpected argument ${JSON.stringify(unexpected)} before --`;
  throw new CliError("usage", `${name}: ${after === 0 ? "there is no command after --" : misplaced}`, {
    next: `holdfast ${name} KEY -- COMMAND`,
  });
}
