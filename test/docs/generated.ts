/**
 * Pages that are generated from the code, in whole or in parts. A part stands between `<!-- made from …: NAME -->` and
 * `<!-- until here -->`. The page is then formatted like `npm run format`, so that both agree.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { format, resolveConfig } from "prettier";
import { ROOT } from "../tidy/tree.js";

/** The page at `path`, from the root of the repository. */
export function readPage(path: string): string {
  return readFileSync(join(ROOT, path), "utf8");
}

const PART = /(<!-- made from [^\n]*: ([\w -]+) -->\n)([\s\S]*?)(<!-- until here -->)/g;

/** The page's parts as they are, by their names. */
export function partsOf(page: string): Readonly<Record<string, string>> {
  return Object.fromEntries([...page.matchAll(PART)].map(([, , name = "", text = ""]) => [name, text.trim()]));
}

/** Replaces the page's parts with generated ones. @throws Error if the page has other parts, or lacks one. */
export async function withParts(page: string, parts: Readonly<Record<string, string>>): Promise<string> {
  const there = [...page.matchAll(PART)].map(([, , name = ""]) => name);
  if (there.toSorted().join() !== Object.keys(parts).toSorted().join())
    throw new Error(`The page has the parts ${there.join(", ")} and not ${Object.keys(parts).join(", ")}`);
  const filled = page.replaceAll(
    PART,
    (_, start: string, name: string, _before: string, end: string) => `${start}\n${parts[name]}\n\n${end}`,
  );
  return format(filled, { ...(await resolveConfig(join(ROOT, "README.md"))), parser: "markdown" });
}

/** A Markdown table. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.map(inCell).join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n");
}

function inCell(text: string): string {
  return text.replaceAll(/\s*\n\s*/g, " ").replaceAll(/(?<!\\)\|/g, "\\|");
}

/** Pages that `npm run docs:reference` writes. */
export const REFERENCE = ["docs/sdk.md", "docs/http-api.md"] as const;

/** True if a page may link to `path`: a file of the repository. */
export function mayLinkTo(path: string): boolean {
  return existsSync(join(ROOT, path));
}
