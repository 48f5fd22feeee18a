/** The lanes of the tour: what each process did when, as text. */
import { describe, expect, it } from "vitest";
import { type Lane, KILLED, laneText, LEGEND, signsWithin, SIGNS } from "../../examples/tour/lanes.js";

const lane = (...changes: Lane["changes"]): Lane => ({ name: "ann", changes, said: "" });

describe("a lane", () => {
  it("has a sign for every fifth of a second", () => {
    const drawn = laneText(lane({ atMs: 0, state: "waiting" }, { atMs: 600, state: "holding" }, { atMs: 1000, state: "away" }), 1399, 20);
    expect(drawn).toBe("ann     ···██");
  });

  it("shows a hold that is shorter than a sign, and the moment of a kill", () => {
    expect(laneText(lane({ atMs: 210, state: "holding" }, { atMs: 220, state: "away" }), 400, 20)).toBe("ann      █");
    expect(laneText(lane({ atMs: 0, state: "holding" }, { atMs: 450, state: "dead" }), 900, 20)).toBe("ann     ██✕");
  });

  it("keeps the last signs when there are more than fit, and says what the process said", () => {
    const drawn = laneText({ ...lane({ atMs: 0, state: "waiting" }, { atMs: 2000, state: "frozen" }), said: "frozen" }, 2_399, 4);
    expect(drawn).toBe("ann     ··░░ frozen");
  });

  it("has a sign of its own for each state that lasts", () => {
    const { away, dead, ...lasting } = SIGNS;
    expect(new Set([...Object.values(lasting), KILLED, away]).size).toBe(5);
    expect(dead).toBe(away);
  });

  it("has a legend that names each sign, and fits into 79 characters", () => {
    const { away: _away, dead: _dead, ...lasting } = SIGNS;
    expect([...Object.values(lasting), KILLED].filter((sign) => !LEGEND.includes(sign))).toEqual([]);
    expect(LEGEND.length).toBeLessThan(80);
  });

  it.each([77, 60, 200])("in a width of %i leaves room for the longest message", (width) => {
    const said = "same receipt of attempt 2";
    const drawn = laneText({ ...lane({ atMs: 0, state: "frozen" }), said }, 60_000, signsWithin(width));
    expect(drawn).toMatch(/░ same receipt of attempt 2$/);
    expect(drawn.length).toBeLessThanOrEqual(width);
  });
});
