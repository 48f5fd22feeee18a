/** Decisions have consecutive numbers, and each has its context, its choice, and a condition for changing it. */
import { basename } from "node:path";
import { describe, expect, it } from "vitest";
import { allFiles } from "../tidy/tree.js";

const DECISIONS = allFiles().filter(({ path }) => path.startsWith("docs/decisions/"));

describe("decisions", () => {
  it("are numbered without gaps", () => {
    const numbers = DECISIONS.map(({ path }) => basename(path).slice(0, 4)).toSorted();
    expect(numbers.length).toBeGreaterThan(0);
    expect(numbers).toEqual(numbers.map((_, at) => `${String(at + 1).padStart(3, "0")}-`));
  });

  it.each(DECISIONS)("$path says why, what, and what would change it", ({ path, text }) => {
    const [number] = basename(path).split("-", 1);
    expect(text).toMatch(new RegExp(`^# ${number} \\S`));
    const parts = ["**Context.** ", "**Choice.** ", "**What would change it.** "].map((part) => text.indexOf(`\n\n${part}`));
    expect(parts).not.toContain(-1);
    expect(parts).toEqual(parts.toSorted((a, b) => a - b));
  });
});
