/** The words of the page: states of a key as a sentence, times, and tokens. Pure. */
import { formatDuration } from "../../duration.js";
import { plain } from "../../plain-text.js";
import type { KeyView } from "../data.js";

/** A state with its colour. `late`: the holder hasn't renewed for more than half of its lease. `over`: the lease is over. */
export type Tone = "held" | "late" | "over" | "broken" | "free" | "waiting" | "done";

type Holder = KeyView["holders"][number];
type Waiter = KeyView["waiters"][number];

/** The part of a lease after which a renewal is late. A client renews after a third of it. */
const LATE_PART = 0.5;

/** Returns the state of a hold, `agoMs` after the service told it. */
export function toneOf({ remainingMs, leaseMs, breaking }: Holder, agoMs = 0): Tone {
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
  waiting: "handed over",
  done: "done",
};

/** Returns the worst state of the holds of a key. */
export function keyTone({ holders, waiters }: Pick<KeyView, "holders" | "waiters">, agoMs = 0): Tone {
  const tones = holders.map((holder) => toneOf(holder, agoMs));
  const worst = (["over", "late", "broken", "held"] as const).find((tone) => tones.includes(tone));
  return worst ?? (waiters.length > 0 ? "waiting" : "free");
}

/** Returns a sentence on the key: if it is held, by whom, and if its lease was renewed in time. */
export function sentenceOf({ holders, waiters, fencingToken }: KeyView, agoMs = 0): string {
  const [first] = holders;
  if (!first) {
    const [offered] = waiters;
    if (offered) return `Free, and offered to ${nameOf(offered)}, who has 5 s to claim it.`;
    return fencingToken === 0 ? "Free. No holder is on record." : "Free.";
  }
  if (holders.length > 1) return `Held by ${holders.length} leases together.`;
  return `Held by ${nameOf(first)}. ${lifeOf(first, agoMs)}`;
}

/** Returns a sentence on the life of a hold: its last renewal, and what happens next. */
export function lifeOf(holder: Holder, agoMs = 0): string {
  const { leaseMs, heldMs } = holder;
  const leftMs = Math.max(0, holder.remainingMs - agoMs);
  const left = formatDuration(leftMs);
  if (holder.breaking) return `An operator broke this hold: it can't be renewed, and ends in ${left} at the latest.`;
  if (leftMs === 0) return "Its lease is over: its holder didn't renew it. The key is free in a moment.";
  if (leaseMs === undefined) return `${left} of its lease are left.`;
  const renewedAgoMs = Math.max(0, leaseMs - leftMs);
  const isNew = heldMs + agoMs <= renewedAgoMs + SLACK_MS;
  const renewed = isNew ? `Granted ${formatDuration(heldMs + agoMs)} ago` : `Renewed ${formatDuration(renewedAgoMs)} ago`;
  if (renewedAgoMs <= leaseMs * LATE_PART) return `${renewed}: its lease is current.`;
  return `${renewed}, and not since: its holder is late, or doesn't renew. Its lease ends in ${left}.`;
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
  return { 60_000: "minute", 3_600_000: "hour" }[ms] ?? formatDuration(ms);
}
