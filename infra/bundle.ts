/**
 * Bundles the functions' code: one ES module that includes the AWS SDK, which starts faster than the runtime's SDK and is the tested
 * version. `cdk` runs it before each synth (cdk.json's `build`), and the package includes the bundle, so deploying the construct needs
 * neither esbuild nor Docker.
 */
import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

/**
 * The credential providers that are left out of the bundle. A function never reaches them, because its environment's credentials come
 * first, and the SDK loads each only on use (docs/decisions/008-credential-providers-left-out-of-the-bundle.md).
 */
export const UNREACHABLE_IN_LAMBDA = ["ini", "process", "sso", "web-identity"].map((way) => `@aws-sdk/credential-provider-${way}`);

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
  const { outputFiles } = await build({
    entryPoints: [entry],
    outfile: join(directory, "index.mjs"),
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
  });
  mkdirSync(directory, { recursive: true });
  for (const { path, contents } of outputFiles) {
    const unfinished = join(directory, `.${process.pid}-${basename(path)}`);
    writeFileSync(unfinished, contents);
    renameSync(unfinished, path);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await bundleFunction(process.argv[2]);
