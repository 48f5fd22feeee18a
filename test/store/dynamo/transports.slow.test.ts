/**
 * The built-in transport does the same as the AWS SDK with every answer of a table, a proxy or the network. The same row runs through
 * both. The test compares the caller's result, the number of requests, and the requests.
 */
import { type DynamoDBClientConfig, DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import type { TableCalls, UpdateInput } from "../../../lib/store/dynamo/calls.js";
import { builtInCalls } from "../../../lib/store/dynamo/built-in-calls.js";
import { sdkCalls } from "../../support/sdk-calls.js";
import { settingsOf } from "../../../lib/store/dynamo/sdk-access.js";
import { storeUnavailable } from "../../../lib/store/dynamo/unavailable.js";
import { type ScriptedTable, type Step, startScriptedTable } from "./scripted-table.js";

const HOUR_MS = 3_600_000;
/** So long that a machine under load answers in time. */
const ANSWER_MS = 10_000;
/** For rows in which nobody answers. */
const SILENCE_MS = { once: 1000, always: 150 };

let table: ScriptedTable;
beforeAll(async () => {
  table = await startScriptedTable();
});
afterAll(() => table.close());
// The pauses before a retry are random. This makes them almost zero.
beforeEach(() => void vi.spyOn(Math, "random").mockReturnValue(0.001));
afterEach(() => void vi.restoreAllMocks());

function client(config: DynamoDBClientConfig = {}): DynamoDBClient {
  return new DynamoDBClient({
    endpoint: table.endpoint,
    region: "us-east-1",
    credentials: { accessKeyId: "local", secretAccessKey: "local", sessionToken: "token" },
    maxAttempts: 3,
    requestHandler: { connectionTimeout: ANSWER_MS, requestTimeout: ANSWER_MS, throwOnRequestTimeout: true },
    ...config,
  });
}

const UPDATE: UpdateInput = {
  TableName: "locks",
  Key: { p: "a/locks/1", k: "ORDER_1" },
  ConditionExpression: "v = :seen",
  UpdateExpression: "SET #h = :h",
  ExpressionAttributeNames: { "#h": "h" },
  ExpressionAttributeValues: { ":seen": 1, ":h": { id: { o: "é", n: 1, left: undefined, on: true, none: null } }, ":q": [1, "a"] },
  ReturnValues: "ALL_OLD",
  ReturnValuesOnConditionCheckFailure: "ALL_OLD",
};

type Ask = (calls: TableCalls) => Promise<unknown>;
const update: Ask = (calls) => calls.updateItem(UPDATE);
const { ReturnValues: _, ...PART } = UPDATE;
const transact: Ask = (calls) =>
  calls.transactWriteItems({ ClientRequestToken: "one", TransactItems: [{ Update: PART }, { Update: PART }] });

/** Returns the parts of a result that a caller may depend on. */
async function cameOf(calls: TableCalls, ask: Ask, steps: readonly Step[]) {
  table.script(...steps);
  const told = await ask(calls).then(
    (answer) => ({ answer: plain(answer) }),
    (error: unknown) => {
      const { name, $metadata, Item, CancellationReasons } = error as Error & Record<string, unknown>;
      const { attempts, httpStatusCode } = ($metadata ?? {}) as { attempts?: number; httpStatusCode?: number };
      const { definite, throttled, name: kind } = storeUnavailable(error);
      return {
        name,
        attempts,
        httpStatusCode,
        Item: plain(Item),
        CancellationReasons: plain(CancellationReasons),
        kind,
        definite,
        throttled,
      };
    },
  );
  return { ...told, asked: table.asked.length };
}

/** Removes the SDK's own members and undefined members. */
function plain(value: unknown): unknown {
  if (value === undefined) return undefined;
  return JSON.parse(JSON.stringify(value, (name, one: unknown) => (name === "$metadata" ? undefined : one)));
}

function patienceFor(steps: readonly Step[]): DynamoDBClientConfig {
  if (!steps.includes("silent")) return {};
  const requestTimeout = steps.length === 1 ? SILENCE_MS.always : SILENCE_MS.once;
  return { requestHandler: { connectionTimeout: ANSWER_MS, requestTimeout, throwOnRequestTimeout: true } };
}

type Transport = "built-in" | "sdk";
const TRANSPORTS: readonly Transport[] = ["built-in", "sdk"];

/** Operations with what the SDK finds by this configuration, or through its client. */
async function callsBy(transport: Transport, config: DynamoDBClientConfig = {}): Promise<TableCalls> {
  const one = client(config);
  if (transport === "sdk") return sdkCalls(one);
  const { requestTimeout = ANSWER_MS } = (config.requestHandler ?? {}) as { readonly requestTimeout?: number };
  const settings = await settingsOf(() => one.config, (config.endpoint as string | undefined) ?? table.endpoint);
  return builtInCalls({ ...settings, bounds: { connectMs: ANSWER_MS, answerMs: requestTimeout } });
}

/** Runs the same row through both transports. */
async function both(ask: Ask, steps: readonly Step[], config: DynamoDBClientConfig = patienceFor(steps)) {
  return {
    builtIn: await cameOf(await callsBy("built-in", config), ask, steps),
    sdk: await cameOf(await callsBy("sdk", config), ask, steps),
  };
}

const dated = (step: Step, date: string): Step => (typeof step === "string" ? step : { ...step, headers: { date } });
const service = (name: string) => `com.amazonaws.dynamodb.v20120810#${name}`;
const refused = (name: string, status = 400, more: object = {}): Step => ({
  status,
  body: { __type: service(name), message: "No", ...more },
});
const OK: Step = {
  status: 200,
  body: { Items: [], Attributes: { v: { N: "1" }, h: { M: { a: { S: "é" } } }, q: { L: [{ BOOL: true }, { NULL: true }] } } },
};
const ITEM = { v: { N: "2" }, h: { M: { a: { S: "b" } } } };

interface Row {
  readonly when: string;
  readonly steps: readonly Step[];
  readonly ask?: Ask;
}

const ROWS: readonly Row[] = [
  { when: "an answer", steps: [OK] },
  { when: "an answer without attributes", steps: [{ status: 200, body: {} }] },
  { when: "an empty answer", steps: [{ status: 200, body: "" }] },
  { when: "a condition that failed", steps: [refused("ConditionalCheckFailedException", 400, { Item: ITEM })] },
  { when: "a condition that failed without an item", steps: [refused("ConditionalCheckFailedException")] },
  { when: "a transaction on the item", steps: [refused("TransactionConflictException")] },
  { when: "no such table", steps: [refused("ResourceNotFoundException")] },
  { when: "a request that is wrong", steps: [refused("ValidationException")] },
  { when: "no right to it", steps: [refused("AccessDeniedException")] },
  { when: "a lost answer and no right to it", steps: ["reset", refused("AccessDeniedException")] },
  {
    when: "credentials that expired",
    steps: [{ status: 400, body: { __type: "com.amazon.coral.service#ExpiredTokenException", message: "Old" } }],
  },
  { when: "credentials of nobody", steps: [{ status: 400, body: { __type: "com.amazon.coral.service#UnrecognizedClientException" } }] },
  { when: "a signature that is wrong", steps: [refused("InvalidSignatureException")] },
  { when: "500 once", steps: [refused("InternalServerError", 500), OK] },
  { when: "500 always", steps: [refused("InternalServerError", 500)] },
  {
    when: "500 and then a failed condition",
    steps: [refused("InternalServerError", 500), refused("ConditionalCheckFailedException", 400, { Item: ITEM })],
  },
  { when: "501", steps: [refused("NotImplemented", 501)] },
  { when: "503 as a page", steps: [{ status: 503, body: "<html>", headers: { "content-type": "text/html" } }] },
  { when: "502 without a body", steps: [{ status: 502 }] },
  { when: "a redirection", steps: [{ status: 302, headers: { location: "/elsewhere" } }] },
  {
    when: "an error named in a header",
    steps: [{ status: 400, body: { Message: "No" }, headers: { "x-amzn-errortype": "ValidationException:http://a/" } }],
  },
  { when: "an error named by its code", steps: [{ status: 400, body: { code: "ValidationException" } }] },
  { when: "an error without a name", steps: [{ status: 400, body: {} }] },
  { when: "an answer that is no JSON", steps: [{ status: 200, body: "{" }] },
  { when: "an answer that is a page", steps: [{ status: 200, body: "<html>" }] },
  { when: "an error that is no JSON", steps: [{ status: 400, body: "no" }] },
  { when: "a connection that breaks once", steps: ["reset", OK] },
  { when: "a connection that breaks always", steps: ["reset"] },
  { when: "a connection that breaks in the answer", steps: ["cut", OK] },
  { when: "connections that break in the answer", steps: ["cut"] },
  { when: "silence once", steps: ["silent", OK] },
  { when: "silence", steps: ["silent"] },
  { when: "a transaction", steps: [{ status: 200, body: {} }], ask: transact },
  {
    when: "a cancelled transaction",
    ask: transact,
    steps: [
      refused("TransactionCanceledException", 400, {
        CancellationReasons: [{ Code: "None" }, { Code: "ConditionalCheckFailed", Message: "No", Item: ITEM }],
      }),
    ],
  },
  {
    when: "a transaction that met another",
    ask: transact,
    steps: [refused("TransactionCanceledException", 400, { CancellationReasons: [{ Code: "TransactionConflict" }, { Code: "None" }] })],
  },
  { when: "a transaction in progress", steps: [refused("TransactionInProgressException"), { status: 200, body: {} }], ask: transact },
];

describe("a throttled request, which certainly did nothing", () => {
  it.each([
    ["ThrottlingException", [refused("ThrottlingException"), OK], 1],
    ["too little throughput", [refused("ProvisionedThroughputExceededException"), OK], 1],
    ["a limit on requests", [refused("RequestLimitExceeded"), OK], 1],
    ["429 of a proxy", [{ status: 429, body: "slow down", headers: { "x-amzn-requestid": "" } }, OK], 1],
    ["a lost answer, then throttling", ["reset", refused("ThrottlingException"), OK], 2],
  ] satisfies [string, Step[], number][])(
    "is not sent again by the built-in transport, as the SDK does: %s",
    async (_when, steps, asked) => {
      const { builtIn, sdk } = await both(update, steps);
      expect(builtIn).toMatchObject({ asked, attempts: asked, throttled: true, definite: asked === 1 });
      expect(sdk).toMatchObject({ asked: asked + 1 });
    },
  );
});

describe("with both transports the caller is told the same, and the table is asked as often", () => {
  it.each(ROWS)("$when", async ({ steps, ask = update }) => {
    const { builtIn, sdk } = await both(ask, steps);
    expect(builtIn).toEqual(sdk);
  });

  it("a connection that was kept and is reset under the next request: it may have been carried out, and is sent again", async () => {
    const came = [];
    for (const transport of TRANSPORTS) {
      const calls = await callsBy(transport);
      table.script(OK, "reset", OK);
      await calls.updateItem(UPDATE);
      await calls.updateItem(UPDATE);
      came.push(table.asked.map(({ ofConnection }) => ofConnection));
    }
    expect(came).toEqual([
      [1, 2, 1],
      [1, 2, 1],
    ]);
  });

  it("nobody listens, and the table never answered: it is not configured", async () => {
    const gone = await startScriptedTable();
    await gone.close();
    const { builtIn, sdk } = await both(update, [], { endpoint: gone.endpoint });
    expect(builtIn).toMatchObject({ kind: "StoreNotConfigured", asked: 0, definite: false });
    expect(builtIn).toEqual(sdk);
  });

  it.each([
    ["no credentials", { credentials: () => Promise.reject(Object.assign(new Error("none"), { name: "CredentialsProviderError" })) }],
    ["no region", { region: () => Promise.reject(new Error("Region is missing")) }],
  ])("%s: nothing is sent", async (_, config) => {
    const { builtIn, sdk } = await both(update, [OK], config);
    expect(builtIn).toMatchObject({ asked: 0, kind: "StoreNotConfigured", definite: true });
    expect(builtIn).toEqual(sdk);
  });
});

describe("with both transports the table is sent the same", () => {
  it.each<[string, Ask]>([
    ["an update", update],
    ["a read", (calls) => calls.getItem({ TableName: "locks", Key: UPDATE.Key, ConsistentRead: true })],
    [
      "a query",
      (calls) =>
        calls.query({
          TableName: "locks",
          KeyConditionExpression: "#p = :p",
          FilterExpression: "size(h) > :zero",
          ExpressionAttributeNames: { "#p": "p" },
          ExpressionAttributeValues: { ":p": "a", ":zero": 0 },
          Limit: 100,
        }),
    ],
    ["a transaction", transact],
  ])("%s", async (_, ask) => {
    const sent = [];
    for (const transport of TRANSPORTS) {
      table.script(OK);
      await ask(await callsBy(transport));
      const [{ operation, body, headers } = expect.fail("nothing was sent")] = table.asked;
      const { ClientRequestToken, ...input } = JSON.parse(body) as Record<string, unknown>;
      expect(typeof ClientRequestToken).toBe(ask === transact ? "string" : "undefined");
      sent.push({ operation, input, type: headers["content-type"], token: headers["x-amz-security-token"], host: headers.host });
      expect(headers["user-agent"]).toMatch(/aws-sdk-js\/3/);
    }
    expect(sent[0]).toEqual(sent[1]);
  });

  it("a transaction that is sent again has the same token, so that it is carried out once", async () => {
    for (const transport of TRANSPORTS) {
      table.script("reset", refused("InternalServerError", 500), OK);
      await transact(await callsBy(transport));
      const tokens = table.asked.map(({ body }) => (JSON.parse(body) as { ClientRequestToken: string }).ClientRequestToken);
      expect(tokens).toHaveLength(3);
      expect(new Set(tokens).size).toBe(1);
    }
  });
});

describe("a machine whose clock is an hour off", () => {
  const signedAtMs = (headers: Readonly<Record<string, unknown>>): number =>
    Date.parse(String(headers["x-amz-date"]).replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, "$1-$2-$3T$4:$5:$6Z"));

  it.each([HOUR_MS, -HOUR_MS])("is corrected by the refusal's Date, by %i ms, and the request signed anew", async (offMs) => {
    for (const transport of TRANSPORTS) {
      const calls = await callsBy(transport);
      const date = new Date(Date.now() + offMs).toUTCString();
      table.script(dated(refused("InvalidSignatureException"), date), dated(OK, date));
      await calls.updateItem(UPDATE);
      await calls.updateItem(UPDATE);
      const offs = table.asked.map((asked) => Math.round((signedAtMs(asked.headers) - Date.now()) / HOUR_MS) * HOUR_MS);
      expect(offs.map((off) => off + 0)).toEqual([0, offMs, offMs]);
    }
  });

  it("is refused for good where its user has switched the correction off", async () => {
    const step = dated(refused("InvalidSignatureException"), new Date(Date.now() + HOUR_MS).toUTCString());
    const config = { disableClockSkewCorrection: true } as DynamoDBClientConfig;
    const { builtIn, sdk } = await both(update, [step], config);
    expect(builtIn).toMatchObject({ attempts: 1, kind: "StoreNotConfigured" });
    expect(builtIn).toEqual(sdk);
  });
});

describe("credentials", () => {
  it("are asked for anew when they have expired, while requests go on", async () => {
    for (const transport of TRANSPORTS) {
      const given = { accessKeyId: "OLD", secretAccessKey: "s", expiration: new Date(Date.now() - 1) };
      const calls = await callsBy(transport, { credentials: async () => ({ ...given }) });
      table.script(OK);
      await calls.updateItem(UPDATE);
      Object.assign(given, { accessKeyId: "NEW", expiration: new Date(Date.now() + HOUR_MS) });
      await calls.updateItem(UPDATE);
      given.accessKeyId = "NEWEST";
      await calls.updateItem(UPDATE);
      const keys = table.asked.map(({ headers }) => /Credential=(\w+)\//.exec(String(headers.authorization))?.[1]);
      expect(keys).toEqual(["OLD", "NEW", "NEW"]);
    }
  });
});

describe("the built-in transport alone", () => {
  it("takes no answer that is larger than any of DynamoDB's", async () => {
    table.script({ status: 200, body: "x".repeat(17 * 1024 * 1024) });
    const cause = { message: expect.stringContaining("longer than") as string };
    await expect((await callsBy("built-in", { maxAttempts: 1 })).updateItem(UPDATE)).rejects.toMatchObject({
      name: "StoreNotConfigured",
      cause,
    });
  });
});
