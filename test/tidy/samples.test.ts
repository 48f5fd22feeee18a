/** Samples in the docs fit: at most 80 characters a line, which is what the column of a page and a forge show without scrolling. */
import { describe, expect, it } from "vitest";
import { allFiles } from "./tree.js";

const WIDTH_MAX = 80;
/** Pages that are generated from comments and messages, parts of such pages, and records that are not read by users. */
const OTHER_PAGES = /^(?:CHANGELOG\.md|docs\/(?:sdk|http-api)\.md|docs\/decisions\/|test\/docs\/)/;
/** Languages whose lines can't be wrapped: what programs print, a crontab, and sources of pictures. */
const AS_THEY_ARE = ["console", "crontab", "mermaid"];
/** A single word, a member of JSON with a single word, an import of a single name, or the saved query as the stack has it. */
const ONE_WORD = /^\s*(?:(?:- )?\S+|"\S+": "\S+"|fields @timestamp, .*|import (?:type )?\{ [^,]* \} from \S+)$/;
const BLOCK = /^( *)```(\w*)[^\n]*\n([\s\S]*?)^\1```$/gm;

/** The lines of the page's samples that are too wide. */
function wideIn(page: string): readonly string[] {
  return [...page.matchAll(BLOCK)]
    .filter(([, , language = ""]) => !AS_THEY_ARE.includes(language))
    .flatMap(([, indent = "", , code = ""]) => code.split("\n").map((line) => line.slice(indent.length)))
    .filter((line) => line.length > WIDTH_MAX && !ONE_WORD.test(line));
}

describe("samples in the docs", () => {
  it(`have at most ${WIDTH_MAX} characters a line`, () => {
    const pages = allFiles().filter(({ path }) => path.endsWith(".md") && !OTHER_PAGES.test(path));
    expect(pages.length).toBeGreaterThan(40);
    const wide = pages.map(({ path, text }) => ({ path, lines: wideIn(text) })).filter(({ lines }) => lines.length > 0);
    expect(wide).toEqual([]);
  });
});
