/** "Compared with other locks": every lock has a section with both sides and a source; the claims about this one are tested. */
import { describe, expect, it } from "vitest";
import { DEFAULTS } from "../../lib/core/limits.js";
import { oneLine, readPage } from "./generated.js";

const PAGE = readPage("docs/comparison.md");
const TEXT = oneLine(PAGE);
/** The sections about other locks, by heading. */
const OTHERS = PAGE.split(/^## /m).filter((section) => section.includes("- **Worse**"));

describe("the page of comparisons", () => {
  it("has a row at a glance for each, and one for this lock", () => {
    const rows = [...PAGE.matchAll(/^\| \*\*/gm)];
    expect(OTHERS).toHaveLength(14);
    expect(rows).toHaveLength(OTHERS.length + 1);
  });

  it("says of each where it is better, where worse, and where that is from", () => {
    for (const part of ["- **Better**: ", "- **Worse**: ", "- **Here**: ", "](http"])
      expect(OTHERS.filter((section) => !section.includes(part)).map((section) => section.split("\n", 1)[0])).toEqual([]);
  });

  it("says when it was read", () => {
    expect(TEXT).toMatch(/read on \d{4}-\d\d-\d\d to \d{4}-\d\d-\d\d/);
  });

  it("claims no time or rate of its own, but what the code has", () => {
    expect(TEXT).toContain(`server clocks within ${DEFAULTS.clockErrorMs} ms`);
    const others = TEXT.replaceAll(/\[[^\]]*\]\([^)]*\)/g, "").matchAll(/\d[\d ]* (?:ms|µs|requests|times faster|%)/g);
    expect([...others].map(([figure]) => figure)).toEqual([`${DEFAULTS.clockErrorMs} ms`]);
  });
});
