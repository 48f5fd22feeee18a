/** Code that a page quotes: each block names its file, and occurs there verbatim. */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
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

/** True if the quote occurs in its file, on consecutive lines with the same relative indentation. */
export function isFaithful({ file, lines }: Quote): boolean {
  if (file === "") return false;
  const source = readFileSync(join(ROOT, file), "utf8").split("\n");
  return source.some((_, at) => {
    const passage = source.slice(at, at + lines.length);
    return dedented(passage).join("\n") === lines.join("\n");
  });
}

function dedented(lines: readonly string[]): readonly string[] {
  const written = lines.filter((line) => line.trim() !== "");
  const depth = Math.min(...written.map((line) => line.length - line.trimStart().length));
  return lines.map((line) => line.slice(depth));
}
