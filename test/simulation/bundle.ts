/** The simulation as one module, with a bug written into the production source if one is asked for. */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";
import type { Plugin } from "esbuild";
import type { Bug } from "./bugs.js";
import { BUGS } from "./bugs.js";
import type { simulate } from "./history.js";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
/** What the AWS SDK is in the bundle. */
const SDK = path.join(ROOT, "test/simulation/dynamo/sdk-stand-in.ts");

/** The bug of that name. @throws Error listing the names when there is none. */
export function bugNamed(name: string): Bug {
  const bug = BUGS.find((known) => known.name === name);
  if (!bug) throw new Error(`there is no bug ${JSON.stringify(name)}; these are: ${BUGS.map((known) => known.name).join(", ")}`);
  return bug;
}

/** Writes the bundle and returns its file's URL and how to remove it. */
export async function bundleSimulation(bug: Bug | undefined): Promise<{ readonly url: string; remove(): Promise<void> }> {
  const folder = await mkdtemp(path.join(tmpdir(), "holdfast-simulation-"));
  const outfile = path.join(folder, "history.mjs");
  await build({
    entryPoints: [path.join(ROOT, "test/simulation/worker.ts")],
    outfile,
    bundle: true,
    format: "esm",
    platform: "node",
    target: "node20",
    alias: { "@aws-sdk/client-dynamodb": SDK, "@aws-sdk/lib-dynamodb": SDK },
    plugins: bug ? [writtenIn(bug)] : [],
  });
  return { url: pathToFileURL(outfile).href, remove: () => rm(folder, { recursive: true }) };
}

/** The production code, and the bug if any, ready to simulate. */
export async function loadSimulation(bug: Bug | undefined): Promise<typeof simulate> {
  const { url, remove } = await bundleSimulation(bug);
  try {
    const module = (await import(url)) as { readonly simulate: typeof simulate };
    return module.simulate;
  } finally {
    await remove();
  }
}

function writtenIn({ name, file, edits }: Bug): Plugin {
  return {
    name: "bug",
    setup(context) {
      for (const changed of new Set(edits.map(([, , other = file]) => other))) {
        context.onLoad({ filter: new RegExp(`${changed.replaceAll(/[/.]/g, "\\$&")}$`) }, async ({ path: source }) => {
          let contents = await readFile(source, "utf8");
          for (const [find, replace, other = file] of edits) {
            if (other !== changed) continue;
            if (contents.split(find).length !== 2) throw new Error(`${name}: ${changed} does not have exactly once: ${find}`);
            contents = contents.replace(find, () => replace);
          }
          return { contents, loader: "ts" };
        });
      }
    },
  };
}
