/** Durations: the accepted forms, the hints for rejected ones, and output that preserves the value. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { exactDuration, formatDuration, formatDurationUp, parseDuration } from "../../console/text/duration.js";

const UNITS = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000, ms: 1 };
const anyUnits = fc.record({ d: fc.nat(400), h: fc.nat(100), m: fc.nat(100), s: fc.nat(100), ms: fc.nat(5000) }, { requiredKeys: [] });

describe("a duration", () => {
  it.each([
    ["500ms", 500],
    ["30s", 30_000],
    ["5m", 300_000],
    ["2h", 7_200_000],
    ["1d", 86_400_000],
    ["1h30m", 5_400_000],
    ["0s", 0],
  ])("%s is %i ms", (text, ms) => {
    expect(parseDuration(text)).toEqual({ ms });
  });

  it("is the sum of its units, days first", () => {
    fc.assert(
      fc.property(anyUnits, (parts) => {
        const given = (["d", "h", "m", "s", "ms"] as const).filter((unit) => parts[unit] !== undefined);
        fc.pre(given.length > 0);
        const text = given.map((unit) => `${parts[unit]}${unit}`).join("");
        expect(parseDuration(text)).toEqual({ ms: given.reduce((sum, unit) => sum + parts[unit]! * UNITS[unit], 0) });
      }),
    );
  });

  it("in one unit is the same again, without rounding", () => {
    fc.assert(fc.property(fc.integer({ min: 1 }), (ms) => void expect(parseDuration(exactDuration(ms))).toEqual({ ms })));
    expect([60_000, 90_000, 1500, 86_400_000].map(exactDuration)).toEqual(["1m", "90s", "1500ms", "1d"]);
  });

  it("without a unit is refused, with the hint which one", () => {
    fc.assert(
      fc.property(fc.nat(), (number) => {
        expect(parseDuration(String(number))).toEqual({
          wrong: `${number} has no unit: write ${number}s, or ${number} with ms, m, h or d.`,
        });
      }),
    );
  });

  it("rounded up is no shorter than it is, and by less than its lesser unit; control: rounded down it is shorter", () => {
    const inMs = (text: string): number => (parseDuration(text.replace(" ", "")) as { readonly ms: number }).ms;
    fc.assert(
      fc.property(fc.oneof(fc.integer({ min: 1, max: 10_000 }), fc.integer({ min: 1, max: 400 * UNITS.d })), (ms) => {
        const lesserMs = [UNITS.d, UNITS.h, UNITS.m, 0].find((unitMs) => ms >= unitMs);
        const stepMs = { [UNITS.d]: UNITS.h, [UNITS.h]: UNITS.m, [UNITS.m]: 1000, 0: 1000 }[lesserMs!]!;
        const upMs = inMs(formatDurationUp(ms));
        expect(upMs >= ms && upMs < ms + stepMs).toBe(true);
      }),
    );
    expect([1500, 90_500, 91_800_000].map((ms) => [formatDurationUp(ms), formatDuration(ms)])).toEqual([
      ["2s", "1s"],
      ["1m 31s", "1m 30s"],
      ["1d 2h", "1d 1h"],
    ]);
  });

  it.each(["", "s", "-5s", "1.5h", "5 s", "5S", "30m1h", "5s5s", "1w", "soon", "٣s"])("%j is none", (text) => {
    expect(parseDuration(text)).toEqual({ wrong: expect.stringContaining("30s") });
  });

  it("too long for a number is refused", () => {
    expect(parseDuration("999999999999d")).toEqual({ wrong: "It is too long." });
  });

  it("whatever else it may be, is either one or refused in a sentence", () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        const parsed = parseDuration(text);
        if ("ms" in parsed) expect(text).toMatch(/^(\d+(d|h|ms|m|s))+$/);
        else expect(parsed.wrong).toMatch(/\.$/);
      }),
    );
  });
});

describe("a duration as it is shown", () => {
  it.each([
    [0, "0s"],
    [-5, "0s"],
    [840, "840ms"],
    [1000, "1s"],
    [12_900, "12s"],
    [192_000, "3m 12s"],
    [3_600_000, "1h"],
    [7_500_000, "2h 5m"],
    [26 * 3_600_000, "1d 2h"],
  ])("%i ms are %s", (ms, text) => {
    expect(formatDuration(ms)).toBe(text);
  });

  it("can be given back as an option, and is never longer than what it shows, nor shorter by more than its lesser unit", () => {
    fc.assert(
      fc.property(fc.nat(1e11), (ms) => {
        const text = formatDuration(ms);
        const parsed = parseDuration(text.replace(" ", ""));
        const shown = "ms" in parsed ? parsed.ms : Number.NaN;
        expect(shown).toBeLessThanOrEqual(ms);
        const [largest = "s"] = /[a-z]+/.exec(text) ?? [];
        const lesser = { d: "h", h: "m", m: "s", s: "s", ms: "ms" } as const;
        expect(ms - shown).toBeLessThan(UNITS[lesser[largest as keyof typeof lesser]]);
      }),
    );
  });
});
