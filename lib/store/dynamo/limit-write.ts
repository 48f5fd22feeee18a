/**
 * The item of a limit, and the write of a take. `fullAt` of a bucket is the latest of eight candidates, because `max(fullAt, now) + charge`
 * can't be written, but this can, whatever the state of the bucket: every candidate but one gets the charge, and that one becomes
 * `now + charge`. The write is exactly a step of core/rate.ts, unless the one that is replaced is after now and alone the latest. The
 * condition refuses that.
 *
 * A process that knows nothing replaces one at random, so at most one take in seven of such processes is refused. The first candidate is
 * never replaced. A write after a refused one copies the latest candidate there: then none is alone the latest but the first, and no take
 * is refused for its candidate until the bucket is full again.
 *
 * The item: `gp` the rates as text; `g0`, `g0a` to `g0g` the candidates of the first rate, and so to `g3g`, in epoch microseconds, 0 if
 * missing; `x` TTL; `fv` format version.
 */
import { LIMITS } from "../../core/limits.js";
import type { LimitRecord, RateWithBurst, Shut, Take } from "../../core/rate.js";
import { chargeUs, fillMs, hasRates, latestFitUs, nowMsOf, ratesText, shutUs } from "../../core/rate.js";
import type { LockPolicy } from "../../core/record.js";
import { takeWaitMaxMs } from "../../core/request-limits.js";
import { type ClockReading, toSecondsUp } from "../../core/time.js";
import { FORMAT_VERSION, present, readItem } from "./format.js";
import { type Item, at, DamagedAttribute, safeInteger, textOf } from "./layout.js";
import { type Write, X } from "./predicates.js";

/** The end of the name of each candidate. */
const SUFFIXES = ["", "a", "b", "c", "d", "e", "f", "g"] as const;
/** The names of all candidates, of each rate. */
export const CANDIDATES: readonly (readonly string[])[] = Array.from({ length: LIMITS.ratesMax }, (_, rate) =>
  SUFFIXES.map((suffix) => `g${rate}${suffix}`),
);

/** A limit, and the candidates of each of its buckets. */
export interface StoredLimit {
  readonly record: LimitRecord;
  readonly candidates: readonly (readonly number[])[];
}

/** Decides which candidate a take replaces. */
export interface Choice {
  /** Returns a number from 0 to 1. */
  readonly random: () => number;
  /** True if the limit was returned by a write of this take that was refused. */
  readonly isRepeated: boolean;
}

/** `hasRates`: nobody uses the limit, or with the same rates. */
const SAME_RATES = "(attribute_not_exists(gp) OR gp = :rates)";
/** There is no limit yet, or one of this version's format. */
const KNOWN_FORMAT = "(attribute_not_exists(gp) OR fv = :format)";
/** There is a limit. */
const IN_TABLE = "attribute_exists(gp)";
/** `latestFitUs`: no candidate, and so not the latest, is after the time at which the take fits. */
const fits = (candidates: readonly string[], rate: number): string =>
  candidates.map((name) => `NOT (${name} > :fits${rate})`).join(" AND ");
/** `fullAfter`: without this candidate the latest is the same, or before now. */
const mayReplace = (name: string, others: readonly string[]): string =>
  `(NOT (${name} > :now) OR ${others.map((other) => `${name} <= ${other}`).join(" OR ")})`;
/** `fullAfter`: the latest is the same if the first candidate becomes equal to this one. */
const mayCopy = (name: string, first: string): string => `${name} >= ${first}`;
/** `fullInMsOf`: each bucket is full. */
const allFull = (candidates: readonly string[]): string => candidates.map((name) => `NOT (${name} > :full)`).join(" AND ");

type Part = Pick<Write, "condition" | "update" | "values">;

/** Returns the write of a take. Every write that succeeds is one step of `decideTake`. What is known of the limit only makes it likely to. */
export function takeWrite(known: StoredLimit | undefined, take: Take, reading: ClockReading, policy: LockPolicy, choice: Choice): Write {
  const { rates, waitMs } = take;
  // No write leaves a bucket that is full later than this.
  const ttl = toSecondsUp(reading.earliestMs + waitMs + fillMs(rates) + policy.retentionMs);
  const part = known && !hasRates(known.record, rates) ? beginAnew(take, reading) : addTake(known, take, reading, choice);
  return atRates(rates, part, ttl);
}

/** Returns the write of a part, which leaves the limit at these rates. */
function atRates(rates: readonly RateWithBurst[], { condition, update, values }: Part, ttl: number): Write {
  return {
    condition: `${KNOWN_FORMAT} AND ${condition}`,
    update: `SET gp = :rates, ${X} = :ttl, fv = :format, ${update}`,
    names: {},
    values: { ":rates": ratesText(rates), ":ttl": ttl, ":format": FORMAT_VERSION, ...values },
  };
}

function addTake(known: StoredLimit | undefined, take: Take, reading: ClockReading, { random, isRepeated }: Choice): Part {
  const nowUs = reading.latestMs * 1000;
  const latest = take.rates.map((_, rate) => latestOf(known?.candidates[rate], nowUs));
  // The same place in all buckets: those that cease to be full by one take then have their latest candidate in one place.
  const places = SUFFIXES.map((_, place) => place).filter((place) => place !== 0 && !latest.includes(place));
  const place = places[Math.floor(random() * places.length)] ?? 1;
  const conditions = [SAME_RATES];
  const updates: string[] = [];
  const values: Record<string, number> = { ":now": nowUs, ":zero": 0 };
  for (const [rate, given] of take.rates.entries()) {
    const names = CANDIDATES[rate] ?? [];
    const [first = "", replaced = "", source = ""] = [names[0], names[place], names[isRepeated ? (latest[rate] ?? 0) : 0]];
    const chargeOfRateUs = chargeUs(given, take.cost);
    values[`:charge${rate}`] = chargeOfRateUs;
    values[`:begun${rate}`] = nowUs + chargeOfRateUs;
    values[`:fits${rate}`] = latestFitUs(given, take, reading);
    for (const name of names) {
      const charged = `if_not_exists(${name === first ? source : name}, :zero) + :charge${rate}`;
      updates.push(`${name} = ${name === replaced ? `:begun${rate}` : charged}`);
    }
    const others = names.filter((name) => name !== replaced);
    conditions.push(fits(names, rate), mayReplace(replaced, others));
    if (source !== first) conditions.push(mayCopy(source, first));
  }
  return { condition: conditions.join(" AND "), update: updates.join(", "), values };
}

/** Returns the place of the latest candidate; 0 if the bucket is full, or nothing is known of it. */
function latestOf(candidates: readonly number[] = [], nowUs: number): number {
  const latestUs = Math.max(...candidates);
  return latestUs > nowUs ? candidates.indexOf(latestUs) : 0;
}

/**
 * Returns the write of a shut. It raises the first candidate of the first rate, which no take replaces. It is refused where that candidate is
 * later already, and so the limit shut for longer.
 */
export function shutWrite(known: StoredLimit | undefined, { rates, forMs }: Shut, reading: ClockReading, policy: LockPolicy): Write {
  const [first] = rates;
  const shutAtUs = first ? shutUs(first, forMs, reading) : 0;
  // No earlier write left a bucket that is full later than this, so an item is never kept for a shorter time than before.
  const ttl = toSecondsUp(reading.latestMs + takeWaitMaxMs + fillMs(rates) + policy.retentionMs);
  const begun = beginAt([shutAtUs], reading);
  const part =
    known && !hasRates(known.record, rates)
      ? { ...begun, condition: `NOT (gp = :rates) AND ${begun.condition}` }
      : { condition: `${SAME_RATES} AND NOT (g0 > :shut)`, update: "g0 = :shut", values: { ":shut": shutAtUs } };
  return atRates(rates, part, ttl);
}

/** Replaces other rates by a take. */
function beginAnew({ rates, cost }: Take, reading: ClockReading): Part {
  return beginAt(
    rates.map((rate) => reading.latestMs * 1000 + chargeUs(rate, cost)),
    reading,
  );
}

/** Replaces other rates. Every bucket is full, of whatever rates they are by now; those of these rates are full at these times. */
function beginAt(begun: readonly number[], reading: ClockReading): Part {
  const set = begun.map((_, rate) => `g${rate}`);
  const removed = CANDIDATES.flat().filter((name) => !set.includes(name));
  return {
    condition: allFull(CANDIDATES.flat()),
    update: `${set.map((name, rate) => `${name} = :begun${rate}`).join(", ")} REMOVE ${removed.join(", ")}`,
    values: { ":full": nowMsOf(reading) * 1000, ...Object.fromEntries(begun.map((fullAtUs, rate) => [`:begun${rate}`, fullAtUs])) },
  };
}

/** The write that makes every bucket full. */
export const RESET_WRITE: Write = {
  condition: `${IN_TABLE} AND ${KNOWN_FORMAT}`,
  update: `REMOVE ${CANDIDATES.flat().join(", ")}`,
  names: {},
  values: { ":format": FORMAT_VERSION },
};

/** Returns the limit of an item; undefined if there is none. @throws UnreadableRecord for another format, and for an attribute that is damaged */
export function limitOf(item: Item | undefined): StoredLimit | undefined {
  const stored = present(item);
  return stored && readItem(stored, limitIn);
}

function limitIn(item: Item): StoredLimit {
  const texts = at("gp", () => textOf(item["gp"]).split(","));
  const candidates = CANDIDATES.slice(0, texts.length).map((names) => names.map((name) => at(name, () => safeInteger(item[name] ?? 0))));
  const buckets = texts.map((text, rate) => {
    const [count, perMs, burst] = at("gp", () => text.split("/").map((number) => safeInteger(Number(number))));
    if (count === undefined || perMs === undefined || burst === undefined) throw new DamagedAttribute("has no rate", "gp");
    return { count, perMs, burst, fullAtUs: Math.max(...(candidates[rate] ?? [])) };
  });
  return { record: { buckets }, candidates };
}
