/** A client goes its own way where it carries what can't be read from its configuration, and says what that is. */
import type { DynamoDBClientConfig } from "@aws-sdk/client-dynamodb";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { systemClock } from "../../../lib/core/time.js";
import { createLockClient, InvalidRequestError } from "../../../lib/dynamodb.js";
import { callsThrough, transportOf } from "../../../lib/store/dynamo/choose-transport.js";
import { watchTableClock } from "../../../lib/store/dynamo/table-clock.js";
import type { ScriptedTable } from "./scripted-table.js";
import { startScriptedTable } from "./scripted-table.js";

let table: ScriptedTable;
beforeAll(async () => {
  table = await startScriptedTable();
});
afterAll(() => table.close());

function client(config: DynamoDBClientConfig = {}): DynamoDBClient {
  return new DynamoDBClient({
    endpoint: table.endpoint,
    region: "us-east-1",
    credentials: { accessKeyId: "a", secretAccessKey: "b" },
    ...config,
  });
}

const quiet = (): void => undefined;
const QUIET = { trace: quiet, debug: quiet, info: quiet, warn: quiet, error: quiet };
const READ = { TableName: "locks", Key: { p: "a", k: "b" }, ConsistentRead: true } as const;

describe("the built-in transport is taken", () => {
  it.each<[string, () => DynamoDBClient]>([
    ["for a client as it comes", () => client()],
    ["with time-outs and attempts of its own", () => client({ requestHandler: { requestTimeout: 1 }, maxAttempts: 5 })],
    ["with adaptive retries", () => client({ retryMode: "adaptive" })],
    ["with a name of its own", () => client({ customUserAgent: "mine/1" })],
    [
      "when the table's clock is watched, by several",
      () => {
        const one = client();
        watchTableClock(one, systemClock);
        watchTableClock(one, { ...systemClock });
        return one;
      },
    ],
  ])("%s", async (_, made) => {
    expect(await transportOf(made())).toEqual({ transport: "built-in" });
  });
});

describe("the AWS SDK's client is gone through", () => {
  it.each<[string, () => DynamoDBClient, RegExp]>([
    [
      "with a middleware, as tracers add one",
      () => {
        const one = client();
        one.middlewareStack.add((next) => (args) => next(args), { name: "XRay" });
        return one;
      },
      /middleware was added to it: XRay/,
    ],
    ["with a handler of its own", () => client({ requestHandler: { handle: () => Promise.reject(new Error()) } }), /request handler/],
    ["with a logger", () => client({ logger: QUIET }), /logger/],
    ["with a signer", () => client({ signer: () => Promise.reject(new Error()) }), /signer/],
    [
      "with a retry strategy of an older kind",
      () => client({ retryStrategy: { retry: () => Promise.reject(new Error()) } as never }),
      /retry strategy/,
    ],
    [
      "with another send()",
      () => {
        const one = client();
        const send = one.send.bind(one);
        one.send = ((...args: Parameters<typeof send>) => send(...args)) as typeof one.send;
        return one;
      },
      /send\(\)/,
    ],
    ["of another class", () => new (class Mine extends DynamoDBClient {})({}), /class/],
    [
      "without a middleware that it came with",
      () => {
        const one = client();
        one.middlewareStack.remove("loggerMiddleware");
        return one;
      },
      /removed/,
    ],
  ])("%s", async (_, made, reason) => {
    expect(await transportOf(made())).toEqual({ transport: "sdk", reason: expect.stringMatching(reason) });
  });

  it("from the next request on when a middleware is added later", async () => {
    const one = client();
    const calls = callsThrough(one);
    let met = 0;
    await calls.getItem(READ);
    one.middlewareStack.use({
      applyToStack: (stack) =>
        stack.add((next) => {
          return (args) => {
            met++;
            return next(args);
          };
        }),
    });
    await calls.getItem(READ);
    expect(met).toBe(1);
    expect(await transportOf(one)).toMatchObject({ transport: "sdk" });
    one.destroy();
  });

  it("when the option says so", async () => {
    const one = client();
    table.script({ status: 200, body: {} });
    await callsThrough(one, "sdk").getItem(READ);
    expect(table.asked[0]?.headers["amz-sdk-request"]).toBeDefined();
    one.destroy();
  });
});

it("an option that is none is refused by name", () => {
  const given = { tableName: "locks", client: client(), transport: "narrow" as never };
  expect(() => createLockClient(given)).toThrow(InvalidRequestError);
});

describe("the endpoint", () => {
  const DESTINATIONS: readonly (readonly [DynamoDBClientConfig, string])[] = [
    [{}, "dynamodb.eu-west-1.amazonaws.com"],
    [{ useFipsEndpoint: true }, "dynamodb-fips.eu-west-1.amazonaws.com"],
    [{ useDualstackEndpoint: true }, "dynamodb.eu-west-1.api.aws"],
    [{ region: "cn-north-1" }, "dynamodb.cn-north-1.amazonaws.com.cn"],
    [{ credentials: { accessKeyId: "a", secretAccessKey: "b", accountId: "123456789012" } }, "123456789012.ddb.eu-west-1.amazonaws.com"],
    [{ endpoint: "https://vpce-1.example" }, "vpce-1.example"],
  ];

  it.each(DESTINATIONS)("of %j is %s, as through the SDK", async (config, host) => {
    for (const wanted of ["auto", "sdk"] as const) {
      const hosts: string[] = [];
      const one = new DynamoDBClient({
        region: "eu-west-1",
        credentials: { accessKeyId: "a", secretAccessKey: "b" },
        maxAttempts: 1,
        // Nothing leaves this machine: no name is found.
        requestHandler: {
          httpsAgent: {
            lookup: (asked: string, _: unknown, found: (error: Error) => void) => {
              hosts.push(asked);
              found(new Error("nowhere"));
            },
          } as never,
        },
        ...config,
      });
      await expect(callsThrough(one, wanted).getItem(READ)).rejects.toThrow("nowhere");
      expect(hosts).toEqual([host]);
      one.destroy();
    }
  });
});
