/** The words of the page and of the command line: the state of a key as a sentence, times, and tokens. Pure. */
import { formatSeconds } from "../text/duration.js";
import { endText } from "../text/held-text.js";
import { plain } from "../text/plain-text.js";
import type { KeyHolder, KeyView, KeyWaiter } from "../data.js";

/** A state with its colour. `late`: the holder hasn't renewed for more than half of its lease. `over`: the lease is over. `unknown`: the last answer is old. */
export type Tone = "held" | "late" | "over" | "broken" | "free" | "waiting" | "done" | "unknown";

/** The part of a lease after which a renewal is late. A client renews after a third of it. */
export const LATE_PART = 0.5;

/** Returns the state of a hold at the time of the answer: its holder may have renewed since, so an answer is never aged. */
export function toneOf({ remainingMs, leaseMs, breaking }: Pick<KeyHolder, "remainingMs" | "leaseMs" | "breaking">): Tone {
  if (breaking) return "broken";
  if (remainingMs <= 0) return "over";
  return remainingMs < leaseMs * (1 - LATE_PART) ? "late" : "held";
}

/** The word for each state. */
export const WORDS: Readonly<Record<Tone, string>> = {
  held: "held",
  late: "not renewed",
  over: "lease over",
  broken: "broken, ending",
  free: "free",
  waiting: "offered",
  done: "done",
  unknown: "not known",
};

/** Returns the worst state of the holds of a key. */
export function keyTone({ holders, waiters }: Pick<KeyView, "holders" | "waiters">): Tone {
  const tones = holders.map(toneOf);
  const worst = (["over", "late", "broken", "held"] as const).find((tone) => tones.includes(tone));
  return worst ?? (waiters[0]?.offered ? "waiting" : "free");
}

/** Returns the number of holders that didn't renew in time. */
export function lateOf({ holders }: Pick<KeyView, "holders">): number {
  return holders.filter((holder) => ["late", "over"].includes(toneOf(holder))).length;
}

/** Returns since when something lasts: `for 4m`, or on a page `since 22:14:09 (4m)`. */
export type SinceText = (lastsMs: number) => string;

const forText: SinceText = (lastsMs) => `for ${formatSeconds(lastsMs)}`;

/** The last hold of a free key, as the log or the page knows it. */
export interface LastHold {
  readonly owner: string;
  readonly endedAgoMs: number;
  /** The end, as a reason of the log. */
  readonly ending: string;
}

/**
 * Returns what a key is, at the time of the answer: `held by checkout-7 for 1m 31s, renewed 3s ago; 14 wait, next checkout-0`. Of a semaphore,
 * how many permits are out; of a free key, what is known of its last hold.
 */
export function stateText(view: KeyView, since = forText, last?: LastHold): string {
  const { holders, waiters, limit } = view;
  const [first, ...others] = holders;
  const [next] = waiters;
  const late = lateOf(view);
  const lateText = late > 0 ? `, ${late} of them not renewed in time` : "";
  const isOffered = !first && next?.offered === true;
  const queue = next && waiters.length > 1 ? `${waitText(waiters.length)}, next ${nameOf(next)}` : next && `${nameOf(next)} waits`;
  const waits = queue === undefined || isOffered ? "" : `; ${queue}`;
  if (!first)
    return (isOffered ? `free, and offered to ${nameOf(next)}, who has a few seconds to claim it` : freeText(view, since, last)) + waits;
  if (limit !== undefined) return permitsText({ out: permitsOut(view), of: limit }) + lateText + waits;
  if (others.length > 0) return `held by ${holders.length} leases together${lateText}${waits}`;
  return `held by ${nameOf(first)} ${since(first.heldMs)}, ${lifeOf(first, view)}${waits}`;
}

/** Returns a clause as a sentence. */
export function sentence(clause: string): string {
  return `${clause.slice(0, 1).toUpperCase()}${clause.slice(1)}.`;
}

/** Returns the number of permits that are out. */
export function permitsOut({ holders }: Pick<KeyView, "holders">): number {
  return holders.reduce((sum, { permits }) => sum + permits, 0);
}

/** Returns how many of a semaphore's permits are out. */
export function permitsText({ out, of, waiting = 0 }: { readonly out: number; readonly of: number; readonly waiting?: number }): string {
  const text =
    out < of
      ? `${out} of ${of} permits ${out === 1 ? "is" : "are"} out`
      : of === 1
        ? "the only permit is out"
        : `all ${of} permits are out`;
  return waiting > 0 ? `${text}; ${waitText(waiting)}` : text;
}

function waitText(waiting: number): string {
  return `${waiting} ${waiting === 1 ? "waits" : "wait"}`;
}

/** Returns since when a key is free and how its last hold ended, as far as that is known. */
function freeText({ lapsed, recent, fencingToken }: KeyView, since: SinceText, last: LastHold | undefined): string {
  const lapsedHold = lapsed?.at(-1);
  const ended = last ?? (lapsedHold && { ...lapsedHold, ending: "expired" });
  if (ended) return `free ${since(ended.endedAgoMs)}: ${endOfHold(ended)}`;
  const [before] = recent ?? [];
  if (before) return `free; its last lease was asked for ${formatSeconds(before.askedAgoMs)} ago (${endText(before.ending)})`;
  return fencingToken === 0 ? "free; no holder is on record" : "free";
}

function endOfHold({ owner, ending }: LastHold): string {
  const name = nameOf({ owner });
  if (ending === "expired" || ending === "taken") return `${name}${name.endsWith("s") ? "'" : "'s"} lease ran out`;
  if (ending === "broken") return `an operator broke the hold of ${name}`;
  return ending === "released" ? `${name} released it` : `the hold of ${name} ended`;
}

/** Returns the life of a hold of `view`: its last renewal and, if that is late, what happens next. */
export function lifeOf(holder: KeyHolder, view: KeyView): string {
  const tone = toneOf(holder);
  if (tone === "broken")
    return `broken by an operator: it can't be renewed, and ends in ${formatSeconds(holder.remainingMs)} at the latest`;
  if (tone === "over") return `but its lease is over without a renewal: in a moment ${afterText(view, holder)}`;
  const { agoMs, isNew } = renewalOf(holder);
  const ago = formatSeconds(agoMs);
  if (tone === "held") return isNew ? "not renewed yet: its lease is current" : `renewed ${ago} ago`;
  const when = `in about ${formatSeconds(overInMs(view, holder))}`;
  return `not renewed ${isNew ? "since" : `for ${ago}`}: it may be dead, and if it stays silent, ${afterText(view, holder, when)}`;
}

/** Returns the time in ms after which a hold that isn't renewed is over at the latest. */
export function overInMs({ ifBroken = [] }: KeyView, { fencingToken, remainingMs }: KeyHolder): number {
  return ifBroken.find((told) => told.fencingToken === fencingToken)?.breakInMs ?? remainingMs + MARGIN_MS;
}

/**
 * Returns what the end of a hold does to its key: `b gets the key at once`, or beside other holders `its hold is over at once: 2 of 3 permits
 * stay out, and nobody who waits gets in`. The service tells it by the rule of the break itself. A list tells it of a sole holder alone, after
 * whom the key goes to the first in the queue.
 */
export function afterText(view: KeyView, { fencingToken }: Pick<KeyHolder, "fencingToken">, when = ""): string {
  const { holders, waiters, limit, ifBroken = [] } = view;
  const staying = holders.filter((other) => other.fencingToken !== fencingToken);
  const [other] = staying;
  const told = ifBroken.find((each) => each.fencingToken === fencingToken)?.next ?? (other ? undefined : waiters.slice(0, 1).map(() => 1));
  const at = when === "" ? "" : ` ${when}`;
  const over = `its hold is over${at}`;
  if (!told) return over;
  const names = told.flatMap((place) => waiters[place - 1] ?? []).map(nameOf);
  if (!other) return names.length === 0 ? `the key is free${at}` : `${listOf(names)} ${names.length === 1 ? "gets" : "get"} the key${at}`;
  const out = permitsOut({ holders: staying });
  const stays =
    limit === undefined
      ? `the key stays held by ${staying.length === 1 ? nameOf(other) : `${staying.length} others`}`
      : `${out} of ${limit} permits ${out === 1 ? "stays" : "stay"} out`;
  const gets = names.length > 0 ? `${listOf(names)} ${names.length === 1 ? "gets" : "get"} in` : "nobody who waits gets in";
  return `${over}: ${stays}${waiters.length > 0 ? `, and ${gets}` : ""}`;
}

/** The largest number of names in a sentence. */
const NAMES = 3;

function listOf(names: readonly string[]): string {
  const shown = names.length > NAMES ? [...names.slice(0, NAMES - 1), `${names.length - NAMES + 1} more`] : names;
  return shown.length < 2 ? shown.join("") : `${shown.slice(0, -1).join(", ")} and ${shown.at(-1)}`;
}

/** Returns the command that ends a hold, for a shell. `options` say where the locks are. */
export function breakCommand(key: string, fencingToken: number, options = ""): string {
  const name = /^[\w.:~/-]+$/.test(key) ? key : `'${key.replaceAll("'", String.raw`'\''`)}'`;
  return `holdfast ${options === "" ? "" : `${options} `}break ${name} --token ${fencingToken} --reason "…"`;
}

/** The core's takeoverMarginMs without the part that grows with the lease, in ms. With its file, the page would weigh 1 kB more. */
export const MARGIN_MS = 1000;

/** Returns how long ago a hold was renewed or, if it is new, granted. */
function renewalOf({ leaseMs, heldMs, remainingMs }: KeyHolder): { readonly agoMs: number; readonly isNew: boolean } {
  const agoMs = Math.max(0, leaseMs - remainingMs);
  return { agoMs, isNew: heldMs <= agoMs + SLACK_MS };
}

/** The error of comparing two durations from one answer, in ms. */
const SLACK_MS = 50;

/** Returns the owner, or `nobody named`. */
export function nameOf({ owner }: Pick<KeyHolder | KeyWaiter, "owner">): string {
  return plain(owner) || "an owner without a name";
}

/** Returns the kind of a key: exclusive, shared, or its permits in use. */
export function kindOf({ mode, limit, holders }: KeyView): string {
  return limit === undefined ? mode : `${permitsOut({ holders })} of ${limit} permits`;
}

/** Returns the last digits of a token, by which tokens of one key are told apart. */
export function shortToken(token: number): string {
  const text = String(token);
  return text.length > 6 ? `…${text.slice(-6)}` : text;
}

/** Returns the time of day, to the millisecond or the second. */
export function timeText(atMs: number, isUtc: boolean, toMs = false): string {
  return isoOf(atMs, isUtc).slice(11, toMs ? 23 : 19);
}

/** Returns a time of the day of `nowMs` as {@link timeText}, and any other with its date: `Nov 29, 03:00:00`. */
export function whenText(atMs: number, nowMs: number, isUtc: boolean, toMs = false): string {
  const [day, today] = [isoOf(atMs, isUtc), isoOf(nowMs, isUtc)].map((iso) => iso.slice(0, 10));
  const date = day === today ? "" : `${dateText(atMs, isUtc, day?.slice(0, 4) === today?.slice(0, 4) ? {} : { year: "numeric" })}, `;
  return `${date}${timeText(atMs, isUtc, toMs)}`;
}

/** Returns a date as people write it: `Nov 29`, or with more parts. */
export function dateText(atMs: number, isUtc: boolean, more: Intl.DateTimeFormatOptions): string {
  return new Date(atMs).toLocaleDateString("en", { day: "numeric", month: "short", ...(isUtc && { timeZone: "UTC" }), ...more });
}

function isoOf(atMs: number, isUtc: boolean): string {
  return new Date(isUtc ? atMs : atMs - new Date(atMs).getTimezoneOffset() * 60_000).toISOString();
}

/** Returns the message of a stored error, or all of it if it has none. */
export function messageOf(error: string): string {
  try {
    const { message } = JSON.parse(error) as { readonly message?: unknown };
    return typeof message === "string" ? message : error;
  } catch {
    return error; // It was cut.
  }
}
