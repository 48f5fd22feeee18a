/** `holdfast history`: who held a key over a time, or at one, by the log of the service and by what the key is now. */
import type { Inspection, LockClient } from "../../lib/index.js";
import { lanesOf, withPresent } from "../../console/lanes.js";
import { shortToken, whenText } from "../../console/page/words.js";
import { formatDuration } from "../../console/text/duration.js";
import { endText, holdEndText } from "../../console/text/held-text.js";
import { plain, plainJson } from "../../console/text/plain-text.js";
import { CliError } from "../cli-error.js";
import type { ConnectionOptions } from "../connection.js";
import type { ProcessContext } from "../context.js";
import { insightsOn } from "../insights.js";
import { type Column, cutMiddle, tableOf } from "../table.js";
import { cutEnd } from "../terminal.js";
import { withParts } from "./holds.js";
import { type KeyLog, type LogSpan, deployedLines, exportedLines, localLines, noLog } from "./key-log.js";
import { type PastHold, type PastWait, holdsIn, lanesAt } from "./past-holds.js";

/** The key and the time. */
export interface HistoryArgs {
  readonly key: string;
  /** The time that is read before now, or before and after `atMs`, in ms. */
  readonly sinceMs: number;
  /** The time at which to show who held the key, in epoch ms. @default all of the time that is read */
  readonly atMs?: number | undefined;
  /** The largest number of holds. */
  readonly max: number;
}

/** Where the log is. The first that is given counts. */
export interface LogPlace {
  /** A file with an exported log; `-` is stdin. */
  readonly file?: string | undefined;
  readonly group?: string | undefined;
  /** The services' URLs. One on this machine has its log itself. */
  readonly url?: string | undefined;
}

/** The context, with a client if the service or the table is given. */
export type HistoryContext = ProcessContext & { readonly locks?: LockClient };

/** An answer of the service about the key as it is now. */
interface Present {
  readonly inspection: Inspection;
  /** The time of the answer, in epoch ms. */
  readonly atMs: number;
}

/** A hold, and if the key says that it goes on. */
type Hold = PastHold & { readonly isHeld: boolean };

/** The key, the time and the log of an answer. */
interface Asked {
  readonly key: string;
  readonly span: LogSpan;
  readonly log: KeyLog;
  readonly nowMs: number;
  /** Returns a time in words: in local time for a person at a screen, in UTC for a file. */
  readonly when: (atMs: number, besideMs?: number) => string;
}

/** Shows who held a key. @throws CliError if no log is given, or the service or the log can't be read */
export async function history(args: HistoryArgs, place: LogPlace, options: ConnectionOptions, context: HistoryContext): Promise<number> {
  const { key, sinceMs, atMs, max } = args;
  const nowMs = Date.now();
  if (atMs !== undefined && atMs > nowMs) throw new CliError("usage", "--at: that time is yet to come");
  const span = { fromMs: (atMs ?? nowMs) - sinceMs, toMs: Math.min(nowMs, (atMs ?? nowMs) + sinceMs) };
  const { log, present } = await read(key, span, place, options, context);
  const lanes = withNow(lanesOf(log.lines), present);
  const isPresent = new Set(present?.inspection.holders.map(({ fencingToken }) => fencingToken));
  const seen = (hold: PastHold): Hold => ({ ...hold, isHeld: hold.ending === undefined && isPresent.has(hold.fencingToken ?? 0) });
  const isOnScreen = context.screen.columns !== undefined;
  const when = (timeMs: number, besideMs = nowMs): string => (isOnScreen ? whenText(timeMs, besideMs, false) : isoOf(timeMs));
  const asked = { key, span, log, nowMs, when };
  if (atMs === undefined) {
    const all = holdsIn(lanes).filter(({ toMs = Infinity }) => toMs > span.fromMs);
    await printHolds(all.slice(-max).map(seen), all.length > max, asked, context);
  } else {
    const { holds, waits } = lanesAt(lanes, atMs);
    await printAt(atMs, holds.map(seen), waits, asked, context);
  }
  return 0;
}

/** Reads the log, and asks what the key is now where the service is given. */
async function read(
  key: string,
  span: LogSpan,
  { file, group, url }: LogPlace,
  options: ConnectionOptions,
  { env, locks, warn }: HistoryContext,
): Promise<{ readonly log: KeyLog; readonly present?: Present | undefined }> {
  const namespace = options.namespace ?? (env["HOLDFAST_NAMESPACE"] || undefined);
  if (file !== undefined) return { log: await exportedLines(key, file, namespace) };
  const look = async (client: LockClient): Promise<Present> => ({ inspection: await client.inspect(key), atMs: Date.now() });
  if (group !== undefined) {
    const insights = await insightsOn(group, options, env);
    // The log tells who held the key also while the service doesn't answer.
    const answers = locks && (await Promise.all([look(locks), locks.list({ max: 1 })]).catch((error: unknown) => void warn(error)));
    const [present, listed] = answers ?? [];
    return { log: await deployedLines(key, span, listed?.namespace ?? namespace, insights), present };
  }
  if (!locks) throw noLog("no log given");
  if (url === undefined) throw noLog("no log given: a table has none");
  const present = await look(locks);
  return { log: await localLines(key, span, url.split(",")[0] ?? url), present };
}

/** Returns the lanes with what the key is now, if that is known. */
function withNow(lanes: ReturnType<typeof lanesOf>, present: Present | undefined): ReturnType<typeof lanesOf> {
  if (!present) return lanes;
  const { atMs, inspection } = present;
  const { holders, lapsed = [] } = inspection;
  return withPresent(lanes, holders, atMs, (fencingToken) => {
    const end = lapsed.find((one) => one.fencingToken === fencingToken);
    return end && { lapsedAtMs: atMs - end.endedAgoMs };
  });
}

/** Prints the holds of the time, the newest last. */
async function printHolds(holds: readonly Hold[], more: boolean, asked: Asked, context: HistoryContext): Promise<void> {
  const { asJson, print, say, screen } = context;
  const { key, span, when } = asked;
  if (asJson) return print(`${plainJson({ ...headJson(asked), items: holds.map(holdJson), more })}\n`);
  if (holds.length > 0) await print(`${tableOf(holdColumns(asked), holds, screen).join("\n")}\n`);
  else say(`the log has no hold of ${key} since ${when(span.fromMs)}`);
  if (more) say(`there are more than these ${holds.length}: give a shorter --since, or a larger --max`);
  sayAbout(asked, context);
}

/** Prints who held the key at a time, and who waited. */
async function printAt(
  atMs: number,
  holds: readonly Hold[],
  waits: readonly PastWait[],
  asked: Asked,
  context: HistoryContext,
): Promise<void> {
  const { asJson, print, say, screen } = context;
  const { key, span, when } = asked;
  if (asJson) {
    const found = { at: isoOf(atMs), holders: holds.map(holdJson), waiters: waits.map(waitJson) };
    return print(`${plainJson({ ...headJson(asked), ...found })}\n`);
  }
  const [first, second] = holds;
  const who = second ? `${holds.length} leases together` : first?.owner || "an owner without a name";
  const state = first ? screen.colors.yellow(`held by ${plain(who)}`) : "the log has no hold";
  const lines = [
    `${plain(withParts(key))} at ${when(atMs)}: ${state}${waits.length > 0 ? `; ${waits.length} waited` : ""}`,
    ...(first ? ["", ...tableOf(holdColumns(asked), holds, screen)] : []),
    ...(waits.length > 0 ? ["", ...tableOf(waitColumns(asked), waits, screen)] : []),
  ];
  await print(`${lines.join("\n")}\n`);
  if (!first)
    say(`the log was read from ${when(span.fromMs)} to ${when(span.toMs)}: a hold that began before and ended after has no line in it`);
  sayAbout(asked, context);
}

/** Says what a person should know of the log. */
function sayAbout({ span, log, when }: Asked, { say }: HistoryContext): void {
  const { fromMs = 0, notes } = log;
  if (fromMs > span.fromMs) say(`the log is known from ${when(fromMs)} on, and nothing of the time before`);
  for (const note of notes) say(note);
}

function holdColumns({ nowMs, when }: Asked): readonly Column<Hold>[] {
  return [
    { title: "FROM", cell: ({ fromMs }) => when(fromMs) },
    { title: "TO", cell: ({ fromMs, toMs }) => (toMs === undefined ? "-" : when(toMs, fromMs)) },
    { title: "OWNER", cell: ({ owner }) => owner || "-", cut: { columns: 6, to: cutMiddle } },
    {
      title: "TOKEN",
      cell: ({ fencingToken }) => String(fencingToken ?? "-"),
      short: ({ fencingToken }) => (fencingToken === undefined ? "-" : shortToken(fencingToken)),
      align: "right",
      isSpare: true,
    },
    {
      title: "HELD FOR",
      cell: ({ fromMs, isHeld, toMs = isHeld ? nowMs : undefined }) => (toMs === undefined ? "-" : formatDuration(toMs - fromMs)),
      align: "right",
      isSpare: true,
    },
    { title: "WAITED", cell: ({ waited }) => String(waited), align: "right" },
    {
      title: "END",
      cell: holdEnd,
      cut: { columns: 8, to: cutEnd, isFirst: true },
      paint: ({ ending = "released" }, colors) => (["released", "transferred"].includes(ending) ? String : colors.yellow),
    },
  ];
}

/** Returns the end of a hold in words. */
function holdEnd({ ending, broken, isHeld }: Hold): string {
  if (ending !== undefined) return holdEndText(ending, broken);
  return isHeld ? "still held" : "no end in the log";
}

function waitColumns({ when }: Asked): readonly Column<PastWait>[] {
  return [
    { title: "WAITED FROM", cell: ({ fromMs }) => when(fromMs) },
    { title: "TO", cell: ({ fromMs, toMs }) => (toMs === undefined ? "-" : when(toMs, fromMs)) },
    { title: "OWNER", cell: ({ owner }) => owner || "-", cut: { columns: 6, to: cutMiddle } },
    { title: "END", cell: waitEnd, cut: { columns: 8, to: cutEnd } },
  ];
}

function waitEnd({ ending }: PastWait): string {
  if (ending === undefined) return "no end in the log";
  return ending === "granted" ? "got the key" : endText(ending);
}

/** Returns what JSON has of the time and the log. `logFrom` is absent if nobody knows from when on the log is whole. */
function headJson({ key, span, log }: Asked): object {
  return { key, from: isoOf(span.fromMs), to: isoOf(span.toMs), ...(log.fromMs !== undefined && { logFrom: isoOf(log.fromMs) }) };
}

function holdJson({ fromMs, toMs, broken, isHeld, ...hold }: Hold): object {
  return {
    from: isoOf(fromMs),
    ...(toMs !== undefined && { to: isoOf(toMs), heldMs: toMs - fromMs }),
    ...hold,
    ...(broken && { by: broken.by, reason: broken.why }),
    ...(isHeld && { held: true }),
  };
}

function waitJson({ fromMs, toMs, owner, ending }: PastWait): object {
  return { from: isoOf(fromMs), ...(toMs !== undefined && { to: isoOf(toMs), waitedMs: toMs - fromMs }), owner, ending };
}

function isoOf(atMs: number): string {
  return new Date(atMs).toISOString();
}
