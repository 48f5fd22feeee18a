/**
 * Builds the package into `dist/`: ES modules, the same sources as CommonJS in `dist/cjs/`, the functions' code and the hosted console
 * beside the construct, the template for accounts without the CDK, and the console's page. The construct is CommonJS only, as
 * `aws-cdk-lib` is.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build, transform } from "esbuild";
import { bundleHosted, bundlePage } from "../bin/console/bundle.js";
import { MADE } from "../bin/console/files.js";
import { bundledPackages, licencesText } from "./bundled-licences.js";
import { bundleAgent, bundleFunction, LICENCES_FILE } from "./bundle.js";
import { writeTemplate } from "./template.js";

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
  "lib/sigv4": ["@aws-sdk/credential-provider-node", "@smithy/signature-v4"],
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

/**
 * Writes the entries that Node loads, as few files: what several of them use is in files that they share, so an object of one entry is the
 * same for another. Node takes most of the time of a cold start to find and read files. Bundlers take the ES modules instead, which they
 * shake (docs/decisions/020-node-loads-commonjs.md).
 */
async function writeFewFiles(entries: readonly string[]): Promise<void> {
  const { outputFiles } = await build({
    entryPoints: Object.fromEntries(entries.map((entry) => [entry, join(ROOT, `${entry}.ts`)])),
    outdir: CJS,
    chunkNames: "lib/shared/[name]-[hash]",
    bundle: true,
    splitting: true,
    write: false,
    format: "esm",
    platform: "node",
    target: `node${NODE_MIN}`,
    packages: "external",
  });
  for (const { path, text } of outputFiles) {
    // Splitting exists for ES modules alone. Each file is then CommonJS of its own.
    const { code } = await transform(text, { format: "cjs", platform: "node", target: `node${NODE_MIN}` });
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, `"use strict";\n${code}`);
  }
}

async function compile(project: string): Promise<void> {
  const tsc = spawn(process.execPath, [join(ROOT, "node_modules/@typescript/native/bin/tsc"), "-p", join(ROOT, project)], {
    stdio: "inherit",
  });
  const [status] = (await once(tsc, "exit")) as [number | null];
  if (status !== 0) throw new Error(`tsc -p ${project} ended with ${status ?? "a signal"}`);
}

/** Writes the console's page, with the licences of the packages in it. */
async function writePage(): Promise<void> {
  const [from, to] = [join(ROOT, "bin/console/page"), join(DIST, "bin/console/page")];
  const { script, style, inputs } = await bundlePage();
  mkdirSync(to, { recursive: true });
  for (const name of ["index.html", "icon.svg"]) copyFileSync(join(from, name), join(to, name));
  writeFileSync(join(to, MADE.script), script);
  writeFileSync(join(to, MADE.style), style);
  writeFileSync(join(to, LICENCES_FILE), licencesText(bundledPackages(Object.keys(inputs))));
}

rmSync(DIST, { recursive: true, force: true });
await compile("infra/tsconfig.esm.json");
await compile("infra/tsconfig.cjs.json");
// The root of the package says that .js files are ES modules.
writeFileSync(join(CJS, "package.json"), `${JSON.stringify({ type: "commonjs", sideEffects: false })}\n`);
await writeFewFiles(Object.keys(NEEDED_BY).filter((entry) => !entry.startsWith("infra/")));
for (const [entry, packages] of Object.entries(NEEDED_BY)) addChecks(entry, packages);
copyFileSync(join(ROOT, "infra/here.cjs"), join(CJS, "infra/here.cjs"));
chmodSync(join(DIST, "bin/holdfast.js"), 0o755);
await bundleFunction(join(CJS, "infra/function"));
await bundleAgent(join(CJS, "infra/agent"));
const inputs = await bundleHosted(join(CJS, "infra/console"));
writeFileSync(join(CJS, "infra/console", LICENCES_FILE), licencesText(bundledPackages(Object.keys(inputs))));
await writeTemplate(join(DIST, "template"));
await writePage();
