/**
 * The starts that a rate of 100 a minute lets through, by its burst, when every call that may start does: a limit in memory is asked every
 * millisecond after a pause in which its bucket became full. docs/decisions/083 chooses the default burst by it.
 */
import { type LimitRecord, type RateWithBurst, decideTake, withBurst } from "../lib/core/rate.js";
import type { Report } from "./report/report.js";
import { markdownTable } from "./report/table.js";

const COUNT = 100;
const PER_MS = 60_000;
const BURSTS = [1, 10, 25, 50];
const MINUTES = 20;

/** Returns the starts after a pause, in ms. */
function startsOf(rate: RateWithBurst): readonly number[] {
  const starts: number[] = [];
  let record: LimitRecord | undefined;
  for (let ms = 0; ms < MINUTES * PER_MS; ms++) {
    for (;;) {
      const { answer, next } = decideTake(record, { rates: [rate], cost: 1, waitMs: 0 }, { earliestMs: ms, latestMs: ms });
      if (!answer.ok) break;
      record = next;
      starts.push(ms);
    }
  }
  return starts;
}

/** Returns the table. */
export function rates(): Promise<Report> {
  const chosen = withBurst({ count: COUNT, perMs: PER_MS });
  const bounded = BURSTS.map((burst) => ({ count: COUNT - burst + 1, perMs: PER_MS, burst }));
  const rows = [...bounded, { count: COUNT, perMs: PER_MS, burst: COUNT }].map((rate) => {
    const starts = startsOf(rate);
    const within = (ms: number): number => starts.filter((start) => start >= ms && start < ms + PER_MS).length;
    const name = `{ count: ${rate.count}, perMs: 60_000, burst: ${rate.burst} }`;
    const isDefault = rate.count === chosen.count && rate.burst === chosen.burst;
    return [
      isDefault ? `${name}, the default` : name,
      `${starts.filter((start) => start === 0).length}`,
      `${Math.max(...starts.map(within))}`,
      `${within((MINUTES - 1) * PER_MS)}`,
      `${((starts[COUNT - 1] ?? 0) / 1000).toFixed(1)} s`,
    ];
  });
  const head = [
    "100 a minute as",
    "at once after a pause",
    "most in any minute",
    "a minute under steady load",
    "100 that come together start within",
  ];
  return Promise.resolve({ tables: [markdownTable([head, ...rows])] });
}
