/** Tests that a page names, as `test/some.test.ts`: "its sentence": each must be there, or the page claims too much. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../tidy/tree.js";

/** A test that a page names. */
export interface CitedTest {
  readonly file: string;
  readonly name: string;
}

const CITATION = /`(test\/[\w./-]+\.ts)`: "([^"]+)"/g;

/** The tests that `page` names, however it is wrapped. */
export function citedTests(page: string): readonly CitedTest[] {
  return [...page.replaceAll(/\s+/g, " ").matchAll(CITATION)].map(([, file = "", name = ""]) => ({ file, name }));
}

/** Whether there is a test with that sentence. */
export function isThere({ file, name }: CitedTest): boolean {
  if (!existsSync(join(ROOT, file))) return false;
  const text = readFileSync(join(ROOT, file), "utf8");
  return ['"', "'", "`"].some((quote) => text.includes(`(${quote}${name}${quote}`));
}
