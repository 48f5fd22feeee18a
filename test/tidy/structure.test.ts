/** Files don't import each other in circles, long functions say why they are long, and doc comments begin plainly. */
import ts from "typescript";
import { describe, expect, it } from "vitest";
import { circlesIn } from "./circles.js";
import { type SourceText, parse, SOURCES, sourcesIn } from "./tree.js";

const ALL = sourcesIn(...SOURCES);
const LINES_MAX = 60;
const REASON = /^\s*\/\/ Over 60 lines: \w/;
/** Beginnings that turn a sentence around. */
const INVERTED = /^\s*(?:\/\*\*|\*) (?:What|Who|How|Whether|Of)\b/;

/** A test within a function: a list of tests may be as long as it is. */
const TEST = /^\s*it(?:With)?\b/m;

/** The named functions that are too long and give no reason in the line above. */
function longFunctions(source: SourceText): readonly string[] {
  const tree = parse(source);
  const lines = source.text.split("\n");
  const found: string[] = [];
  const lineOf = (position: number): number => tree.getLineAndCharacterOfPosition(position).line;
  const visit = (node: ts.Node): void => {
    const statement = namedFunction(node);
    if (statement) {
      const first = lineOf(statement.getStart(tree));
      const isLong = lineOf(node.end) - first >= LINES_MAX && !TEST.test(node.getText(tree));
      if (isLong && !REASON.test(lines[first - 1] ?? "")) found.push(`${source.path}:${first + 1}`);
    }
    ts.forEachChild(node, visit);
  };
  visit(tree);
  return found;
}

/** The statement that declares a function; undefined for other nodes and for callbacks. */
function namedFunction(node: ts.Node): ts.Node | undefined {
  if (ts.isFunctionDeclaration(node) || ts.isMethodDeclaration(node)) return node;
  const isAssigned = (ts.isArrowFunction(node) || ts.isFunctionExpression(node)) && ts.isVariableDeclaration(node.parent);
  return isAssigned ? node.parent.parent.parent : undefined;
}

function invertedComments({ path, text }: SourceText): readonly string[] {
  return text.split("\n").flatMap((line, index) => (INVERTED.test(line) ? [`${path}:${index + 1} ${line.trim()}`] : []));
}

describe("the structure of the sources", () => {
  it("has no import circle", () => {
    expect(circlesIn(ALL)).toEqual([]);
  });

  it("has a reason above each function of more than 60 lines", () => {
    expect(ALL.flatMap(longFunctions)).toEqual([]);
  });

  it.each([
    ["declared", `export function long() {\n${"\n".repeat(LINES_MAX)}}`],
    ["assigned", `const long = () => {\n${"\n".repeat(LINES_MAX)}};`],
  ])("control: a long function that is %s is reported, and not with a reason", (_what, text) => {
    expect(longFunctions({ path: "lib/a.ts", text })).toEqual(["lib/a.ts:1"]);
    expect(longFunctions({ path: "test/a.ts", text: text.replace("\n", "\n  it(") })).toEqual([]);
    expect(longFunctions({ path: "lib/a.ts", text: `// Over 60 lines: a table.\n${text}` })).toEqual([]);
  });

  it("has no doc comment that begins with an inverted sentence", () => {
    expect(ALL.flatMap(invertedComments)).toEqual([]);
  });
});
