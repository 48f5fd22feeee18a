/**
 * `holdfast watch`: shows holders as they change. On a terminal it redraws a table; on a pipe it prints a line for each hold that began or
 * ended, and asks for the key of an ended one how it did. It polls, so a hold that began and ended between two polls is not seen.
 */
import { clearScreenDown, cursorTo } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import type { WriteStream } from "node:tty";
import { type Inspection, type LockClient, LockError } from "../../lib/index.js";
import { sortedBy } from "../../console/overview.js";
import { formatDuration, formatSeconds } from "../../console/text/duration.js";
import { statusOfSignal } from "../exit-codes.js";
import { failureOf } from "../format-failure.js";
import { verbOf } from "../../console/text/held-text.js";
import { type HoldView, holdsOf, keyColumns, kindOf } from "./holds.js";
import { firstOf } from "../../console/pages.js";
import type { CommandContext } from "../context.js";
import { tableOf } from "../table.js";
import { type Screen, cutEnd } from "../terminal.js";
import { plain, plainJson } from "../../console/text/plain-text.js";

/** The prefix of the keys, the poll interval in ms, and the largest number of keys. */
export interface WatchArgs {
  readonly prefix: string;
  readonly intervalMs: number;
  readonly max: number;
}

/** A change since the previous poll. */
export interface HoldChange {
  readonly event: "held" | "ended";
  readonly hold: HoldView;
  /** The way in which it ended, as a key's record names it. Absent: it goes on, or nobody knows. */
  readonly ending?: string | undefined;
}

/** The width of most verbs. */
const VERB_CHARS = 8;

/** The time between two notes of how old the rows are, in ms. */
const AGING_MS = 1000;

/** The time in ms after which an answer is late, so that the rows are said to be old. */
const LATE_MS = 2000;

/** The longest pause between polls that fail, in ms. */
const LONGEST_INTERVAL_MS = 60_000;

/** Polls until a signal ends it, at once and without a word. @throws the error of the first poll, or a permanent error */
export async function watch(args: WatchArgs, context: CommandContext): Promise<number> {
  const end = new AbortController();
  const signalled = new Promise<NodeJS.Signals>((resolve) => context.signals.handTo(resolve));
  const display = context.screen.columns === undefined || context.asJson ? undefined : new AlternateScreen(process.stdout);
  try {
    const by = await Promise.race([signalled, pollHolds(args, context, display, end.signal).then(() => signalled)]);
    return statusOfSignal(by);
  } finally {
    end.abort();
    display?.close();
  }
}

async function pollHolds(
  { prefix, intervalMs, max }: WatchArgs,
  context: CommandContext,
  display: AlternateScreen | undefined,
  end: AbortSignal,
): Promise<void> {
  const { locks, screen, asJson, print, warn } = context;
  let before: readonly HoldView[] | undefined;
  let readAtMs = 0;
  let failures = 0;
  let news = "";
  const isOver = (): boolean => end.aborted;
  const aging = setInterval(() => {
    const ageMs = performance.now() - readAtMs;
    if (!before || (news === "" && ageMs < intervalMs + LATE_MS)) return;
    display?.note(plain(`as of ${formatSeconds(ageMs)} ago: ${news || "no answer yet"}`));
  }, AGING_MS);
  end.addEventListener("abort", () => clearInterval(aging));
  while (!isOver()) {
    try {
      const { items, more } = await firstOf<Inspection>(max, (page) => locks.list({ prefix, ...page }));
      if (isOver()) return;
      [failures, news, readAtMs] = [0, "", performance.now()];
      const holds = holdsOf(items);
      const sorted = holdsOf(sortedBy(items, "wait"));
      if (display) display.draw((columns) => linesOf(sorted, more, prefix, intervalMs, { ...screen, columns }));
      else {
        for (const change of changesBetween(before ?? [], holds)) {
          const reported = change.event === "ended" ? { ...change, ending: await howEnded(locks, change.hold) } : change;
          const at = new Date().toISOString();
          const { hold, ...what } = reported;
          await print(`${asJson ? plainJson({ at, ...what, ...hold }) : lineOf(reported, at, before === undefined)}\n`);
        }
      }
      before = holds;
    } catch (error) {
      const mayPass = error instanceof LockError && error.retry !== "never";
      if (!before || !mayPass) throw error;
      failures += 1;
      if (display) news = failureOf(error, "reads", undefined, "watch").message;
      else if (failures === 1) warn(error);
    }
    const nextMs = Math.min(intervalMs * 2 ** Math.min(failures, 10), Math.max(intervalMs, LONGEST_INTERVAL_MS));
    await delay(nextMs, undefined, { signal: end }).catch(() => undefined);
  }
}

/**
 * Returns the holds that ended, then those that began. A hold is identified by its key and token, and by its owner because a scope can have
 * reentrant holds.
 */
export function changesBetween(before: readonly HoldView[], after: readonly HoldView[]): readonly HoldChange[] {
  const nameOf = ({ key, fencingToken, owner }: HoldView): string => JSON.stringify([key, fencingToken, owner]);
  const [was, is] = [new Set(before.map(nameOf)), new Set(after.map(nameOf))];
  return [
    ...before.filter((hold) => !is.has(nameOf(hold))).map((hold) => ({ event: "ended" as const, hold })),
    ...after.filter((hold) => !was.has(nameOf(hold))).map((hold) => ({ event: "held" as const, hold })),
  ];
}

/** Asks how a hold ended. A failure is one of the next look too. */
async function howEnded(locks: LockClient, hold: HoldView): Promise<string | undefined> {
  const inspection = await locks.inspect(hold.key).catch(() => undefined);
  return inspection && endingOf(hold, inspection);
}

/**
 * Returns how a hold ended, as far as its key remembers. A key remembers its last ends, and not whose they were: if another lease may have
 * ended since, it is known only if all ended alike.
 */
export function endingOf(hold: HoldView, { fencingToken, lapsed = [], recent = [] }: Inspection): string | undefined {
  if (lapsed.some((other) => other.fencingToken === hold.fencingToken)) return "expired";
  const ended = recent.map(({ ending }) => ending).filter((ending) => ending !== "cancelled"); // A cancelled lease held nothing.
  const isLast = fencingToken === hold.fencingToken && hold.mode === "exclusive";
  const [first, ...others] = isLast ? ended.slice(0, 1) : ended;
  return others.every((other) => verbOf(other) === verbOf(first ?? "")) ? first : undefined;
}

/** Returns the line of a change. A hold that the first look finds began before. */
function lineOf({ event, hold, ending = "" }: HoldChange, at: string, isFirst: boolean): string {
  const { key, owner, fencingToken, remainingMs } = hold;
  const verb = event === "ended" ? verbOf(ending) : isFirst ? "held" : "granted";
  const more = event === "held" ? `, ${kindOf(hold)}, ${formatDuration(remainingMs)} left` : "";
  return plain(`${at} ${verb.padEnd(VERB_CHARS)} ${key} ${owner || "-"} (token ${fencingToken}${more})`);
}

function linesOf(holds: readonly HoldView[], more: boolean, prefix: string, intervalMs: number, screen: Screen): readonly string[] {
  const keys = new Set(holds.map(({ key }) => key)).size;
  const which = prefix === "" ? "" : ` below ${prefix}`;
  const title = `${keys}${more ? " or more" : ""} held ${keys === 1 && !more ? "key" : "keys"}${which}, every ${formatDuration(intervalMs)}; Ctrl-C ends`;
  return [
    screen.colors.bold(cutEnd(title, screen.columns ?? Infinity)),
    "",
    ...(keys === 0 ? [] : tableOf(keyColumns(holds), holds, screen)),
  ];
}

const OTHER_SCREEN = "\u001B[?1049h\u001B[?25l";
const FIRST_SCREEN = "\u001B[?25h\u001B[?1049l";

/** The terminal's alternate screen, so that the previous content comes back afterwards. It is drawn anew when its size changes. */
class AlternateScreen {
  readonly #terminal: WriteStream;
  #linesIn: (columns: number) => readonly string[] = () => [];
  #news = "";
  readonly #redraw = (): void => this.#draw();

  constructor(terminal: WriteStream) {
    this.#terminal = terminal;
    terminal.write(OTHER_SCREEN);
    terminal.on("resize", this.#redraw);
  }

  /** Draws the lines that a terminal of so many columns has, as many as fit. */
  draw(linesIn: (columns: number) => readonly string[]): void {
    this.#linesIn = linesIn;
    this.note("");
  }

  /** Draws the last lines again, with a notice above them. */
  note(news: string): void {
    this.#news = news;
    this.#draw();
  }

  #draw(): void {
    const { columns } = this.#terminal;
    const [title = "", , ...rest] = this.#linesIn(columns);
    const lines = [title, cutEnd(this.#news, columns), ...rest];
    const rows = Math.max(2, this.#terminal.rows);
    const hidden = lines.length - (rows - 1);
    const shown = hidden > 0 ? [...lines.slice(0, rows - 2), `… ${hidden + 1} more`] : lines;
    cursorTo(this.#terminal, 0, 0);
    clearScreenDown(this.#terminal);
    this.#terminal.write(shown.join("\n"));
  }

  /** Restores the terminal's main screen. */
  close(): void {
    this.#terminal.off("resize", this.#redraw);
    this.#terminal.write(FIRST_SCREEN);
  }
}
