/** Lines of the log as deeds of operators, and as counts over time: grants, refusals, losses and waits. Pure. */
import type { LogLine } from "../lib/dynamodb.js";
import type { Line, Untold } from "./data.js";

/** The counts of an equal part of the time. */
export interface CountBucket {
  readonly fromMs: number;
  readonly granted: number;
  readonly refused: number;
  readonly lost: number;
  /** The longest wait that a grant ended, in ms; 0 without a grant. */
  readonly longestWaitMs: number;
}

/** True if the line ends a hold that its holder did not give up. */
export function isLoss({ event, reason = "", repeated, heldMs }: Line): boolean {
  return event === "ended" && repeated !== true && heldMs !== undefined && /^(?:expired|taken|broken)\b/.test(reason);
}

/** Returns when what a line tells happened, in epoch ms: the end of a lease that ran out was before anybody saw it. */
export function happenedAtMs({ event, atMs, lapsedMs = 0 }: Line): number {
  return event === "ended" ? atMs - lapsedMs : atMs;
}

/**
 * Returns when each lease of a lock was lost, in epoch ms: by these lines, and of those `untold` by an answer of `atMs` the ones whose end no
 * line tells by now.
 */
export function lossesOf(lines: readonly Line[], untold: readonly Untold[] = [], atMs = 0): readonly number[] {
  const ends = lines.filter(({ kind, event }) => kind === "lock" && event === "ended");
  const told = new Set(ends.map(({ key, lease }) => `${lease} ${key}`));
  const others = untold.filter(({ key, lease }) => !told.has(`${lease} ${key}`));
  return [...ends.filter(isLoss).map(happenedAtMs), ...others.map(({ agoMs }) => atMs - agoMs)];
}

/** The time over which the figure of losses counts, in ms. */
const LOSSES_MS = 600_000;

/** Returns the number of losses in the ten minutes up to `nowMs`. */
export function lossesBefore(nowMs: number, losses: readonly number[]): number {
  return losses.filter((atMs) => atMs >= nowMs - LOSSES_MS).length;
}

/** Returns the counts of the `count` equal parts of the time from `fromMs` on, each `stepMs` long. What is outside is left out. */
export function bucketsOf(
  lines: readonly Line[],
  losses: readonly number[],
  fromMs: number,
  stepMs: number,
  count: number,
): readonly CountBucket[] {
  const buckets = Array.from({ length: count }, (_, at) => ({
    fromMs: fromMs + at * stepMs,
    granted: 0,
    refused: 0,
    lost: 0,
    longestWaitMs: 0,
  }));
  const bucketAt = (atMs: number) => buckets[Math.floor((atMs - fromMs) / stepMs)];
  for (const { event, atMs, waitedMs = 0 } of lines) {
    const bucket = bucketAt(atMs);
    if (!bucket) continue;
    if (event === "granted") {
      bucket.granted += 1;
      bucket.longestWaitMs = Math.max(bucket.longestWaitMs, waitedMs);
    } else if (event === "refused") bucket.refused += 1;
  }
  for (const atMs of losses) {
    const bucket = bucketAt(atMs);
    if (bucket) bucket.lost += 1;
  }
  return buckets;
}

/** Returns how often each reason refused a request since `fromMs`, the most frequent first. */
export function refusalsSince(lines: readonly Line[], fromMs: number): readonly (readonly [reason: string, count: number])[] {
  const counts = new Map<string, number>();
  for (const { event, atMs, reason = "" } of lines) {
    if (event === "refused" && atMs >= fromMs) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  }
  return Array.from(counts).sort(([, a], [, b]) => b - a);
}

/** A line, and how often and since when the same was so. */
export interface ToldLine {
  readonly line: Line;
  readonly times: number;
  readonly firstAtMs: number;
}

/**
 * Returns the lines with what repeats told once, at its latest: an owner's refusals at a key with the same reason, until something else happens
 * there. A standby of an election asks every few seconds, and nothing in the log tells it from any other caller that does.
 */
export function toldOnce(lines: readonly Line[]): readonly ToldLine[] {
  const told = new Map<string, ToldLine>();
  const happenedAt = new Map<string, number>();
  for (const line of lines) {
    const { event, kind, key, owner, reason, seq, atMs } = line;
    const of = `${kind} ${key}`;
    if (event !== "refused") happenedAt.set(of, seq);
    const same = event === "refused" ? JSON.stringify([of, happenedAt.get(of), owner, reason]) : String(seq);
    const before = told.get(same);
    told.delete(same);
    told.set(same, { line, times: (before?.times ?? 0) + 1, firstAtMs: before?.firstAtMs ?? atMs });
  }
  return [...told.values()];
}

/** `drain`: the hold may last until its end, and is not renewed. `force`: it ended at once. */
export type Deed = "drain" | "force" | "reset";

/** Returns the deed that a line tells; undefined for every other line, and for a repeated request. */
export function deedOf({ event, kind, reason = "", repeated }: Pick<LogLine, "event" | "kind" | "reason" | "repeated">): Deed | undefined {
  if (repeated) return undefined;
  if (event === "breaking") return "drain";
  if (event === "reset") return "reset";
  // Without the operator's words, it is the end of a hold that drained. A reset ends the hold of an abandoned attempt, and has its own line.
  return event === "ended" && kind === "lock" && reason.startsWith(BROKEN) ? "force" : undefined;
}

/** Returns the operator's words. */
export function reasonOf({ reason = "" }: Pick<LogLine, "reason">): string {
  return reason.startsWith(BROKEN) ? reason.slice(BROKEN.length) : reason;
}

const BROKEN = "broken: ";
