/**
 * `holdfast/cron`: the occurrences of a cron expression, for `tick`. It needs the package `croner`, which knows the expressions, time zones
 * and their changes of the clocks. Nothing here starts a timer.
 */
import { Cron } from "croner";
import { InvalidRequestError } from "./client/wire/errors.js";
import type { Schedule } from "./client/calls/occurrence.js";
import { checkNames, refused } from "./client/wire/checks.js";

export type { Schedule } from "./client/calls/occurrence.js";

/** Options of a cron expression. */
export interface CronOptions {
  /** The time zone of the expression's hours and days, as `Europe/Berlin`. The same on all machines. @default "UTC" */
  readonly timeZone?: string | undefined;
}

/** Expressions know whole seconds. */
const SECOND_MS = 1000;

/**
 * Returns the schedule of a cron expression, for the option `cron` of `tick`: `minute hour day month weekday`, with seconds before them if
 * there are six fields, or a name such as `@daily`. If both a day and a weekday are given, either fits. An hour that the clocks skip or repeat
 * has one occurrence of a daily expression.
 * @throws InvalidRequestError if the expression or the time zone is invalid
 */
export function cron(expression: string, options: CronOptions = {}): Schedule {
  checkNames("cron", options, ["timeZone"]);
  const { timeZone = "UTC" } = options;
  checkTimeZone(timeZone);
  const pattern = parsed(expression, timeZone);
  return {
    last(time) {
      // The runs before the next whole second are those at or before this time.
      const nextSecond = new Date((Math.floor(time.getTime() / SECOND_MS) + 1) * SECOND_MS);
      const [last] = pattern.previousRuns(1, nextSecond);
      if (last) return last;
      throw new InvalidRequestError(`cron: ${JSON.stringify(expression)} has no occurrence before ${time.toISOString()}`, "cron");
    },
    next: (time) => pattern.nextRun(time),
  };
}

function parsed(expression: unknown, timezone: string): Cron {
  if (typeof expression !== "string") throw refused("cron", expression, "it must be a cron expression, as 0 3 * * *");
  try {
    return new Cron(expression, { timezone, paused: true });
  } catch (error) {
    throw refused("cron", expression, `it must be a cron expression, as 0 3 * * *: ${(error as Error).message}`);
  }
}

function checkTimeZone(timeZone: unknown): void {
  try {
    if (typeof timeZone === "string") return void new Intl.DateTimeFormat("en", { timeZone });
  } catch {
    // Refused below.
  }
  throw refused("timeZone", timeZone, "it must be a time zone, as Europe/Berlin");
}
