/** The occurrences of a schedule among the runs of the console. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { RunOfKey } from "../../console/data.js";
import { stateOf } from "../../console/text/run-text.js";
import { bySchedule, intervalOf, isScheduleOf, latestOccurrences, occurrenceOf, slotsOf } from "../../console/schedules.js";

type State = RunOfKey["state"];
const run = (key: string, state: State = "succeeded", errorName?: string) => ({
  key,
  state,
  ...(errorName !== undefined && { errorName }),
});
const night = (day: number, state?: State, errorName?: string) => run(`nightly_2026-11-0${day}T02:00:00.000Z`, state, errorName);

it.each([
  ["nightly_2026-11-01T02:00:00.000Z", "nightly"],
  ["a_b_2026-11-01T02:00:00.000Z", "a_b"],
  ["nightly_2026-11-01", undefined],
  ["_2026-11-01T02:00:00.000Z", undefined],
  ["2026-11-01T02:00:00.000Z", undefined],
  ["PAYMENT_1", undefined],
])("%s is an occurrence of %s", (key, schedule) => {
  expect(occurrenceOf(key)?.schedule).toBe(schedule);
});

it("shows the last occurrence of each schedule, with the number of all and of those that failed", () => {
  const once = run("yearly_2026-01-01T00:00:00.000Z");
  const runs = [run("A_1"), night(1), night(2, "failed"), night(3), run("PAYMENT_1"), once];
  const schedule = { name: "nightly", occurrences: 3, failed: 1 };
  expect(bySchedule(runs, () => false)).toEqual([run("A_1"), { ...night(3), schedule }, run("PAYMENT_1"), once]);
});

it("leaves apart what needs a person", () => {
  const used = night(1, "failed");
  expect(bySchedule([used, night(2), night(3)], (one) => one === used)).toEqual([
    used,
    { ...night(3), schedule: { name: "nightly", occurrences: 2, failed: 0 } },
  ]);
});

it.each([
  ["failed", "TickSkipped", "skipped"],
  ["failed", "TickTooLate", "too late"],
  ["failed", "TypeError", "failed"],
  ["succeeded", "TickSkipped", "succeeded"],
] as const)("says of an occurrence that is %s by %s that it is %s, and counts as failed those alone that are", (state, errorName, word) => {
  const one = night(2, state, errorName);
  expect(stateOf({ ...one, attempt: 1 })).toBe(word);
  for (const runs of [
    [one, night(3)],
    [night(1), one],
  ])
    expect(bySchedule(runs, () => false)[0]?.schedule?.failed).toBe(Number(word === "failed"));
});

it("knows a schedule by its occurrences, and no other name that they begin with", () => {
  expect(["nightly", "night", "nightly_2026"].map((name) => isScheduleOf(name, [run("nightly_report"), night(1)]))).toEqual([
    true,
    false,
    false,
  ]);
});

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

describe("the interval of occurrences", () => {
  const at = (...hours: readonly number[]): readonly number[] => hours.map((hour) => hour * HOUR_MS);
  it.each([
    ["every day, one of them missed", at(0, 24, 48, 96, 120), 24],
    ["every day, on one of which the clocks change", at(0, 24, 47, 71), 24],
    ["every workday", at(0, 24, 48, 72, 96, 168, 192), 24],
    ["two of them", at(0, 24), undefined],
    ["no common one", at(0, 1, 5, 6, 24), undefined],
    ["none", at(), undefined],
  ])("of %s", (_name, timesMs, hours) => {
    expect(intervalOf(timesMs)).toBe(hours === undefined ? undefined : hours * HOUR_MS);
  });
});

it.each([
  ["a time without a run, between two and after the last", [1, 2, 4], 6.5, "1 2 – 4 – –"],
  ["none before the next is due", [1, 2, 3], 3.9, "1 2 3"],
  ["none in a gap of the hour by which the clocks change", [1, 2, 3.04], 3.5, "1 2 3.04"],
  ["none in a gap that is half as long again", [1, 2, 3.5], 4, "1 2 3.5"],
])("shows %s", (_name, days, now, shown) => {
  const runs = days.map((day) => run(`nightly_${new Date(day * DAY_MS).toISOString()}`));
  const slots = slotsOf(runs, DAY_MS, now * DAY_MS);
  expect(slots.map((slot) => (slot.run ? Number((slot.atMs / DAY_MS).toFixed(2)) : "–")).join(" ")).toBe(shown);
  expect(slotsOf(runs, undefined, now * DAY_MS).map((slot) => slot.run)).toEqual(runs);
});

it("reads the latest occurrences first, whole from the oldest that it returns on, however few requests it may send", async () => {
  const untilMs = Date.parse("2026-03-02T12:34:56.789Z");
  const times = fc.record({
    everyMs: fc.constantFrom(1000, 60_000, HOUR_MS, DAY_MS),
    count: fc.integer({ min: 0, max: 400 }),
    days: fc.constantFrom(7, 31),
    requestsMax: fc.constantFrom(1, 3, 10, undefined),
  });
  await fc.assert(
    fc.asyncProperty(times, async ({ everyMs, count, days, requestsMax }) => {
      const occurrences = Array.from({ length: count }, (_, at) => new Date(untilMs - (count - 1 - at) * everyMs).toISOString());
      const stored = ["tick_", ...occurrences.map((time) => `tick_${time}`), "tick_report", "ticks_1"].toSorted().map((key) => run(key));
      const fromMs = untilMs - days * DAY_MS;
      const inTime = occurrences.filter((time) => Date.parse(time) >= fromMs);
      const found = await latestOccurrences("tick", { fromMs, untilMs, requestsMax }, async ({ prefix, max, cursor = "" }) => {
        const items = stored.filter(({ key }) => key.startsWith(prefix) && key > cursor);
        return { items: items.slice(0, max), ...(items.length > max && { cursor: items[max - 1]?.key ?? "" }) };
      });
      expect(found.items.map(({ key }) => key.slice("tick_".length))).toEqual(inTime.slice(inTime.length - found.items.length));
      expect(found.more || found.items.length === inTime.length).toBe(true);
      if (requestsMax === undefined) expect(found.items).toHaveLength(inTime.length);
      else expect(found.requests).toBeLessThanOrEqual(requestsMax);
    }),
  );
});
