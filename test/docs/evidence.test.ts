/**
 * "Evidence": every property is listed with what tests it. To accept a change, read the difference and run:
 *
 *     npx vitest run test/docs/evidence -u
 */
import { describe, expect, it } from "vitest";
import { BUGS } from "../simulation/bugs/bugs.js";
import { isThere } from "./cited-tests.js";
import { evidenceParts, witnesses } from "./evidence.js";
import { readPage } from "./generated.js";
import { expectMade } from "./made-page.js";

const PATH = "docs/evidence.md";
const PAGE = readPage(PATH);

describe("the page of evidence", () => {
  it("has what tests each property, as the simulation, the model and the regression tests have it", () =>
    expectMade(PATH, evidenceParts()));

  it("has a witness of each mistake, or a test that notices it, and names each mistake once", () => {
    const found = witnesses();
    const shown = BUGS.filter(({ noticedBy }) => noticedBy === undefined);
    expect(shown.filter(({ name }) => !/^([SLR]\d+|internal) in \d+, (?:\d+ events|in a scene)$/.test(found[name] ?? ""))).toEqual([]);
    expect(BUGS.filter(({ noticedBy, breaks }) => noticedBy && !(breaks && isThere({ file: noticedBy[0], name: noticedBy[1] })))).toEqual(
      [],
    );
    for (const { name } of BUGS.filter(({ name: of }) => !found[of]?.startsWith("internal")))
      expect(PAGE.split(`\`${name}\``).length - 1, name).toBe(1);
  });

  it("explains each property that nothing breaks on one side", () => {
    for (const row of PAGE.split("\n").filter((line) => line.includes("🔴"))) {
      const [, property = ""] = /^\| (\w+) /.exec(row) ?? [];
      expect(PAGE, property).toMatch(new RegExp(`^- \\*\\*${property}\\b`, "m"));
    }
  });
});
