/**
 * The public surface as text: the exports of each entry of package.json with their kinds, and the members of classes
 * and interfaces where they first appear. Read from the sources by the compiler.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";
import { ROOT } from "./tree.js";

interface Target {
  readonly default: string;
}

interface Manifest {
  readonly name: string;
  readonly exports: Readonly<Record<string, string | Target | { readonly import: Target }>>;
}

/** The entries of package.json and the source that each is built from. */
export function entries(): readonly { readonly name: string; readonly path: string }[] {
  const { name, exports } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as Manifest;
  return Object.entries(exports).flatMap(([entry, target]) => {
    if (typeof target === "string") return [];
    const { default: built } = "import" in target ? target.import : target;
    return [{ name: name + entry.slice(1), path: built.replace(/^\.\/dist\/(?:cjs\/)?/, "").replace(/\.js$/, ".ts") }];
  });
}

let program: ts.Program | undefined;

/** The program of all entries. The compiler reads it once, because that is slow. */
export function programOfEntries(): ts.Program {
  const files = entries().map(({ path }) => join(ROOT, path));
  return (program ??= programOf(files.filter((file) => existsSync(file))));
}

/** One section per entry. */
export function publicSurface(): string {
  const there = entries().map(({ name, path }) => ({ name, file: join(ROOT, path) }));
  const program = programOfEntries();
  const described = new Set<ts.Symbol>();
  return there.map(({ name, file }) => [name, ...exportsOf(program, file, described), ""].join("\n")).join("\n");
}

/**
 * The exports of a module, one indented line each, sorted by name. Members are one step deeper, unless their owner is
 * among the `described`. An owner listed with its members is added to them.
 */
export function exportsOf(program: ts.Program, file: string, described = new Set<ts.Symbol>()): readonly string[] {
  const checker = program.getTypeChecker();
  const source = program.getSourceFile(file);
  const module = source && checker.getSymbolAtLocation(source);
  if (!module) return ["  (not there yet)"];
  const exported = checker.getExportsOfModule(module).toSorted((a, b) => compare(a.name, b.name));
  return exported.flatMap((symbol) => {
    const origin = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
    const members = described.has(origin) ? [] : membersOf(origin, checker);
    described.add(origin);
    return [`  ${kindOf(origin)} ${symbol.name}`, ...members.map((member) => `    ${member}`)];
  });
}

/** The disk for the compiler. Each file is parsed once for all programs of the process. */
export const DISK: ts.CompilerHost = parsingOnce(ts.createCompilerHost({}));

function parsingOnce(host: ts.CompilerHost): ts.CompilerHost {
  const parsed = new Map<string, ts.SourceFile | undefined>();
  return {
    ...host,
    getSourceFile(path, ...rest) {
      if (!parsed.has(path)) parsed.set(path, host.getSourceFile(path, ...rest));
      return parsed.get(path);
    },
  };
}

/** The program of these files with tsconfig.json's options; `host` may replace the disk. */
export function programOf(files: readonly string[], host: ts.CompilerHost = DISK): ts.Program {
  const { config } = ts.readConfigFile(join(ROOT, "tsconfig.json"), (path) => ts.sys.readFile(path)) as {
    config: { compilerOptions: object };
  };
  const { options } = ts.convertCompilerOptionsFromJson(config.compilerOptions, ROOT);
  return ts.createProgram({ rootNames: files, options, host });
}

const KINDS: readonly (readonly [flag: ts.SymbolFlags, kind: string])[] = [
  [ts.SymbolFlags.Class, "class"],
  [ts.SymbolFlags.Function, "function"],
  [ts.SymbolFlags.Interface, "interface"],
  [ts.SymbolFlags.Enum, "enum"],
  [ts.SymbolFlags.Variable, "const"],
  [ts.SymbolFlags.TypeAlias, "type"],
  [ts.SymbolFlags.Module, "namespace"],
];

function kindOf({ flags }: ts.Symbol): string {
  return KINDS.find(([flag]) => flags & flag)?.[1] ?? "unknown";
}

/** The members that callers rely on: those declared in our own sources, inherited ones, and protocols such as asyncDispose. */
function membersOf(symbol: ts.Symbol, checker: ts.TypeChecker): readonly string[] {
  if (!(symbol.flags & (ts.SymbolFlags.Class | ts.SymbolFlags.Interface))) return [];
  const members = checker
    .getPropertiesOfType(checker.getDeclaredTypeOfSymbol(symbol))
    .filter((member) => isOurs(member) && isVisible(member));
  return members.map((member) => nameOf(member) + (member.flags & ts.SymbolFlags.Optional ? "?" : "")).sort(compare);
}

function isOurs({ name, declarations = [] }: ts.Symbol): boolean {
  if (name.startsWith("__@")) return true;
  return declarations.some((declaration) => !declaration.getSourceFile().fileName.includes("/node_modules/"));
}

function isVisible({ name, declarations = [] }: ts.Symbol): boolean {
  const hidden = declarations.some(
    (declaration) => ts.getCombinedModifierFlags(declaration) & ts.ModifierFlags.NonPublicAccessibilityModifier,
  );
  return !hidden && !name.includes("#");
}

/** Strips the decoration from symbols with names like `__@asyncDispose@12`. */
function nameOf({ name }: ts.Symbol): string {
  return name.replace(/^__@(\w+)@\d+$/, "[Symbol.$1]");
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
