/**
 * The size of functions' bundles, and the CPU to load them and to lock for the first time. And the size of the client over HTTP, minified and
 * gzipped, as parts are left out, one after another. The files of a part that is left out are replaced by names without content.
 */
import { execFile } from "node:child_process";
import { access, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import { type Plugin, type PluginBuild, build } from "esbuild";
import { createTable } from "../../infra/local/create-table.js";
import { engineClient } from "../../infra/local/engine-client.js";
import { startEngine } from "../../infra/local/engine.js";
import { startLocalService } from "../../infra/local/local-service.js";
import { TABLE } from "../../lib/store/dynamo/table.js";
import { BASE_ID } from "../contest/arena.js";
import { INSTALL_PEERS, isInstalled } from "../contest/peers.js";
import { type Report, type Sizes, rounds, versionOf } from "../report/report.js";
import { markdownTable, milliseconds } from "../report/table.js";

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
  ["sets of keys", ["client/calls/sets.ts", "client/hold/lease-set.ts"]],
  ["elections, watches, SIGTERM", ["client/calls/elect.ts", "client/calls/watch.ts", "client/calls/sigterm.ts"]],
  ["handles", ["client/calls/handles.ts"]],
  ["heartbeats sent together", ["client/hold/renewal-batcher.ts"]],
  ["detach and attach", ["client/hold/detached-lease.ts"]],
];

const HTTP_CLIENT = 'export { createLockClient } from "./lib/index.js";';
/** The modules that only a client of several URLs loads, or one that charges or shuts a limit. */
const LOADED_LATER = ["*/client/wire/doors.js", "*/limit-writes.js"];
const ROUNDS = 7;
const TABLE_NAME = "holdfast";

const POWERTOOLS = "@aws-lambda-powertools/idempotency";
/** The code of a function that locks. */
interface Contents {
  readonly title: string;
  /** A module, whose `first` is what the first invocation does. The environment says the rest. */
  readonly source: string;
  /** A package of bench/peers. */
  readonly needs?: string;
}
const FUNCTIONS: Readonly<Record<string, Contents>> = {
  [BASE_ID]: {
    title: "bare AWS SDK, two updates",
    source: `
      import { DynamoDBClient, UpdateItemCommand } from "@aws-sdk/client-dynamodb";
      import { acquisition, surrender } from "./bench/contest/plain-lock.js";
      const client = new DynamoDBClient({});
      const lock = { tableName: "${TABLE_NAME}", key: "ORDER_1231", owner: "me" };
      export async function first() {
        await client.send(new UpdateItemCommand(acquisition(lock, Date.now())));
        await client.send(new UpdateItemCommand(surrender(lock)));
      }`,
  },
  powertools: {
    title: `Powertools idempotency ${versionOf(POWERTOOLS)}`,
    needs: POWERTOOLS,
    source: `
      import { makeIdempotent } from "@aws-lambda-powertools/idempotency";
      import { DynamoDBPersistenceLayer } from "@aws-lambda-powertools/idempotency/dynamodb";
      const at = { tableName: "${TABLE_NAME}", keyAttr: "${TABLE.partitionKey}", sortKeyAttr: "${TABLE.sortKey}" };
      const run = makeIdempotent(async () => "done", { persistenceStore: new DynamoDBPersistenceLayer(at) });
      export const first = () => run({ order: process.pid });`,
  },
  table: { title: "`holdfast/dynamodb`", source: lockOf("dynamodb") },
  tableRun: {
    title: "… a run, which is what Powertools does",
    source: `
      import { createLockClient } from "./lib/dynamodb.js";
      const locks = createLockClient();
      export const first = () => locks.runOnce("ORDER_" + process.pid, () => "done");`,
  },
  http: { title: "`holdfast`, over HTTP", source: lockOf("index") },
  signed: {
    title: "… signed by `holdfast/sigv4`",
    source: `
      import { createLockClient } from "./lib/index.js";
      import { sigv4 } from "./lib/sigv4.js";
      const locks = createLockClient({ sign: sigv4() });
      export const first = () => locks.withLock("ORDER_1231", () => undefined);`,
  },
  middy: {
    title: "… and a handler of `holdfast/middy`",
    source: `
      import { createLockClient } from "./lib/index.js";
      import { lockHandler } from "./lib/middy.js";
      import { sigv4 } from "./lib/sigv4.js";
      const handler = lockHandler({ locks: createLockClient({ sign: sigv4() }), key: ({ id }) => id }, async () => "done");
      export const first = () => handler({ id: "ORDER_1231" }, { getRemainingTimeInMillis: () => 3000 });`,
  },
  ...Object.fromEntries(
    ["express", "fastify", "hono", "nest", "cron", "durable", "otel"].map((entry) => [
      entry,
      { title: `\`holdfast/${entry}\` alone`, source: `export * from "./lib/${entry}.js";` },
    ]),
  ),
};

function lockOf(entry: string): string {
  return `
    import { createLockClient } from "./lib/${entry}.js";
    const locks = createLockClient();
    export const first = () => locks.withLock("ORDER_1231", () => undefined);`;
}

/** Measures an import and the first invocation in their own process, in ms of CPU. */
const PROGRAM = `
  const cpuMs = () => { const { user, system } = process.cpuUsage(); return (user + system) / 1000; };
  const began = cpuMs();
  const { first } = await import(process.argv[1]);
  const loaded = cpuMs();
  await first?.();
  const ended = cpuMs();
  console.log(JSON.stringify({ importMs: loaded - began, ...(first && { firstMs: ended - loaded }) }));`;

/** The sizes of the client over HTTP, minified and gzipped, and of functions. */
export interface WeightFigures {
  readonly httpBytes: number;
  /** By their ids. Those that could not be measured are left out. */
  readonly functions: Readonly<Record<string, Weight>>;
}

/** A bundle, minified, and the CPU of its import and of the first invocation after it. */
export interface Weight {
  readonly bytes: number;
  readonly importMs: number;
  readonly firstMs?: number;
}

/** Returns the tables. @throws StartError if no engine can start. */
export async function weight(sizes: Sizes): Promise<Report> {
  const httpBytes = await gzippedBytes([]);
  const { functions, notes } = await weigh(sizes);
  const bare = functions[BASE_ID]!;
  const beside = (ms: number | undefined, base: number): readonly string[] =>
    ms === undefined ? ["", ""] : [milliseconds(ms), `${(ms / base).toFixed(2)}×`];
  const rows = Object.entries(functions).map(([id, { bytes, importMs, firstMs }]) => [
    FUNCTIONS[id]!.title,
    kilobytes(bytes),
    ...beside(importMs, bare.importMs),
    ...beside(firstMs, bare.firstMs!),
  ]);
  const head = ["a function with", "minified", "CPU to load it", "×", "CPU of the first lock", "×"];
  const figures: WeightFigures = { httpBytes, functions };
  return { tables: [markdownTable([head, ...rows]), await partsTable()], notes, figures };
}

/** The bundles' sizes, and the least CPU of some rounds, by turns. */
async function weigh(sizes: Sizes): Promise<{ readonly functions: Record<string, Weight>; readonly notes: readonly string[] }> {
  const directory = await mkdtemp(join(tmpdir(), "holdfast-weight-"));
  const engine = await startEngine({});
  const service = await startLocalService({ ports: [0], log: () => undefined, onFailure: () => undefined });
  try {
    const table = engineClient(engine.endpoint);
    await createTable(table, TABLE_NAME);
    table.destroy();
    const functions: Record<string, Weight> = {};
    const notes: string[] = [];
    for (const [id, { title, source, needs }] of Object.entries(FUNCTIONS)) {
      if (needs !== undefined && !isInstalled(needs)) {
        notes.push(`Not measured, because \`${INSTALL_PEERS}\` has not installed it: ${title}.`);
        continue;
      }
      const code = await bundled(source, []);
      await writeFile(join(directory, `${id}.mjs`), code);
      functions[id] = { bytes: code.length, importMs: Infinity, firstMs: Infinity };
    }
    const env = {
      PATH: process.env["PATH"],
      HOLDFAST_TABLE: TABLE_NAME,
      HOLDFAST_URL: service.url,
      AWS_ENDPOINT_URL_DYNAMODB: engine.endpoint,
      AWS_REGION: "us-east-1",
      AWS_ACCESS_KEY_ID: "local",
      AWS_SECRET_ACCESS_KEY: "local",
      AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: "true",
    };
    const done = await rounds(sizes, sizes.isQuick ? 1 : ROUNDS, async () => {
      for (const [id, { bytes, importMs, firstMs }] of Object.entries(functions)) {
        const args = ["--input-type=module", "--eval", PROGRAM, pathToFileURL(join(directory, `${id}.mjs`)).href];
        const { stdout } = await promisify(execFile)(process.execPath, args, { env });
        const measured = JSON.parse(stdout) as Omit<Weight, "bytes">;
        functions[id] = {
          bytes,
          importMs: Math.min(importMs, measured.importMs),
          ...(measured.firstMs !== undefined && { firstMs: Math.min(firstMs!, measured.firstMs) }),
        };
      }
    });
    notes.unshift(`The least of ${done} processes, by turns. The AWS SDK is in the bundles that load it, and outside of the others.`);
    return { functions, notes };
  } finally {
    await service.close();
    await engine.stop();
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
  return gzipSync(await bundled(HTTP_CLIENT, left, LOADED_LATER), { level: 9 }).length;
}

async function bundled(contents: string, left: readonly string[], external: readonly string[] = []): Promise<Uint8Array> {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: ROOT, loader: "ts" },
    bundle: true,
    minify: true,
    external: [...external],
    write: false,
    format: "esm",
    platform: "node",
    target: "node20",
    mainFields: ["module", "main"],
    nodePaths: [join(ROOT, "bench/peers/node_modules")],
    plugins: [leaveOut(left), { name: "sdk on use", setup: leaveSdkOut }],
  });
  return outputFiles[0]!.contents;
}

/** Leaves the AWS SDK outside where holdfast would load it. Lambda has it, and the environment here doesn't need it. */
function leaveSdkOut({ onResolve }: PluginBuild): void {
  onResolve({ filter: /^@aws-sdk\// }, ({ path, importer }) =>
    importer.startsWith(join(ROOT, "lib")) ? { path, external: true } : undefined,
  );
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
