/** "From the trackers": the tests that the page cites exist, and every complaint has its place and an answer. */
import { describe, expect, it } from "vitest";
import { BUGS } from "../simulation/bugs/bugs.js";
import { citedTests } from "./cited-tests.js";
import { readPage } from "./generated.js";

const PAGE = readPage("docs/trackers.md");
const ROWS = PAGE.split("\n")
  .filter((line) => line.startsWith("| ") && !/^\| (?:-|Problem)/.test(line))
  .map((line) => line.split(" | ").map((cell) => cell.replaceAll(/^\| | \|$/g, "").trim()));

describe("the page of what users of other libraries reported", () => {
  it("names each test by its title", () => {
    expect(citedTests(PAGE).length).toBeGreaterThan(20);
    expect([...PAGE.matchAll(/\.\.\/test\/[\w./-]+/g)]).toHaveLength(citedTests(PAGE).length);
  });

  it("answers every complaint, and says where it was met", () => {
    expect(ROWS.length).toBeGreaterThan(30);
    expect(
      ROWS.filter(([what = "", where = "", here = ""]) => what === "" || here === "" || !where.includes("](https://github.com/")),
    ).toEqual([]);
  });

  it("names a mistake of the simulation that there is", () => {
    expect(BUGS.map(({ name }) => name)).toContain("release-without-owner-check");
    expect(PAGE).toContain("`release-without-owner-check`");
  });
});
