/**
 * Limits: how much may start in a time. Each rate of a limit is a bucket that fills at the rate, up to its burst, and a take empties it by
 * its cost. A bucket is one number, `fullAtUs`: the time at which it is full if nothing more is taken (the generic cell rate algorithm,
 * GCRA, of ITU-T I.371). So nothing ever has to be refilled, and a take is one write.
 *
 *  1. A take fits while `fullAt ≤ now + span − charge`. It then sets `fullAt` to `max(fullAt, latest) + charge`.
 *  2. `now` is the later clock while both agree within D ({@link CLOCKS_APART_MS}). Beyond it one of them is wrong: inflow counts by the
 *     earlier clock, and what is taken is dated by the later, so that the error makes the limit stricter, never looser.
 *  3. With a wait, a take that doesn't fit yet gets a start in the future. It is charged at once, so its start is reserved: no queue, no
 *     poll. While the clocks don't agree, a take starts now or is refused.
 *
 * In any true time w, at most `burst + rate × (w + 2E + D + S)` starts, if one clock of each decision is within E of true time. D is how far
 * the clocks of a decision are apart, at most 2 s; S is the longest time from reading the clocks to the write. Reason: `latest` is at least
 * `t − E − S` and `now` is at most `t + E + D`; each take between two others adds its charge to `fullAt`.
 */
import { type Refusal, refuse } from "./errors.js";
import type { ClockReading } from "./time.js";

/** A rate: `count` in each `perMs`, and at most `burst` at once. */
export interface Rate {
  readonly count: number;
  readonly perMs: number;
  /** @default count */
  readonly burst?: number | undefined;
}

/** A rate with its burst. */
export interface RateWithBurst extends Rate {
  readonly burst: number;
}

/** A rate with its bucket. Times are in microseconds, so that a rate such as 7 a minute loses nothing by rounding. */
export interface Bucket extends RateWithBurst {
  /** The time at which it is full again, in epoch microseconds. */
  readonly fullAtUs: number;
}

/** The buckets of a limit, in the order of its rates. */
export interface LimitRecord {
  readonly buckets: readonly Bucket[];
}

/** A take of `cost` from every rate of a limit, or from none. */
export interface Take {
  readonly rates: readonly Rate[];
  readonly cost: number;
  /** The longest time until its start, in ms; 0: it starts now or is refused. */
  readonly waitMs: number;
}

/** The take may start. */
export interface Taken {
  readonly ok: true;
  /** The time until it may start, in ms; 0: now. */
  readonly startInMs: number;
  /** The amount that can be taken at once after it, of each rate. */
  readonly remaining: readonly number[];
}

/** A limit as anybody sees it. */
export interface LimitView {
  readonly key: string;
  readonly rates: readonly RateWithBurst[];
  /** The amount that can be taken at once, of each rate. */
  readonly remaining: readonly number[];
  /** The time until all buckets are full, in ms. */
  readonly fullInMs: number;
}

/** The decision on a take: the answer, and the next record if it is granted. */
export type TakeDecision = { readonly answer: Taken; readonly next: LimitRecord } | { readonly answer: Refusal; readonly next?: undefined };

/** D: the clocks agree if they are no further apart than this, in ms: twice the default clock error, and the second to which a table tells its time. */
export const CLOCKS_APART_MS = 2000;

/** Decides a take: {@link LimitRecord} undefined means that nothing was taken before. */
export function decideTake(record: LimitRecord | undefined, take: Take, reading: ClockReading): TakeDecision {
  const { rates, cost, waitMs } = take;
  if (record && !hasRates(record, rates)) {
    const fullInMs = fullInMsOf(record, reading);
    if (fullInMs > 0) return { answer: refuseMismatch(record, fullInMs) };
  }
  const buckets = bucketsOf(record, rates);
  const lateMs = Math.max(0, ...buckets.map((bucket) => Math.ceil((bucket.fullAtUs - latestFitUs(bucket, cost, reading)) / 1000)));
  if (lateMs > (doAgree(reading) ? waitMs : 0)) return { answer: refuse("rate-limited", { retryAfterMs: lateMs }) };
  const next = buckets.map((bucket) => ({ ...bucket, fullAtUs: fullAfter(bucket, cost, reading) }));
  return {
    answer: { ok: true, startInMs: lateMs, remaining: next.map((bucket) => remainingOf(bucket, reading)) },
    next: { buckets: next },
  };
}

/** Returns the buckets of these rates: those of the record, or full ones. */
export function bucketsOf(record: LimitRecord | undefined, rates: readonly Rate[]): readonly Bucket[] {
  if (record && hasRates(record, rates)) return record.buckets;
  return rates.map(({ count, perMs, burst = count }) => ({ count, perMs, burst, fullAtUs: 0 }));
}

/** True if the record's buckets are of these rates. */
export function hasRates({ buckets }: LimitRecord, rates: readonly Rate[]): boolean {
  return ratesText(buckets) === ratesText(rates);
}

/** Returns rates as short text, the same for the same rates: `100/60000/100,5/1000/5`. */
export function ratesText(rates: readonly Rate[]): string {
  return rates.map(({ count, perMs, burst = count }) => `${count}/${perMs}/${burst}`).join(",");
}

/** Returns the latest `fullAtUs` of a bucket at which a take of this cost may start now. */
export function latestFitUs(bucket: Bucket, cost: number, reading: ClockReading): number {
  return nowMsOf(reading) * 1000 + spanUs(bucket) - chargeUs(bucket, cost);
}

/** Returns `fullAtUs` after a take of this cost. */
export function fullAfter(bucket: Bucket, cost: number, { latestMs }: ClockReading): number {
  return Math.max(bucket.fullAtUs, latestMs * 1000) + chargeUs(bucket, cost);
}

/** Returns the time by which a take of this cost postpones `fullAtUs`, rounded up to the stricter side. */
export function chargeUs(rate: Rate, cost: number): number {
  return Math.ceil(unitUs(rate) * cost);
}

/** Returns the longest time that any bucket of these rates takes to fill, in ms. */
export function fillMs(rates: readonly Rate[]): number {
  return Math.max(...rates.map((rate) => (unitUs(rate) * (rate.burst ?? rate.count)) / 1000));
}

/** Returns the view of a limit. */
export function viewOfLimit(key: string, record: LimitRecord, reading: ClockReading): LimitView {
  return {
    key,
    rates: record.buckets.map(({ count, perMs, burst }) => ({ count, perMs, burst })),
    remaining: record.buckets.map((bucket) => remainingOf(bucket, reading)),
    fullInMs: fullInMsOf(record, reading),
  };
}

/** Returns the time until every bucket is full, in ms. */
function fullInMsOf({ buckets }: LimitRecord, reading: ClockReading): number {
  return Math.max(0, ...buckets.map(({ fullAtUs }) => Math.ceil(fullAtUs / 1000) - nowMsOf(reading)));
}

/** Returns the refusal of rates that no take could come from; undefined if all are possible. */
export function refuseRates({ rates, cost }: Pick<Take, "rates" | "cost">): Refusal | undefined {
  for (const [index, rate] of rates.entries()) {
    const { count, burst = count } = rate;
    if (burst < cost) return refuse("invalid-request", { field: "cost", detail: `cost: must be at most the burst of ${burst}` });
    if (fillMs([rate]) > FILL_MAX_MS)
      return refuse("invalid-request", { field: `rates.${index}.burst`, detail: `rates.${index}.burst: would take over a year to fill` });
  }
  return undefined;
}

/** The most that rounding adds up to in a burst of a hundred takes, in microseconds: too little to be seen in an answer. */
const ROUNDED_US = 100;
/** The longest time that a bucket may take to fill: a year. */
const FILL_MAX_MS = 366 * 24 * 3_600_000;

function doAgree({ earliestMs, latestMs }: ClockReading): boolean {
  return latestMs - earliestMs <= CLOCKS_APART_MS;
}

/** Returns the time up to which inflow counts. */
function nowMsOf(reading: ClockReading): number {
  return doAgree(reading) ? reading.latestMs : reading.earliestMs;
}

/** The time that one unit takes to flow in, in microseconds. */
function unitUs({ count, perMs }: Rate): number {
  return (perMs * 1000) / count;
}

/**
 * The time that the whole burst takes to flow in, in microseconds. It is longer by less than a unit, since every charge is rounded up: so
 * takes of 2 and 3 fit where one of 5 does.
 */
function spanUs(bucket: Bucket): number {
  const unit = unitUs(bucket);
  return Math.floor(unit * bucket.burst + Math.min(unit / 2, ROUNDED_US));
}

function remainingOf(bucket: Bucket, reading: ClockReading): number {
  const units = (nowMsOf(reading) * 1000 + spanUs(bucket) - bucket.fullAtUs) / unitUs(bucket);
  return Math.min(bucket.burst, Math.max(0, Math.floor(units)));
}

function refuseMismatch({ buckets }: LimitRecord, retryAfterMs: number): Refusal {
  const detail = `Others use this limit with the rates ${ratesText(buckets)} (count/perMs/burst), until it is full again in ${retryAfterMs} ms`;
  return refuse("limit-mismatch", { retryAfterMs, detail });
}
