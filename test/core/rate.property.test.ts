/**
 * The bound of a limit in true time, over random histories with wrong clocks and lost answers; and of rates without a burst the bound that
 * their words say. Controls: mistakes that break it.
 */
import { describe, expect, it } from "vitest";
import {
  type LimitRecord,
  type Rate,
  type RateWithBurst,
  CLOCKS_APART_MS,
  decideShut,
  decideTake,
  withBurst,
} from "../../lib/core/rate.js";
import { sized } from "../support/tier.js";
import { type Setting, excessMs, MISTAKES, play, randomOf } from "./rate-histories.js";

const START_MS = Date.UTC(2027, 0, 1);
const HISTORIES = sized({ quick: 200, slow: 10_000 });
const RATES = [
  [{ count: 10, perMs: 1000, burst: 10 }],
  [{ count: 7, perMs: 60_000, burst: 1 }],
  [
    { count: 100, perMs: 60_000, burst: 100 },
    { count: 5, perMs: 1000, burst: 5 },
  ],
];
const SETTINGS: readonly Setting[] = RATES.flatMap((rates) =>
  [500, 10_000].flatMap((errorMs) => [0, 20_000].map((waitMs) => ({ rates, errorMs, waitMs }))),
);
/** A bucket that takes longer to fill than the clocks are wrong. */
const WILD: Setting = { rates: [{ count: 100, perMs: 60_000, burst: 100 }], errorMs: 10_000, waitMs: 0 };

const nameOf = ({ rates, errorMs, waitMs }: Setting): string =>
  `${rates.map(({ count, perMs, burst }) => `${count} in ${perMs} ms, ${burst} at once`).join(" and ")}, one clock up to ${errorMs} ms off, waits up to ${waitMs} ms`;

describe(`in ${HISTORIES} histories, no more starts than the limit allows`, () => {
  it.each(SETTINGS.map((setting) => [nameOf(setting), setting] as const))("%s", { timeout: 120_000 }, (_name, setting) => {
    let [granted, starved] = [0, 0];
    for (let seed = 1; seed <= HISTORIES; seed++) {
      const played = play(setting, seed);
      expect(excessMs(played, setting), `seed ${seed}`).toBeLessThanOrEqual(0);
      granted += played.granted;
      starved += played.starved;
    }
    expect(granted).toBeGreaterThan(2 * HISTORIES);
    expect(starved).toBe(0); // No full bucket refuses.
  });

  it.each(Object.keys(MISTAKES))("control: with %s, more start", (mistake) => {
    const hasExcess = Array.from({ length: 300 }, (_, seed) => excessMs(play(WILD, seed + 1, MISTAKES[mistake]), WILD) > 0);
    expect(hasExcess).toContain(true);
  });
});

/** E, in ms. */
const SHUT_ERROR_MS = 500;
const STEPS = 40;

/** Decides a shut, as `decideShut` does. */
type DecideShut = typeof decideShut;

/** Plays takes and shuts by processes of which one clock is up to E off, and the other more. Returns the takes after a shut, and how early the first start is. */
function playShuts({ rates, errorMs, waitMs }: Setting, seed: number, shutBy: DecideShut = decideShut) {
  const random = randomOf(seed);
  const within = (ms: number): number => Math.round((2 * random() - 1) * ms);
  const isRight = errorMs === 0;
  const clocks = Array.from({ length: 3 }, () => [within(isRight ? 0 : SHUT_ERROR_MS), within(errorMs)] as const);
  let record: LimitRecord | undefined;
  let [nowMs, openAtMs, granted, earlyMs] = [START_MS, 0, 0, Number.NEGATIVE_INFINITY];
  for (let step = 0; step < STEPS; step++) {
    nowMs += Math.round(random() * random() * 2000);
    const [first, second] = clocks[Math.floor(random() * clocks.length)]!;
    const reading = { earliestMs: nowMs + Math.min(first, second), latestMs: nowMs + Math.max(first, second) };
    if (random() < 0.15) {
      const forMs = 1 + Math.floor(random() * 10_000);
      record = shutBy(record, { rates, forMs }, reading).next ?? record;
      openAtMs = Math.max(openAtMs, reading.latestMs + forMs);
      continue;
    }
    const { answer, next } = decideTake(record, { rates, cost: 1, waitMs: random() < 0.5 ? waitMs : 0 }, reading);
    record = next ?? record;
    if (!answer.ok || openAtMs === 0) continue;
    granted++;
    earlyMs = Math.max(earlyMs, openAtMs - (nowMs + answer.startInMs));
  }
  return { granted, earlyMs };
}

describe("after a shut until T was answered", () => {
  const settings = RATES.flatMap((rates) =>
    [0, 500, 10_000].flatMap((errorMs) => [0, 20_000].map((waitMs) => ({ rates, errorMs, waitMs }))),
  );

  it.each(settings.map((setting) => [nameOf(setting), setting] as const))("nobody starts before T: %s", (_name, setting) => {
    let granted = 0;
    // T is a time of the service's clocks: by true time it may be as much earlier as they are wrong and apart.
    const slackMs = setting.errorMs === 0 ? 0 : SHUT_ERROR_MS + CLOCKS_APART_MS;
    for (let seed = 1; seed <= HISTORIES; seed++) {
      const played = playShuts(setting, seed);
      expect(played.earlyMs, `seed ${seed}`).toBeLessThanOrEqual(slackMs);
      granted += played.granted;
    }
    expect(granted).toBeGreaterThan(HISTORIES / 5);
  });

  it.each<[mistake: string, shutBy: DecideShut]>([
    ["leaves the burst", (record, { rates, forMs }, reading) => decideTake(record, { rates, cost: 1, waitMs: forMs }, reading)],
    ["takes the place of a longer one", (_record, shut, reading) => decideShut(undefined, shut, reading)],
    [
      "counts by the earlier clock",
      (record, shut, reading) =>
        decideShut(record, shut, { ...reading, latestMs: Math.min(reading.earliestMs, reading.latestMs - 10_000) }),
    ],
  ])("control: with one that %s, somebody does", (_mistake, shutBy) => {
    const setting = { rates: RATES[0]!, errorMs: 0, waitMs: 0 };
    const early = Array.from({ length: 300 }, (_, seed) => playShuts(setting, seed + 1, shutBy).earlyMs > 0);
    expect(early).toContain(true);
  });

  it.each(SETTINGS.map((setting) => [nameOf(setting), setting] as const))(
    "no more start than without it: %s",
    { timeout: 120_000 },
    (_name, setting) => {
      for (let seed = 1; seed <= HISTORIES; seed++) {
        const random = randomOf(seed);
        const shutting: typeof decideTake = (record, take, reading) => {
          const shut =
            random() < 0.2 ? decideShut(record, { rates: take.rates, forMs: 1 + Math.floor(random() * 3000) }, reading).next : undefined;
          return decideTake(shut ?? record, take, reading);
        };
        expect(excessMs(play(setting, seed, shutting), setting), `seed ${seed}`).toBeLessThanOrEqual(0);
      }
    },
  );
});

/** Returns the most that starts in any `perMs` of a random sequence of takes, some of which wait, of a rate without a burst; and its count. */
function mostInAnyTime(seed: number, bucketOf: (rate: Rate) => RateWithBurst): { readonly most: number; readonly count: number } {
  const random = randomOf(seed);
  const upTo = (most: number): number => 1 + Math.floor(random() * most);
  const count = upTo(random() < 0.5 ? 12 : 200);
  const perMs = 1000 * upTo(60);
  const rate = bucketOf({ count, perMs });
  const starts: { atMs: number; cost: number }[] = [];
  let record: LimitRecord | undefined;
  for (let nowMs = 1, take = 0; take < 3 * count + 20; take++) {
    if (random() < 0.3) nowMs += Math.floor(random() * (random() < 0.1 ? 2 * perMs : (3 * perMs) / count));
    const cost = random() < 0.7 ? 1 : upTo(rate.burst);
    const waitMs = random() < 0.3 ? upTo(perMs) : 0;
    const { answer, next } = decideTake(record, { rates: [rate], cost, waitMs }, { earliestMs: nowMs, latestMs: nowMs });
    record = next ?? record;
    if (answer.ok) starts.push({ atMs: nowMs + answer.startInMs, cost });
  }
  const within = (fromMs: number): number =>
    starts.filter(({ atMs }) => atMs >= fromMs && atMs < fromMs + perMs).reduce((sum, { cost }) => sum + cost, 0);
  return { most: Math.max(...starts.map(({ atMs }) => within(atMs))), count };
}

describe("of a rate without a burst", () => {
  const played = (bucketOf: (rate: Rate) => RateWithBurst, histories = HISTORIES) =>
    Array.from({ length: histories }, (_, seed) => mostInAnyTime(seed + 1, bucketOf));

  it("at most count start in any perMs, and somewhere as many", () => {
    const all = played(withBurst);
    expect(all.filter(({ most, count }) => most > count)).toEqual([]);
    expect(all.filter(({ most, count }) => most === count).length).toBeGreaterThan(HISTORIES / 2);
  });

  it("control: with all of it at once, nearly twice as many start", () => {
    const atOnce = ({ count, perMs }: Rate): RateWithBurst => ({ count, perMs, burst: count });
    expect(Math.max(...played(atOnce, 200).map(({ most, count }) => most / count))).toBeGreaterThan(1.9);
  });
});
