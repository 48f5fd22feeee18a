/** Finds functions without a doc comment, comments that only say a name again, and files without a header. */
import ts from "typescript";
import { type SourceText, parse } from "./tree.js";

/** The exported functions and classes without a doc comment. One comment serves all overloads. A type's or a value's name may say enough. */
export function undocumented(source: SourceText): readonly string[] {
  const tree = parse(source);
  const documented = new Map<string, boolean>();
  for (const statement of tree.statements) {
    if (!isExported(statement) || !(ts.isFunctionDeclaration(statement) || ts.isClassDeclaration(statement))) continue;
    for (const name of namesOf(statement)) documented.set(name, documented.get(name) === true || hasDoc(statement, tree));
  }
  return [...documented].filter(([, has]) => !has).map(([name]) => `${source.path}: ${name}`);
}

const FILLING = new Set("a an the of its it one this that these those all each every some any in to for and or with by as".split(" "));

function stemsOf(text: string): readonly string[] {
  const words =
    text
      .replaceAll(/(?<=[a-z])(?=[A-Z])/g, " ")
      .toLowerCase()
      .match(/\w+/g) ?? [];
  return words.filter((word) => !FILLING.has(word)).map((word) => word.replace(/(?:es|s|e)$/, ""));
}

/** The doc comments in one line that only say the name below again, such as `An answer.` */
export function repeating({ path, text }: SourceText): readonly string[] {
  return [...text.matchAll(/\/\*\* ([^@{`]*) \*\/\n\s*export (?:(?:default|async|abstract) )*\w+\*? (\w+)/g)].flatMap(
    ([, said = "", name = ""]) => {
      const words = stemsOf(said);
      return words.length > 0 && words.every((word) => stemsOf(name).includes(word)) ? [`${path}: ${said}`] : [];
    },
  );
}

/** True if the file has a header comment. */
export function hasHeader({ text }: SourceText): boolean {
  return /^(#!.*\n)?\/\*\*\s*\S/.test(text);
}

function isExported(statement: ts.Statement): boolean {
  return ts.isExportAssignment(statement) || (ts.canHaveModifiers(statement) && (ts.getModifiers(statement) ?? []).some(isExport));
}

function isExport({ kind }: ts.Modifier): boolean {
  return kind === ts.SyntaxKind.ExportKeyword;
}

function namesOf(statement: ts.Statement): readonly string[] {
  if (ts.isVariableStatement(statement)) return statement.declarationList.declarations.map(({ name }) => name.getText());
  const { name } = statement as ts.DeclarationStatement;
  return [name?.getText() ?? "default"];
}

function hasDoc(statement: ts.Statement, tree: ts.SourceFile): boolean {
  const comments = ts.getLeadingCommentRanges(tree.text, statement.getFullStart()) ?? [];
  return comments.some(({ pos }) => tree.text.startsWith("/**", pos));
}
