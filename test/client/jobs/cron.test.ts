/** The occurrences of cron expressions: the last one is the same for every moment until the next, also where the clocks change. */
import { describe, expect, it } from "vitest";
import { InvalidRequestError } from "../../../lib/index.js";
import { cron } from "../../../lib/cron.js";
import { createLockClient } from "../../../lib/testing.js";

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
const last = (expression: string, time: string, timeZone?: string): string =>
  cron(expression, { timeZone }).last(new Date(time)).toISOString();

describe("the last occurrence", () => {
  it.each([
    ["0 3 * * *", "2027-01-01T02:59:59.999Z", "2026-12-31T03:00:00.000Z"],
    ["0 3 * * *", "2027-01-01T03:00:00.000Z", "2027-01-01T03:00:00.000Z"],
    ["0 3 * * *", "2027-01-01T03:00:00.001Z", "2027-01-01T03:00:00.000Z"],
    ["*/5 * * * *", "2027-01-01T00:04:59.999Z", "2027-01-01T00:00:00.000Z"],
    ["*/20 * * * * *", "2027-01-01T00:00:45.500Z", "2027-01-01T00:00:40.000Z"],
    ["@monthly", "2027-03-31T12:00:00.000Z", "2027-03-01T00:00:00.000Z"],
    ["0 0 29 2 *", "2027-01-01T00:00:00.000Z", "2024-02-29T00:00:00.000Z"],
  ])("of %s at %s is %s", (expression, time, expected) => {
    expect(last(expression, time)).toBe(expected);
  });

  it("is of the time zone that is given, and of UTC without one", () => {
    expect(last("0 3 * * *", "2027-07-01T12:00:00Z", "Europe/Berlin")).toBe("2027-07-01T01:00:00.000Z");
    expect(last("0 3 * * *", "2027-01-01T12:00:00Z", "Europe/Berlin")).toBe("2027-01-01T02:00:00.000Z");
    expect(last("0 3 * * *", "2027-07-01T12:00:00Z")).toBe("2027-07-01T03:00:00.000Z");
  });

  it.each(["30 2 * * *", "0 * * * *", "*/7 1-4 * * *"])(
    "of %s never goes back, and is its own last one, on the days when the clocks change",
    (expression) => {
      for (const [timeZone, days] of [
        ["Europe/Berlin", ["2027-03-28T00:00:00Z", "2027-10-31T00:00:00Z"]],
        ["America/New_York", ["2027-03-14T04:00:00Z", "2027-11-07T04:00:00Z"]],
        ["Australia/Lord_Howe", ["2027-04-03T13:00:00Z", "2027-10-02T13:00:00Z"]],
      ] as const) {
        const schedule = cron(expression, { timeZone });
        for (const day of days) {
          let before = 0;
          for (let atMs = Date.parse(day); atMs < Date.parse(day) + DAY_MS / 3; atMs += 10 * MINUTE_MS) {
            const at = schedule.last(new Date(atMs)).getTime();
            expect(at).toBeLessThanOrEqual(atMs);
            expect(at, `${timeZone} ${new Date(atMs).toISOString()}`).toBeGreaterThanOrEqual(before);
            expect(schedule.last(new Date(at)).getTime()).toBe(at);
            expect(schedule.next(new Date(at))!.getTime()).toBeGreaterThan(at);
            before = at;
          }
        }
      }
    },
  );

  it("of a daily expression comes once on each of these days", () => {
    const schedule = cron("30 2 * * *", { timeZone: "Europe/Berlin" });
    for (const day of ["2027-03-28", "2027-10-31"]) {
      const seen = new Set<number>();
      const beginMs = Date.parse(`${day}T00:00:00Z`);
      for (let atMs = beginMs; atMs < beginMs + DAY_MS / 2; atMs += 10 * MINUTE_MS) seen.add(schedule.last(new Date(atMs)).getTime());
      expect(
        [...seen].filter((atMs) => atMs >= beginMs),
        day,
      ).toHaveLength(1);
    }
  });
});

describe("a tick of an expression", () => {
  it("runs once an occurrence, and keeps the outcome of a leap day until the next", async () => {
    const { clock, ...locks } = createLockClient();
    const options = { cron: cron("0 0 29 2 *"), maxLateMs: Number.MAX_SAFE_INTEGER };
    const result = await clock.settle(locks.tick("leap", options, () => "done"));
    expect(result).toMatchObject({ how: "ran", occurrence: new Date("2024-02-29T00:00:00Z") });
    expect(await locks.runs.get("leap_2024-02-29T00:00:00.000Z")).toMatchObject({ keptForMs: "forever" });
    expect((await clock.settle(locks.tick("leap", options, () => "again"))).how).toBe("done-before");
  });
});

describe("refuses", () => {
  it.each([
    ["an expression that is none", () => cron("every day"), 'cron: "every day" given; it must be a cron expression, as 0 3 * * *: '],
    ["a value that is no text", () => cron(5 as never), "cron: 5 given; it must be a cron expression, as 0 3 * * *"],
    [
      "an unknown zone",
      () => cron("0 3 * * *", { timeZone: "Europe/Atlantis" }),
      'timeZone: "Europe/Atlantis" given; it must be a time zone',
    ],
    ["an unknown option", () => cron("0 3 * * *", { zone: "UTC" } as never), "zone: is not an option of cron; these are: timeZone"],
    [
      "a time before the first occurrence",
      () => cron("0 0 0 1 1 * 2030").last(new Date("2027-01-01T00:00:00Z")),
      "has no occurrence before 2027-01-01T00:00:00.000Z",
    ],
  ])("%s", (_what, make, message) => {
    expect(make).toThrow(InvalidRequestError);
    expect(make).toThrow(message);
  });
});
