/**
 * Bundles the functions' code: one ES module, and beside it the AWS SDK, in the tested version, for functions that need it. `cdk` runs it
 * before each synth (cdk.json's `build`), and the package includes the bundle, so deploying the construct needs neither esbuild nor Docker.
 */
import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { OutputFile, PluginBuild } from "esbuild";
import { build } from "esbuild";

/**
 * The credential providers that are left out of the bundle. A function never reaches them, because its environment's credentials come
 * first, and the SDK loads each only on use (docs/decisions/008-credential-providers-left-out-of-the-bundle.md).
 */
export const UNREACHABLE_IN_LAMBDA = ["ini", "process", "sso", "web-identity"].map((way) => `@aws-sdk/credential-provider-${way}`);

/** The AWS SDK's client, in a file of its own. Only functions whose environment requires it load it. */
const SDK_FILE = "sdk.mjs";
const SDK_ENTRY = fileURLToPath(new URL("../lib/store/dynamo/default-client.ts", import.meta.url));

/** The directory where the construct expects the code: next to this file. */
export const FUNCTION_DIRECTORY = fileURLToPath(new URL("function", import.meta.url));

/**
 * Bundles `entry` as the function's code into `directory`. Files are replaced atomically, so a concurrent reader sees the old or the new
 * code.
 */
export async function bundleFunction(
  directory = FUNCTION_DIRECTORY,
  entry = fileURLToPath(new URL("../lambda/main.ts", import.meta.url)),
): Promise<void> {
  // The second first: the code of the first asks for it.
  for (const [from, to] of [
    [SDK_ENTRY, SDK_FILE],
    [entry, "index.mjs"],
  ] as const)
    writeWhole(directory, await bundled(directory, from, to));
}

/** A file, and whatever of its imports isn't the other's. */
async function bundled(directory: string, entry: string, outfile: string): Promise<readonly OutputFile[]> {
  const { outputFiles } = await build({
    entryPoints: [entry],
    outfile: join(directory, outfile),
    bundle: true,
    write: false,
    format: "esm",
    platform: "node",
    target: "node24",
    mainFields: ["module", "main"],
    external: UNREACHABLE_IN_LAMBDA,
    minify: true,
    sourcemap: true,
    sourcesContent: false,
    logLevel: "warning",
    plugins: entry === SDK_ENTRY ? [] : [{ name: "sdk-apart", setup: setSdkApart }],
  });
  return outputFiles;
}

function setSdkApart({ onResolve }: PluginBuild): void {
  onResolve({ filter: /\/default-client\.js$/ }, () => ({ path: `./${SDK_FILE}`, external: true }));
}

function writeWhole(directory: string, files: readonly OutputFile[]): void {
  mkdirSync(directory, { recursive: true });
  for (const { path, contents } of files) {
    const unfinished = join(directory, `.${process.pid}-${basename(path)}`);
    writeFileSync(unfinished, contents);
    renameSync(unfinished, path);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await bundleFunction(process.argv[2]);
