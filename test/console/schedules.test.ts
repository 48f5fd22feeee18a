/** The occurrences of a schedule among the runs of the console. */
import { expect, it } from "vitest";
import type { RunOfKey } from "../../console/data.js";
import { stateOf } from "../../console/text/run-text.js";
import { bySchedule, isScheduleOf, occurrenceOf } from "../../console/schedules.js";

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
