/**
 * Makes the page's script and style from their sources, in a clone and in the build. The package never runs this: it has no esbuild.
 * `npx tsx console/bundle.ts` writes the code of the stack's page function in a clone.
 */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Metafile } from "esbuild";
import { type Assets, type Bundled, assetsOf } from "./files.js";

/** The entries: the page of the console's own server, and the page that a deployed API serves. */
export type Entry = "main.ts" | "hosted-main.ts";

/** The common options of both bundles. */
const BUILD = { bundle: true, write: false, format: "esm", minify: true, logLevel: "warning" } as const;

/** Bundles the page, minified, and returns the files that went into it too. */
export async function bundlePage(entry: Entry = "main.ts"): Promise<Bundled & { readonly inputs: Metafile["inputs"] }> {
  const { build } = await import("esbuild");
  const { outputFiles, metafile } = await build({
    entryPoints: [here(`page/${entry}`)],
    outfile: "console.js",
    metafile: true,
    target: "es2022",
    legalComments: "none",
    ...BUILD,
  });
  const textOf = (end: string): string => outputFiles.find(({ path }) => path.endsWith(end))?.text ?? "";
  // In minified code only templates have lines: their indentation means nothing in the page, and a break beside a tag is no text at all.
  const script = textOf(".js")
    .replace(/\n\s+/g, "\n")
    .replace(/>\n(?=<|\$\{)/g, ">")
    .replace(/\}\n</g, "}<");
  return { script, style: textOf(".css"), inputs: metafile.inputs };
}

/** Writes the code of the function that serves the page in an account: one file, with the page's files in it. Returns its inputs. */
export async function bundleHosted(directory: string): Promise<Metafile["inputs"]> {
  const { build } = await import("esbuild");
  const { inputs, ...code } = await bundlePage("hosted-main.ts");
  const page = (name: string): string => readFileSync(here(`page/${name}`), "utf8");
  const assets: Assets = assetsOf({ ...code, page: page("index.html"), icon: page("icon.svg") });
  const contents = `import { serveFiles } from "./hosted.js"; export const handler = serveFiles(${JSON.stringify(assets)});`;
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: here("."), sourcefile: "handler.ts", loader: "ts" },
    platform: "node",
    target: "node24",
    ...BUILD,
  });
  mkdirSync(directory, { recursive: true });
  // Renamed, so that a concurrent reader sees the old or the new code.
  const unfinished = join(directory, `.${process.pid}-index.mjs`);
  writeFileSync(unfinished, outputFiles[0]?.contents ?? "");
  renameSync(unfinished, join(directory, "index.mjs"));
  return inputs;
}

function here(path: string): string {
  return fileURLToPath(new URL(path, import.meta.url));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await bundleHosted(here("../infra/console"));
