/** The README for tests: its text, and its blocks of code with their headings. Also those of another page. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../tidy/tree.js";

/** The whole text. */
export const README = readFileSync(join(ROOT, "README.md"), "utf8");

/** A block of code, verbatim. */
interface Block {
  readonly heading: string;
  /** `""` if the block names none. */
  readonly language: string;
  readonly text: string;
}

const FENCE = "```";

/** The text of a page of docs/. */
export function docsPage(name: string): string {
  return readFileSync(join(ROOT, "docs", `${name}.md`), "utf8");
}

/** The page's blocks under the heading in this language, in order. @throws Error if there is none. */
export function blocksUnder(heading: string, language: string, page = README): readonly string[] {
  const found = blocksOf(page).filter((block) => block.heading === heading && block.language === language);
  if (found.length === 0) throw new Error(`There is no block of ${language || "plain text"} under "${heading}"`);
  return found.map(({ text }) => text);
}

/** The block under the heading in this language. @throws Error unless there is exactly one. */
export function blockUnder(heading: string, language: string, page = README): string {
  const [block = "", ...others] = blocksUnder(heading, language, page);
  if (others.length > 0) throw new Error(`There are several blocks of ${language || "plain text"} under "${heading}"`);
  return block;
}

/** The commands and comments of a block of shell, each whole: a command may go on after a backslash or within quotes, a comment in the next line. */
export function shellIn(block: string): readonly string[] {
  const whole: string[] = [];
  for (const line of block.split("\n")) {
    const last = whole.at(-1) ?? "";
    const goesOn = last.endsWith("\\") || (last.split("'").length % 2 === 0 && !last.startsWith("#"));
    if (goesOn || (last.startsWith("#") && line.startsWith("# "))) whole[whole.length - 1] = `${last}\n${line}`;
    else whole.push(line);
  }
  return whole;
}

/** A `#` at the start of a line is a heading outside of blocks, and a shell comment inside. */
function blocksOf(text: string): readonly Block[] {
  const blocks: Block[] = [];
  let heading = "";
  let open: { readonly language: string; readonly lines: string[] } | undefined;
  for (const line of text.split("\n")) {
    if (line.startsWith(FENCE) && open) {
      blocks.push({ heading, language: open.language, text: open.lines.join("\n") });
      open = undefined;
    } else if (line.startsWith(FENCE)) open = { language: line.slice(FENCE.length), lines: [] };
    else if (open) open.lines.push(line);
    else heading = /^#+ (.*)$/.exec(line)?.[1] ?? heading;
  }
  return blocks;
}
