/**
 * The CPU and memory that the function uses. They show how much memory to configure: Lambda gives CPU in proportion to
 * memory, a whole CPU at 1769 MB. Runs the bundle that is deployed, in its own process, on a real engine.
 */
import { execFile } from "node:child_process";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { bundleFunction } from "../../infra/bundle.js";
import { createTable } from "../../infra/local/create-table.js";
import { engineClient } from "../../infra/local/engine-client.js";
import { startEngine } from "../../infra/local/engine.js";
import { PRICES } from "./prices.js";
import type { Report, Sizes } from "../report/report.js";
import { markdownTable } from "../report/table.js";

/** The memory that comes with a whole CPU. https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html */
export const ONE_CPU_MB = 1769;
/** The memory sizes to compare. */
export const MEMORY_MB = [256, 512, 1024, ONE_CPU_MB] as const;
/** The assumed latency of a call to the table, besides the CPU: AWS promises "single-digit milliseconds" for DynamoDB. */
export const TABLE_MS = 5;

const ROUNDS = 5;
/** Pairs of acquire and release: enough for the code to be optimized. */
const PAIRS = 500;
const TABLE_NAME = "holdfast";

/** The measured CPU time, in ms, and memory, in MB. */
export interface Footprint {
  /** Loading the code. */
  readonly importMs: number;
  /** The first request of a process: it opens a connection, and no code is compiled yet. */
  readonly firstMs: number;
  /** One of the later requests. */
  readonly laterMs: number;
  /** Peak resident memory. */
  readonly peakMb: number;
}

/** The figures of the deployed function, and of one that only sends two conditional updates through the bare AWS SDK. */
export type FunctionFigures = Readonly<Record<"holdfast" | "sdk", Footprint & { readonly bundleBytes: number }>>;

/** The program of the process: it loads the function, then serves pairs of acquire and release, one request at a time. */
const PROGRAM = `
  import { randomUUID } from "node:crypto";
  const cpuMs = () => { const { user, system } = process.cpuUsage(); return (user + system) / 1000; };
  const began = cpuMs();
  const { handler } = await import(process.argv[1]);
  const loaded = cpuMs();
  const iam = { accountId: "111122223333", userId: "AROAEXAMPLE0000000001:session" };
  const ask = (method, leaseId, body) => {
    const routeKey = method + " /v1/locks/{key}/leases/{leaseId}";
    return handler({
      version: "2.0", routeKey, rawPath: "/", rawQueryString: "", isBase64Encoded: false,
      headers: { host: "api.example.com", "content-type": "application/json" },
      pathParameters: { key: "ORDER_1231", leaseId },
      requestContext: { requestId: "JKJaXmPLvHcESHA=", routeKey, stage: "$default", timeEpoch: Date.now(), authorizer: { iam }, http: { method, path: "/" } },
      ...(body && { body: JSON.stringify(body) }),
    });
  };
  const acquire = async () => {
    const time = Date.now().toString(16).padStart(12, "0");
    const leaseId = time.slice(0, 8) + "-" + time.slice(8) + "-7" + randomUUID().slice(15);
    const { statusCode } = await ask("PUT", leaseId, { owner: "checkout-7" });
    if (statusCode !== 201) throw new Error("acquire: " + statusCode);
    return () => ask("DELETE", leaseId);
  };
  const release = await acquire();
  const first = cpuMs();
  await release();
  const pair = async () => (await acquire())();
  for (let count = 0; count < ${PAIRS / 2}; count++) await pair();
  const warm = cpuMs();
  for (let count = 0; count < ${PAIRS}; count++) await pair();
  const laterMs = (cpuMs() - warm) / ${2 * PAIRS};
  console.error(JSON.stringify({ importMs: loaded - began, firstMs: first - loaded, laterMs, peakMb: process.resourceUsage().maxRSS / 1024 }));`;

/** Returns the tables. @throws StartError if no engine can start. */
export async function memory({ isQuick }: Sizes): Promise<Report> {
  const directory = await mkdtemp(join(tmpdir(), "holdfast-memory-"));
  const engine = await startEngine({});
  const codeOf = (name: string): string => join(directory, name, "index.mjs");
  try {
    await bundleFunction(join(directory, "holdfast"));
    await bundleFunction(join(directory, "sdk"), join(import.meta.dirname, "sdk-function.ts"));
    const table = engineClient(engine.endpoint);
    await createTable(table, TABLE_NAME);
    table.destroy();
    const [own, sdk]: [Footprint[], Footprint[]] = [[], []];
    for (let round = 0; round < (isQuick ? 1 : ROUNDS); round++) {
      own.push(await run(codeOf("holdfast"), engine.endpoint));
      sdk.push(await run(codeOf("sdk"), engine.endpoint));
    }
    const bytesOf = async (name: string): Promise<number> => (await stat(codeOf(name))).size;
    const figures: FunctionFigures = {
      holdfast: { ...least(own), bundleBytes: await bytesOf("holdfast") },
      sdk: { ...least(sdk), bundleBytes: await bytesOf("sdk") },
    };
    return { tables: [footprintTable(figures), memoryTable(rounded(figures.holdfast))], figures };
  } finally {
    await engine.stop();
    await rm(directory, { recursive: true, force: true });
  }
}

/** Other load on the machine only ever adds to the figures, so the minimum is the best estimate. */
function least(measured: readonly Footprint[]): Footprint {
  const of = (figure: keyof Footprint): number => Math.min(...measured.map((one) => one[figure]));
  return { importMs: of("importMs"), firstMs: of("firstMs"), laterMs: of("laterMs"), peakMb: of("peakMb") };
}

async function run(code: string, endpoint: string): Promise<Footprint> {
  const env = {
    PATH: process.env["PATH"],
    HOLDFAST_TABLE: TABLE_NAME,
    AWS_ENDPOINT_URL_DYNAMODB: endpoint,
    AWS_REGION: "us-east-1",
    AWS_ACCESS_KEY_ID: "local",
    AWS_SECRET_ACCESS_KEY: "local",
    AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: "true",
  };
  const options = { env, maxBuffer: 64 * 1024 * 1024 };
  const { stderr } = await promisify(execFile)(
    process.execPath,
    ["--input-type=module", "--eval", PROGRAM, pathToFileURL(code).href],
    options,
  );
  return JSON.parse(stderr) as Footprint;
}

/** Rounded for printing. All other figures are computed from the rounded ones. */
function rounded({ importMs, firstMs, laterMs, peakMb }: Footprint): Footprint {
  return {
    importMs: Math.round(importMs),
    firstMs: Math.round(firstMs),
    laterMs: Number(laterMs.toFixed(2)),
    peakMb: Math.round(peakMb),
  };
}

function footprintTable({ holdfast, sdk }: FunctionFigures): string {
  const [own, bare] = [rounded(holdfast), rounded(sdk)];
  const kilobytes = ({ bundleBytes }: { readonly bundleBytes: number }): string => `${Math.round(bundleBytes / 1000)} KB`;
  return markdownTable([
    ["of the function", "bare AWS SDK", "measured"],
    ["to load the code", `${bare.importMs} ms`, `${own.importMs} ms of CPU`],
    ["its first request", `${bare.firstMs} ms`, `${own.firstMs} ms of CPU`],
    ["each later request", `${bare.laterMs.toFixed(2)} ms`, `${own.laterMs.toFixed(2)} ms of CPU`],
    ["memory at its highest", `${bare.peakMb} MB`, `${own.peakMb} MB`],
    ["the bundle, minified", kilobytes(sdk), kilobytes(holdfast)],
  ]);
}

/** The time that Lambda would bill for a later request with this memory, in ms: the CPU's and the table's. */
export function billedMs({ laterMs }: Pick<Footprint, "laterMs">, mb: number): number {
  return Math.ceil(laterMs / (mb / ONE_CPU_MB) + TABLE_MS);
}

/** The table of figures for each memory size: the CPU time divided by that size's share of a CPU. */
export function memoryTable({ importMs, firstMs, laterMs, peakMb }: Footprint): string {
  return markdownTable([
    ["memory", "CPU", "cold start: code and first request", "later request: CPU", "with the table", "a million requests", "of it in use"],
    ...MEMORY_MB.map((mb) => {
      const share = mb / ONE_CPU_MB;
      const requestMs = laterMs / share;
      const billed = billedMs({ laterMs }, mb);
      const usd = PRICES.invocations.usd + billed * 1000 * (mb / 1024) * PRICES.gbSeconds.usd;
      return [
        `${mb} MB`,
        share.toFixed(2),
        `${Math.round((importMs + firstMs) / share)} ms`,
        `${requestMs.toFixed(1)} ms`,
        `${billed} ms`,
        `$${usd.toFixed(2)}`,
        `${Math.round((100 * peakMb) / mb)} %`,
      ];
    }),
  ]);
}
