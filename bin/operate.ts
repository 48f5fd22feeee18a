/** `holdfast break`: ends another holder's hold, identified by its token, so that a later hold is not affected. `holdfast reset`. */
import { createInterface } from "node:readline/promises";
import type { Inspection, LockClient, Rate, ShutOptions } from "../lib/index.js";
import { CliError, Interrupted } from "./cli-error.js";
import { formatDuration } from "../console/text/duration.js";
import { type HoldView, holdsOf } from "./inspect/holds.js";
import { OTHER_TENANTS, tenantOf } from "./inspect/tenants.js";
import type { CommandContext } from "./context.js";
import { afterText, overInMs } from "../console/page/words.js";
import { plain, plainJson } from "../console/text/plain-text.js";

/** The options of `reset`, and of `break`. */
export interface ResetOptions {
  readonly reason: string;
  /** True not to ask for confirmation first, on a terminal. */
  readonly yes?: boolean;
}

export interface BreakOptions extends ResetOptions {
  /** The token of the hold. Absent: the only hold of the key. */
  readonly token?: number;
  /**
   * Ends the hold within this time by force, even if its lease is longer, in ms. The holder's work may run on beyond it. Absent: the hold
   * ends with its lease, and the work before it.
   */
  readonly drain?: number;
}

/** A holder asks the service only at its heartbeats, so the work can outlast a hold that ends before its lease. */
const FORCED =
  "; its holder learns of it at its next heartbeat, within about a third of its lease, and its work runs on until it heeds that, beside the next holder";

/** Ends the hold, or schedules its end. @throws CliError if there is no hold, there are several, or the user declines */
export async function breakHold(key: string, options: BreakOptions, context: CommandContext): Promise<number> {
  const { reason, yes = false, token: fencingToken, drain: drainMs } = options;
  const { locks, asJson, print } = context;
  const found = await locks.inspect(key);
  const isNamed = fencingToken !== undefined;
  // One that was named and is another's by now is refused below.
  const hold = isNamed ? holdsOf([found]).find((each) => each.fencingToken === fencingToken) : await theOnly(found, locks);
  if (hold && !isNamed && !yes) {
    const when = drainMs === 0 ? "at once" : `in ${formatDuration(Math.min(drainMs ?? Infinity, overInMs(found, hold)))} at the latest`;
    await ask(`Break the hold of ${described(hold)} on ${key}? Then ${afterText(found, hold, when)}.`, "nothing was broken", context);
  }
  const token = fencingToken ?? hold?.fencingToken ?? 0;
  const { breakInMs } = await locks.forceRelease(key, { reason, fencingToken: token, drainMs });
  if (asJson) {
    await print(`${plainJson({ key, fencingToken: token, ...(hold && { owner: hold.owner }), breakInMs })}\n`);
    return 0;
  }
  const whose = hold ? described(hold) : `token ${token}`;
  const then = hold ? `; ${breakInMs > 0 ? "then " : ""}${afterText(found, hold)}` : "";
  const until = breakInMs > 0 ? `can't be renewed and ends in ${formatDuration(Math.max(1000, breakInMs))} at the latest` : "is over now";
  const isForced = drainMs !== undefined && !(hold && drainMs >= hold.remainingMs);
  await print(plain(`${key}: the hold of ${whose} ${until}${then}${isForced ? FORCED : ""}`) + "\n");
  return 0;
}

/** Forgets the run: the next start is a first attempt. @throws CliError if its checkpoint would be dropped and the user declines */
export async function reset(key: string, { reason, yes = false }: ResetOptions, context: CommandContext): Promise<number> {
  const { locks, asJson, print } = context;
  const { checkpoint, fencingToken } = (await locks.runs.get(key)) ?? {};
  const dropped = checkpoint === undefined ? "" : JSON.stringify(checkpoint);
  if (dropped !== "" && !yes) await ask(`Drop the checkpoint ${dropped} of ${key}?`, "nothing was reset", context);
  await locks.runs.reset(key, { reason, fencingToken });
  const also = dropped === "" ? "" : `, and its checkpoint ${dropped} is dropped`;
  const text = asJson
    ? plainJson({ key, reset: true, checkpoint })
    : plain(`${key} is forgotten${also}: the next start is a first attempt`);
  await print(`${text}\n`);
  return 0;
}

/** Gives back all of a limit: the next take may bring other rates. */
export async function resetLimit(name: string, reason: string, { locks, asJson, print }: CommandContext): Promise<number> {
  await locks.limits.reset(name, { reason });
  await print(asJson ? `${JSON.stringify({ key: name, reset: true })}\n` : `${name} is all back: the next take may bring other rates\n`);
  return 0;
}

/** A shut of a limit, at these rates or at those of its users. */
interface ShutArgs extends ShutOptions {
  readonly rates?: readonly Rate[] | undefined;
}

/** Shuts a limit. @throws CliError if it is full and no rates are given, since those of its users aren't known then */
export async function shutLimit(name: string, { rates, ...shut }: ShutArgs, { locks, asJson, print }: CommandContext): Promise<number> {
  const { items } = rates ? { items: [] } : await locks.limits.list({ prefix: name, max: 1 });
  const found = rates ?? items.find(({ key }) => key === name)?.rates;
  if (!found)
    throw new CliError("notFound", `nobody uses ${name} now, so its rates are not known`, { next: "Say them by --rate, as its users do." });
  await locks.limiter(name, { rates: found }).shut(shut);
  await print(asJson ? `${JSON.stringify({ key: name, forMs: shut.forMs })}\n` : `${name} is shut for ${formatDuration(shut.forMs)}\n`);
  return 0;
}

async function theOnly(inspection: Inspection, locks: LockClient): Promise<HoldView> {
  const [hold, ...others] = holdsOf([inspection]);
  if (!hold) {
    const tenant = await tenantOf(locks, inspection.key);
    const where = tenant === undefined ? "" : ` in namespace ${tenant}`;
    throw new CliError("notFound", `nobody holds ${inspection.key}${where}`, {
      next: tenant === undefined ? "There is nothing to break." : OTHER_TENANTS,
    });
  }
  if (others.length === 0) return hold;
  throw new CliError("usage", `${inspection.key} has ${others.length + 1} holders: say which by --token`, {
    next: [hold, ...others].map((each) => `${described(each)}: if broken, ${afterText(inspection, each)}`).join("; "),
  });
}

function described({ owner, fencingToken, heldMs }: HoldView): string {
  return `${owner || "somebody"} (token ${fencingToken}, held for ${formatDuration(heldMs)})`;
}

/** Asks the user for confirmation, on a terminal. @throws CliError unless the user agrees; Interrupted on Ctrl-C */
async function ask(question: string, otherwise: string, { signals }: CommandContext): Promise<void> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) return;
  const giveUp = new AbortController();
  signals.handTo((name) => giveUp.abort(new Interrupted(name)));
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  terminal.on("SIGINT", () => giveUp.abort(new Interrupted("SIGINT")));
  terminal.on("close", () => giveUp.abort(new CliError("usage", otherwise)));
  try {
    const answer = await terminal.question(plain(`${question} [y/N] `), { signal: giveUp.signal });
    if (!/^y(es)?$/i.test(answer.trim())) throw new CliError("usage", otherwise);
  } catch (error) {
    throw giveUp.signal.aborted ? giveUp.signal.reason : error;
  } finally {
    signals.handBack();
    terminal.close();
  }
}
