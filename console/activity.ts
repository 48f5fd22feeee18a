/** Lines of the log as deeds of operators, and as counts over time: grants, refusals, losses and waits. Pure. */
import type { LogLine } from "../lib/dynamodb.js";
import type { Line } from "./data.js";

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

/** The time over which losses are counted, in ms. */
export const LOSSES_MS = 600_000;

/** Returns how many leases were lost in the time up to `nowMs`: by these lines, and `ranOut` of which no line tells yet. */
export function lossesBefore(nowMs: number, lines: readonly Line[], ranOut = 0): number {
  return ranOut + lines.filter((line) => line.kind === "lock" && happenedAtMs(line) >= nowMs - LOSSES_MS && isLoss(line)).length;
}

/** Returns the counts of the `count` equal parts of the time from `fromMs` on, each `stepMs` long. Lines outside are left out. */
export function bucketsOf(lines: readonly Line[], fromMs: number, stepMs: number, count: number): readonly CountBucket[] {
  const buckets = Array.from({ length: count }, (_, at) => ({
    fromMs: fromMs + at * stepMs,
    granted: 0,
    refused: 0,
    lost: 0,
    longestWaitMs: 0,
  }));
  for (const line of lines) {
    const bucket = buckets[Math.floor((happenedAtMs(line) - fromMs) / stepMs)];
    if (!bucket) continue;
    if (line.event === "granted") {
      bucket.granted += 1;
      bucket.longestWaitMs = Math.max(bucket.longestWaitMs, line.waitedMs ?? 0);
    } else if (line.event === "refused") bucket.refused += 1;
    else if (isLoss(line)) bucket.lost += 1;
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
