/** The occurrences of schedules among runs: the key of each is the schedule's name and its time. Pure. */
import { neverRuns } from "./text/run-text.js";

/** A schedule's name and the time of an occurrence, as its run's key has them. */
export interface ScheduledRun {
  readonly schedule: string;
  /** The time, in ISO 8601 with milliseconds. */
  readonly occurrence: string;
}

/** Returns the occurrence of a run's key; undefined unless the key ends with a time, as every occurrence's does. */
export function occurrenceOf(key: string): ScheduledRun | undefined {
  const at = key.lastIndexOf("_");
  const occurrence = key.slice(at + 1);
  const timeMs = Date.parse(occurrence);
  if (at < 1 || Number.isNaN(timeMs) || new Date(timeMs).toISOString() !== occurrence) return undefined;
  return { schedule: key.slice(0, at), occurrence };
}

/** A run in place of all occurrences of its schedule. */
export interface LastOf {
  /** Absent: the run stands for itself alone. */
  readonly schedule?: { readonly name: string; readonly occurrences: number; readonly failed: number };
}

/**
 * Returns runs, in the order of their keys, with the last occurrence of each schedule in place of all of them. Those of `apart` stay rows of
 * their own.
 */
export function bySchedule<Run extends { readonly key: string } & Parameters<typeof neverRuns>[0]>(
  runs: readonly Run[],
  apart: (run: Run) => boolean,
): readonly (Run & LastOf)[] {
  const rows = new Map<string, Run & LastOf>();
  for (const run of runs) {
    const name = apart(run) ? undefined : occurrenceOf(run.key)?.schedule;
    // No key has a space.
    const row = name === undefined ? run.key : `${name} `;
    const before = rows.get(row);
    const { occurrences = 1, failed = Number(before !== undefined && hasFailed(before)) } = before?.schedule ?? {};
    const schedule = name !== undefined &&
      before && { schedule: { name, occurrences: occurrences + 1, failed: failed + Number(hasFailed(run)) } };
    rows.delete(row);
    rows.set(row, { ...run, ...schedule });
  }
  return [...rows.values()];
}

/** True for a run that failed; an occurrence that was skipped or came too late did not. */
function hasFailed(run: Parameters<typeof neverRuns>[0]): boolean {
  return run.state === "failed" && neverRuns(run) === undefined;
}

/** Returns true if `name` is a schedule: if one of these runs is an occurrence of it. */
export function isScheduleOf(name: string, runs: readonly { readonly key: string }[]): boolean {
  return runs.some(({ key }) => occurrenceOf(key)?.schedule === name);
}
