/** Makes docs/sdk.md: the exports of each entry of package.json, with the doc comments of the sources. */
import { join } from "node:path";
import ts from "typescript";
import { entries, programOfEntries } from "../tidy/public-surface.js";
import { ROOT } from "../tidy/tree.js";
import { readPage, table, withParts } from "./generated.js";

/** The exports of `holdfast` under each heading. A test checks that the list is complete. */
export const GROUPS: Readonly<Record<string, readonly string[]>> = {
  client: [
    ...["createLockClient", "LockClient", "ClientOptions", "HttpClientOptions", "HttpOptions"],
    ...["CloseOptions", "Sign", "LockClientEvent", "InvocationContext"],
  ],
  locks: [
    ...["Lease", "LeaseOptions", "AcquireOptions", "WhenUnavailable", "UnsureWork", "Via"],
    ...["State", "LeaseState", "LockHandle", "ReadWriteHandle", "SegmentsHandle"],
    ...["Work", "Inspection", "HolderView", "WatchOptions", "ElectOptions", "Lead"],
  ],
  jobs: ["RefreshOptions", "Renewal", "Tick", "TickOptions", "OccurrenceOptions", "Schedule", "TickResult", "RunningBefore"],
  limits: [
    ...[
      "LimitView",
      "LimitedOptions",
      "Limiter",
      "LimiterOptions",
      "Limits",
      "Rate",
      "ShutOptions",
      "TakeOptions",
      "TakeResult",
      "limitAll",
    ],
  ],
  sets: ["LeaseSet", "SetKey", "SetOptions"],
  runs: ["Run", "RunResult", "RunOptions", "Runs", "RunInspection", "RunView"],
  wrappers: [
    ...[
      "locked",
      "LockedOptions",
      "currentLease",
      "runOnce",
      "OnceOptions",
      "currentRun",
      "Through",
      "AsyncMethod",
      "AsyncMethodDecorator",
    ],
    ...["runBatch", "BatchOptions", "BatchRecord", "BatchResponse", "idempotencyKeyOf"],
  ],
  helpers: ["key", "KeyPart", "fencedWrite", "FencedWrite"],
  errors: [
    ...[
      "LockError",
      "LockTimeoutError",
      "LimitExceededError",
      "LockLostError",
      "LockUnavailableError",
      "InvalidRequestError",
      "RunFailedError",
      "FinalError",
    ],
  ],
};

interface Entry {
  readonly name: string;
  readonly exports: ReadonlyMap<string, ts.Symbol>;
}

interface Surface {
  readonly checker: ts.TypeChecker;
  readonly read: readonly Entry[];
}

let surface: Surface | undefined;

/** The entries of package.json. The compiler reads them once, because that is slow. */
function readEntries(): Surface {
  return (surface ??= compiled());
}

function compiled(): Surface {
  const files = entries().map(({ name, path }) => ({ name, file: join(ROOT, path) }));
  const program = programOfEntries();
  const checker = program.getTypeChecker();
  const read = files.map(({ name, file }) => {
    const module = checker.getSymbolAtLocation(program.getSourceFile(file)!)!;
    const symbols = checker.getExportsOfModule(module);
    const origin = (symbol: ts.Symbol): ts.Symbol => (symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol);
    return { name, exports: new Map(symbols.map((symbol) => [symbol.name, origin(symbol)])) };
  });
  return { checker, read };
}

interface Said {
  /** The comment's code, verbatim. */
  readonly example: string;
  readonly text: string;
  readonly fallback: string;
  readonly throws: string;
  readonly parameters: readonly string[];
}

const FENCED = /^```ts\n[\s\S]*?^```$/m;

/** Splits a doc comment into its parts. */
function saidOf(symbol: ts.Symbol, checker: ts.TypeChecker): Said {
  const clean = (text: string): string =>
    text
      .replaceAll(/\{@link\s+([^}]+?)\s*\}/g, "`$1`")
      .replaceAll(/\s+/g, " ")
      .trim();
  const tags = symbol.getJsDocTags(checker).map(({ name, text }) => ({ name, text: clean(ts.displayPartsToString(text)) }));
  const of = (wanted: string): readonly string[] => tags.filter(({ name }) => name === wanted).map(({ text }) => text);
  const whole = ts.displayPartsToString(symbol.getDocumentationComment(checker)).replaceAll("\uFF20", "@");
  return {
    example: FENCED.exec(whole)?.[0] ?? "",
    text: clean(whole.replace(FENCED, "")),
    fallback: of("default").join("; "),
    throws: of("throws").join("; "),
    parameters: of("param").map((text) => text.replace(/^(\w+) (?:- )?/, "`$1`: ")),
  };
}

function sentencesOf({ text, throws, parameters }: Said): string {
  const parts = [text, ...parameters.map((one) => `${one}.`.replace("..", ".")), ...(throws === "" ? [] : [`Throws ${throws}`])];
  return parts.filter((part) => part !== "").join(" ");
}

/** The text of a declaration without its body and comments. */
function signature(node: ts.Node): string {
  const body = (node as Partial<ts.FunctionLikeDeclaration>).body;
  const text = node.getSourceFile().text.slice(node.getStart(), body ? body.getStart() : node.getEnd());
  return text
    .replaceAll(/\/\*[\s\S]*?\*\/|\/\/ .*$/gm, "")
    .replaceAll(/\b(?:readonly|export|override|declare) (?!\w+\[\])/g, "")
    .replaceAll(/\s+/g, " ")
    .replaceAll("( ", "(")
    .replaceAll(", )", ")")
    .replace(/[;\s]+$/, "");
}

function membersOf(symbol: ts.Symbol, checker: ts.TypeChecker): readonly ts.Symbol[] {
  return checker.getPropertiesOfType(checker.getDeclaredTypeOfSymbol(symbol)).filter(({ name, declarations = [] }) => {
    const ours = declarations.some((one) => !one.getSourceFile().fileName.includes("/node_modules/"));
    const hidden = declarations.some((one) => ts.getCombinedModifierFlags(one) & ts.ModifierFlags.NonPublicAccessibilityModifier);
    return ours && !hidden && !name.startsWith("__") && !name.includes("#");
  });
}

function asCode(text: string): string {
  return text.includes("`") ? `\`\` ${text} \`\`` : `\`${text}\``;
}

function memberRow(member: ts.Symbol, checker: ts.TypeChecker): readonly [call: string, fallback: string, text: string] {
  const said = saidOf(member, checker);
  const calls = (member.declarations ?? []).map((one) => asCode(signature(one)));
  return [[...new Set(calls)].join("<br>"), said.fallback, sentencesOf(said)];
}

/** One exported name: its kind, and its signature or its members. */
function sectionOf(name: string, symbol: ts.Symbol, checker: ts.TypeChecker): string {
  const said = saidOf(symbol, checker);
  const parts = [`### ${name}`, sentencesOf(said)];
  const isObject = (symbol.flags & (ts.SymbolFlags.Interface | ts.SymbolFlags.Class)) !== 0;
  const rows = isObject ? membersOf(symbol, checker).map((member) => memberRow(member, checker)) : [];
  const declarations = (symbol.declarations ?? []).filter((one) => !(ts.isFunctionDeclaration(one) && isImplementation(one, symbol)));
  if (!isObject) parts.push(["```ts", ...declarations.map(signature), "```"].join("\n"));
  else if (rows.some(([, fallback]) => fallback !== "")) parts.push(table(["name", "default", ""], rows));
  else if (rows.length > 0)
    parts.push(rows.map(([call, , text]) => `- ${call.replaceAll("<br>", "<br>\n  ")}${text === "" ? "" : `: ${text}`}`).join("\n"));
  return [...parts, said.example].filter((part) => part !== "").join("\n\n");
}

/** True for the implementation behind overloads, which callers don't see. */
function isImplementation(one: ts.FunctionDeclaration, { declarations = [] }: ts.Symbol): boolean {
  return one.body !== undefined && declarations.length > 1;
}

/** The page, from its template and the sources. */
export function sdkPage(): Promise<string> {
  return withParts(readPage("test/docs/sdk-page.md"), sdkReference());
}

/** The page's parts, by name: the groups of `holdfast`, then the additional exports of every other entry. */
export function sdkReference(): Readonly<Record<string, string>> {
  const { checker, read } = readEntries();
  const [main, ...others] = read as [Entry, ...Entry[]];
  const grouped = Object.values(GROUPS).flat();
  const strays = [...main.exports.keys()].filter((name) => !grouped.includes(name));
  if (strays.length > 0) throw new Error(`In no group of docs/sdk.md: ${strays.join(", ")}`);
  const sections = (names: readonly string[], { exports }: Entry): string =>
    names.map((name) => sectionOf(name, exports.get(name)!, checker)).join("\n\n");
  const own = others.map((entry) => {
    // An entry can have all of another one, which is described there.
    const within = read.filter(({ name, exports }) => name !== entry.name && [...exports.keys()].every((one) => entry.exports.has(one)));
    const elsewhere = [main, ...within];
    const news = [...entry.exports].filter(([name, symbol]) => elsewhere.every(({ exports }) => exports.get(name) !== symbol));
    const all = within.map(({ name }) => `Everything of \`${name}\`, and:`);
    return [entry.name.replaceAll("/", " "), [...all, sections(news.map(([name]) => name).toSorted(), entry)].join("\n\n")] as const;
  });
  return {
    ...Object.fromEntries(Object.entries(GROUPS).map(([group, names]) => [group, sections(names, main)])),
    ...Object.fromEntries(own),
  };
}

/** Every name that an entry exports. */
export function sdkNames(): readonly string[] {
  return [...new Set(readEntries().read.flatMap(({ exports }) => [...exports.keys()]))];
}
