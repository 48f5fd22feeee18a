/**
 * The way to the table by what is given: a client is used as it is, with everything that was added to it. Without one, requests bypass the
 * AWS SDK, which finds the endpoint, the Region and the credentials where it always does.
 */
import { type DynamoDBClientConfig, DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { systemClock } from "../../../lib/core/time.js";
import { type DynamoClientOptions, createLockClient } from "../../../lib/dynamodb.js";
import { deferredCalls } from "../../../lib/store/dynamo/calls.js";
import { sdkCalls } from "../../support/sdk-calls.js";
import { type TableLocation, settingsOf } from "../../../lib/store/dynamo/sdk-access.js";
import { tableAccess } from "../../../lib/store/dynamo/table-access.js";
import { type ScriptedTable, startScriptedTable } from "./scripted-table.js";

const CREDENTIALS = { accessKeyId: "a", secretAccessKey: "b" };
const READ = { TableName: "locks", Key: { p: "a", k: "b" }, ConsistentRead: true } as const;
const OK = { status: 200, body: {} } as const;

let table: ScriptedTable;
const home = mkdtempSync(join(tmpdir(), "holdfast-access-"));
beforeAll(async () => {
  table = await startScriptedTable();
});
afterAll(async () => {
  await table.close();
  rmSync(home, { recursive: true });
});
// Without the developer's own settings.
beforeEach(() => {
  for (const name of Object.keys(process.env).filter((one) => one.startsWith("AWS_") && !one.includes("WARNING")))
    vi.stubEnv(name, undefined);
  for (const name of ["AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"]) vi.stubEnv(name, "/dev/null");
  vi.stubEnv("AWS_EC2_METADATA_DISABLED", "true");
});
afterEach(() => void vi.unstubAllEnvs());

function client(): DynamoDBClient {
  return new DynamoDBClient({ endpoint: table.endpoint, region: "us-east-1", credentials: CREDENTIALS });
}

const deps = { clock: systemClock, random: () => 0, env: process.env };
const accessTo = (location: TableLocation) => tableAccess(undefined, location, deps);
/** The headers of the requests: only the AWS SDK sends the first. */
const sent = (): unknown[] =>
  table.asked.map(({ headers }) => [
    headers["amz-sdk-request"] === undefined ? "built-in" : "sdk",
    /Credential=(.+?)\/\d+\/(.+?)\//.exec(String(headers.authorization))?.slice(1).join(" in "),
  ]);

describe("a transport that is made with the first request", () => {
  it("is made once; if that fails, again with the next request", async () => {
    let made = 0;
    const calls = deferredCalls(() =>
      ++made === 1
        ? Promise.reject(new Error("the profile can't be read"))
        : Promise.resolve(accessTo({ region: "us-east-1", endpoint: table.endpoint, credentials: CREDENTIALS }).calls),
    );
    await expect(calls.getItem(READ)).rejects.toThrow("the profile can't be read");
    table.script(OK, OK);
    await calls.getItem(READ);
    await calls.getItem(READ);
    expect(made).toBe(2);
  });
});

describe("a client that is given", () => {
  it("sends every request, and so does what is added to it later", async () => {
    const one = client();
    let met = 0;
    const { calls, region } = tableAccess(one, {}, deps);
    table.script(OK);
    await calls.getItem(READ);
    one.middlewareStack.add((next) => (args) => (met++, next(args)), { name: "XRay" });
    await calls.getItem(READ);
    expect([met, sent(), await region()]).toEqual([1, Array(2).fill(["sdk", "a in us-east-1"]), "us-east-1"]);
    one.destroy();
  });
});

describe("without a client", () => {
  it("requests bypass it, and go to the place and with the credentials that are given", async () => {
    const { calls, region } = accessTo({ endpoint: table.endpoint, region: "eu-west-1", credentials: CREDENTIALS });
    table.script(OK);
    await calls.getItem(READ);
    expect([sent(), await region()]).toEqual([[["built-in", "a in eu-west-1"]], "eu-west-1"]);
  });

  it("accounts and Regions are kept apart, in one process", async () => {
    const place = { endpoint: table.endpoint, credentials: CREDENTIALS };
    const one = accessTo({ ...place, region: "eu-west-1" });
    const other = accessTo({ ...place, region: "eu-north-1", credentials: async () => ({ ...CREDENTIALS, accessKeyId: "z" }) });
    table.script(OK);
    for (const { calls } of [one, other, one]) await calls.getItem(READ);
    expect(sent()).toEqual([
      ["built-in", "a in eu-west-1"],
      ["built-in", "z in eu-north-1"],
      ["built-in", "a in eu-west-1"],
    ]);
  });

  it("a Region or credentials that are nowhere are an error of each request, until they are somewhere", async () => {
    const { calls } = accessTo({ endpoint: table.endpoint, credentials: CREDENTIALS });
    for (let request = 0; request < 2; request++) await expect(calls.getItem(READ)).rejects.toThrow("Region is missing");
    const anonymous = accessTo({ endpoint: table.endpoint, region: "eu-west-1" });
    await expect(anonymous.calls.getItem(READ)).rejects.toMatchObject({ name: "CredentialsProviderError" });
    for (const [name, value] of Object.entries({ AWS_ACCESS_KEY_ID: "late", AWS_SECRET_ACCESS_KEY: "b" })) vi.stubEnv(name, value);
    table.script(OK);
    await anonymous.calls.getItem(READ);
    expect(sent()).toEqual([["built-in", "late in eu-west-1"]]);
  });
});

describe.each(["built-in", "sdk"])("the table's clock, by the %s", (transport) => {
  it("is known from the first answer on, and be it a refusal", async () => {
    const one = client();
    const { calls, time } =
      transport === "sdk"
        ? tableAccess(one, {}, deps)
        : accessTo({ endpoint: table.endpoint, region: "us-east-1", credentials: CREDENTIALS });
    expect(time()).toBeUndefined();
    const date = new Date("2027-01-01T00:00:00Z");
    table.script({ status: 400, body: { __type: "x#ValidationException" }, headers: { date: date.toUTCString() } });
    await expect(calls.getItem(READ)).rejects.toThrow();
    expect(time()!.lowMs).toBeGreaterThanOrEqual(date.getTime());
    expect(time()!.highMs).toBeLessThan(date.getTime() + 60_000);
    one.destroy();
  });
});

/** A config file with these lines in its default profile. The SDK reads a path only once. */
let files = 0;
function profile(...lines: readonly string[]): Readonly<Record<string, string>> {
  const path = join(home, String(++files));
  writeFileSync(path, `[default]\n${lines.join("\n")}\n`);
  return { AWS_CONFIG_FILE: path, AWS_SDK_LOAD_CONFIG: "1" };
}

describe("the endpoint", () => {
  const KEYS = { AWS_ACCESS_KEY_ID: "a", AWS_SECRET_ACCESS_KEY: "b" };
  const HOME = { ...KEYS, AWS_REGION: "eu-west-1" };
  const FIPS = "dynamodb-fips.eu-west-1.amazonaws.com";
  const ACCOUNTS = "123456789012.ddb.eu-west-1.amazonaws.com";
  const ROWS: readonly (readonly [
    what: string,
    env: () => Readonly<Record<string, string>>,
    config: DynamoDBClientConfig,
    host: string,
  ])[] = [
    ["a Region of the environment", () => HOME, {}, "dynamodb.eu-west-1.amazonaws.com"],
    ["a Region of a profile", () => ({ ...KEYS, ...profile("region = eu-north-1") }), {}, "dynamodb.eu-north-1.amazonaws.com"],
    ["a Region that is given", () => HOME, { region: "cn-north-1" }, "dynamodb.cn-north-1.amazonaws.com.cn"],
    ["FIPS by the environment", () => ({ ...HOME, AWS_USE_FIPS_ENDPOINT: "true" }), {}, FIPS],
    ["FIPS by a profile", () => ({ ...HOME, ...profile("use_fips_endpoint = true") }), {}, FIPS],
    ["dual stack", () => ({ ...HOME, AWS_USE_DUALSTACK_ENDPOINT: "true" }), {}, "dynamodb.eu-west-1.api.aws"],
    ["an account", () => ({ ...HOME, AWS_ACCOUNT_ID: "123456789012" }), {}, ACCOUNTS],
    ["credentials with an account", () => HOME, { credentials: { ...CREDENTIALS, accountId: "123456789012" } }, ACCOUNTS],
    [
      "a mode without accounts",
      () => ({ ...HOME, AWS_ACCOUNT_ID: "123456789012", AWS_ACCOUNT_ID_ENDPOINT_MODE: "disabled" }),
      {},
      "dynamodb.eu-west-1.amazonaws.com",
    ],
    ["AWS_ENDPOINT_URL", () => ({ ...HOME, AWS_ENDPOINT_URL: "https://all.example" }), {}, "all.example"],
    [
      "AWS_ENDPOINT_URL_DYNAMODB",
      () => ({ ...HOME, AWS_ENDPOINT_URL: "https://all.example", AWS_ENDPOINT_URL_DYNAMODB: "https://one.example" }),
      {},
      "one.example",
    ],
    ["a profile's endpoint", () => ({ ...HOME, ...profile("endpoint_url = https://profile.example") }), {}, "profile.example"],
    [
      "an endpoint that is given",
      () => ({ ...HOME, AWS_ENDPOINT_URL_DYNAMODB: "https://one.example" }),
      { endpoint: "https://vpce-1.example" },
      "vpce-1.example",
    ],
  ];

  it.each(ROWS)("by %s is the SDK's", async (_what, env, config, host) => {
    for (const [name, value] of Object.entries(env())) vi.stubEnv(name, value);
    const { destination } = await settingsOf(() => new DynamoDBClient(config).config, config.endpoint as string | undefined);
    expect((await destination(["locks"])).endpoint.hostname).toBe(host);

    // No request leaves this machine: no host name is resolved.
    const hosts: string[] = [];
    const lookup = (asked: string, _: unknown, found: (error: Error) => void): void => {
      hosts.push(asked);
      found(new Error("nowhere"));
    };
    const one = new DynamoDBClient({ ...config, maxAttempts: 1, requestHandler: { httpsAgent: { lookup } as never } });
    await expect(sdkCalls(one).getItem(READ)).rejects.toThrow("nowhere");
    expect(hosts).toEqual([host]);
    one.destroy();
  });
});

describe("the options of a lock client", () => {
  it("lead it to the table, past the SDK's client", async () => {
    table.script({ status: 400, body: { __type: "x#ResourceNotFoundException", message: "no" } });
    const locks = createLockClient({ tableName: "locks", endpoint: table.endpoint, region: "eu-west-1", credentials: CREDENTIALS });
    await expect(locks.tryAcquire("ORDER_1")).rejects.toMatchObject({
      code: "not-configured",
      message: expect.stringContaining("eu-west-1"),
    });
    expect(sent()[0]).toEqual(["built-in", "a in eu-west-1"]);
    await locks.close();
  });

  it.each<[field: string, said: RegExp, given: object]>([
    ["region", /not with client, which has its own/, { client: {}, region: "eu-west-1" }],
    ["endpoint", /not with client, which has its own/, { client: {}, endpoint: "http://localhost:8000" }],
    ["credentials", /not with client, which has its own/, { client: {}, credentials: CREDENTIALS }],
    ["client", /must be an object/, { client: "dynamodb" }],
    ["region", /must be the name of a Region/, { region: "" }],
    ["region", /must be the name of a Region/, { region: async () => "eu-west-1" }],
    ["endpoint", /must be a string/, { endpoint: new URL("http://localhost:8000") }],
    ["endpoint", /"localhost:8000" is no http URL/, { endpoint: "localhost:8000" }],
    ["credentials", /must have an accessKeyId and a secretAccessKey, or be a function/, { credentials: { accessKeyId: "a" } }],
    ["credentials", /must have an accessKeyId and a secretAccessKey, or be a function/, { credentials: null }],
    ["credentials", /must have an accessKeyId and a secretAccessKey, or be a function/, { credentials: "a:b" }],
  ])("%s is refused: %s", (field, said, given) => {
    const create = () => createLockClient({ tableName: "locks", ...(given as DynamoClientOptions) });
    expect(create).toThrow(expect.objectContaining({ name: "InvalidRequestError", field, message: expect.stringMatching(said) }));
  });
});
