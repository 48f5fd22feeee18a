/**
 * The size of the HTTP client in a user's bundle, minified and gzipped, and its size as parts are left out, one after
 * another. The files of a part that is left out are replaced by names without content.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import type { Plugin } from "esbuild";
import { build } from "esbuild";
import type { Report } from "./report.js";
import { markdownTable } from "./table.js";

const ROOT = join(import.meta.dirname, "..");

/** Parts that a client doesn't need to acquire, renew and release a lock; largest first. */
const PARTS: readonly (readonly [part: string, files: readonly string[]])[] = [
  ["runs", ["client/run/run-once.ts", "client/run/json-codec.ts", "client/run/runs.ts", "client/run/run-options.ts", "core/canonical.ts"]],
  ["one place in the queue for a process", ["client/acquire/local-queue.ts"]],
  ["sets of keys", ["client/acquire/sets.ts", "client/acquire/set-calls.ts", "client/lease/lease-set.ts"]],
  ["elections, watches, SIGTERM", ["client/coordination/elect.ts", "client/coordination/watch.ts", "client/sigterm.ts"]],
  ["handles", ["client/coordination/lock-handles.ts"]],
  ["heartbeats sent together", ["client/lease/renewal-batcher.ts"]],
  ["detach and attach", ["client/acquire/transfer.ts", "client/lease/detached-lease.ts"]],
];

/** Returns the table. */
export async function weight(): Promise<Report> {
  const left: string[] = [];
  const rows = [
    ["client over HTTP", "minified, gzipped"],
    ["all that createLockClient can do", kilobytes(await gzippedBytes(left))],
  ];
  for (const [part, files] of PARTS) {
    left.push(...files.map((file) => join(ROOT, "lib", file)));
    rows.push([`… without ${part}`, kilobytes(await gzippedBytes(left))]);
  }
  return { tables: [markdownTable(rows)] };
}

async function gzippedBytes(left: readonly string[]): Promise<number> {
  const contents = 'export { createLockClient } from "./lib/index.js";';
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: ROOT, loader: "ts" },
    ...{ bundle: true, minify: true, write: false, format: "esm", platform: "node", target: "node20" },
    plugins: [leaveOut(left)],
  });
  return gzipSync(outputFiles[0]!.contents, { level: 9 }).length;
}

function leaveOut(files: readonly string[]): Plugin {
  return {
    name: "leave-out",
    setup({ onLoad }) {
      onLoad({ filter: /\.ts$/ }, async ({ path }) => {
        if (!files.includes(path)) return null;
        const source = await readFile(path, "utf8");
        const names = [...source.matchAll(/^export (?:async )?(?:function\*?|const|class) (\w+)/gm)].map(([, name]) => name);
        return { contents: names.map((name) => `export let ${name} = globalThis.nothing;`).join("\n"), loader: "ts" };
      });
    },
  };
}

const kilobytes = (bytes: number): string => `${(bytes / 1000).toFixed(1)} KB`;
