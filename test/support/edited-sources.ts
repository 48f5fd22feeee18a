/** Bundles sources with edits: a mistake that a test must find, or what another version of them would have. */
import { readFile } from "node:fs/promises";
import type { Plugin } from "esbuild";

/** An edit of a file, which has the text exactly once. */
export type Edit = readonly [find: string, replace: string, file: string];

/** Named edits. */
export interface Edits {
  readonly name: string;
  readonly edits: readonly Edit[];
}

/** Makes the present edits in those of `files` that they name. A bundle fails if a file doesn't have a text exactly once. */
export function editedSources(files: readonly string[], present: () => Edits | undefined): Plugin {
  const patterns = [...new Set(files)].map((file) => file.replaceAll(/[/.]/g, "\\$&"));
  return {
    name: "edited-sources",
    setup(build) {
      build.onLoad({ filter: new RegExp(`(${patterns.join("|")})$`) }, async ({ path: source }) => {
        const { name, edits } = present() ?? { name: "", edits: [] };
        const here = edits.filter(([, , file]) => source.endsWith(`/${file}`));
        if (here.length === 0) return undefined;
        let contents = await readFile(source, "utf8");
        for (const [find, replace] of here) {
          if (contents.split(find).length !== 2) throw new Error(`${name}: ${source} does not have exactly once: ${find}`);
          contents = contents.replace(find, () => replace);
        }
        return { contents, loader: "ts" };
      });
    },
  };
}
