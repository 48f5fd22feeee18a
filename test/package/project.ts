/** Users' projects with the packed package: in their own folders, installed by npm, with the programs of test/package/programs. */
import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { ROOT } from "../tidy/tree.js";

const execute = promisify(execFile);

/** The part of package.json that these tests read. */
export interface Manifest {
  readonly exports: Readonly<Record<string, unknown>>;
  readonly version: string;
  readonly man: readonly [string];
  readonly scripts: Readonly<Record<string, string>>;
  readonly bin: Readonly<Record<string, string>>;
  readonly optionalDependencies?: object;
  readonly peerDependencies: Readonly<Record<string, string>>;
  readonly peerDependenciesMeta: Readonly<Record<string, { readonly optional: boolean }>>;
}

/** The repository's package.json. */
export const MANIFEST = JSON.parse(await readFile(join(ROOT, "package.json"), "utf8")) as Manifest;
/** The entries of the package, as they are imported. */
export const ENTRIES: readonly string[] = Object.keys(MANIFEST.exports)
  .filter((entry) => entry !== "./package.json")
  .map((entry) => `holdfast${entry.slice(1)}`);

/** The outcome of a program. */
export interface Printed {
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program of `directory`. A failure is an outcome too, with what it printed. */
export async function run(directory: string, file: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Printed> {
  const options = { cwd: directory, env: { ...process.env, ...env }, maxBuffer: 2 ** 26 };
  const { stdout, stderr } = await execute(file, args, options).catch((error: unknown) => error as Printed);
  return { stdout, stderr };
}

/** The packed package, in a folder of its own beside the projects that install it. */
export class Packed {
  private constructor(
    readonly folder: string,
    readonly tarball: string,
    /** The paths of the files in it. */
    readonly files: readonly string[],
  ) {}

  /** Builds and packs the repository; or takes the package in `HOLDFAST_PACKAGE`, beside which `dist` is from the same build. */
  static async pack(): Promise<Packed> {
    const folder = await mkdtemp(join(tmpdir(), "holdfast-packed-"));
    const made = process.env["HOLDFAST_PACKAGE"] ?? "";
    if (made !== "") {
      const { stdout } = await run(ROOT, "tar", ["-tzf", made]);
      const paths = stdout.split("\n").filter((path) => path !== "");
      return new Packed(
        folder,
        made,
        paths.map((path) => path.replace(/^package\//, "")),
      );
    }
    const { stdout, stderr } = await run(ROOT, "npm", ["pack", "--json", "--silent", "--pack-destination", folder]);
    const start = stdout.indexOf("[\n");
    if (start < 0) throw new Error(`npm pack: ${stderr}${stdout}`);
    const [packed] = JSON.parse(stdout.slice(start)) as [{ filename: string; files: { path: string }[] }];
    const files = packed.files.map(({ path }) => path);
    return new Packed(folder, join(folder, packed.filename), files);
  }

  /** Makes a project with the package and these others, from the registry. Without a `type`, its .js files are CommonJS to Node. */
  async project(name: string, type: "module" | undefined, packages: readonly string[] = []): Promise<string> {
    const directory = join(this.folder, name);
    await mkdir(directory);
    await writeFile(join(directory, "package.json"), JSON.stringify({ name, private: true, type }));
    const args = ["install", "--no-audit", "--no-fund", "--prefer-offline", this.tarball, ...packages];
    const { stderr } = await run(directory, "npm", args);
    // What npm has to say about this machine's own settings is not about the package.
    const said = stderr.split("\n").filter((line) => /holdfast|deprecated|peer|ERR!/.test(line));
    if (said.length > 0) throw new Error(`npm install: ${said.join("\n")}`);
    await cp(join(import.meta.dirname, "programs"), directory, { recursive: true });
    return directory;
  }

  remove(): Promise<void> {
    return rm(this.folder, { recursive: true, force: true });
  }
}

/** Links packages of the repository into a project. Those that it has already stay. */
export async function link(project: string, packages: readonly string[]): Promise<void> {
  for (const name of packages) {
    const target = join(project, "node_modules", name);
    await mkdir(dirname(target), { recursive: true });
    await symlink(join(ROOT, "node_modules", name), target).catch((error: unknown) => {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    });
  }
}

/** Type-checks `source` as a file in `directory`, and returns the compiler's errors. */
export async function typeErrors(
  directory: string,
  source: string,
  options: object,
  { tsc = join(ROOT, "node_modules/.bin/tsc") } = {},
): Promise<string> {
  await writeFile(join(directory, "index.ts"), source);
  const compilerOptions = { target: "es2022", strict: true, exactOptionalPropertyTypes: true, noEmit: true, types: [], ...options };
  await writeFile(join(directory, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["index.ts"] }));
  return (await run(directory, tsc, ["-p", directory])).stdout;
}

/** A program that imports all entries with their types. */
export function typesOf(entries: readonly string[]): readonly string[] {
  return [
    ...entries.map((entry, at) => `import * as entry${at} from "${entry}";`),
    `export const entries = [${entries.map((_, at) => `entry${at}`).join(", ")}];`,
  ];
}
