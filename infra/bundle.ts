/**
 * The functions' code: one ES module with its AWS SDK inside, which starts sooner than the runtime's and is
 * the version that was tested. `cdk` makes it before each synth (cdk.json's `build`), and the package
 * carries it, so that who deploys the construct needs neither esbuild nor Docker.
 */
import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

/**
 * Left out of the bundle: the ways to credentials that a function never goes, since the environment's come
 * first. The SDK loads each only when it gets to it (docs/decisions/008-credential-providers-left-out-of-the-bundle.md).
 */
export const UNREACHABLE_IN_LAMBDA = ["ini", "process", "sso", "web-identity"].map((way) => `@aws-sdk/credential-provider-${way}`);

/** Where the construct looks for the code: beside itself. */
export const FUNCTION_DIRECTORY = fileURLToPath(new URL("function", import.meta.url));

/** Bundles `entry` as the function's code into `directory`; whoever reads there sees the old code or the new, whole. */
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
