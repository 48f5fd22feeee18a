/** The writes of a take under load: about one, by whom it may be, and no answer but granted or refused. */
import { describe, expect, it } from "vitest";
import { type Load, play } from "./limit-load.js";

const TAKES = 800;
/** The most refused takes that may need more than two writes: one in a thousand. */
const LATE_MAX = 1;
const rates = (count: number, perMs: number, burst = count): Pick<Load, "rates"> => ({ rates: [{ count, perMs, burst }] });
const FOUR_RATES = {
  rates: [
    { count: 20, perMs: 1000, burst: 20 },
    { count: 600, perMs: 60_000, burst: 300 },
    { count: 20_000, perMs: 3_600_000, burst: 2000 },
    { count: 200_000, perMs: 86_400_000, burst: 20_000 },
  ],
};

const STEADY: readonly (readonly [name: string, load: Omit<Load, "takes">])[] = [
  ["half of 700 a second, by 8 processes", { ...rates(700, 1000), perSec: 350, processes: 8 }],
  ["half of 700 a second, by 300 processes", { ...rates(700, 1000), perSec: 350, processes: 300 }],
  ["half of 700 a second, by processes that have seen nothing", { ...rates(700, 1000), perSec: 350, processes: "cold" }],
  ["half of 700 a second, 5 at once", { ...rates(700, 1000, 5), perSec: 350, processes: 50 }],
  ["nearly 320 a second, by 8 processes", { ...rates(320, 1000, 100), perSec: 300, processes: 8 }],
  ["three times 300 a second, by 300 processes", { ...rates(300, 1000), perSec: 900, processes: 300 }],
  ["three times 300 a second, by processes that have seen nothing", { ...rates(300, 1000), perSec: 900, processes: "cold" }],
  ["half of 100 a second, 2 at once, by processes that have seen nothing", { ...rates(100, 1000, 2), perSec: 50, processes: "cold" }],
  ["half of 10 a second, by 8 processes", { ...rates(10, 1000), perSec: 5, processes: 8 }],
  ["nine tenths of four rates, by processes that have seen nothing", { ...FOUR_RATES, perSec: 9, processes: "cold" }],
  ["nearly 400 a second, with a wait", { ...rates(400, 1000, 200), perSec: 330, waitMs: 1000, processes: 50 }],
];
const CROWDS: readonly (readonly [name: string, load: Omit<Load, "takes">])[] = [
  ["50 at once, of which 20 fit", { ...rates(20, 20_000), processes: 50 }],
  ["50 at once, of which 20 fit, that have seen nothing", { ...rates(20, 20_000), processes: "cold" }],
  ["300 at once, that all fit", { ...rates(300, 20_000), processes: 300 }],
  ["50 at once, of four rates", { ...FOUR_RATES, processes: 50 }],
];

describe("a take costs", () => {
  it.each(STEADY)("at most 1.15 writes in a steady load: %s", async (_name, load) => {
    const { writesPerTake, contended, refusedLate, granted } = await play({ ...load, takes: TAKES });
    expect(contended).toBe(0);
    expect(refusedLate).toBeLessThanOrEqual(LATE_MAX);
    expect(writesPerTake).toBeLessThanOrEqual(1.15);
    expect(granted).toBeGreaterThan(0);
  });

  it.each(CROWDS)("at most 1.2 writes when everybody comes at once after a time without any: %s", async (_name, load) => {
    const { writesPerTake, contended, refusedLate } = await play({ ...load, takes: TAKES });
    expect(contended).toBe(0);
    expect(refusedLate).toBeLessThanOrEqual(LATE_MAX);
    expect(writesPerTake).toBeLessThanOrEqual(1.2);
  });

  it("control: more, if no candidate may be replaced that is after now", async () => {
    const stricter = (condition: string): string => condition.replaceAll(/(\(NOT \(g\w+ > :now\))(?: OR g\w+ <= g\w+)+/g, "$1");
    const [, load] = STEADY[2]!;
    expect((await play({ ...load, takes: TAKES }, stricter)).writesPerTake).toBeGreaterThan(1.15);
  });
});
