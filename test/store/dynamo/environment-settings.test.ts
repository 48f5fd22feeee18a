/** A function's transport to the table, from its environment. If the environment says too little or too much, the AWS SDK is loaded. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { systemClock } from "../../../lib/core/time.js";
import { builtInCalls } from "../../../lib/store/dynamo/built-in-calls.js";
import { environmentSettings } from "../../../lib/store/dynamo/environment-settings.js";
import { type ScriptedTable, startScriptedTable } from "./scripted-table.js";

const ENV = {
  AWS_LAMBDA_FUNCTION_NAME: "f",
  AWS_REGION: "eu-west-1",
  AWS_ACCESS_KEY_ID: "ONE",
  AWS_SECRET_ACCESS_KEY: "s",
  AWS_SESSION_TOKEN: "t",
};
const READ = { TableName: "locks", Key: { p: "a", k: "b" }, ConsistentRead: true } as const;
const deps = { clock: systemClock, random: () => 0 };
const settingsOf = (env: Readonly<Record<string, string>>) => environmentSettings({ ...ENV, ...env }, deps);

describe("the environment of a function", () => {
  it.each([
    ["eu-west-1", "dynamodb.eu-west-1.amazonaws.com"],
    ["us-gov-west-1", "dynamodb.us-gov-west-1.amazonaws.com"],
    ["cn-north-1", "dynamodb.cn-north-1.amazonaws.com.cn"],
  ])("leads to the endpoint of %s", async (region, hostname) => {
    const settings = settingsOf({ AWS_REGION: region });
    if (typeof settings === "string") throw new Error(settings);
    expect((await settings.destination(["locks"])).endpoint).toMatchObject({ protocol: "https:", hostname, port: 443, path: "/" });
  });

  it.each([
    [{ AWS_REGION: "us-iso-east-1" }, "us-iso-east-1"],
    [{ AWS_REGION: "" }, "AWS_REGION"],
    [{ AWS_ACCESS_KEY_ID: "" }, "AWS_ACCESS_KEY_ID"],
    [{ AWS_PROFILE: "mine" }, "AWS_PROFILE"],
    [{ AWS_USE_FIPS_ENDPOINT: "true" }, "AWS_USE_FIPS_ENDPOINT"],
    [{ AWS_RETRY_MODE: "adaptive" }, "AWS_RETRY_MODE"],
  ])("takes the SDK with %j", (env, reason) => {
    expect(settingsOf(env)).toContain(reason);
  });
});

describe("requests of a function", () => {
  let table: ScriptedTable;
  beforeAll(async () => {
    table = await startScriptedTable();
  });
  afterAll(() => table.close());

  it("are signed with the credentials that the environment has at the time", async () => {
    const env = { ...ENV, AWS_ENDPOINT_URL_DYNAMODB: table.endpoint };
    const settings = environmentSettings(env, deps);
    if (typeof settings === "string") throw new Error(settings);
    const calls = builtInCalls(settings);
    table.script({ status: 200, body: {} });
    await calls.getItem(READ);
    Object.assign(env, { AWS_ACCESS_KEY_ID: "TWO" });
    await calls.getItem(READ);
    const keys = table.asked.map(({ headers }) => /Credential=(\w+)\//.exec(String(headers.authorization))?.[1]);
    expect(keys).toEqual(["ONE", "TWO"]);
  });

  it.each([
    ["500", { status: 500, body: {} }, 3],
    ["a broken connection", "reset", 3],
    ["a wrong request", { status: 400, body: { __type: "x#ValidationException" } }, 1],
  ] as const)("are sent as often as by the SDK: %s", async (_, step, attempts) => {
    const settings = settingsOf({ AWS_ENDPOINT_URL: table.endpoint });
    if (typeof settings === "string") throw new Error(settings);
    table.script(step);
    await expect(builtInCalls(settings).getItem(READ)).rejects.toMatchObject({ $metadata: { attempts } });
    expect(table.asked).toHaveLength(attempts);
  });

  it.each(["ThrottlingException", "ProvisionedThroughputExceededException", "RequestLimitExceeded"])(
    "are sent once if throttled: %s",
    async (name) => {
      const settings = settingsOf({ AWS_ENDPOINT_URL: table.endpoint });
      if (typeof settings === "string") throw new Error(settings);
      table.script({ status: 400, body: { __type: `x#${name}` } });
      await expect(builtInCalls(settings).getItem(READ)).rejects.toMatchObject({ name, $metadata: { attempts: 1 } });
      expect(table.asked).toHaveLength(1);
    },
  );
});
