/**
 * The guides for users, as tests read them. The TypeScript of a page is one program, its blocks in order. So each block
 * imports only its new names, and all blocks are compiled and run together, as a reader would paste them.
 */
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdir, mkdtemp, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { ROOT } from "../tidy/tree.js";
import { plainEnvironment } from "./npm-start.js";

const run = promisify(execFile);
const BLOCK = /^ *```(\w+)\n([\s\S]*?)^ *```$/gm;
/** A block under a label of its own is one of several forms of the same thing. The site shows these as tabs. */
const FORM = /^\*\*[^*\n]+\*\*\n\n```(\w+)\n([\s\S]*?)^```$/gm;

/** A page and its parsed parts. */
export interface Guide {
  /** The name below `docs/`, without its extension. */
  readonly name: string;
  /** The page as one line, regardless of wrapping. */
  readonly text: string;
  /** The page's TypeScript, without the blocks that are forms of the same thing. */
  readonly program: string;
  /** The TypeScript of each such form, which is a program of its own. */
  readonly forms: readonly string[];
  /** The program's output according to the page: the rest of each line after `// → `. */
  readonly says: readonly string[];
  /** The page's blocks in another language. */
  blocks(language: string): readonly string[];
}

/** The page at `docs/<name>.md`. */
export function guide(name: string): Guide {
  const page = readFileSync(join(ROOT, "docs", `${name}.md`), "utf8");
  const codeIn = (text: string, pattern: RegExp, language: string): readonly string[] =>
    [...text.matchAll(pattern)].filter(([, of]) => of === language).map(([, , code = ""]) => code);
  const blocks = (language: string): readonly string[] => codeIn(page, BLOCK, language);
  const program = codeIn(page.replaceAll(FORM, ""), BLOCK, "ts").join("\n");
  return {
    name,
    text: page.replaceAll(/\s+/g, " "),
    program,
    forms: codeIn(page, FORM, "ts"),
    says: [...program.matchAll(/\/\/ → (.*)$/gm)].map(([, said = ""]) => said),
    blocks,
  };
}

/** The sources of the names that readers import. */
const ENTRIES: Readonly<Record<string, string>> = {
  holdfast: "lib/index.js",
  "holdfast/dynamodb": "lib/dynamodb.js",
  "holdfast/sigv4": "lib/sigv4.js",
  "holdfast/testing": "lib/testing.js",
  "holdfast/middy": "lib/middy.js",
  "holdfast/express": "lib/express.js",
  "holdfast/fastify": "lib/fastify.js",
  "holdfast/hono": "lib/hono.js",
  "holdfast/nest": "lib/nest.js",
  "holdfast/cron": "lib/cron.js",
  "holdfast/durable": "lib/durable.js",
  "holdfast/otel": "lib/otel.js",
  "holdfast/cdk": "infra/index.js",
  "holdfast/step-functions": "infra/step-functions.js",
};

/** The program with its imports redirected to the sources. With `inMemory`, every client is one of `holdfast/testing`. */
export function pasted(program: string, { inMemory = false } = {}): string {
  return program.replaceAll(/from "(holdfast[\w/-]*)"/g, (_all, name: string) => {
    const entry = ENTRIES[inMemory && name === "holdfast" ? "holdfast/testing" : name];
    if (entry === undefined) throw new Error(`A guide imports ${name}, which the tests don't know`);
    return `from ${JSON.stringify(join(ROOT, entry))}`;
  });
}

/** Creates a directory for programs below node_modules, so that they find their packages and git ignores them. */
export async function workshop(): Promise<string> {
  const cache = join(ROOT, "node_modules/.cache");
  await mkdir(cache, { recursive: true });
  return mkdtemp(join(cache, "guides-"));
}

/** Type-checks these files of the directory together, and returns the compiler's messages, `""` if there are none. */
export async function compile(directory: string, files: readonly string[], options: object = {}): Promise<string> {
  const compilerOptions = { noUnusedLocals: false, noUnusedParameters: false, ...options };
  const config = { extends: join(ROOT, "tsconfig.json"), compilerOptions, files, include: [] };
  await writeFile(join(directory, "tsconfig.json"), JSON.stringify(config));
  return run("npx", ["tsc", "--noEmit", "-p", directory], { cwd: ROOT }).then(
    ({ stdout }) => stdout,
    (error: unknown) => (error as { readonly stdout: string }).stdout,
  );
}

/** Runs a program to its end, and returns its output. @throws Error unless it succeeds. */
export async function printed(file: string, env: Readonly<Record<string, string>> = {}): Promise<readonly string[]> {
  const { stdout, stderr } = await run(process.execPath, ["--import", "tsx", file], { cwd: ROOT, env: plainEnvironment(env) });
  if (stderr !== "") throw new Error(stderr);
  return stdout.trimEnd().split("\n");
}
