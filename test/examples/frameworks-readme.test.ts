/** The framework examples for readers: listed in the README, and short. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";
import { describe, expect, it } from "vitest";
import { parse, ROOT } from "../tidy/tree.js";

const DIRECTORY = "examples/frameworks";
/** The largest number of lines of a snippet. */
const LINES = 20;

const read = (file: string): string => readFileSync(join(ROOT, DIRECTORY, file), "utf8");
const files = readdirSync(join(ROOT, DIRECTORY)).filter((file) => file.endsWith(".ts"));

/** The lines of each exported function, class or constant, without its comments. */
function exportedLines(file: string): readonly (readonly [name: string, lines: number])[] {
  const tree = parse({ path: file, text: read(file) });
  return tree.statements.flatMap((statement) => {
    const isExported =
      ts.canHaveModifiers(statement) && ts.getModifiers(statement)?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword);
    return isExported === true
      ? [[`${file}: ${statement.getText(tree).split("\n", 1)[0]!}`, statement.getText(tree).split("\n").length] as const]
      : [];
  });
}

describe("the framework examples", () => {
  it("are all in the README of their folder", () => {
    const rows = [...read("README.md").matchAll(/^\|.*\| `([\w-]+\.ts)` +\|$/gm)].map(([, file]) => file);
    expect(rows.toSorted()).toEqual(files.toSorted());
  });

  it(`are made of parts of fewer than ${LINES} lines`, () => {
    const parts = files.flatMap(exportedLines);
    expect(parts.length).toBeGreaterThan(10);
    expect(parts.filter(([, lines]) => lines >= LINES)).toEqual([]);
  });
});
