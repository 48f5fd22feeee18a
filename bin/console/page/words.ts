/** The words of the page: states of a key as a sentence, times, and tokens. Pure. */
import { formatDuration } from "../../duration.js";
import { endText } from "../../held-text.js";
import { plain } from "../../plain-text.js";
import type { KeyView } from "../data.js";

/** A state with its colour. `late`: the holder hasn't renewed for more than half of its lease. `over`: the lease is over. `unknown`: the last answer is old. */
export type Tone = "held" | "late" | "over" | "broken" | "free" | "waiting" | "done" | "unknown";

type Holder = KeyView["holders"][number];
type Waiter = KeyView["waiters"][number];

/** The part of a lease after which a renewal is late. A client renews after a third of it. */
const LATE_PART = 0.5;

/** Returns the state of a hold, `agoMs` after the service told it. */
export function toneOf({ remainingMs, leaseMs, breaking }: Pick<Holder, "remainingMs" | "leaseMs" | "breaking">, agoMs = 0): Tone {
  const leftMs = remainingMs - agoMs;
  if (breaking) return "broken";
  if (leftMs <= 0) return "over";
  return leaseMs !== undefined && leftMs < leaseMs * (1 - LATE_PART) ? "late" : "held";
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
export function keyTone({ holders, waiters }: Pick<KeyView, "holders" | "waiters">, agoMs = 0): Tone {
  const tones = holders.map((holder) => toneOf(holder, agoMs));
  const worst = (["over", "late", "broken", "held"] as const).find((tone) => tones.includes(tone));
  return worst ?? (waiters.length > 0 ? "waiting" : "free");
}

/** The time at which a page is read. */
export interface Reading {
  readonly nowMs: number;
  /** The time since the answer that the page shows, in ms. */
  readonly agoMs: number;
  readonly isUtc: boolean;
}

/** The last hold of a free key, as the log or the page knows it. */
export interface LastHold {
  readonly owner: string;
  readonly endedAtMs: number;
  /** The end, as a reason of the log. */
  readonly ending: string;
}

/** Returns a sentence on the key: if it is held, by whom, since when, if its lease was renewed in time, and what happens next. */
export function sentenceOf(view: KeyView, reading: Reading, last?: LastHold): string {
  const { holders, waiters } = view;
  const [first] = holders;
  if (!first) {
    const [offered] = waiters;
    return offered ? `Free, and offered to ${nameOf(offered)}, who has 5s to claim it.` : freeSentenceOf(view, reading, last);
  }
  if (holders.length > 1) return `Held by ${holders.length} leases together.`;
  return `Held by ${nameOf(first)} since ${sinceText(first.heldMs + reading.agoMs, reading)}. ${lifeOf(first, reading.agoMs, waiters[0])}`;
}

/** Returns the time of day of a moment `agoMs` ago, and how long ago that is: `22:14:09 (4m)`. */
export function sinceText(agoMs: number, { nowMs, isUtc }: Reading): string {
  return `${timeText(nowMs - agoMs, isUtc)} (${formatDuration(agoMs)})`;
}

/** Returns what is known of the time since when the key is free. */
function freeSentenceOf({ lapsed, recent, fencingToken }: KeyView, { nowMs, agoMs, isUtc }: Reading, last: LastHold | undefined): string {
  const lapsedHold = lapsed?.at(-1);
  if (lapsedHold) {
    const since = timeText(nowMs - agoMs - lapsedHold.endedAgoMs, isUtc);
    return `Free since ${since}. ${possessive(nameOf(lapsedHold))} lease ran out; nobody has taken the key since.`;
  }
  if (last) return `Free since ${timeText(last.endedAtMs, isUtc)}. ${endSentenceOf(last)}; nobody has taken the key since.`;
  const [ended] = recent ?? [];
  if (ended) return `Free. The last lease was asked for ${formatDuration(ended.askedAgoMs + agoMs)} ago (${endText(ended.ending)}).`;
  return fencingToken === 0 ? "Free. No holder is on record." : "Free.";
}

function endSentenceOf({ owner, ending }: LastHold): string {
  const name = nameOf({ owner });
  if (ending === "expired" || ending === "taken") return `${possessive(name)} lease ran out`;
  if (ending === "broken") return `An operator broke the hold of ${name}`;
  return ending === "released" ? `${name} released it` : `The hold of ${name} ended`;
}

/** Returns the command that ends a hold, for a shell. `options` say where the locks are. */
export function breakCommand(key: string, fencingToken: number, options = ""): string {
  const name = /^[\w.:~/-]+$/.test(key) ? key : `'${key.replaceAll("'", String.raw`'\''`)}'`;
  return `holdfast ${options === "" ? "" : `${options} `}break ${name} --token ${fencingToken} --reason "…"`;
}

function possessive(name: string): string {
  return `${name}${name.endsWith("s") ? "'" : "'s"}`;
}

/** Returns a sentence on the life of a hold: its last renewal, and what happens next. `next` is the first in the queue. */
export function lifeOf(holder: Holder, agoMs = 0, next?: Waiter): string {
  const leftMs = Math.max(0, holder.remainingMs - agoMs);
  const left = formatDuration(leftMs);
  if (holder.breaking) return `An operator broke this hold: it can't be renewed, and ends in ${left} at the latest.`;
  const then = next ? `${nameOf(next)} gets the key` : "the key is free";
  if (leftMs === 0) return `Its lease is over: its holder didn't renew it. In a moment, ${then}.`;
  const renewed = renewalOf(holder, agoMs);
  if (!renewed) return `${left} of its lease are left.`;
  const ago = formatDuration(renewed.agoMs);
  if (toneOf(holder, agoMs) === "held") return `${renewed.isNew ? "Granted" : "Renewed"} ${ago} ago: its lease is current.`;
  const since = renewed.isNew ? `since it was granted ${ago} ago` : `for ${ago}`;
  return `Not renewed ${since}: it may be dead. If it stays silent, ${then} in about ${formatDuration(leftMs + MARGIN_MS)}.`;
}

/** The time from the end of a lease until the key may go to another, in ms; a little more for long leases. */
export const MARGIN_MS = 1000;

/** Returns how alive the holder of a hold seems, for somebody who is about to break it. */
export function signOfLife(holder: Holder, agoMs: number): string {
  const name = nameOf(holder);
  const renewed = renewalOf(holder, agoMs);
  if (!renewed || holder.breaking) return `${name} holds it.`;
  const ago = formatDuration(renewed.agoMs);
  if (toneOf(holder, agoMs) === "held")
    return `${name} ${renewed.isNew ? "was granted the key" : "renewed"} ${ago} ago, so it is probably running.`;
  return `${name} has not renewed ${renewed.isNew ? `since it was granted the key ${ago} ago` : `for ${ago}`}: it may be dead.`;
}

/** Returns a sentence on what the last answer told of a key, for when it is too old to conclude anything from it. `at` is its time. */
export function oldSentenceOf({ holders, waiters }: KeyView, at: string): string {
  const [first] = holders;
  const [offered] = waiters;
  const state = !first
    ? `free${offered ? `, and offered to ${nameOf(offered)}` : ""}`
    : holders.length > 1
      ? `held by ${holders.length} leases together`
      : `held by ${nameOf(first)}${lastSignOf(first)}`;
  return `At ${at} it was ${state}. Not known since.`;
}

function lastSignOf(holder: Holder): string {
  if (holder.breaking) return ", whose hold an operator had broken";
  const renewed = renewalOf(holder);
  return renewed ? `, ${renewed.isNew ? "granted" : "last renewed"} ${formatDuration(renewed.agoMs)} before` : "";
}

/** Returns how long ago a hold was renewed or, if it is new, granted, `agoMs` after the answer; undefined if the service doesn't tell. */
function renewalOf({ leaseMs, heldMs, remainingMs }: Holder, agoMs = 0): { readonly agoMs: number; readonly isNew: boolean } | undefined {
  if (leaseMs === undefined) return undefined;
  const renewedAgoMs = Math.max(0, leaseMs - Math.max(0, remainingMs - agoMs));
  return { agoMs: renewedAgoMs, isNew: heldMs + agoMs <= renewedAgoMs + SLACK_MS };
}

/** The error of comparing two durations from one answer, in ms. */
const SLACK_MS = 50;

/** Returns the owner, or `nobody named`. */
export function nameOf({ owner }: Pick<Holder | Waiter, "owner">): string {
  return plain(owner) || "an owner without a name";
}

/** Returns the kind of a key: exclusive, shared, or its permits in use. */
export function kindOf({ mode, limit, holders }: KeyView): string {
  return limit === undefined ? mode : `${holders.reduce((sum, { permits }) => sum + permits, 0)} of ${limit} permits`;
}

/** Returns the last digits of a token, by which tokens of one key are told apart. */
export function shortToken(token: number): string {
  const text = String(token);
  return text.length > 6 ? `…${text.slice(-6)}` : text;
}

/** Returns the time of day, to the millisecond or the second. */
export function timeText(atMs: number, isUtc: boolean, toMs = false): string {
  const at = new Date(isUtc ? atMs : atMs - new Date(atMs).getTimezoneOffset() * 60_000);
  return at.toISOString().slice(11, toMs ? 23 : 19);
}

/** Returns the time after `in the last`. */
export function spanText(ms: number): string {
  return { 60_000: "minute", 3_600_000: "hour", 86_400_000: "day" }[ms] ?? formatDuration(ms);
}
