/** The occurrences of schedules among runs: the key of each is the schedule's name and its time (decision 111). */
import { type ItemPage, type PageRequest, PAGE_ITEMS, firstOf } from "./pages.js";
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

/** A time of a schedule, with the run that is on record for it. */
export interface Slot<Run> {
  /** The time, in epoch ms. */
  readonly atMs: number;
  /** Absent: nothing is on record. It was missed, or none was due: a record has no expression that tells. */
  readonly run?: Run;
}

/** Returns the interval of most of these occurrences, in ms; undefined if more than half of them have no common one. */
export function intervalOf(timesMs: readonly number[]): number | undefined {
  const counts = new Map<number, number>();
  for (const [at, timeMs] of timesMs.slice(1).entries()) {
    const gapMs = timeMs - (timesMs[at] ?? 0);
    counts.set(gapMs, (counts.get(gapMs) ?? 0) + 1);
  }
  const [first] = Array.from(counts).sort(([, a], [, b]) => b - a);
  return first && first[1] > 1 && 2 * first[1] > timesMs.length - 1 ? first[0] : undefined;
}

/**
 * Returns the occurrences of a schedule in order, and each time up to `nowMs` at which one would have been by `intervalMs`. A gap that is no
 * multiple of the interval, as of a day when the clocks change, has a time for each interval that fits into it.
 */
export function slotsOf<Run extends { readonly key: string }>(
  runs: readonly Run[],
  intervalMs: number | undefined,
  nowMs: number,
): readonly Slot<Run>[] {
  const slots = runs.map((run): Slot<Run> => ({ atMs: timeOf(run), run }));
  if (intervalMs === undefined) return slots;
  return slots.flatMap((slot, at) => {
    // The last one's gap has no end yet.
    const endMs = slots[at + 1]?.atMs ?? nowMs + intervalMs / 2;
    const count = Math.max(0, Math.min(SLOTS_MAX, Math.ceil((endMs - slot.atMs) / intervalMs - 0.5) - 1));
    return [slot, ...Array.from({ length: count }, (_, after): Slot<Run> => ({ atMs: slot.atMs + (after + 1) * intervalMs }))];
  });
}

/** The largest number of times that are shown: a month of hours. */
export const SLOTS_MAX = 744;

/** Returns the time of an occurrence, in epoch ms. */
export function timeOf({ key }: { readonly key: string }): number {
  return Date.parse(occurrenceOf(key)?.occurrence ?? "");
}

/** The bounds of a reading of a schedule's occurrences. */
export interface OccurrencesQuery {
  readonly fromMs: number;
  readonly untilMs: number;
  /** The largest number of requests. @default no limit */
  readonly requestsMax?: number | undefined;
  /** Ends the reading before its next request. */
  readonly signal?: AbortSignal;
}

/** The lengths of a time's text down to its month, tens of days, day, hour and minute, and how often each begins at least, in ms. */
const DAY_MS = 86_400_000;
const LEVELS = [
  [7, DAY_MS],
  [9, DAY_MS],
  [10, DAY_MS],
  [13, DAY_MS / 24],
  [16, 60_000],
] as const;

/**
 * Reads the occurrences of a schedule, the latest first, and returns them in order. A list begins with the oldest, so each request asks for the
 * keys of a part of the time: of a month first, and if it has more than a page of them, of each of its parts.
 */
export async function latestOccurrences<Run extends { readonly key: string }>(
  name: string,
  { fromMs, untilMs, requestsMax = Infinity, signal }: OccurrencesQuery,
  pageOf: (query: PageRequest & { readonly prefix: string }) => Promise<ItemPage<Run>>,
): Promise<{ readonly items: readonly Run[]; readonly more: boolean; readonly requests: number }> {
  const found: Run[] = [];
  let requests = 0;
  /** Reads a part of the time. Returns false once it may not read more. */
  const readPart = async (part: string, level: number): Promise<boolean> => {
    if (requests >= requestsMax || found.length >= SLOTS_MAX) return false;
    // A minute has no parts: all its pages are read.
    const bounds = level + 1 < LEVELS.length ? { most: PAGE_ITEMS, requestsMax: 1 } : { most: Infinity };
    const page = await firstOf(bounds.most, (query) => pageOf({ ...query, prefix: `${name}_${part}` }), {
      ...bounds,
      ...(signal && { signal }),
    });
    requests += page.requests;
    if (page.more) return readParts(part, level + 1);
    found.push(...page.items.toReversed());
    return true;
  };
  const readParts = async (of: string, level: number): Promise<boolean> => {
    for (const part of partsOfTime(fromMs, untilMs, level)) if (part.startsWith(of) && !(await readPart(part, level))) return false;
    return true;
  };
  const isWhole = await readParts("", 0);
  const isAsked = (run: Run): boolean => occurrenceOf(run.key)?.schedule === name && timeOf(run) >= fromMs && timeOf(run) <= untilMs;
  const items = found.filter(isAsked).toReversed();
  return { items: items.slice(-SLOTS_MAX), more: !isWhole || items.length > SLOTS_MAX, requests };
}

/** Returns the beginnings of the texts of all times from `fromMs` to `untilMs`, the latest first. */
function partsOfTime(fromMs: number, untilMs: number, level: number): readonly string[] {
  const [chars, stepMs] = LEVELS[level] ?? LEVELS[0];
  const times = Array.from({ length: Math.ceil((untilMs - fromMs) / stepMs) + 1 }, (_, at) => Math.max(fromMs, untilMs - at * stepMs));
  return [...new Set(times.map((timeMs) => new Date(timeMs).toISOString().slice(0, chars)))];
}
