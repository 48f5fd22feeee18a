/** Random histories of takes by processes with wrong clocks, whose answers get lost; and the bound that no history may exceed. */
import { decideTake, fullAfter, CLOCKS_APART_MS } from "../../lib/core/rate.js";
import type { RateWithBurst, LimitRecord, Take, TakeDecision } from "../../lib/core/rate.js";
import type { ClockReading } from "../../lib/core/time.js";

/** E, in ms. */
const CLOCK_ERROR_MS = 500;
/** S: the longest time from reading the clocks to the write, in ms. */
const STALL_MS = 300;
const START_MS = Date.UTC(2027, 0, 1);
const TAKES = 40;

/** Decides a take, as `decideTake` does. */
export type Decide = (record: LimitRecord | undefined, take: Take, reading: ClockReading) => TakeDecision;

/** The circumstances of a history. */
export interface Setting {
  readonly rates: readonly RateWithBurst[];
  /** The largest error of the second clock of each process, in ms. The first one is right within E. */
  readonly errorMs: number;
  /** The longest wait of a take, in ms. */
  readonly waitMs: number;
}

/** Starts by true time, and takes that were refused though every bucket had certainly been full. */
export interface Played {
  readonly starts: readonly { readonly atMs: number; readonly cost: number }[];
  readonly granted: number;
  readonly starved: number;
}

/** Returns numbers from 0 to 1 that the seed decides. */
export function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Plays one history. */
export function play({ rates, errorMs, waitMs }: Setting, seed: number, decide: Decide = decideTake): Played {
  const random = randomOf(seed);
  const within = (ms: number): number => Math.round((2 * random() - 1) * ms);
  const smallest = Math.min(...rates.map(({ burst }) => burst));
  const fillMs = Math.max(...rates.map(({ count, perMs, burst }) => (burst * perMs) / count));
  const unitMs = Math.max(...rates.map(({ count, perMs }) => perMs / count));
  const processes = Array.from({ length: 1 + Math.floor(random() * 5) }, () => [within(CLOCK_ERROR_MS), within(errorMs)] as const);
  const starts: { atMs: number; cost: number }[] = [];
  let record: LimitRecord | undefined;
  let [nowMs, granted, starved, lastMs] = [START_MS, 0, 0, Number.NEGATIVE_INFINITY];
  for (let take = 0; take < TAKES; take++) {
    nowMs += Math.round(random() * random() * (random() < 0.1 ? 4 * fillMs : 2 * unitMs));
    const [first, second] = processes[Math.floor(random() * processes.length)]!;
    const readAtMs = nowMs - Math.round(random() * STALL_MS);
    const reading = { earliestMs: readAtMs + Math.min(first, second), latestMs: readAtMs + Math.max(first, second) };
    const cost = 1 + Math.floor(random() * smallest);
    const isLost = random() < 0.15;
    for (let sent = 0; sent < (isLost ? 2 : 1); sent++) {
      const { answer, next } = decide(record, { rates, cost, waitMs: random() < 0.5 ? waitMs : 0 }, reading);
      const isFull = nowMs - lastMs > fillMs + 2 * errorMs + 2 * CLOCK_ERROR_MS + STALL_MS + waitMs;
      if (!answer.ok) {
        if (isFull) starved++;
        continue;
      }
      record = next;
      lastMs = nowMs + answer.startInMs;
      granted++;
      // The caller starts by the answer that reaches it.
      if (!isLost || sent === 1) starts.push({ atMs: lastMs, cost });
    }
  }
  return { starts: starts.sort((a, b) => a.atMs - b.atMs), granted, starved };
}

/** Returns the largest excess over the bound, in ms of the rate's inflow; at most 0 if the bound holds. */
export function excessMs({ starts }: Played, { rates }: Setting): number {
  const slackMs = 2 * CLOCK_ERROR_MS + STALL_MS + CLOCKS_APART_MS;
  let worst = Number.NEGATIVE_INFINITY;
  for (const { count, perMs, burst } of rates)
    for (const [index, first] of starts.entries()) {
      let taken = 0;
      for (const { atMs, cost } of starts.slice(index)) {
        taken += cost;
        worst = Math.max(worst, ((taken - burst) * perMs) / count - (atMs - first.atMs) - slackMs);
      }
    }
  return worst;
}

/** Mistakes in the decision, each of which breaks the bound. */
export const MISTAKES: Readonly<Record<string, Decide>> = {
  "one clock for both": (record, take, { earliestMs }) => decideTake(record, take, { earliestMs, latestMs: earliestMs }),
  "inflow by the later clock": (record, take, reading) => decideTake(record, take, { ...reading, earliestMs: reading.latestMs }),
  "a take charged at the reading of an earlier attempt": (record, take, reading) => {
    const decided = decideTake(record, take, reading);
    if (!decided.next) return decided;
    const old = { earliestMs: reading.earliestMs - 10_000, latestMs: reading.latestMs - 10_000 };
    const before = record?.buckets ?? decided.next.buckets.map((bucket) => ({ ...bucket, fullAtUs: 0 }));
    return { ...decided, next: { buckets: before.map((bucket) => ({ ...bucket, fullAtUs: fullAfter(bucket, take.cost, old) })) } };
  },
};
