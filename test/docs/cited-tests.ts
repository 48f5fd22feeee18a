/**
 * The tests that a page cites. Each must exist, or the page claims too much. A page cites a test in its prose, as
 * `test/some.test.ts`: "its title", or in the title of a link to the file, where it doesn't disturb readers.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../tidy/tree.js";

/** A test that a page cites. */
export interface CitedTest {
  readonly file: string;
  readonly name: string;
}

const IN_PROSE = /`(test\/[\w./-]+\.ts)`: "([^"]+)"/g;
const AS_LINK = /\]\((?:\.\.\/)*(test\/[\w./-]+\.ts) "([^"]+)"\)/g;

/** The tests that `page` cites, regardless of wrapping. */
export function citedTests(page: string): readonly CitedTest[] {
  const text = page.replaceAll(/\s+/g, " ");
  return [IN_PROSE, AS_LINK].flatMap((form) => [...text.matchAll(form)].map(([, file = "", name = ""]) => ({ file, name })));
}

/** True if there is a test with that title, or a row of a table with that name, which vitest may print between quotes. */
export function isThere({ file, name }: CitedTest): boolean {
  if (!existsSync(join(ROOT, file))) return false;
  const text = readFileSync(join(ROOT, file), "utf8");
  const row = name.replace(/^'(.*)'$/, "$1");
  return ['"', "'", "`"].some((quote) =>
    [`(${quote}${name}${quote}`, `[${quote}${name}${quote}`, `${quote}${row}${quote}:`].some((title) => text.includes(title)),
  );
}
