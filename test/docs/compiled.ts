/** The blocks of TypeScript on a page, each compiled as its own module with this repository's settings. */
import { join } from "node:path";
import ts from "typescript";
import { DISK, programOf } from "../tidy/public-surface.js";
import { ROOT } from "../tidy/tree.js";

/** The imports of a page, and the sources published under those names. */
const SOURCES: Readonly<Record<string, string>> = {
  '"holdfast"': '"../../lib/index.js"',
  '"holdfast/dynamodb"': '"../../lib/dynamodb.js"',
  '"holdfast/middy"': '"../../lib/middy.js"',
  '"holdfast/testing"': '"../../lib/testing.js"',
};

/** The blocks of the page, verbatim. */
export function blocksOf(page: string): readonly string[] {
  return [...page.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, text = ""]) => text);
}

/** Compiles the blocks and returns the errors: the block and the message. */
export function compileErrors(blocks: readonly string[]): readonly string[] {
  const pathOf = (index: number): string => join(ROOT, `test/docs/block-${index + 1}-of-a-page.ts`);
  const texts = new Map(
    blocks.map((block, index) => {
      const text = Object.entries(SOURCES).reduce((all, [name, source]) => all.replaceAll(`from ${name}`, `from ${source}`), block);
      return [pathOf(index), `${text}\nexport {};\n`];
    }),
  );
  const host: ts.CompilerHost = {
    ...DISK,
    fileExists: (path) => texts.has(path) || DISK.fileExists(path),
    readFile: (path) => texts.get(path) ?? DISK.readFile(path),
    getSourceFile: (path, ...rest) => {
      const text = texts.get(path);
      return text === undefined ? DISK.getSourceFile(path, ...rest) : ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
    },
  };
  const program = programOf([...texts.keys()], host);
  return [...texts.keys()].flatMap((path, index) => {
    const source = program.getSourceFile(path);
    const found = [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)];
    return found.map(({ messageText }) => `block ${index + 1}: ${ts.flattenDiagnosticMessageText(messageText, " ")}`);
  });
}
