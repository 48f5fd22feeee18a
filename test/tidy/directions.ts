/**
 * The direction of imports: the table of rooms, from the core on. Imports point towards the core only, types included, so that a
 * room never depends on one that is built on it. A room absent here may import anything.
 */
import { importsOf } from "./imports.js";
import type { SourceText } from "./tree.js";

interface Room {
  /** A directory, ending in `/`, or one file. The first matching room applies to a file. */
  readonly of: string | RegExp;
  /** The directories and files that it may import, besides its own directory. */
  readonly files: readonly (string | RegExp)[];
  /** The packages that it may import. */
  readonly packages: readonly (string | RegExp)[];
}

const AWS_SDK = ["@aws-sdk/client-dynamodb", "@aws-sdk/lib-dynamodb"];
/** The only files of `lib`, besides the entries, that may use the AWS SDK. A new one is added here by name. */
const SPEAKS_DYNAMODB = /^lib\/store\/dynamo\/(table-clock|sdk-calls|sdk-access|load-sdk|table-access)\.ts$/;
/** The files that send HTTP requests to DynamoDB. */
const SENDS_HTTP = /^lib\/store\/dynamo\/(built-in-calls|http-sender|signature)\.ts$/;
/** The adapters that hold responses of node:http. The others never import them, for they run on Cloudflare Workers too. */
const ON_NODE_HTTP = /^lib\/adapters\/(node-http|express|fastify|nest)\.ts$/;
const ANY_ADAPTER = /^lib\/adapters\//;
const OFF_NODE_HTTP = /^lib\/adapters\/(?!node-http|express|fastify|nest)/;
/** The entries that package.json exports, and that `bin` and users import. */
const ENTRY = /^lib\/[\w-]+\.ts$/;
const ANY_NODE = /^node:/;
const ANYTHING = /^/;

const ROOMS: readonly Room[] = [
  { of: "lib/core/", files: [], packages: ["node:crypto"] },
  { of: "lib/contract/", files: ["lib/core/"], packages: ["valibot", "@valibot/to-json-schema"] },
  { of: SPEAKS_DYNAMODB, files: ["lib/core/", "lib/store/"], packages: AWS_SDK },
  { of: SENDS_HTTP, files: ["lib/core/", "lib/store/"], packages: ["node:crypto", "node:http", "node:https"] },
  { of: "lib/store/", files: ["lib/core/"], packages: [] },
  { of: "lib/service/", files: ["lib/core/", "lib/store/port.ts"], packages: ["node:crypto"] },
  // The client has four rooms: how a request gets an answer, how a key is asked for, what is alive after the answer, and what users call.
  { of: "lib/client/wire/", files: ["lib/core/", "lib/contract/"], packages: [ANY_NODE] },
  { of: "lib/client/ask/", files: ["lib/core/", "lib/client/wire/"], packages: [] },
  { of: "lib/client/hold/", files: ["lib/core/", "lib/client/wire/", "lib/client/ask/"], packages: [ANY_NODE] },
  { of: "lib/client/calls/", files: ["lib/core/", "lib/client/wire/", "lib/client/ask/", "lib/client/hold/"], packages: [ANY_NODE] },
  { of: "lib/client/", files: ["lib/core/"], packages: [] },
  { of: ON_NODE_HTTP, files: ["lib/core/", "lib/client/", "lib/adapters/"], packages: ["node:http"] },
  // Workers have node:zlib as well.
  { of: "lib/adapters/response.ts", files: ["lib/core/", "lib/client/", OFF_NODE_HTTP], packages: ["node:zlib"] },
  { of: ANY_ADAPTER, files: ["lib/core/", "lib/contract/", "lib/client/", OFF_NODE_HTTP], packages: [] },
  { of: "lib/durable/", files: ["lib/core/", "lib/client/"], packages: ["@aws/durable-execution-sdk-js"] },
  { of: "lib/otel/", files: ["lib/core/", "lib/client/"], packages: ["@opentelemetry/api"] },
  { of: "lib/testing/", files: ["lib/core/", "lib/contract/", "lib/store/", "lib/service/", "lib/client/"], packages: [] },
  { of: ENTRY, files: ["lib/"], packages: [ANYTHING] },
  {
    of: "lambda/compose.ts",
    files: ["lambda/", "lib/service/", "lib/contract/", "lib/store/", "lib/core/"],
    packages: ["aws-lambda", "@aws-sdk/client-dynamodb", ANY_NODE],
  },
  { of: "lambda/index.ts", files: ["lambda/", "lib/middy.ts"], packages: [] },
  { of: "lambda/sdk.ts", files: ["lib/store/"], packages: AWS_SDK },
  { of: "lambda/", files: ["lib/service/", "lib/contract/", "lib/store/", "lib/core/"], packages: ["aws-lambda", "node:crypto"] },
  // What runs and what builds the service on localhost has the console too, and so does the tour.
  { of: /^infra\/local\/(start|live-console)\.ts$/, files: ["infra/", "lambda/", "lib/", "console/"], packages: [ANYTHING] },
  { of: "infra/build.ts", files: ["infra/", "console/"], packages: [ANYTHING] },
  { of: "infra/", files: ["lambda/", "lib/"], packages: [ANYTHING] },
  // The page runs in a browser: of the SDK it has types alone, through the data.
  {
    of: "console/page/",
    files: [/^console\/(data|handlers|lanes|activity|overview|schedules|fill)\.ts$/, "console/text/"],
    packages: ["preact", "preact/hooks", "htm"],
  },
  { of: "console/", files: [ENTRY], packages: [ANY_NODE, "esbuild"] },
  {
    of: "bin/serve/",
    files: [ENTRY, "console/", "bin/", /^infra\/local\/(local-service|local-regions|gateway|start-error)\.ts$/],
    packages: [ANY_NODE, "commander"],
  },
  { of: "bin/ui/", files: [ENTRY, "console/", "bin/", "infra/local/local-server.ts"], packages: [ANY_NODE, "commander"] },
  // The watchdog's process measures time as a lease does.
  { of: /^bin\/exec\/guard(-main)?\.ts$/, files: ["bin/exec/", "lib/core/time.ts"], packages: [ANY_NODE] },
  {
    of: "bin/upkeep/doctor.ts",
    files: ["bin/", "console/", /^lib\/store\/dynamo\/(fit-table|table)\.ts$/],
    packages: [ANY_NODE, "@aws-sdk/client-dynamodb"],
  },
  {
    of: "bin/upkeep/services.ts",
    files: ["bin/", "console/", /^lib\/core\/(time|random)\.ts$/, /^lib\/client\/wire\/(http|compare-ways)\.ts$/],
    packages: [],
  },
  {
    of: "bin/upkeep/sweep.ts",
    files: [
      "bin/",
      "console/",
      /^lib\/core\/(time|random|brand)\.ts$/,
      "lib/service/clocks.ts",
      "lib/store/port.ts",
      /^lib\/store\/dynamo\/(sweep|table-access|table-clock)\.ts$/,
    ],
    packages: [ANY_NODE],
  },
  { of: "bin/holdfast.ts", files: [ENTRY, "bin/", "infra/local/parent.ts"], packages: [ANY_NODE] },
  {
    of: "bin/",
    files: [ENTRY, "console/"],
    packages: [ANY_NODE, "@bomb.sh/tab", "commander", "fast-string-truncated-width", "picocolors"],
  },
  { of: "examples/", files: [ENTRY, "infra/index.ts", "infra/local/"], packages: [ANYTHING] },
];

/** The imports of `source` that point the wrong way, one line each. */
export function wrongWay(source: SourceText): readonly string[] {
  const room = ROOMS.find(({ of }) => matches(source.path, [of]));
  if (!room) return [];
  const own = typeof room.of === "string" && room.of.endsWith("/") ? [room.of] : [];
  return importsOf(source)
    .filter(({ file, package: name }) =>
      file === undefined ? !matches(name ?? "", room.packages) : !matches(file, [...own, ...room.files]),
    )
    .map(({ file, package: name, line }) => `${source.path}:${line} imports ${file ?? name}, which ${describe(room)} may not`);
}

function describe({ of }: Room): string {
  return typeof of === "string" ? of : of.source;
}

function matches(text: string, allowed: readonly (string | RegExp)[]): boolean {
  return allowed.some((one) => (typeof one === "string" ? text === one || (one.endsWith("/") && text.startsWith(one)) : one.test(text)));
}
