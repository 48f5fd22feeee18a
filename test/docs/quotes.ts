/** Code that a page quotes: each block says which file it is from, and stands there word for word. */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { ROOT } from "../tidy/tree.js";

/** A block of code and the file that it says it is from. */
export interface Quote {
  /** From the root of the repository; `""` when the block doesn't say. */
  readonly file: string;
  /** Its lines, the indentation that all of them share taken away. */
  readonly lines: readonly string[];
}

const BLOCK = /(?:^ *From \[[^\]]+\]\(([^)]+)\):\n\n)?^( *)```ts\n([\s\S]*?)^\2```$/gm;

/** The blocks of TypeScript in `text`, the page at `path`. */
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
