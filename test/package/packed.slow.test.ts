/** The published package, as users get it: packed, installed into an empty folder, imported, type-checked, weighed. */
import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ROOT } from "../tidy/tree.js";

const run = promisify(execFile);
/** Packing builds first, and installing uses the registry. */
const PATIENCE_MS = 300_000;

interface Manifest {
  readonly exports: Readonly<Record<string, unknown>>;
  readonly version: string;
  readonly bin: Readonly<Record<string, string>>;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly optionalDependencies?: object;
  readonly peerDependencies: Readonly<Record<string, string>>;
  readonly peerDependenciesMeta: Readonly<Record<string, { readonly optional: boolean }>>;
}

const manifest = JSON.parse(await readFile(join(ROOT, "package.json"), "utf8")) as Manifest;
const ENTRIES = Object.keys(manifest.exports)
  .filter((entry) => entry !== "./package.json")
  .map((entry) => `holdfast${entry.slice(1)}`);
/** Entry points that need only the package itself. */
const BARE = ["holdfast", "holdfast/testing", "holdfast/middy"];

let folder: string;
/** A project with the package and its dependencies, and nothing else. */
let project: string;
/** The same with the optional peers. */
let peered: string;
let files: readonly string[];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "holdfast-packed-"));
  [project, peered] = [join(folder, "bare"), join(folder, "peered")];
  await mkdir(project);
  const { stdout } = await run("npm", ["pack", "--json", "--silent", "--pack-destination", project], { cwd: ROOT, maxBuffer: 2 ** 24 });
  const [packed] = JSON.parse(stdout.slice(stdout.indexOf("[\n"))) as [{ filename: string; files: { path: string }[] }];
  files = packed.files.map(({ path }) => path);
  await writeFile(join(project, "package.json"), JSON.stringify({ name: "empty", private: true, type: "module" }));
  await run("npm", ["install", "--no-audit", "--no-fund", "--prefer-offline", `./${packed.filename}`], { cwd: project });
  await cp(project, peered, { recursive: true, verbatimSymlinks: true });
  await addPeers();
}, PATIENCE_MS);

afterAll(() => rm(folder, { recursive: true, force: true }));

/** Adds the optional peers, as projects have them that use their entries. */
async function addPeers(): Promise<void> {
  for (const peer of [...Object.keys(manifest.peerDependencies), "@types/node"]) {
    const [scope = "", name] = peer.split("/");
    if (name !== undefined) await mkdir(join(peered, "node_modules", scope), { recursive: true });
    await symlink(join(ROOT, "node_modules", peer), join(peered, "node_modules", peer)).catch((error: unknown) => {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    });
  }
}

/** Returns the compiler's errors about `source` in a user's project. */
async function complaintsOf(directory: string, source: string, options: object): Promise<string> {
  await writeFile(join(directory, "index.ts"), source);
  const compilerOptions = { target: "es2022", strict: true, exactOptionalPropertyTypes: true, noEmit: true, types: [], ...options };
  await writeFile(join(directory, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["index.ts"] }));
  const { stdout } = await run(join(ROOT, "node_modules/.bin/tsc"), ["-p", directory], { cwd: directory }).catch(
    (error: unknown) => error as { stdout: string },
  );
  return stdout;
}

const typesOf = (entries: readonly string[]): readonly string[] => [
  ...entries.map((entry, at) => `import * as entry${at} from "${entry}";`),
  `export const entries = [${entries.map((_, at) => `entry${at}`).join(", ")}];`,
];

const importing = (entries: readonly string[]): string =>
  `for (const entry of ${JSON.stringify(entries)}) console.log(entry, Object.keys(await import(entry)).length > 0);`;

describe("the package", () => {
  it("has what is run and its types, and no source, test or map of ours", () => {
    const odd = files.filter(
      (path) => !/^(?:dist\/(?:lib|lambda|infra|bin)\/.*\.(?:js|d\.ts)|README\.md|LICENSE|package\.json)$/.test(path),
    );
    expect(odd.sort()).toEqual(
      ["index.mjs", "index.mjs.map", "licences.txt", "sdk.mjs", "sdk.mjs.map"].map((file) => `dist/infra/function/${file}`),
    );
  });

  it("brings nothing with it that only the repository needs, and every peer is optional", () => {
    expect(manifest.optionalDependencies).toBeUndefined();
    for (const peer of Object.keys(manifest.peerDependencies))
      expect(manifest.peerDependenciesMeta[peer], peer).toEqual({ optional: true });
  });

  it("in an empty folder, with nothing else installed, gives a client", async () => {
    const { stdout, stderr } = await run(process.execPath, ["--input-type=module", "-e", importing(BARE)], { cwd: project });
    expect([stderr, stdout]).toEqual(["", BARE.map((entry) => `${entry} true\n`).join("")]);
  });

  it("in a folder with the peers, every entry is imported", async () => {
    const { stdout } = await run(process.execPath, ["--input-type=module", "-e", importing(ENTRIES)], { cwd: peered });
    expect(stdout).toBe(ENTRIES.map((entry) => `${entry} true\n`).join(""));
  }, 60_000);

  it.each([
    ["nodenext", ["es2022", "dom"], true],
    ["bundler", ["es2022", "dom"], true],
    ["nodenext", ["es2022", "dom"], false],
  ])(
    "in that folder, has types under %s, with the libraries %j, which don't have disposables; skipLibCheck: %s",
    async (resolution, lib, skipLibCheck) => {
      const source = [
        ...typesOf(BARE),
        'import { createLockClient, key } from "holdfast";',
        'const locks = createLockClient({ url: "http://127.0.0.1:8787" });',
        'export const token: Promise<number> = locks.withLock(key("ORDER", 1), (lease) => lease.fencingToken);',
        "export async function ended(): Promise<void> { await locks[Symbol.asyncDispose](); }",
        "// @ts-expect-error -- there is no such option",
        'export const wrong = locks.acquire("k", { leaseSeconds: 3 });',
      ].join("\n");
      const module = resolution === "bundler" ? "esnext" : "nodenext";
      expect(await complaintsOf(project, source, { module, moduleResolution: resolution, lib, skipLibCheck })).toBe("");
    },
    60_000,
  );

  it("in a folder with the peers, has types of every entry", async () => {
    const options = {
      module: "nodenext",
      moduleResolution: "nodenext",
      lib: ["es2022", "dom", "esnext.disposable"],
      types: ["node"],
      skipLibCheck: false,
      exactOptionalPropertyTypes: false, // The CDK's own types don't pass it.
    };
    expect(await complaintsOf(peered, typesOf(ENTRIES).join("\n"), options)).toBe("");
  }, 120_000);

  it.skipIf(process.platform === "win32")("in a clone, or linked to one, has a command that may be run", async () => {
    const { stdout } = await run(join(ROOT, manifest.bin["holdfast"]!), ["--version"], { cwd: folder });
    expect(stdout).toBe(`${manifest.version}\n`);
  });
});

describe("the client's weight", () => {
  const gzippedBytes = async (contents: string): Promise<number> => {
    const { outputFiles } = await build({
      stdin: { contents, resolveDir: project },
      bundle: true,
      minify: true,
      format: "esm",
      platform: "neutral",
      mainFields: ["module", "main"],
      external: ["node:*"],
      target: "es2022",
      write: false,
    });
    return gzipSync(outputFiles[0]!.contents, { level: 9 }).length;
  };

  it("over HTTP, all that createLockClient can do, is at most 23.5 KB gzipped", async () => {
    expect(await gzippedBytes('export { createLockClient } from "holdfast";')).toBeLessThanOrEqual(23_500);
  });

  it("is paid for what is imported: a key alone is a small part of it", async () => {
    expect(await gzippedBytes('export { key } from "holdfast";')).toBeLessThanOrEqual(1_600);
  });
});
