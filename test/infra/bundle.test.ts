/** The function's code as it is deployed: made by esbuild, loaded where there is no node_modules, run on a real table. */
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, it } from "vitest";
import { createTable } from "../../infra/local/create-table.js";
import { engineClient } from "../../infra/local/engine-client.js";
import { startEngine } from "../../infra/local/engine.js";
import { runApp } from "./synthesize.js";

const TABLE_NAME = "holdfast-bundle";

/** Imports the bundle and hands its handler one event, as the Lambda runtime does. */
const INVOKE = `
  const [code, event] = process.argv.slice(1);
  const { handler } = await import(code);
  console.log(JSON.stringify(await handler(JSON.parse(event))));`;

const HEALTH_OF_THE_TABLE = {
  version: "2.0",
  routeKey: "GET /v1/health",
  rawPath: "/v1/health",
  rawQueryString: "deep=1",
  queryStringParameters: { deep: "1" },
  headers: {},
  isBase64Encoded: false,
};

describe("the function's bundle", { timeout: 60_000 }, () => {
  const { status, stderr: said, directory } = runApp({ bundle: true });
  const assets = readdirSync(directory).filter((file) => file.startsWith("asset."));
  const asset = join(directory, assets[0] ?? "none");
  const code = join(asset, "index.mjs");

  it("is one ES module of at most 345 KB, and its source map", () => {
    expect(status, said).toBe(0);
    expect(assets).toHaveLength(1);
    expect(readdirSync(asset).sort()).toEqual(["index.mjs", "index.mjs.map"]);
    expect(statSync(code).size).toBeLessThanOrEqual(345_000);
  });

  it("has the AWS SDK inside, but for the ways to credentials that a function never goes", () => {
    const source = readFileSync(code, "utf8");
    const packages = (pattern: RegExp): (string | undefined)[] =>
      [...new Set([...source.matchAll(pattern)].map((match) => match[1]))].filter((name) => !name?.startsWith("node:"));
    expect(packages(/\bfrom"([\w@./:-]+)"/g)).toEqual([]);
    expect(packages(/\bimport\("([\w@./:-]+)"\)/g).sort()).toEqual(
      ["ini", "process", "sso", "web-identity"].map((way) => `@aws-sdk/credential-provider-${way}`),
    );
  });

  it("reads its table with what Lambda gives it, outside the repository", async () => {
    const engine = await startEngine({ endpoint: process.env["DYNAMODB_ENDPOINT"] });
    try {
      await createTable(engineClient(engine.endpoint), TABLE_NAME);
      const requestContext = {
        requestId: "r1",
        timeEpoch: Date.now(),
        authorizer: { iam: { accountId: "111122223333", userId: "AROA1:session" } },
      };
      const event = JSON.stringify({ ...HEALTH_OF_THE_TABLE, requestContext });
      const env = {
        HOLDFAST_TABLE: TABLE_NAME,
        AWS_REGION: "us-east-1",
        AWS_ACCESS_KEY_ID: "local",
        AWS_SECRET_ACCESS_KEY: "local",
        AWS_ENDPOINT_URL_DYNAMODB: engine.endpoint,
      };
      const args = ["--input-type=module", "-e", INVOKE, pathToFileURL(code).href, event];
      const { stdout, stderr } = spawnSync(process.execPath, args, { cwd: directory, env, encoding: "utf8" });
      expect(stdout, stderr).toMatch(/^\{"statusCode":200,.*\n$/);
    } finally {
      await engine.stop();
    }
  });
});
