/** A file's imports, in every form that TypeScript has. Type imports count as much as value imports. */
import { posix } from "node:path";
import ts from "typescript";
import { type SourceText, parse } from "./tree.js";

/** One import: a file of the repository (its path from the root) or a package, and its line. */
export interface Import {
  readonly file?: string;
  readonly package?: string;
  readonly line: number;
}

/** Every import, re-export, `import()` and type `import()` of a file. */
export function importsOf(source: SourceText): readonly Import[] {
  const tree = parse(source);
  const found: Import[] = [];
  const visit = (node: ts.Node): void => {
    const specifier = specifierOf(node);
    if (specifier) found.push({ ...target(source.path, specifier.text), line: tree.getLineAndCharacterOfPosition(specifier.pos).line + 1 });
    ts.forEachChild(node, visit);
  };
  visit(tree);
  return found;
}

function specifierOf(node: ts.Node): ts.StringLiteralLike | undefined {
  const candidate =
    ts.isImportDeclaration(node) || ts.isExportDeclaration(node)
      ? node.moduleSpecifier
      : ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)
        ? node.argument.literal
        : ts.isCallExpression(node) && isLoading(node.expression)
          ? node.arguments[0]
          : undefined;
  return candidate && ts.isStringLiteralLike(candidate) ? candidate : undefined;
}

function isLoading(callee: ts.Expression): boolean {
  return callee.kind === ts.SyntaxKind.ImportKeyword || (ts.isIdentifier(callee) && callee.text === "require");
}

/**
 * Resolves a specifier: `../core/time.js` is the file lib/core/time.ts; `@aws-sdk/x/y` the package @aws-sdk/x;
 * `node:fs/promises` itself.
 */
function target(from: string, specifier: string): { file: string } | { package: string } {
  if (specifier.startsWith(".")) return { file: posix.join(posix.dirname(from), specifier).replace(/\.js$/, ".ts") };
  if (specifier.startsWith("node:")) return { package: specifier };
  return { package: specifier.split("/", specifier.startsWith("@") ? 2 : 1).join("/") };
}
