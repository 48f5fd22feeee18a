/** Durations in the form that people write: `500ms`, `30s`, `1h30m`. A number without a unit is refused. */

const UNITS = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1000],
  ["ms", 1],
] as const;

/** Whole numbers, from days to milliseconds, with each unit at most once. */
const DURATION = /^(?=\d)(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?(?:(\d+)ms)?$/;

/** Parses `text` into ms, or returns one sentence about the mistake. */
export function parseDuration(text: string): { readonly ms: number } | { readonly wrong: string } {
  if (/^\d+$/.test(text)) return { wrong: `${text} has no unit: write ${text}s, or ${text} with ms, m, h or d.` };
  const found = DURATION.exec(text);
  if (!found) return { wrong: "Write it like 500ms, 30s, 5m, 2h, 1d or 1h30m." };
  const ms = UNITS.reduce((sum, [, unitMs], at) => sum + Number(found[at + 1] ?? 0) * unitMs, 0);
  return Number.isSafeInteger(ms) ? { ms } : { wrong: "It is too long." };
}

/** Formats `ms` without rounding, in one unit, as {@link parseDuration} reads it: `1m`, `90s`, `1500ms`. */
export function exactDuration(ms: number): string {
  const [unit, unitMs] = UNITS.find(([, each]) => ms % each === 0) ?? ["ms", 1];
  return `${ms / unitMs}${unit}`;
}

/** Formats `ms` like {@link formatDuration}, below 10 s to the tenth of a second: `1.5s`. */
export function formatToTenths(ms: number): string {
  return ms >= 1000 && ms < 10_000 ? `${Math.floor(ms / 100) / 10}s` : formatDuration(ms);
}

/** Formats `ms` in its two largest units, rounded down: `1h 30m`, `12s`, `840ms`. Negative values are formatted as `0s`. */
export function formatDuration(ms: number): string {
  const first = UNITS.findIndex(([, unitMs]) => ms >= unitMs);
  const [unit, unitMs] = UNITS[first] ?? ["s", 1000];
  if (first < 0) return "0s";
  const count = Math.floor(ms / unitMs);
  const [lesser, lesserMs] = UNITS[first + 1] ?? ["ms", 1];
  const rest = Math.floor((ms - count * unitMs) / lesserMs);
  return rest > 0 && lesserMs >= 1000 ? `${count}${unit} ${rest}${lesser}` : `${count}${unit}`;
}

/** Formats `ms` like {@link formatDuration}, but rounded up: a time that must have passed. */
export function formatDurationUp(ms: number): string {
  const [, lesserMs] = UNITS[UNITS.findIndex(([, unitMs]) => ms >= unitMs) + 1] ?? ["ms", 1];
  const leastMs = ms < 1000 ? 1 : Math.max(lesserMs, 1000);
  return formatDuration(Math.ceil(ms / leastMs) * leastMs);
}

/** Formats `ms` as {@link formatDuration} does, but without milliseconds, which nobody can read while they change: `<1s`. */
export function formatSeconds(ms: number): string {
  return ms > 0 && ms < 1000 ? "<1s" : formatDuration(ms);
}

/** Formats a rate: `100 in 1m`, and with its burst `100 in 1m (bursts of 25)`: at most so many start in any such time. */
export function rateText({
  count,
  perMs,
  burst,
}: {
  readonly count: number;
  readonly perMs: number;
  readonly burst?: number | undefined;
}): string {
  const per = exactDuration(perMs);
  return burst === undefined ? `${count} in ${per}` : `${count + burst - 1} in ${per} (bursts of ${burst})`;
}
