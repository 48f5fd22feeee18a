/** The judge of the calls that came to a partner: what it accepts, and every kind of excess that it must find. */
import { describe, expect, it } from "vitest";
import { judgeLimit } from "./limit-judge.js";
import type { Came } from "./partner.js";

const LIMITED = { rates: [{ count: 10, perMs: 1000, burst: 2 }], concurrent: 2, slackMs: 50 };

/** A call that came at this time, in ms, and was allowed to start some time before. */
const came = (ms: number, { lateMs = 0, running = 1 } = {}): Came => ({
  ...{ key: "k", cost: 1, workMs: 10, running },
  ...{ at: 1000 * ms, dueAt: 1000 * (ms - lateMs), endedAt: 1000 * (ms + 10) },
});
const told = (calls: readonly Came[]) => judgeLimit(calls, LIMITED).violations;

describe("calls", () => {
  it("at the rate, after a burst, are accepted, in whatever order they are told", () => {
    expect(told([came(200), came(0), came(0), came(100)])).toEqual([]);
  });

  it("that come together because one was delayed are accepted", () => {
    expect(told([came(0), came(0), came(300, { lateMs: 200 }), came(300, { lateMs: 100 }), came(300)])).toEqual([]);
  });

  it("are measured by what the rates allowed", () => {
    expect(
      judgeLimit(
        [0, 0, 100, 200, 300, 400, 500, 600, 700, 800].map((ms) => came(ms)),
        LIMITED,
      ),
    ).toMatchObject({ taken: 10, use: 1 });
  });

  it("control: one too many is found", () => {
    expect(told([came(0), came(0), came(40)])).toEqual([
      expect.stringMatching(/^3 came in 40 ms, of 10 in 1000 ms and 2 at once: 0.1 too many/),
    ]);
  });

  it("control: one before its time is found", () => {
    expect(told([came(0, { lateMs: -3 })])).toEqual(["a call came 3000 µs before it was allowed to start"]);
  });

  it("control: more at once than permits is found", () => {
    expect(told([came(0), came(1, { running: 3 })])).toEqual(["3 ran at once, of at most 2"]);
  });
});
