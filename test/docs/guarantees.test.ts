/**
 * "Guarantees": every property is listed with a test that it cites. To accept a
 * change of the extent of the search, read the difference and run:
 *
 *     npx vitest run test/docs/guarantees -u
 */
import { describe, expect, it } from "vitest";
import { sourcesIn } from "../tidy/tree.js";
import { citedTests } from "./cited-tests.js";
import { readPage } from "./generated.js";
import { expectMade } from "./made-page.js";
import { searchParts } from "./must-fail-list.js";

const PATH = "docs/guarantees.md";
const PAGE = readPage(PATH);

/** The names of properties at the start of a row. */
const namesIn = (page: string): readonly string[] => [...page.matchAll(/^\| ([SLR]\d+) /gm)].map(([, name = ""]) => name);

describe("the page of guarantees", () => {
  it("says how far the simulation searches, as it does", () => expectMade(PATH, searchParts()));

  it("has S1 to S20, R1 to R4 and L1 to L11, each once", () => {
    const upTo = (letter: string, last: number): readonly string[] => Array.from({ length: last }, (_, at) => `${letter}${at + 1}`);
    expect(namesIn(PAGE)).toEqual([...upTo("S", 20), ...upTo("R", 4), ...upTo("L", 11)]);
  });

  it("says of the simulation what it judges", () => {
    const judged = new Set(
      sourcesIn("test/simulation/").flatMap(({ text }) => [...text.matchAll(/"([SLR]\d+)"/g)].map(([, name]) => name)),
    );
    const said = PAGE.split("\n").filter((row) => /^\| [SLR]\d+ /.test(row) && row.includes("simulation"));
    expect(said.length).toBeGreaterThan(15);
    expect(said.flatMap(namesIn).filter((name) => !judged.has(name))).toEqual([]);
  });

  it("names a test for every property", () => {
    expect(citedTests(PAGE).length).toBeGreaterThan(namesIn(PAGE).length);
    const rows = PAGE.split("\n").filter((row) => /^\| [SLR]\d+ /.test(row));
    expect(rows.filter((row) => citedTests(row).length === 0)).toEqual([]);
  });
});
