/** `holdfast break`: ends somebody's hold, which its token names, so that no later one is hit. */
import { createInterface } from "node:readline/promises";
import type { Inspection } from "../../lib/index.js";
import { CliError, Interrupted } from "../cli-error.js";
import { formatDuration } from "../duration.js";
import type { HoldView } from "../inspect/holds.js";
import { holdsOf } from "../inspect/holds.js";
import type { CommandContext } from "../context.js";
import { plain } from "../terminal.js";

/** Which hold, why, and how soon. */
export interface BreakArgs {
  readonly key: string;
  readonly reason: string;
  /** Absent: the one hold that there is. */
  readonly fencingToken?: number;
  /** Ends it by then even if its lease goes on: by force. Absent: it ends with its lease. */
  readonly drainMs?: number;
  /** Whether a person is to be asked first, where there is one. */
  readonly asks: boolean;
}

/** Ends the hold, or arranges its end. @throws CliError when there is none, there are several, or the person says no */
export async function breakHold({ key, reason, fencingToken, drainMs, asks }: BreakArgs, context: CommandContext): Promise<number> {
  const { locks, asJson, print } = context;
  const hold = fencingToken === undefined ? theOnly(await locks.inspect(key)) : undefined;
  if (hold && asks) await ask(`Break the hold of ${described(hold)} on ${key}? [y/N] `, context);
  const token = fencingToken ?? hold?.fencingToken ?? 0;
  const { breakInMs } = await locks.forceRelease(key, { reason, fencingToken: token, ...(drainMs !== undefined && { drainMs }) });
  if (asJson) {
    await print(`${JSON.stringify({ key, fencingToken: token, ...(hold && { owner: hold.owner }), breakInMs })}\n`);
    return 0;
  }
  const whose = hold ? described(hold) : `token ${token}`;
  const until = breakInMs > 0 ? `can't be renewed and ends in ${formatDuration(Math.max(1000, breakInMs))} at the latest` : "is over now";
  await print(plain(`${key}: the hold of ${whose} ${until}`) + "\n");
  return 0;
}

function theOnly(inspection: Inspection): HoldView {
  const [hold, ...others] = holdsOf([inspection]);
  if (!hold) throw new CliError("notFound", `nobody holds ${inspection.key}`, { next: "There is nothing to break." });
  if (others.length === 0) return hold;
  throw new CliError("usage", `${inspection.key} has ${others.length + 1} holders: say which by --token`, {
    next: [hold, ...others].map(described).join("; "),
  });
}

function described({ owner, fencingToken, heldMs }: HoldView): string {
  return `${owner || "somebody"} (token ${fencingToken}, held for ${formatDuration(heldMs)})`;
}

/** Asks a person, if there is one. @throws CliError unless they agree; Interrupted by Ctrl-C */
async function ask(question: string, { signals }: CommandContext): Promise<void> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) return;
  const giveUp = new AbortController();
  signals.handTo((name) => giveUp.abort(new Interrupted(name)));
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  terminal.on("SIGINT", () => giveUp.abort(new Interrupted("SIGINT")));
  terminal.on("close", () => giveUp.abort(new CliError("usage", "nothing was broken")));
  try {
    const answer = await terminal.question(plain(question), { signal: giveUp.signal });
    if (!/^y(es)?$/i.test(answer.trim())) throw new CliError("usage", "nothing was broken");
  } catch (error) {
    throw giveUp.signal.aborted ? giveUp.signal.reason : error;
  } finally {
    signals.handBack();
    terminal.close();
  }
}
