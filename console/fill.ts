/** The rest of a rate over time: by the takes of the log, and by what a page saw. Pure. */
import type { LimitView } from "../lib/index.js";
import type { Line } from "./data.js";

type Rate = LimitView["rates"][number];

/** A bucket from a time on: it fills until `fullAtMs`, unless more is taken. */
export interface Filling {
  readonly atMs: number;
  readonly fullAtMs: number;
}

/** The rest of a rate at a time. */
export interface Level {
  readonly atMs: number;
  readonly left: number;
}

/** Returns the time in which one flows in, in ms. */
function oneMs({ count, perMs }: Rate): number {
  return perMs / count;
}

/** Returns the time in which a rate's bucket fills, in ms. */
export function fillMs(rate: Rate): number {
  return oneMs(rate) * rate.burst;
}

/** Returns the rate with the number `at` as each take and reset of these lines left it. Takes at other rates are of another bucket. */
export function filledBy(lines: readonly Line[], rate: Rate, at: number): readonly Filling[] {
  const text = `${rate.count}/${rate.perMs}/${rate.burst}`;
  const fillings: Filling[] = [];
  for (const { event, atMs, rates = "", cost = 1 } of lines) {
    const before = fillings.at(-1)?.fullAtMs ?? 0;
    if (event === "reset") fillings.push({ atMs, fullAtMs: atMs });
    if (event === "granted")
      fillings.push({ atMs, fullAtMs: rates.split(",")[at] === text ? Math.max(before, atMs) + cost * oneMs(rate) : 0 });
  }
  return fillings;
}

/** Returns when each rate of a limit is full again, in epoch ms. Of several, an answer tells it of the last one alone, and of others to the time of one. */
export function fullAtMsOf({ rates, remaining, fullInMs }: Omit<LimitView, "key">, atMs: number): readonly number[] {
  return rates.map((rate, at) => {
    const { burst } = rate;
    return atMs + (rates.length === 1 ? fullInMs : Math.min(fullInMs, (burst - (remaining[at] ?? 0)) * oneMs(rate)));
  });
}

/** Returns the fillings with what an answer at `atMs` told, if that is another filling than the last: what is left is a whole number. */
export function withSeen(fillings: readonly Filling[], rate: Rate, { atMs, fullAtMs }: Filling): readonly Filling[] {
  const last = fillings.at(-1);
  const [known, seen] = [Math.max(last?.fullAtMs ?? 0, atMs), Math.max(fullAtMs, atMs)];
  return last && Math.abs(known - seen) <= oneMs(rate) + SLACK_MS ? fillings : [...fillings, { atMs, fullAtMs }];
}

/** The error of comparing the times of two answers, in ms. */
const SLACK_MS = 250;

/** Returns the corners of the line that shows what is left, from the first filling or `fromMs` until `toMs`. */
export function levelsOf(fillings: readonly Filling[], rate: Rate, fromMs: number, toMs: number): readonly Level[] {
  const leftAt = (fullAtMs: number, atMs: number): number => {
    const left = rate.burst - Math.max(0, fullAtMs - atMs) / oneMs(rate);
    return Math.max(0, left);
  };
  return fillings.flatMap(({ atMs, fullAtMs }, at) => {
    const [beginMs, endMs] = [Math.max(fromMs, atMs), Math.min(toMs, fillings[at + 1]?.atMs ?? toMs)];
    if (beginMs > endMs) return [];
    // It rises in between, and is level before and after: nothing is left while starts are reserved, and all is back once it is full.
    const corners = [fullAtMs - fillMs(rate), fullAtMs].filter((cornerMs) => cornerMs > beginMs && cornerMs < endMs);
    return [beginMs, ...corners, endMs].map((timeMs) => ({ atMs: timeMs, left: leftAt(fullAtMs, timeMs) }));
  });
}

/** The refusals since the last grant. */
export interface Refused {
  readonly count: number;
  readonly sinceMs: number;
  /** The owners among them. A take has none. */
  readonly owners: readonly string[];
}

/** Returns the takes that were refused since the last one that was granted, and the permits since the last of them; undefined if there are none. */
export function refusedOf(lines: readonly Line[]): Refused | undefined {
  const refused = (["limit", "lock"] as const).flatMap((kind) => {
    const own = lines.filter((line) => line.kind === kind);
    return own.slice(own.findLastIndex(({ event }) => event === "granted") + 1).filter(({ event }) => event === "refused");
  });
  if (refused.length === 0) return undefined;
  const owners = new Set(refused.flatMap(({ owner = "" }) => (owner === "" ? [] : [owner])));
  return { count: refused.length, sinceMs: Math.min(...refused.map(({ atMs }) => atMs)), owners: [...owners] };
}
