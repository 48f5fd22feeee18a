/** The occurrences of schedules among runs: the key of each is the schedule's name and its time. Pure. */

/** A schedule's name and the time of an occurrence, as its run's key has them. */
export interface Occurrence {
  readonly schedule: string;
  /** The time, in ISO 8601 with milliseconds. */
  readonly occurrence: string;
}

/** Returns the occurrence of a run's key; undefined unless the key ends with a time, as every occurrence's does. */
export function occurrenceOf(key: string): Occurrence | undefined {
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
export function bySchedule<Run extends { readonly key: string; readonly state: string }>(
  runs: readonly Run[],
  apart: (run: Run) => boolean,
): readonly (Run & LastOf)[] {
  const nameOf = (run: Run): string | undefined => (apart(run) ? undefined : occurrenceOf(run.key)?.schedule);
  const schedules = new Map<string, Run[]>();
  for (const run of runs) {
    const name = nameOf(run);
    if (name !== undefined) schedules.set(name, [...(schedules.get(name) ?? []), run]);
  }
  return runs.flatMap((run) => {
    const name = nameOf(run);
    const all = name === undefined ? [] : (schedules.get(name) ?? []);
    if (name === undefined || all.length === 1) return [run];
    const failed = all.filter(({ state }) => state === "failed").length;
    return run === all.at(-1) ? [{ ...run, schedule: { name, occurrences: all.length, failed } }] : [];
  });
}
