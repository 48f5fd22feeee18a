/**
 * The bound of a limit in true time, over random histories with wrong clocks and lost answers; and of rates without a burst the bound that
 * their words say. Controls: mistakes that break it.
 */
import { describe, expect, it } from "vitest";
import { type LimitRecord, type Rate, type RateWithBurst, decideTake, withBurst } from "../../lib/core/rate.js";
import { sized } from "../support/tier.js";
import { type Setting, excessMs, MISTAKES, play, randomOf } from "./rate-histories.js";

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
