/**
 * Bundles the functions' code into one ES module. What few requests need is beside it, and loaded on use: the AWS SDK, in the tested version,
 * and the maker of the OpenAPI document. The agent of sleepers is a module of its own, in a directory of the same code.
 * `cdk` runs this before each synth (cdk.json's `build`). The package includes the bundle, so deploying the construct needs neither
 * esbuild nor Docker.
 */
import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { type OutputFile, type Plugin, type PluginBuild, build } from "esbuild";
import { assertLimits } from "../lib/core/limit-relations.js";
import { type BundledPackage, bundledPackages, licencesText } from "./bundled-licences.js";

/**
 * The credential providers that are left out of the bundle. A function never reaches them, because its environment's credentials come
 * first, and the SDK loads each only on use (docs/decisions/008-credential-providers-left-out-of-the-bundle.md).
 */
export const UNREACHABLE_IN_LAMBDA = ["ini", "process", "sso", "web-identity"].map((way) => `@aws-sdk/credential-provider-${way}`);

/** The files that are loaded on use, each by the source in whose place. */
const APART: ReadonlyMap<string, string> = new Map([
  [sourceAt("lib/store/dynamo/load-sdk.ts"), "sdk.mjs"],
  [sourceAt("lib/contract/openapi.ts"), "openapi.mjs"],
]);
/** The files beside the function's own and their sources. No other file loads the agent. */
const BESIDE = [
  [sourceAt("lambda/sdk.ts"), "sdk.mjs"],
  [sourceAt("lib/contract/openapi.ts"), "openapi.mjs"],
  [sourceAt("lambda/agent-main.ts"), "agent/index.mjs"],
] as const;

function sourceAt(path: string): string {
  return fileURLToPath(new URL(`../${path}`, import.meta.url));
}

/** The file with the licences of the packages in the bundle. */
export const LICENCES_FILE = "licences.txt";

/** The directory where the construct expects the code: next to this file. */
export const FUNCTION_DIRECTORY = fileURLToPath(new URL("function", import.meta.url));

/**
 * Bundles `entry` as the function's code into `directory`, with the licences of the packages in it, and returns these packages. Files are
 * replaced atomically, so a concurrent reader sees the old or the new code. `plugins` change the sources, for tests.
 * @throws Error if a constant breaks an assumption of the protocol.
 */
export async function bundleFunction(
  directory = FUNCTION_DIRECTORY,
  entry = sourceAt("lambda/main.ts"),
  plugins: readonly Plugin[] = [],
): Promise<readonly BundledPackage[]> {
  assertLimits();
  const inputs: string[] = [];
  // The function's file is written last, because it imports the others.
  for (const [from, to] of [...BESIDE, [entry, "index.mjs"]] as const) {
    const { outputFiles, metafile } = await bundled(directory, from, to, plugins);
    writeWhole(directory, outputFiles);
    inputs.push(...Object.keys(metafile.inputs));
  }
  const packages = bundledPackages(inputs);
  const contents = new TextEncoder().encode(licencesText(packages));
  writeWhole(directory, [{ path: join(directory, LICENCES_FILE), contents }]);
  return packages;
}

/** Bundles a file with its imports, except those that another file provides. */
function bundled(directory: string, entry: string, outfile: string, plugins: readonly Plugin[]) {
  return build({
    entryPoints: [entry],
    outfile: join(directory, outfile),
    bundle: true,
    write: false,
    metafile: true,
    format: "esm",
    platform: "node",
    target: "node24",
    mainFields: ["module", "main"],
    external: UNREACHABLE_IN_LAMBDA,
    minify: true,
    // Otherwise valibot's expression of all emojis becomes a call that is kept, though nothing uses it.
    supported: { "regexp-unicode-property-escapes": true },
    sourcemap: true,
    sourcesContent: false,
    logLevel: "warning",
    plugins: [...plugins, { name: "apart", setup: setApart }],
  });
}

/** Leaves what is loaded on use to its own file. */
function setApart({ onResolve }: PluginBuild): void {
  onResolve({ filter: /^\.{1,2}\// }, ({ kind, path, resolveDir }) => {
    const file = kind === "dynamic-import" ? APART.get(resolve(resolveDir, path.replace(/\.js$/, ".ts"))) : undefined;
    return file === undefined ? undefined : { path: `./${file}`, external: true };
  });
}

function writeWhole(directory: string, files: readonly Pick<OutputFile, "path" | "contents">[]): void {
  for (const { path, contents } of files) {
    mkdirSync(dirname(path), { recursive: true });
    // Beside the folder, and not in it: whoever copies the folder meanwhile copies whole files.
    const unfinished = `${directory}.${process.pid}-${basename(path)}`;
    writeFileSync(unfinished, contents);
    renameSync(unfinished, path);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await bundleFunction(process.argv[2]);
