/** `holdfast lock` runs a command while its key is held; `holdfast limit`, when a limit lets it start, holding a permit if so many may run at once. */
import {
  type AcquireOptions,
  type Lease,
  type LockClient,
  type Inspection,
  type Rate,
  LimitExceededError,
  LockLostError,
  LockTimeoutError,
} from "../../lib/index.js";
import { CliError, Interrupted } from "../cli-error.js";
import { formatDuration, formatDurationUp, rateText } from "../../console/text/duration.js";
import { lostUnder, NO_LEASE, statusOf, supervise } from "./supervise.js";
import type { ChildArgs } from "./child.js";
import type { RunContext, Signals } from "../context.js";
import type { CommandOutcome, LeaseTime } from "./supervise.js";
import { sayLater, tellWaiting } from "../inspect/waiting.js";

/** Variables of the command's environment. */
type Environment = Readonly<Record<string, string>>;

/** A command, and the key under which it runs. */
export interface CommandArgs {
  readonly key: string;
  readonly command: readonly string[];
  readonly waitMs: number;
  readonly killAfterMs: number;
  /** The exit status if the key was not granted. */
  readonly conflictStatus: number;
}

/** A key, and how it is held. */
export interface KeyUse {
  readonly key: string;
  readonly mode: NonNullable<AcquireOptions["mode"]>;
}

/** The command, its keys, and the way to hold them. Several are held all or none. */
export interface LockArgs extends Omit<CommandArgs, "key">, Pick<AcquireOptions, "limit" | "permits" | "priority" | "progressMs"> {
  readonly uses: readonly [KeyUse, ...KeyUse[]];
}

/** Holds the keys while the command runs. @throws CliError, or the error that prevented the command from running */
export async function lock(args: LockArgs, context: RunContext): Promise<number> {
  const { uses, command: _command, killAfterMs: _killAfterMs, conflictStatus, ...options } = args;
  const { waitMs, progressMs } = options;
  const { locks, say } = context;
  const [{ key, mode }] = uses;
  const name = uses.map((use) => use.key).join(" ");
  const isSet = uses.length > 1;
  return runWhenGranted({ ...args, key: name }, context, {
    grant: (signal, work) =>
      isSet
        ? locks.withLocks(uses, { waitMs, progressMs, signal }, (set) =>
            work(set, { HOLDFAST_FENCING_TOKENS: JSON.stringify(set.fencingTokens) }),
          )
        : locks.withLock(key, { ...options, mode, signal }, (lease) => work(lease, tokensOf(lease))),
    tellWaiting: (end) =>
      isSet ? sayLater(say, `waiting for ${name}, for at most ${formatDuration(waitMs)}`, end) : tellWaiting(key, context, end),
    refusalOf: async (error) => (error instanceof LockTimeoutError ? notGot(uses, waitMs, locks, conflictStatus) : undefined),
  });
}

/** The tokens of a lease, as the command finds them in its environment. */
function tokensOf({ fencingToken, fenceFloor }: Lease): Environment {
  return { HOLDFAST_FENCING_TOKEN: `${fencingToken}`, HOLDFAST_FENCE_FLOOR: `${fenceFloor}` };
}

/** The limit, how much to take of it, and the command. */
export interface LimitArgs extends CommandArgs {
  readonly rates: readonly Rate[];
  readonly cost: number | undefined;
  /** The most commands at once. Each holds a permit with a lease. */
  readonly concurrent: number | undefined;
}

/** Takes from the limit, and runs the command. @throws CliError, or the error that prevented the command from running */
export async function limit(args: LimitArgs, context: RunContext): Promise<number> {
  const { key, rates, cost, concurrent, waitMs, conflictStatus } = args;
  const { locks, say } = context;
  const limiter = locks.limiter(key, { rates, concurrent });
  return runWhenGranted(args, context, {
    grant: (signal, work) => limiter.run({ cost, waitMs, signal }, (lease) => (lease ? work(lease, tokensOf(lease)) : work(undefined, {}))),
    tellWaiting: (end) => sayLater(say, `waiting for room under ${key}, for at most ${formatDuration(waitMs)}`, end),
    async refusalOf(error) {
      if (error instanceof LockTimeoutError) return notGot([{ key, mode: "exclusive" }], waitMs, locks, conflictStatus);
      return error instanceof LimitExceededError ? noRoom(args, error) : undefined;
    },
  });
}

function noRoom({ key, rates, waitMs, conflictStatus: status }: LimitArgs, { code, retryAfterMs }: LimitExceededError): CliError {
  const within = waitMs > 0 ? ` within ${formatDuration(waitMs)}` : "";
  return new CliError(
    "notGot",
    `${key} has no room under ${rates.map(rateText).join(", ")}${within}: try again in ${formatDurationUp(retryAfterMs)}`,
    { code, next: `The command was not run. Wait longer by --wait, or look: holdfast limits ${key}`, status },
  );
}

/** The hold of a command, which its output keeps. */
type CommandHold = LeaseTime & Pick<Lease, "progress">;

/** The gate that a command waits before: a key or a limit. */
interface CommandGate {
  /** Waits, and runs `work` with what it holds, if it holds anything, and its tokens for the command's environment. */
  readonly grant: (signal: AbortSignal, work: (hold: CommandHold | undefined, tokens: Environment) => Promise<void>) => Promise<void>;
  /** Says on stderr what is waited for, until `end` aborts. */
  readonly tellWaiting: (end: AbortSignal) => Promise<void>;
  /** Returns the error to report if the wait was in vain; undefined: the error itself. */
  readonly refusalOf: (error: unknown) => Promise<CliError | undefined>;
}

/** Runs the command when the gate grants it, and returns its status. @throws CliError, or the error that prevented the command from running */
async function runWhenGranted(
  { key, command, waitMs, killAfterMs, progressMs }: Omit<CommandArgs, "conflictStatus"> & Pick<LockArgs, "progressMs">,
  context: RunContext,
  gate: CommandGate,
): Promise<number> {
  const { signals, env, tell, tellsWaits } = context;
  const waiting = waitFor(key, signals);
  const course: { outcome?: CommandOutcome } = {};
  const got = new AbortController();
  if (tellsWaits && waitMs > 0) void gate.tellWaiting(got.signal);
  try {
    await gate.grant(waiting, async (hold, tokens) => {
      got.abort();
      waiting.throwIfAborted();
      const { HOLDFAST_FENCING_TOKEN: token, HOLDFAST_FENCING_TOKENS: several } = tokens;
      const held = several ? `are held under ${several}` : `is held under token ${token}`;
      tell(`${key} ${hold ? held : "lets it start"}`);
      const outputs = hold && progressMs !== undefined ? progressOf(hold, context) : {};
      const work = { command, killAfterMs, env: { ...env, HOLDFAST_KEY: key, ...tokens }, ...outputs };
      course.outcome = await supervise(work, hold ?? NO_LEASE, signals);
    });
  } catch (error) {
    const { outcome } = course;
    if (outcome && error instanceof LockLostError) {
      const silentMs = error.reason === "no-progress" ? progressMs : undefined;
      throw lostUnder(key, outcome, { why: error.message, silentMs, lastAnswer: context.lastRenewFailure() });
    }
    throw (outcome ? undefined : await gate.refusalOf(error)) ?? error;
  } finally {
    got.abort();
  }
  const { outcome } = course;
  if (!outcome) throw new CliError("internal", `${key}: the command did not run`);
  if (outcome.cutOff) throw lostUnder(key, outcome, { why: "it ran out", lastAnswer: context.lastRenewFailure() });
  return statusOf(outcome);
}

/** Passes on what the command prints, byte for byte: each piece is progress of its hold. */
function progressOf(hold: CommandHold, { print, printError }: RunContext): Pick<ChildArgs, "onOutput" | "onErrorOutput"> {
  const passing = (to: RunContext["print"]) => (chunk: Buffer) => {
    hold.progress();
    return to(chunk);
  };
  return { onOutput: passing(print), onErrorOutput: passing(printError) };
}

/** Returns a signal that aborts when a signal of this process ends the wait for a key. */
export function waitFor(key: string, signals: Signals): AbortSignal {
  const waiting = new AbortController();
  signals.handTo((name) => waiting.abort(new Interrupted(name, `given up by ${name} while waiting for ${key}: the command was not run`)));
  return waiting.signal;
}

/** Returns the error for keys that were not granted in time. It names a holder of the first that is in the way, if that can be read. */
async function notGot(uses: LockArgs["uses"], waitMs: number, locks: LockClient, status: number): Promise<CliError> {
  let [{ key }] = uses;
  let holders: Inspection["holders"] = [];
  for (const use of uses) {
    const found = await locks.inspect(use.key).catch(() => ({ holders: [] }));
    holders = found.holders.filter(({ mode }) => use.mode === "exclusive" || mode === "exclusive");
    ({ key } = use);
    if (holders.length > 0) break;
  }
  const [first] = holders;
  const others = holders.length > 1 ? ` and ${holders.length - 1} more` : "";
  const who = first
    ? `held by ${first.owner || "another"}${others} (token ${first.fencingToken}, for ${formatDuration(first.heldMs)}, ` +
      `${formatDuration(first.remainingMs)} left)`
    : "others came first";
  const name = uses.length > 1 ? ` (${uses.map((use) => use.key).join(" ")})` : "";
  return new CliError("notGot", `could not lock ${key}${name}${waitMs > 0 ? ` within ${formatDuration(waitMs)}` : ""}: ${who}`, {
    next: `The command was not run. Wait longer by --wait, or look: holdfast show ${key}`,
    status,
  });
}
