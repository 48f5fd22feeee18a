/**
 * Limits: how much may start in a time. Each rate of a limit is a bucket that fills at the rate, up to its burst, and a take empties it by
 * its cost. A bucket is one number, `fullAtUs`: the time at which it is full if nothing more is taken (the generic cell rate algorithm,
 * GCRA, of ITU-T I.371). So nothing ever has to be refilled (decision 043).
 *
 *  1. A take fits while `fullAt ≤ now + span − charge`. It then sets `fullAt` to `max(fullAt, latest) + charge`.
 *  2. `now` is the later clock while both agree within D ({@link CLOCKS_APART_MS}). Beyond it one of them is wrong: inflow counts by the
 *     earlier clock, and what is taken is dated by the later, so that an error beyond D makes the limit stricter.
 *  3. With a wait, a take that doesn't fit yet gets a start in the future. It is charged at once, so its start is reserved: no queue, no
 *     poll. While the clocks don't agree, a take starts now or is refused.
 *
 * A shut keeps a limit shut until T: it raises `fullAt` of the first bucket to `T + span − charge(1)`, so that not even a take of 1 fits before
 * T by the clocks of its decision. Like a take it only ever raises `fullAt`: stricter, never looser.
 *
 * In any true time w, at most `burst + rate × (w + 2E + D + S)` starts, if one clock of each decision is within E of true time. D is how far
 * the clocks of a decision are apart, at most 2 s; S is the longest time from reading the clocks to the write. Reason: `latest` is at least
 * `t − E − S` and `now` is at most `t + E + D`; each take between two others adds its charge to `fullAt`.
 */
import { type Refusal, refuse } from "./errors.js";
import type { ClockReading } from "./time.js";

/**
 * A rate: at most `count` start in any `perMs`. With a `burst` it is a bucket of that size, to which `count` flow in each `perMs`: at most
 * `burst` start at once, and at most `burst + count − 1` in any `perMs`.
 */
export interface Rate {
  readonly count: number;
  readonly perMs: number;
  /** @default a quarter of `count`, rounded up; then `count − burst + 1` flow in, so that at most `count` start in any `perMs` */
  readonly burst?: number | undefined;
}

/** A rate as a bucket: `count` flow in each `perMs`, and at most `burst` start at once. */
export interface RateWithBurst extends Rate {
  readonly burst: number;
}

/**
 * Returns a rate as the bucket that it is. Of a rate without a burst at most `count` start in any `perMs`, and what may start at once is no
 * longer free to flow in: of 100 a minute, 25 start at once, and 76 flow in each minute (docs/decisions/083). A bucket stays as it is.
 */
export function withBurst({ count, perMs, burst }: Rate): RateWithBurst {
  if (burst !== undefined) return { count, perMs, burst };
  const atOnce = Math.ceil(count / BURST_SHARE);
  return { count: count - atOnce + 1, perMs, burst: atOnce };
}

/** Returns the largest cost that each of these rates allows: the smallest burst. */
export function costMaxOf(rates: readonly RateWithBurst[]): number {
  return Math.min(...rates.map(({ burst }) => burst));
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
  readonly rates: readonly RateWithBurst[];
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

/** Nothing starts from a limit of these rates before a time is over. */
export interface Shut {
  readonly rates: readonly RateWithBurst[];
  /** The time from now, in ms, by the later clock. */
  readonly forMs: number;
}

/** A limit as anybody sees it. */
export interface LimitView {
  readonly key: string;
  readonly rates: readonly RateWithBurst[];
  /** The amount that can be taken at once, of each rate. */
  readonly remaining: readonly number[];
  /** The time until a take of 1 may start, in ms; 0: now. A service from before it was told leaves it out. */
  readonly nextInMs?: number | undefined;
  /** The time until all buckets are full, in ms. */
  readonly fullInMs: number;
}

/** The decision on a take: the answer, and the next record if it is granted. */
export type TakeDecision = { readonly answer: Taken; readonly next: LimitRecord } | { readonly answer: Refusal; readonly next?: undefined };

/** D: the clocks agree if they are no further apart than this, in ms: twice the default clock error, and the second to which a table tells its time. */
export const CLOCKS_APART_MS = 2000;

/**
 * The longest time for which a process answers takes by an earlier refusal, in ms: `fullAt` falls only when an operator resets the limit, so
 * the reset reaches every process by then.
 */
export const REFUSED_FOR_MS = 5000;

/** The share of `count` that may start at once by default: one in so many. */
const BURST_SHARE = 4;

/** Decides a take: {@link LimitRecord} undefined means that nothing was taken before. */
export function decideTake(record: LimitRecord | undefined, take: Take, reading: ClockReading): TakeDecision {
  const { rates } = take;
  const refusal = record && mismatchOf(record, rates, reading);
  if (refusal) return { answer: refusal };
  const buckets = bucketsOf(record, rates);
  if (buckets.some((bucket) => bucket.fullAtUs > latestFitUs(bucket, take, reading)))
    return { answer: refuse("rate-limited", { retryAfterMs: untilFitsMs(buckets, take, reading) }) };
  const next = { buckets: buckets.map((bucket) => ({ ...bucket, fullAtUs: fullAfter(bucket, take.cost, reading) })) };
  return { answer: takenFrom(next, take, reading), next };
}

/** Decides a shut. The answer is that of a look: the time until a take of 1 may start, and what remains, which is nothing. */
export function decideShut(record: LimitRecord | undefined, shut: Shut, reading: ClockReading): TakeDecision {
  const refusal = record && mismatchOf(record, shut.rates, reading);
  if (refusal) return { answer: refusal };
  const buckets = bucketsOf(record, shut.rates).map((bucket, index) =>
    index === 0 ? { ...bucket, fullAtUs: Math.max(bucket.fullAtUs, shutUs(bucket, shut.forMs, reading)) } : bucket,
  );
  return { answer: shutFrom({ buckets }, reading), next: { buckets } };
}

/** Returns the answer to a shut that left these buckets. */
export function shutFrom({ buckets }: LimitRecord, reading: ClockReading): Taken {
  return {
    ok: true,
    startInMs: untilNextMs(buckets, reading),
    remaining: buckets.map((bucket) => remainingOf(bucket, reading)),
  };
}

/** Returns the least `fullAtUs` of a bucket from which no take starts before `forMs` are over. */
export function shutUs(rate: RateWithBurst, forMs: number, { latestMs }: ClockReading): number {
  return (latestMs + forMs) * 1000 + spanUs(rate) - chargeUs(rate, 1);
}

/** Returns the answer to a take that was granted, and left these buckets. */
export function takenFrom({ buckets }: LimitRecord, take: Take, reading: ClockReading): Taken {
  const before = buckets.map((bucket) => ({ ...bucket, fullAtUs: bucket.fullAtUs - chargeUs(bucket, take.cost) }));
  return {
    ok: true,
    startInMs: Math.min(longestWaitMs(take, reading), untilFitsMs(before, take, reading)),
    remaining: buckets.map((bucket) => remainingOf(bucket, reading)),
  };
}

/** Returns the record after a reset: every bucket is full, so the next take may bring other rates. */
export function fullAgain(record: LimitRecord | undefined): LimitRecord | undefined {
  return record && { buckets: record.buckets.map((bucket) => ({ ...bucket, fullAtUs: 0 })) };
}

/** Returns the buckets of these rates: those of the record, or full ones. */
export function bucketsOf(record: LimitRecord | undefined, rates: readonly RateWithBurst[]): readonly Bucket[] {
  if (record && hasRates(record, rates)) return record.buckets;
  return rates.map((rate) => ({ ...rate, fullAtUs: 0 }));
}

/** True if the record's buckets are of these rates. */
export function hasRates({ buckets }: LimitRecord, rates: readonly RateWithBurst[]): boolean {
  return ratesText(buckets) === ratesText(rates);
}

/** Returns rates as short text, the same for the same rates: `76/60000/25,4/1000/2`. */
export function ratesText(rates: readonly RateWithBurst[]): string {
  return rates.map(({ count, perMs, burst }) => `${count}/${perMs}/${burst}`).join(",");
}

/** Returns the latest `fullAtUs` of a bucket at which a take fits: it starts now, or after a wait that is allowed. */
export function latestFitUs(rate: RateWithBurst, take: Pick<Take, "cost" | "waitMs">, reading: ClockReading): number {
  return (nowMsOf(reading) + longestWaitMs(take, reading)) * 1000 + spanUs(rate) - chargeUs(rate, take.cost);
}

/** Returns `fullAtUs` after a take of this cost. */
export function fullAfter(bucket: Bucket, cost: number, { latestMs }: ClockReading): number {
  return Math.max(bucket.fullAtUs, latestMs * 1000) + chargeUs(bucket, cost);
}

/** Returns the time by which a take of this cost postpones `fullAtUs`, rounded up to the stricter side. */
export function chargeUs(rate: RateWithBurst, cost: number): number {
  return Math.ceil(unitUs(rate) * cost);
}

/** Returns the longest time that any bucket of these rates takes to fill, in ms. */
export function fillMs(rates: readonly RateWithBurst[]): number {
  return Math.max(...rates.map((rate) => (unitUs(rate) * rate.burst) / 1000));
}

/** Returns the view of a limit. */
export function viewOfLimit(key: string, record: LimitRecord, reading: ClockReading): LimitView {
  return {
    key,
    rates: record.buckets.map(({ count, perMs, burst }) => ({ count, perMs, burst })),
    remaining: record.buckets.map((bucket) => remainingOf(bucket, reading)),
    nextInMs: untilNextMs(record.buckets, reading),
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
    const { burst } = rate;
    if (burst < cost) return refuse("invalid-request", { field: "cost", detail: `cost: must be at most the burst of ${burst}` });
    if (fillMs([rate]) > FILL_MAX_MS)
      return refuse("invalid-request", { field: `rates.${index}.burst`, detail: `rates.${index}.burst: would take over 31 days to fill` });
  }
  return undefined;
}

/** The most that rounding adds up to in a burst of a hundred takes, in microseconds: too little to be seen in an answer. */
const ROUNDED_US = 100;
/** The longest time that a bucket may take to fill: 31 days. A mistake in the rates shuts the name to others for so long, without a reset. */
const FILL_MAX_MS = 31 * 24 * 3_600_000;

function doAgree({ earliestMs, latestMs }: ClockReading): boolean {
  return latestMs - earliestMs <= CLOCKS_APART_MS;
}

/** Returns the time up to which inflow counts. */
export function nowMsOf(reading: ClockReading): number {
  return doAgree(reading) ? reading.latestMs : reading.earliestMs;
}

/** Returns the longest wait until a start: none while the clocks disagree. */
function longestWaitMs({ waitMs }: Pick<Take, "waitMs">, reading: ClockReading): number {
  return doAgree(reading) ? waitMs : 0;
}

/** Returns the time until a take fits without a wait, in ms; 0 if it fits now. */
function untilFitsMs(buckets: readonly Bucket[], { cost }: Pick<Take, "cost">, reading: ClockReading): number {
  const lateUs = buckets.map((bucket) => bucket.fullAtUs - latestFitUs(bucket, { cost, waitMs: 0 }, reading));
  return Math.max(0, ...lateUs.map((us) => Math.ceil(us / 1000)));
}

/** Returns the time until a take of 1 fits, in ms. */
function untilNextMs(buckets: readonly Bucket[], reading: ClockReading): number {
  return untilFitsMs(buckets, { cost: 1 }, reading);
}

/** The time that one unit takes to flow in, in microseconds. */
function unitUs({ count, perMs }: RateWithBurst): number {
  return (perMs * 1000) / count;
}

/**
 * The time that the whole burst takes to flow in, in microseconds. It is longer by less than a unit, since every charge is rounded up: so
 * takes of 2 and 3 fit where one of 5 does.
 */
function spanUs(rate: RateWithBurst): number {
  const unit = unitUs(rate);
  return Math.floor(unit * rate.burst + Math.min(unit / 2, ROUNDED_US));
}

function remainingOf(bucket: Bucket, reading: ClockReading): number {
  const units = (nowMsOf(reading) * 1000 + spanUs(bucket) - bucket.fullAtUs) / unitUs(bucket);
  return Math.min(bucket.burst, Math.max(0, Math.floor(units)));
}

/** Returns the refusal of other rates than the record's, until it is full. */
function mismatchOf(record: LimitRecord, rates: readonly RateWithBurst[], reading: ClockReading): Refusal | undefined {
  const retryAfterMs = hasRates(record, rates) ? 0 : fullInMsOf(record, reading);
  if (retryAfterMs === 0) return undefined;
  const { buckets } = record;
  // In the words in which the command line and the console list a rate (rateText).
  const theirs = buckets.map(({ count, perMs, burst }) => `${count + burst - 1} in ${perMs} ms (bursts of ${burst})`).join(", ");
  const detail = `Others use this limit at other rates, ${theirs}, until it is full again in ${retryAfterMs} ms, or an operator resets it`;
  return refuse("limit-mismatch", { retryAfterMs, detail });
}
