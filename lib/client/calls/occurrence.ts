/** The occurrence of a schedule that a tick is for: the time that names its run, the same for everybody who is asked to run it. */
import * as LIMITS from "../../core/request-limits.js";
import { type Checks, ms, must } from "../wire/checks.js";
import { InvalidRequestError } from "../wire/errors.js";

/** A schedule, as `cron()` of `holdfast/cron` makes it. */
export interface Schedule {
  /** Returns the last occurrence at or before `time`. @throws Error if there was none yet */
  last(time: Date): Date;
  /** Returns the first occurrence after `time`; null if there is none. */
  next(time: Date): Date | null;
}

/** The ways to name an occurrence: exactly one is given. */
export interface OccurrenceOptions {
  /** The time that the schedule's event names. */
  readonly occurrence?: Date | undefined;
  /**
   * The interval in ms, from 1 s to 365 d: the occurrence is the last multiple of it since the epoch, by this process's clock, or the next
   * one from 10 ms before it. A day begins at midnight UTC.
   */
  readonly everyMs?: number | undefined;
  /**
   * A schedule, of which the last occurrence is meant, by this process's clock, or the next one from 10 ms before it: `cron("0 3 * * *")` of
   * `holdfast/cron`.
   */
  readonly cron?: Schedule | undefined;
}

/** An occurrence, and the time for which its outcome must be remembered. */
export interface Occurrence {
  readonly at: Date;
  /** The time in ms since then, by this process's clock; negative before it. */
  readonly lateMs: number;
  /** The time in ms until the next one, for which late callers still name this one; 0 if the caller names it. */
  readonly intervalMs: number;
}

/**
 * A call that comes this early, in ms, is for the coming occurrence. Node's timers end up to 2 ms early, and clocks are corrected by some ms:
 * a call of the occurrence before would be done already, and nobody would call again before the one after.
 */
const EARLY_MS = 10;
/** A name of an occurrence has four digits for the year. */
const LAST_YEAR = 9999;
const WAYS = ["occurrence", "everyMs", "cron"] as const;

/** The checks of the ways. */
export const OCCURRENCE_OPTIONS: Checks<OccurrenceOptions> = {
  occurrence: must(isTime, "it must be a valid Date, from the year 0 to 9999"),
  everyMs: ms(LIMITS.tickMinMs, LIMITS.keepResultMaxMs),
  cron: must(
    (schedule) => typeof (schedule as Partial<Schedule> | null)?.last === "function",
    "it must be a schedule of cron() of holdfast/cron",
  ),
};

/** @throws InvalidRequestError unless exactly one way is given. */
export function checkOccurrence(options: OccurrenceOptions): void {
  const ways = WAYS.filter((name) => options[name] !== undefined);
  if (ways.length !== 1)
    throw new InvalidRequestError(`occurrence: tick needs one of ${WAYS.join(", ")}, not ${ways.join(" and ") || "none"}`, "occurrence");
}

/** Returns the occurrence that is due at the time `nowMs`, or just after it, of checked options. */
export function occurrenceOf({ occurrence, everyMs = 0, cron = multiplesOf(everyMs) }: OccurrenceOptions, nowMs: number): Occurrence {
  if (occurrence !== undefined) return { at: occurrence, lateMs: nowMs - occurrence.getTime(), intervalMs: 0 };
  const at = cron.last(new Date(nowMs + EARLY_MS));
  const next = cron.next(at);
  const intervalMs = next === null ? Number.POSITIVE_INFINITY : next.getTime() - at.getTime();
  return { at, lateMs: nowMs - at.getTime(), intervalMs };
}

function multiplesOf(everyMs: number): Schedule {
  const last = (time: Date): Date => new Date(Math.floor(time.getTime() / everyMs) * everyMs);
  return { last, next: (time) => new Date(last(time).getTime() + everyMs) };
}

function isTime(value: unknown): boolean {
  const year = value instanceof Date ? value.getUTCFullYear() : Number.NaN;
  return year >= 0 && year <= LAST_YEAR;
}
