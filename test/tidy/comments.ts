/** Finds exports without a doc comment, and files without a header. */
import ts from "typescript";
import { type SourceText, parse } from "./tree.js";

/** The names of the exports without a doc comment. One comment serves all overloads of a function. */
export function undocumented(source: SourceText): readonly string[] {
  const tree = parse(source);
  const documented = new Map<string, boolean>();
  for (const statement of tree.statements) {
    if (!isExported(statement)) continue;
    for (const name of namesOf(statement)) documented.set(name, documented.get(name) === true || hasDoc(statement, tree));
  }
  return [...documented].filter(([, has]) => !has).map(([name]) => `${source.path}: ${name}`);
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
