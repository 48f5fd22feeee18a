/** The bound of a limit in true time, over random histories with wrong clocks and lost answers. Controls: mistakes that break it. */
import { describe, expect, it } from "vitest";
import { sized } from "../support/tier.js";
import { type Setting, excessMs, MISTAKES, play } from "./rate-histories.js";

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
