/**
 * The size of the HTTP client in a user's bundle, minified and gzipped, and its size as parts are left out, one after
 * another. The files of a part that is left out are replaced by names without content.
 */
import { execFile } from "node:child_process";
import { access, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import { type Plugin, build } from "esbuild";
import type { Report, Sizes } from "../report/report.js";
import { markdownTable } from "../report/table.js";

const ROOT = join(import.meta.dirname, "../..");

/** Parts that a client doesn't need to acquire, renew and release a lock; largest first. */
const PARTS: readonly (readonly [part: string, files: readonly string[]])[] = [
  [
    "runs",
    [
      "client/calls/run/run-once.ts",
      "client/calls/run/json-codec.ts",
      "client/calls/run/runs.ts",
      "client/calls/run/run-options.ts",
      "core/canonical.ts",
    ],
  ],
  ["one place in the queue for a process", ["client/ask/local-queue.ts"]],
  ["sets of keys", ["client/calls/sets.ts", "client/calls/acquire-all.ts", "client/hold/lease-set.ts"]],
  ["elections, watches, SIGTERM", ["client/calls/elect.ts", "client/calls/watch.ts", "client/calls/sigterm.ts"]],
  ["handles", ["client/calls/handles.ts"]],
  ["heartbeats sent together", ["client/hold/renewal-batcher.ts"]],
  ["detach and attach", ["client/hold/detached-lease.ts"]],
];

const HTTP_CLIENT = 'export { createLockClient } from "./lib/index.js";';
const TABLE_CLIENT = 'export { createLockClient } from "./lib/dynamodb.js";';
/** The operations that the client on the table uses. */
const BARE_SDK =
  'export { DynamoDBClient, GetItemCommand, QueryCommand, TransactWriteItemsCommand, UpdateItemCommand } from "@aws-sdk/client-dynamodb";';
const IMPORT_ROUNDS = 7;
/** Measures an import in its own process, in ms of CPU. */
const IMPORT = `
  const before = process.cpuUsage();
  await import(process.argv[1]);
  const { user, system } = process.cpuUsage(before);
  console.log((user + system) / 1000);`;

/** The sizes of the clients. */
export interface WeightFigures {
  /** The client over HTTP, minified and gzipped. */
  readonly httpBytes: number;
  readonly table: Weight;
  readonly sdk: Weight;
}

/** A bundle, minified, and the CPU of its import. */
interface Weight {
  readonly bytes: number;
  readonly importMs: number;
}

/** Returns the tables. */
export async function weight({ isQuick }: Sizes): Promise<Report> {
  const figures: WeightFigures = {
    httpBytes: await gzippedBytes([]),
    ...(await weigh({ sdk: BARE_SDK, table: TABLE_CLIENT }, isQuick ? 1 : IMPORT_ROUNDS)),
  };
  const { table, sdk } = figures;
  const rows = [
    ["client", "minified", "import"],
    ["bare AWS SDK, four operations", kilobytes(sdk.bytes), `${sdk.importMs.toFixed(0)} ms of CPU`],
    ["`holdfast/dynamodb`", kilobytes(table.bytes), `${table.importMs.toFixed(0)} ms of CPU`],
    ["`holdfast`, over HTTP", `${kilobytes(figures.httpBytes)}, gzipped`, ""],
  ];
  return { tables: [markdownTable(rows), await partsTable()], figures };
}

/** The bundles' sizes, and the least CPU of some imports, by turns. */
async function weigh<Name extends string>(sources: Readonly<Record<Name, string>>, most: number): Promise<Record<Name, Weight>> {
  const directory = await mkdtemp(join(tmpdir(), "holdfast-weight-"));
  try {
    const weights = {} as Record<Name, Weight>;
    const names = Object.keys(sources) as Name[];
    const fileOf = (name: Name): string => join(directory, `${name}.mjs`);
    for (const name of names) {
      const code = await bundled(sources[name], []);
      await writeFile(fileOf(name), code);
      weights[name] = { bytes: code.length, importMs: Infinity };
    }
    for (let round = 0; round < most; round++)
      for (const name of names) {
        const args = ["--input-type=module", "--eval", IMPORT, pathToFileURL(fileOf(name)).href];
        const { stdout } = await promisify(execFile)(process.execPath, args);
        weights[name] = { ...weights[name], importMs: Math.min(weights[name].importMs, Number(stdout)) };
      }
    return weights;
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

async function partsTable(): Promise<string> {
  const left: string[] = [];
  const rows = [
    ["client over HTTP", "minified, gzipped"],
    ["all that createLockClient can do", kilobytes(await gzippedBytes(left))],
  ];
  for (const [part, files] of PARTS) {
    const paths = files.map((file) => join(ROOT, "lib", file));
    // A file that isn't there would seem to weigh nothing.
    await Promise.all(paths.map((path) => access(path)));
    left.push(...paths);
    rows.push([`… without ${part}`, kilobytes(await gzippedBytes(left))]);
  }
  return markdownTable(rows);
}

async function gzippedBytes(left: readonly string[]): Promise<number> {
  return gzipSync(await bundled(HTTP_CLIENT, left), { level: 9 }).length;
}

async function bundled(contents: string, left: readonly string[]): Promise<Uint8Array> {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: ROOT, loader: "ts" },
    ...{ bundle: true, minify: true, write: false, format: "esm", platform: "node", target: "node20" },
    mainFields: ["module", "main"],
    plugins: [leaveOut(left)],
  });
  return outputFiles[0]!.contents;
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
