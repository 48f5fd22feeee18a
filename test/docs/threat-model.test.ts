/** The threat model: every defence names a test that there is, and the page stays short. */
import { describe, expect, it } from "vitest";
import { citedTests, isThere } from "./cited-tests.js";
import { readPage } from "./generated.js";

const PAGE = readPage("docs/threat-model.md");
/** The paragraphs of the section about attackers, each of which begins with the attacker. */
const attackersIn = (page: string): readonly string[] =>
  (page.split("## Attackers and defences")[1]?.split("\n## ")[0] ?? "").split("\n").filter((line) => line.startsWith("**"));
/** The words that a reader sees: without the targets of links. */
const wordsIn = (page: string): number => page.replaceAll(/\]\([^)]*\)/g, "]").split(/\s+/).length;

describe("the threat model", () => {
  it("has a test for each attacker", () => {
    expect(attackersIn(PAGE).length).toBeGreaterThan(6);
    expect(attackersIn(PAGE).filter((attacker) => citedTests(attacker).length === 0)).toEqual([]);
  });

  it("control: an attacker without a test, and a test that is not there, are noticed", () => {
    const page = `## Attackers and defences\n\n**Nobody.** Is refused.\n\n**Somebody.** Too ([test](../test/lambda/none.test.ts "is refused")).\n\n## Next`;
    expect(attackersIn(page).filter((attacker) => citedTests(attacker).length === 0)).toHaveLength(1);
    expect(citedTests(page).filter((test) => !isThere(test))).toHaveLength(1);
  });

  it("has at most 950 words", () => {
    expect(wordsIn(PAGE)).toBeLessThanOrEqual(950);
  });
});
