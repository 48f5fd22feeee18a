/** The repository's own files for the tidy tests: the files that git doesn't ignore, read once. */
import { readFileSync, readdirSync } from "node:fs";
import { join, relative, resolve, sep } from "node:path";
import ts from "typescript";

/** The repository's directory. */
export const ROOT = resolve(import.meta.dirname, "../..");

/** The directories with sources. */
export const SOURCES = ["lib/", "lambda/", "infra/", "console/", "bin/", "test/", "bench/", "examples/"] as const;

/** A file of the repository: its path from the root, with `/`, and its text. */
export interface SourceText {
  readonly path: string;
  readonly text: string;
}

let files: readonly SourceText[] | undefined;

/** Every file that git doesn't ignore. Read once, because no test changes one. */
export function allFiles(): readonly SourceText[] {
  return (files ??= walk(ROOT).map((file) => ({ path: relative(ROOT, file).split(sep).join("/"), text: readFileSync(file, "utf8") })));
}

/** The TypeScript files below these directories. */
export function sourcesIn(...directories: readonly string[]): readonly SourceText[] {
  return allFiles().filter(({ path }) => path.endsWith(".ts") && directories.some((directory) => path.startsWith(directory)));
}

const trees = new WeakMap<SourceText, ts.SourceFile>();

/** The syntax tree of a file, with parents. */
export function parse(source: SourceText): ts.SourceFile {
  const tree = trees.get(source) ?? ts.createSourceFile(source.path, source.text, ts.ScriptTarget.Latest, true);
  trees.set(source, tree);
  return tree;
}

const gitignore = readFileSync(join(ROOT, ".gitignore"), "utf8").split("\n");
const ignored = new Set([".git", ...gitignore.map((line) => line.trim().replace(/\/$/, ""))]);

function walk(directory: string): readonly string[] {
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name);
    if (ignored.has(entry.name) || ignored.has(relative(ROOT, path).split(sep).join("/"))) return [];
    if (entry.isDirectory()) return walk(path);
    return entry.isFile() ? [path] : [];
  });
}
