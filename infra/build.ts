/**
 * Builds the package into `dist/`: the ES modules, one file for each source, which bundlers shake; in `dist/cjs/` the CommonJS that Node loads,
 * in few files, and the types of both; in `dist/template/` the template for accounts without the CDK, and the functions' code for it and for
 * the construct; and the console's page. There are no source maps: the files are as readable as their sources.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { type BuildOptions, type Plugin, build, transform } from "esbuild";
import { bundleHosted, bundlePage } from "../console/bundle.js";
import { MADE } from "../console/files.js";
import { bundledPackages, licencesText } from "./bundled-licences.js";
import { LICENCES_FILE } from "./bundle.js";
import { filesIn, writeTemplate } from "./template.js";
import { zipOf } from "./zip.js";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const DIST = join(ROOT, "dist");
const CJS = join(DIST, "cjs");

const SDK = ["@aws-sdk/client-dynamodb", "@aws-sdk/lib-dynamodb"];
/** The entries as Node loads them, each with the packages that it needs beside this one. */
const NEEDED_BY = {
  "lib/index": [],
  "lib/testing": [],
  "lib/middy": [],
  "lib/express": [],
  "lib/fastify": [],
  "lib/hono": [],
  "lib/nest": [],
  "lib/durable": [],
  "lib/dynamodb": [],
  "lib/sigv4": [],
  "lib/cron": ["croner"],
  "lib/otel": ["@opentelemetry/api"],
  "lambda/index": SDK,
  "infra/index": ["aws-cdk-lib", "constructs"],
  "infra/step-functions": ["aws-cdk-lib", "constructs"],
};
const NODE_MIN = 20;

/** Lets an entry begin with two checks, so that an old Node or a missing package is an error that says what to do. */
function addChecks(entry: string, packages: readonly string[]): void {
  const file = join(CJS, `${entry}.js`);
  const name = `holdfast/${entry === "infra/index" ? "cdk" : entry.replace(/^(?:lib|infra)\/|\/index$/g, "")}`.replace(/\/index$/, "");
  const checks = `"use strict";
if (parseInt(process.versions.node, 10) < ${NODE_MIN}) throw new Error("${name} needs Node ${NODE_MIN} or newer, and this is " + process.versions.node);
for (const name of ${JSON.stringify(packages)}) {
  try { require.resolve(name); } catch (cause) {
    if (cause.code !== "MODULE_NOT_FOUND") continue;
    const error = new Error("${name} needs the package " + name + ": npm install ${packages.join(" ")}", { cause });
    throw Object.assign(error, { code: cause.code });
  }
}
`;
  writeFileSync(
    file,
    readFileSync(file, "utf8").replace('"use strict";\n', () => checks),
  );
}

/** The common options of both module systems. */
const BUILD = { absWorkingDir: ROOT, platform: "node", packages: "external" } as const satisfies BuildOptions;

/** Writes each source that the entries reach, as a module of its own. */
async function writeEsModules(entries: readonly string[]): Promise<void> {
  const entryPoints = entries.map((entry) => `${entry}.ts`);
  const { metafile } = await build({ ...BUILD, entryPoints, outdir: DIST, bundle: true, format: "esm", write: false, metafile: true });
  await build({ entryPoints: Object.keys(metafile.inputs), outbase: ROOT, outdir: DIST, absWorkingDir: ROOT, target: "es2022" });
}

/**
 * Writes the entries that Node loads, as few files: what several of them use is in files that they share, so an object of one entry is the
 * same for another. Node takes most of the time of a cold start to find and read files. Bundlers take the ES modules instead, which they
 * shake (docs/decisions/021-node-loads-one-copy.md).
 */
async function writeFewFiles(entries: readonly string[]): Promise<void> {
  const { outputFiles } = await build({
    ...BUILD,
    entryPoints: Object.fromEntries(entries.map((entry) => [entry, `entry:${entry}`])),
    outdir: CJS,
    chunkNames: "lib/shared/[name]-[hash]",
    bundle: true,
    splitting: true,
    write: false,
    format: "esm",
    target: `node${NODE_MIN}`,
    external: ["*/here.cjs"],
    plugins: [{ name: "client in one file", setup: loadsTheClient }],
  });
  for (const { path, text } of outputFiles) {
    // Splitting exists for ES modules alone. Each file is then CommonJS of its own. Jest's modules can't import on use, but can require.
    const supported = { "dynamic-import": false };
    const { code } = await transform(text, { format: "cjs", platform: "node", target: `node${NODE_MIN}`, supported });
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, `"use strict";\n${code}`);
  }
}

/**
 * Lets every file that is loaded by itself load the client and the signer too. Esbuild puts into one file what the same entries reach, so all
 * of these is in one file instead of in one for each set of entries. Whoever loads another entry needs a client anyway.
 */
const loadsTheClient: Plugin["setup"] = ({ onResolve, onLoad }) => {
  const entry = (path: string) => ({ path, namespace: "entry" });
  onResolve({ filter: /^entry:/ }, ({ path }) => entry(path.slice("entry:".length)));
  onResolve({ filter: /^\./ }, ({ kind, path, resolveDir }) =>
    kind === "dynamic-import" ? entry(relative(ROOT, resolve(resolveDir, path)).replace(/\.js$/, "")) : undefined,
  );
  onLoad({ filter: /^/, namespace: "entry" }, ({ path }) => ({
    contents: `import * as client from "./lib/index.ts"; import * as signer from "./lib/sigv4.ts"; export * from "./${path}.ts";`,
    resolveDir: ROOT,
  }));
};

async function compile(project: string): Promise<void> {
  const tsc = spawn(process.execPath, [join(ROOT, "node_modules/@typescript/native/bin/tsc"), "-p", join(ROOT, project)], {
    stdio: "inherit",
  });
  const [status] = (await once(tsc, "exit")) as [number | null];
  if (status !== 0) throw new Error(`tsc -p ${project} ended with ${status ?? "a signal"}`);
}

/** Removes the declarations to which no entry leads. */
function dropUnreached(entries: readonly string[]): void {
  const reached = new Set<string>();
  const follow = (file: string): void => {
    if (reached.has(file)) return;
    reached.add(file);
    const imports = readFileSync(file, "utf8").matchAll(/(?:from|import) ?\(?"(\.[^"]+)\.js"/g);
    for (const [, path = ""] of imports) follow(join(dirname(file), `${path}.d.ts`));
  };
  for (const entry of entries) follow(join(CJS, `${entry}.d.ts`));
  for (const path of readdirSync(CJS, { recursive: true, encoding: "utf8" }).map((name) => join(CJS, name)))
    if (path.endsWith(".d.ts") && !reached.has(path)) rmSync(path);
}

/** Writes the code of the function that serves the console in an account. */
async function writeHosted(to: string): Promise<void> {
  const directory = mkdtempSync(join(DIST, "console-"));
  const inputs = await bundleHosted(directory);
  writeFileSync(join(directory, LICENCES_FILE), licencesText(bundledPackages(Object.keys(inputs))));
  writeFileSync(to, zipOf(filesIn(directory)));
  rmSync(directory, { recursive: true });
}

/** Writes the console's page, with the licences of the packages in it. */
async function writePage(): Promise<void> {
  const [from, to] = [join(ROOT, "console/page"), join(DIST, "console/page")];
  const { script, style, inputs } = await bundlePage();
  mkdirSync(to, { recursive: true });
  for (const name of ["index.html", "icon.svg"]) copyFileSync(join(from, name), join(to, name));
  writeFileSync(join(to, MADE.script), script);
  writeFileSync(join(to, MADE.style), style);
  writeFileSync(join(to, LICENCES_FILE), licencesText(bundledPackages(Object.keys(inputs))));
}

const entries = Object.keys(NEEDED_BY);
// The construct is CommonJS only, as aws-cdk-lib is. No object of it is one of another entry.
const constructs = entries.filter((entry) => entry.startsWith("infra/"));
const others = entries.filter((entry) => !constructs.includes(entry));
rmSync(DIST, { recursive: true, force: true });
await compile("infra/tsconfig.types.json");
dropUnreached(entries);
// The root of the package says that .js files are ES modules.
writeFileSync(join(CJS, "package.json"), `${JSON.stringify({ type: "commonjs", sideEffects: false })}\n`);
await writeFewFiles(others);
await writeFewFiles(constructs);
for (const [entry, packages] of Object.entries(NEEDED_BY)) addChecks(entry, packages);
copyFileSync(join(ROOT, "infra/here.cjs"), join(CJS, "infra/here.cjs"));
// The guard is a process of its own.
await writeEsModules([...others, "bin/holdfast", "bin/exec/guard-main"]);
for (const entry of others) writeFileSync(join(DIST, `${entry}.d.ts`), `export * from "../cjs/${entry}.js";\n`);
chmodSync(join(DIST, "bin/holdfast.js"), 0o755);
await writeTemplate(join(DIST, "template"));
await writeHosted(join(DIST, "template/console.zip"));
await writePage();
