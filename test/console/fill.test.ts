/** The rest of a limit's rates over time, as a page draws it: by the takes of a real limit, and by the lines of a log. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Line } from "../../console/data.js";
import { type Filling, filledBy, fillMs, fullAtMsOf, levelsOf, refusedOf, withSeen } from "../../console/fill.js";
import { type LimitRecord, decideTake, ratesText, viewOfLimit } from "../../lib/core/rate.js";

const RATE = { count: 6, perMs: 60_000, burst: 3 };
const clockAt = (atMs: number) => ({ earliestMs: atMs, latestMs: atMs });
const line = (event: Line["event"], atMs: number, more: Partial<Line> = {}): Line => ({
  seq: atMs,
  key: "sms",
  kind: "limit",
  event,
  atMs,
  rates: ratesText([RATE]),
  cost: 1,
  ...more,
});

const rate = fc.record({
  count: fc.integer({ min: 1, max: 100 }),
  perMs: fc.integer({ min: 1000, max: 100_000 }),
  burst: fc.integer({ min: 1, max: 20 }),
});
const steps = fc.array(fc.record({ afterMs: fc.integer({ min: 0, max: 30_000 }), cost: fc.integer({ min: 1, max: 3 }) }), {
  maxLength: 30,
});

it("shows what the service tells to be left after the takes of a log, in each rate", () => {
  fc.assert(
    fc.property(fc.array(rate, { minLength: 1, maxLength: 2 }), steps, (rates, takes) => {
      let [nowMs, record, lines]: [number, LimitRecord | undefined, Line[]] = [1_000_000, undefined, []];
      for (const { afterMs, cost } of takes) {
        nowMs += afterMs;
        const { answer, next } = decideTake(record, { rates, cost, waitMs: 0 }, clockAt(nowMs));
        if (answer.ok) lines = [...lines, line("granted", nowMs, { rates: ratesText(rates), cost })];
        record = next ?? record;
      }
      const untilMs = nowMs + 5000;
      if (!record) return;
      const { remaining } = viewOfLimit("sms", record, clockAt(untilMs));
      for (const [at, each] of rates.entries()) {
        const left = levelsOf(filledBy(lines, each, at), each, 0, untilMs).at(-1)?.left ?? Number.NaN;
        // The service tells whole numbers.
        expect(Math.abs(left - (remaining[at] ?? 0) - 0.5)).toBeLessThanOrEqual(0.51);
      }
    }),
  );
});

it("rises from nothing to the burst once reserved starts are over, and stays there", () => {
  const filling: Filling = { atMs: 0, fullAtMs: 50_000 };
  expect(levelsOf([filling], RATE, 0, 60_000)).toEqual([
    { atMs: 0, left: 0 },
    { atMs: 20_000, left: 0 },
    { atMs: 50_000, left: 3 },
    { atMs: 60_000, left: 3 },
  ]);
});

it.each<[string, readonly Line[], number]>([
  ["a reset", [line("granted", 0, { cost: 3 }), line("reset", 1000)], 3],
  ["a take at other rates", [line("granted", 0, { cost: 3 }), line("granted", 1000, { rates: "1/1000/1" })], 3],
  ["a refusal", [line("granted", 0, { cost: 3 }), line("refused", 1000)], 0.1],
])("after %s, what is left is as the limit has it", (_name, lines, left) => {
  expect(levelsOf(filledBy(lines, RATE, 0), RATE, 0, 1000).at(-1)).toEqual({ atMs: 1000, left: expect.closeTo(left, 5) as number });
});

it("takes an answer for a take only if it tells of less or more than the last one, as time passed since", () => {
  const told = (atMs: number, fullAtMs: number): Filling => ({ atMs, fullAtMs });
  const first = withSeen([], RATE, told(0, 20_000));
  expect(withSeen(first, RATE, told(1000, 20_100))).toBe(first);
  expect(withSeen(first, RATE, told(30_000, 30_000))).toBe(first);
  expect(withSeen(first, RATE, told(1000, 40_000))).toEqual([told(0, 20_000), told(1000, 40_000)]);
});

it("knows when a rate is full: of one exactly, of several as what is left tells it", () => {
  expect(fullAtMsOf({ rates: [RATE], remaining: [1], fullInMs: 15_000 }, 1000)).toEqual([16_000]);
  const day = { count: 100, perMs: 86_400_000, burst: 100 };
  expect(fullAtMsOf({ rates: [RATE, day], remaining: [1, 99], fullInMs: 800_000 }, 0)).toEqual([20_000, 800_000]);
  expect(fillMs(RATE)).toBe(30_000);
});

describe("the refusals", () => {
  it("are those since the last grant, of takes and of permits each, with the owners that permits have", () => {
    const lines = [
      line("refused", 1),
      line("granted", 2),
      line("refused", 3, { kind: "lock", owner: "mailer-2" }),
      line("refused", 4),
      line("refused", 5, { kind: "lock", owner: "mailer-2" }),
    ];
    expect(refusedOf(lines)).toEqual({ count: 3, sinceMs: 3, owners: ["mailer-2"] });
    expect(refusedOf([...lines, line("granted", 6)])).toEqual({ count: 2, sinceMs: 3, owners: ["mailer-2"] });
    expect(refusedOf(lines.slice(0, 2))).toBeUndefined();
  });
});
