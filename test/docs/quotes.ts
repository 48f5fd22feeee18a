/** Code that a page quotes: each block names its file, and occurs there verbatim. */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { ROOT } from "../tidy/tree.js";

/** A block of code and the file that it names. */
export interface Quote {
  /** The path from the root of the repository; `""` if the block names none. */
  readonly file: string;
  /** Its lines, without the indentation that all of them share. */
  readonly lines: readonly string[];
}

const BLOCK = /(?:^ *From \[[^\]]+\]\(([^)]+)\):\n\n)?^( *)```ts\n([\s\S]*?)^\2```$/gm;

/** The TypeScript blocks in `text`, the page at `path`. */
export function quotesIn(path: string, text: string): readonly Quote[] {
  return [...text.matchAll(BLOCK)].map(([, link, , code = ""]) => ({
    file: link === undefined ? "" : join(dirname(path), link),
    lines: dedented(code.trimEnd().split("\n")),
  }));
}

/** True if the quote occurs in its file, in other lines perhaps: a page is narrower than a source. */
export function isFaithful({ file, lines }: Quote): boolean {
  return file !== "" && inOneLine(readFileSync(join(ROOT, file), "utf8")).includes(inOneLine(lines.join("\n")));
}

/** The code without the spaces and the last commas that differ with the width of the lines. */
function inOneLine(code: string): string {
  return code.replaceAll(/\s+/g, "").replaceAll(/,(?=[)\]}>])/g, "");
}

function dedented(lines: readonly string[]): readonly string[] {
  const written = lines.filter((line) => line.trim() !== "");
  const depth = Math.min(...written.map((line) => line.length - line.trimStart().length));
  return lines.map((line) => line.slice(depth));
}

/** Tests that all code of the page at `path` is quoted from the examples, and that a test runs them. */
export function describeQuotes(path: string, page: string): void {
  const quotes = quotesIn(path, page);

  describe("the page's code", () => {
    it("is all quoted", () => {
      expect(page.match(/```(?!sh$|yaml$)\w+$/gm)).toEqual(quotes.map(() => "```ts"));
    });

    it.each(quotes.map((quote) => ({ ...quote, first: quote.lines.find((line) => !line.startsWith("/**")) })))(
      "stands word for word in $file: $first",
      (quote) => {
        expect(isFaithful(quote)).toBe(true);
      },
    );

    it("is run by a test", () => {
      const tests = ["programs", "plugs"].map((name) => readFileSync(join(ROOT, `test/examples/${name}.slow.test.ts`), "utf8"));
      const isRun = (file: string): boolean => tests.join().includes(`"${file.replace(/^examples\/(.+)\.ts$/, "$1")}"`);
      expect(quotes.map(({ file }) => file).filter((file) => !isRun(file))).toEqual([]);
    });
  });
}
