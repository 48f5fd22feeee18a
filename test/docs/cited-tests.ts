/**
 * Tests that a page names: each must be there, or the page claims too much. Either in its prose, as `test/some.test.ts`:
 * "its sentence", or as the title of a link to the file, out of a reader's way.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../tidy/tree.js";

/** A test that a page names. */
export interface CitedTest {
  readonly file: string;
  readonly name: string;
}

const IN_PROSE = /`(test\/[\w./-]+\.ts)`: "([^"]+)"/g;
const AS_LINK = /\]\((?:\.\.\/)*(test\/[\w./-]+\.ts) "([^"]+)"\)/g;

/** The tests that `page` names, however it is wrapped. */
export function citedTests(page: string): readonly CitedTest[] {
  const text = page.replaceAll(/\s+/g, " ");
  return [IN_PROSE, AS_LINK].flatMap((form) => [...text.matchAll(form)].map(([, file = "", name = ""]) => ({ file, name })));
}

/** True if there is a test with that title. */
export function isThere({ file, name }: CitedTest): boolean {
  if (!existsSync(join(ROOT, file))) return false;
  const text = readFileSync(join(ROOT, file), "utf8");
  return ['"', "'", "`"].some((quote) => text.includes(`(${quote}${name}${quote}`));
}
