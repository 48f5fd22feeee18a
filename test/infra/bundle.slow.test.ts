/**
 * The functions' code as deployed: one ES module that works without the SDK, and next to it the SDK and the maker of the OpenAPI document. All
 * load without node_modules.
 */
import { build } from "esbuild";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, afterEach, describe, expect, it, vi } from "vitest";
import { bundleFunction, UNREACHABLE_IN_LAMBDA } from "../../infra/bundle.js";
import { BYTES_MAX } from "../../bench/size/limits.js";
import { DEFAULTS } from "../../lib/core/limits.js";
import { type Edit, editedSources } from "../support/edited-sources.js";
import { freshTable } from "../support/engine.js";
import { runApp } from "./synthesize.js";

/** The least that any function on this table needs: a client, and the commands that read, write and query. */
const BARE_SDK = `
  import { DynamoDBClient, GetItemCommand, QueryCommand, UpdateItemCommand } from "@aws-sdk/client-dynamodb";
  const client = new DynamoDBClient({});
  export const handler = (input) => [GetItemCommand, QueryCommand, UpdateItemCommand].map((Command) => client.send(new Command(input)));`;

/** Measures an import in its own process, in ms. */
const IMPORT = `
  const started = performance.now();
  await import(process.argv[1]);
  console.log(performance.now() - started);`;

/** The largest import time, as a multiple of the bare SDK's. It was 1.2 with the SDK inside. */
const IMPORT_RATIO = 0.8;
/** Each round makes the minimum of either more reliable. Beside other tests, it takes many rounds to find a quiet moment. */
const ROUNDS_MIN = 10;
const ROUNDS_MAX = 300;

const HANDLER = "lambda/handler.ts";
/** The handler without its rule of function URLs. */
const NO_FUNCTION_URLS: readonly Edit[] = [
  ['mount === "api" ? undefined : grantOf(invocation)', "undefined", HANDLER],
  ['if (mount !== "api" && !grant) return mismounted(URL_MOUNT, `it was invoked as ${invocation.invokedFunctionArn}`);', "", HANDLER],
  ["grant ? routed(received) : received", "received", HANDLER],
  ["grant && outsideGrant(grant, operation, key)", "undefined", HANDLER],
  ["if (outside) {", "if (false) {", HANDLER],
];

const env = { HOLDFAST_TABLE: "locks", AWS_REGION: "us-east-1", AWS_ACCESS_KEY_ID: "local", AWS_SECRET_ACCESS_KEY: "local" };
const elsewhere = mkdtempSync(join(tmpdir(), "holdfast-bundle-"));
afterAll(() => rmSync(elsewhere, { recursive: true }));

function importMs(file: string): number {
  const { stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", IMPORT, pathToFileURL(file).href], {
    cwd: elsewhere,
    env,
    encoding: "utf8",
  });
  expect(Number(stdout), stderr).toBeGreaterThan(0);
  return Number(stdout);
}

describe("the functions' bundle", { timeout: 300_000 }, () => {
  const { status, stderr: said, directory } = runApp({});
  const assets = readdirSync(directory).filter((file) => file.startsWith("asset."));
  const asset = join(directory, assets[0] ?? "none");
  const code = join(asset, "index.mjs");

  it(`is one ES module of at most ${BYTES_MAX.service / 1000} KB for the whole API; the SDK and the document are beside it, with source maps and licences`, () => {
    expect(status, said).toBe(0);
    expect(assets).toHaveLength(1);
    expect(readdirSync(asset).sort()).toEqual([
      "agent",
      "index.mjs",
      "index.mjs.map",
      "licences.txt",
      "openapi.mjs",
      "openapi.mjs.map",
      "sdk.mjs",
      "sdk.mjs.map",
    ]);
    expect(statSync(code).size).toBeLessThanOrEqual(BYTES_MAX.service);
    expect(statSync(join(asset, "sdk.mjs")).size).toBeLessThanOrEqual(260_000);
  });

  it("weighs at most 3 KB more for function URLs than with what leads to them taken out", async () => {
    const without = join(elsewhere, "without");
    await bundleFunction(without, undefined, [editedSources([HANDLER], () => ({ name: "no function URLs", edits: NO_FUNCTION_URLS }))]);
    const weight = statSync(code).size - statSync(join(without, "index.mjs")).size;
    expect(weight).toBeGreaterThan(0);
    expect(weight).toBeLessThanOrEqual(3000);
  });

  it("needs nothing but Node and the files beside it; the SDK has no ways to credentials that a function never goes", () => {
    const packages = (file: string, pattern: RegExp): (string | undefined)[] =>
      [...new Set([...readFileSync(join(asset, file), "utf8").matchAll(pattern)].map((match) => match[1]))].filter(
        (name) => !name?.startsWith("node:"),
      );
    for (const file of ["index.mjs", "openapi.mjs", "sdk.mjs"]) expect(packages(file, /\bfrom"([\w@./:-]+)"/g)).toEqual([]);
    expect(packages("index.mjs", /\bimport\("([\w@./:-]+)"\)/g).sort()).toEqual(["./openapi.mjs", "./sdk.mjs"]);
    expect(packages("sdk.mjs", /\bimport\("([\w@./:-]+)"\)/g).sort()).toEqual([...UNREACHABLE_IN_LAMBDA].sort());
  });

  it("answers with and without the SDK, which is loaded only where the environment takes it, and has the document", async () => {
    const program = `
      const { handler } = await import(process.argv[1]);
      const event = { version: "2.0", headers: {}, queryStringParameters: { deep: "1" },
        requestContext: { requestId: "1", timeEpoch: Date.now(), authorizer: { iam: { accountId: "1", userId: "2" } } } };
      const { statusCode } = await handler({ ...event, routeKey: "GET /v1/health" });
      const { body } = await handler({ ...event, routeKey: "GET /v1/openapi.json" });
      const { openapi, paths } = JSON.parse(body);
      console.log(statusCode, openapi, Object.values(paths).flatMap(Object.values).filter(({ summary = "?" }) => summary === "").length);`;
    const said = [];
    for (const more of [{}, { AWS_RETRY_MODE: "standard" }]) {
      const { tableName, endpoint } = await freshTable();
      const { stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", program, pathToFileURL(code).href], {
        cwd: elsewhere,
        env: { ...env, HOLDFAST_TABLE: tableName, AWS_ENDPOINT_URL_DYNAMODB: endpoint, ...more },
        encoding: "utf8",
      });
      said.push(stdout.trim() || stderr);
    }
    expect(said).toEqual(["200 3.1.0 0", "200 3.1.0 0"]);
  });

  it("is imported in at most 0.8 times what the SDK's client and three commands take, each at its shortest in the same run", async () => {
    const bare = join(elsewhere, "bare.mjs");
    await build({
      stdin: { contents: BARE_SDK, resolveDir: import.meta.dirname },
      outfile: bare,
      bundle: true,
      format: "esm",
      platform: "node",
      target: "node24",
      mainFields: ["module", "main"],
      external: UNREACHABLE_IN_LAMBDA,
      minify: true,
      logLevel: "error",
    });
    let [ours, sdks] = [Infinity, Infinity];
    for (let round = 1; round <= ROUNDS_MAX; round++) {
      sdks = Math.min(sdks, importMs(bare));
      ours = Math.min(ours, importMs(code));
      if (round >= ROUNDS_MIN && ours <= IMPORT_RATIO * sdks) break;
    }
    expect(ours).toBeLessThanOrEqual(IMPORT_RATIO * sdks);
  });
});

describe("a constant that breaks an assumption of the protocol", () => {
  const LIMITS_FILE = "../../lib/core/limits.js";
  afterEach(() => {
    vi.doUnmock(LIMITS_FILE);
    vi.resetModules();
  });

  /** The files that are made while the guard of clocks has this width. */
  async function madeWith(clockGuardMs: number): Promise<readonly string[]> {
    vi.resetModules();
    vi.doMock(LIMITS_FILE, async (original) => ({ ...(await original<object>()), DEFAULTS: { ...DEFAULTS, clockGuardMs } }));
    const { bundleFunction } = await import("../../infra/bundle.js");
    const directory = mkdtempSync(join(elsewhere, "made-"));
    await bundleFunction(directory);
    return readdirSync(directory);
  }

  it("is named, and no code is made", async () => {
    await expect(madeWith(2 * DEFAULTS.clockErrorMs)).rejects.toThrow("the guard is wider than the error it guards");
    // Control: a constant that fits.
    expect(await madeWith(2 * DEFAULTS.clockErrorMs + 1)).toContain("index.mjs");
  });
});
