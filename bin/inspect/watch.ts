/**
 * `holdfast watch`: who holds what, as it changes. On a terminal a table that is drawn anew, on a pipe a line for
 * each hold that began or ended. It looks again and again: a hold that came and went between two looks is not seen.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { Inspection, LockClient } from "../../lib/index.js";
import { Interrupted } from "../cli-error.js";
import { formatDuration } from "../duration.js";
import { EXITS } from "../exit-codes.js";
import { failureOf } from "../format-failure.js";
import type { HoldView } from "./holds.js";
import { holdsOf, KEY_COLUMNS, kindOf } from "./holds.js";
import { firstOf } from "./pages.js";
import type { CommandContext } from "../context.js";
import { tableOf } from "../table.js";
import type { Screen } from "../terminal.js";
import { plain } from "../terminal.js";
import { AlternateScreen } from "./alternate-screen.js";

/** Which keys, and how often. */
export interface WatchArgs {
  readonly prefix: string;
  readonly intervalMs: number;
  readonly max: number;
}

/** What a look found. */
interface Look {
  readonly holds: readonly HoldView[];
  readonly more: boolean;
}

/** Something that a look found to be otherwise than the one before. */
export interface Change {
  readonly event: "held" | "ended";
  readonly hold: HoldView;
}

/** After a look without an answer the next one is later, and never later than this. */
const LONGEST_INTERVAL_MS = 60_000;

/** Looks until it is told to end: that is its good end. @throws what the first look met, or what will be so at each */
export async function watch(args: WatchArgs, context: CommandContext): Promise<number> {
  const end = new AbortController();
  context.signals.handTo((name) => end.abort(new Interrupted(name)));
  const display = context.screen.columns === undefined || context.asJson ? undefined : new AlternateScreen(process.stdout);
  try {
    await looks(args, context, display, end.signal);
  } finally {
    display?.close();
  }
  return 0;
}

async function looks(
  { prefix, intervalMs, max }: WatchArgs,
  context: CommandContext,
  display: AlternateScreen | undefined,
  end: AbortSignal,
): Promise<void> {
  const { locks, screen, asJson, print, say } = context;
  let seen: readonly HoldView[] | undefined;
  let failures = 0;
  while (!end.aborted) {
    try {
      const look = await lookAt(locks, prefix, max);
      failures = 0;
      if (display) display.draw(linesOf(look, prefix, intervalMs, screen));
      else for (const change of changesBetween(seen ?? [], look.holds)) await print(`${lineOf(change, new Date(), asJson)}\n`);
      seen = look.holds;
    } catch (error) {
      const failure = failureOf(error, "looks");
      const mayPass = !failure.definite || failure.status === EXITS.unavailable.status;
      if (!seen || !mayPass) throw error;
      failures += 1;
      if (display) display.note(plain(failure.message));
      else if (failures === 1) say(failure.message);
    }
    const nextMs = Math.min(intervalMs * 2 ** Math.min(failures, 10), Math.max(intervalMs, LONGEST_INTERVAL_MS));
    await delay(nextMs, undefined, { signal: end }).catch(() => undefined);
  }
}

async function lookAt(locks: LockClient, prefix: string, max: number): Promise<Look> {
  const { items, more } = await firstOf<Inspection>(max, (page) => locks.list({ prefix, ...page }));
  return { holds: holdsOf(items), more };
}

/** Holds that ended, then those that began. A hold is known by its key and token, and by its owner where a scope holds on several levels. */
export function changesBetween(before: readonly HoldView[], after: readonly HoldView[]): readonly Change[] {
  const nameOf = ({ key, fencingToken, owner }: HoldView): string => JSON.stringify([key, fencingToken, owner]);
  const [was, is] = [new Set(before.map(nameOf)), new Set(after.map(nameOf))];
  return [
    ...before.filter((hold) => !is.has(nameOf(hold))).map((hold) => ({ event: "ended" as const, hold })),
    ...after.filter((hold) => !was.has(nameOf(hold))).map((hold) => ({ event: "held" as const, hold })),
  ];
}

function lineOf({ event, hold }: Change, at: Date, asJson: boolean): string {
  if (asJson) return JSON.stringify({ at: at.toISOString(), event, ...hold });
  const { key, owner, fencingToken, remainingMs } = hold;
  const more = event === "held" ? `, ${kindOf(hold)}, ${formatDuration(remainingMs)} left` : "";
  return plain(`${at.toISOString()} ${event.padEnd(5)} ${key} ${owner || "-"} (token ${fencingToken}${more})`);
}

function linesOf({ holds, more }: Look, prefix: string, intervalMs: number, screen: Screen): readonly string[] {
  const keys = new Set(holds.map(({ key }) => key)).size;
  const which = prefix === "" ? "" : ` below ${prefix}`;
  const title = `${keys}${more ? " or more" : ""} held ${keys === 1 && !more ? "key" : "keys"}${which}, every ${formatDuration(intervalMs)}; Ctrl-C ends`;
  return [screen.colors.bold(title), "", ...(keys === 0 ? [] : tableOf(KEY_COLUMNS, holds, screen))];
}
