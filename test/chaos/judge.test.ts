/** The judge of the histories of real processes: what it accepts, and every kind of broken history that it must find. */
import { describe, expect, it } from "vitest";
import { type Increment, judge, unexplained } from "./judge.js";
import type { Line } from "./worker.js";

const increment = (hold: string, value: number, invokedAt: number, returnedAt?: number): Increment => ({
  ...{ hold, value, invokedAt },
  ...(returnedAt !== undefined && { returnedAt }),
});

describe("increments", () => {
  it.each<readonly [what: string, increments: readonly Increment[], counts: readonly number[]]>([
    ["one after the other", [increment("a", 1, 0, 1), increment("b", 2, 2, 3)], [2]],
    ["that overlap, in the other order", [increment("a", 2, 0, 5), increment("b", 1, 1, 4)], [2]],
    ["whose last outcome is unknown", [increment("a", 1, 0, 1), increment("b", 2, 2)], [1, 2]],
    ["of unknown outcome, one of which another built on", [increment("a", 1, 0), increment("b", 2, 2, 3)], [2]],
    [
      "of unknown outcome to the same count, one of which happened",
      [increment("a", 1, 0), increment("b", 1, 1), increment("c", 2, 2, 3)],
      [2],
    ],
  ])("%s, are explained by exactly these counts", (_what, increments, counts) => {
    expect([0, 1, 2, 3].filter((count) => unexplained(increments, count) === undefined)).toEqual(counts);
  });

  it.each<readonly [what: string, increments: readonly Increment[]]>([
    ["two that counted to the same", [increment("a", 1, 0, 5), increment("b", 1, 1, 4)]],
    ["one that counted to less after a greater one was answered", [increment("a", 2, 0, 1), increment("b", 1, 2, 3)]],
    ["one that skips a count", [increment("a", 1, 0, 1), increment("b", 3, 2, 3)]],
    ["one that builds on an unknown one of later", [increment("a", 2, 0, 1), increment("b", 1, 2)]],
  ])("control: %s, have no explanation", (_what, increments) => {
    expect([0, 1, 2, 3].filter((count) => unexplained(increments, count) === undefined)).toEqual([]);
  });
});

describe("a history", () => {
  const line = (hold: string, at: number, event: Line["event"], isHeld: boolean, value?: number): Line => ({
    ...{ at, event, hold, key: "k", isHeld },
    ...(value !== undefined && { value }),
  });
  const stay = (hold: string, at: number, value: number): readonly Line[] => [
    line(hold, at, "granted", true),
    line(hold, at + 2, "writing", true, value),
    line(hold, at + 4, "wrote", true, value),
  ];
  const entry = (hold: string, token: number, value: number) => ({ hold, token, value });
  const resource = { k: { count: 2, log: [entry("a", 5, 1), entry("b", 6, 2)], refusals: 0 } };
  const told = (lines: readonly Line[], data = resource, healedAt?: number): readonly string[] =>
    judge(lines, data, ["k"], healedAt).violations.map(({ what }) => what);

  it("of holds one after the other is accepted", () => {
    expect(told([...stay("b", 10, 2), ...stay("a", 0, 1)], resource, 9)).toEqual([]);
  });

  it("of a hold that is lost before another's begins, and writes late, is accepted", () => {
    const late = [line("a", 0, "granted", true), line("a", 1, "writing", true, 1), line("a", 30, "unknown", false, 1)];
    expect(told([...late, ...stay("b", 10, 2)])).toEqual([]);
  });

  it("control: of two holds at once is refused", () => {
    expect(told([...stay("a", 0, 1), ...stay("b", 3, 2)])).toEqual([expect.stringMatching(/^a and b both held it for 1 µs/)]);
  });

  it("control: of tokens that don't increase is refused", () => {
    const log = [entry("a", 6, 1), entry("b", 6, 2)];
    expect(told([...stay("a", 0, 1), ...stay("b", 10, 2)], { k: { count: 2, log, refusals: 0 } })).toEqual([
      expect.stringMatching(/^token 6 of b follows/),
    ]);
  });

  it("control: of a key that nobody is granted after the faults is refused", () => {
    expect(told([...stay("a", 0, 1), ...stay("b", 10, 2)], resource, 11)).toEqual(["not granted again after the faults"]);
  });
});
