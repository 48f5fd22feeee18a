/**
 * Bundles a program of the benchmarks, as users bundle this package. The loader that runs the sources would name every
 * closure when it is made, which takes CPU and 256 bytes each.
 */
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";
import { build } from "esbuild";

/** Bundles a program of this directory into another and returns the path of the bundle. */
export async function bundleProgram(name: string, directory: string): Promise<string> {
  const entry = join(import.meta.dirname, name);
  const outfile = join(directory, `${basename(name, ".ts")}.cjs`);
  await build({
    entryPoints: [entry],
    outfile,
    bundle: true,
    format: "cjs",
    platform: "node",
    target: "node20",
    logLevel: "error",
    define: { "import.meta.dirname": JSON.stringify(import.meta.dirname), "import.meta.url": JSON.stringify(pathToFileURL(entry).href) },
  });
  return outfile;
}
