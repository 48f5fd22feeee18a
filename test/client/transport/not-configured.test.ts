/**
 * A wrong configuration is reported at once with its own code, and no option of a wrapper ignores it. What an answer or a failure of something
 * else means, by each way, is in what-came-back.slow.test.ts.
 */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { type Server, createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { CreateTableCommand } from "@aws-sdk/client-dynamodb";
import { createLockClient as createTableClient, InvalidRequestError, LockError, LockUnavailableError } from "../../../lib/dynamodb.js";
import { type LockClient, createLockClient, locked } from "../../../lib/index.js";
import { compose } from "../../../lambda/compose.js";
import { startGateway } from "../../../infra/local/gateway.js";
import { sigv4 } from "../../../lib/sigv4.js";
import { type StubServer, startStubServer } from "./stub-server.js";
import { type FreshTable, freshTable } from "../../support/engine.js";
import { thrownBy } from "../../support/run-gate.js";
import { engineLocation } from "../../../infra/local/engine-client.js";
import { UNTRUSTED_CERTIFICATE, UNTRUSTED_KEY } from "../../support/untrusted-certificate.js";

const CREDENTIALS = { accessKeyId: "local", secretAccessKey: "local" };

let table: FreshTable;
let stub: StubServer;
/** A server whose certificate nobody trusts. */
let untrusted: Server;
beforeAll(async () => {
  table = await freshTable();
  stub = await startStubServer();
  untrusted = createServer({ key: UNTRUSTED_KEY, cert: UNTRUSTED_CERTIFICATE }, (_request, response) => response.end("{}"));
  await once(untrusted.listen(0, "127.0.0.1"), "listening");
});
afterAll(async () => {
  untrusted.close();
  table.client.destroy();
  await stub.close();
});
afterEach(() => vi.unstubAllEnvs());

/** Creates a table whose keys have these names and this type. */
async function tableOf(partitionKey: string, sortKey: string | undefined, type: "S" | "N"): Promise<string> {
  const TableName = `wrong-${randomUUID()}`;
  const names = sortKey === undefined ? [partitionKey] : [partitionKey, sortKey];
  await table.client.send(
    new CreateTableCommand({
      TableName,
      BillingMode: "PAY_PER_REQUEST",
      AttributeDefinitions: names.map((AttributeName) => ({ AttributeName, AttributeType: type })),
      KeySchema: names.map((AttributeName, at) => ({ AttributeName, KeyType: at === 0 ? "HASH" : "RANGE" })),
    }),
  );
  return TableName;
}

/** A place that gives AWS's response to a request with rejected credentials. */
function answering(type: string, message: string): Partial<FreshTable["place"]> {
  const headers = { "content-type": "application/x-amz-json-1.0", "x-amzn-requestid": "R1" };
  stub.answer({ status: 400, headers, body: { __type: `com.amazon.coral.service#${type}`, message } });
  return engineLocation(stub.url);
}

const byFetch: typeof fetch = (...request) => fetch(...request);
const untrustedUrl = (): string => `https://127.0.0.1:${(untrusted.address() as AddressInfo).port}`;

type Ask = readonly [what: string, ask: (locks: LockClient) => Promise<unknown>];

const ASKS: readonly Ask[] = [
  ["an acquire", (locks) => locks.acquire("ORDER_1")],
  ["a set", (locks) => locks.tryAcquireAll(["ORDER_1", "ORDER_2"])],
  ["a run", (locks) => locks.runOnce("RUN_1", () => "done")],
  ["a list", (locks) => locks.list()],
];

const WRONG: readonly (readonly [what: string, client: () => Promise<LockClient>, said: string | RegExp])[] = [
  [
    "a table that is not there",
    async () => createTableClient({ ...table.place, tableName: "nothing-here" }),
    /ResourceNotFoundException.*\(there is no table nothing-here in us-east-1 of/s,
  ],
  [
    "a table with another partition key",
    async () => createTableClient({ ...table.place, tableName: await tableOf("id", undefined, "S") }),
    /schema.*\(the table wrong-\S+ must have the partition key "p" and the sort key "k", both strings\)/s,
  ],
  [
    "a table without a sort key",
    async () => createTableClient({ ...table.place, tableName: await tableOf("p", undefined, "S") }),
    "schema",
  ],
  ["a table whose keys are numbers", async () => createTableClient({ ...table.place, tableName: await tableOf("p", "k", "N") }), "schema"],
  [
    "no region",
    async () => {
      for (const name of ["AWS_REGION", "AWS_DEFAULT_REGION"]) vi.stubEnv(name, undefined);
      for (const name of ["AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"]) vi.stubEnv(name, "/dev/null");
      return createTableClient({ tableName: table.tableName, credentials: CREDENTIALS });
    },
    "Region is missing",
  ],
  [
    "no credentials",
    async () => {
      for (const name of ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"]) vi.stubEnv(name, undefined);
      for (const name of ["AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"]) vi.stubEnv(name, "/dev/null");
      vi.stubEnv("AWS_EC2_METADATA_DISABLED", "true");
      const { endpoint, tableName } = table;
      return createTableClient({ tableName, endpoint, region: "us-east-1" });
    },
    "CredentialsProviderError",
  ],
  [
    "an expired token",
    async () =>
      createTableClient({
        tableName: "t",
        ...answering("ExpiredTokenException", "The security token included in the request is expired"),
      }),
    "expired",
  ],
  [
    "a key that AWS does not know",
    async () => createTableClient({ tableName: "t", ...answering("UnrecognizedClientException", "The security token is invalid") }),
    "invalid",
  ],
  [
    "a missing right",
    async () => createTableClient({ tableName: "t", ...answering("AccessDeniedException", "is not authorized to perform") }),
    "not authorized",
  ],
  [
    "no region to sign for",
    async () => {
      for (const name of ["AWS_REGION", "AWS_DEFAULT_REGION"]) vi.stubEnv(name, undefined);
      return createLockClient({ url: stub.url, sign: sigv4({ credentials: CREDENTIALS }) });
    },
    "no region",
  ],
  [
    "no credentials to sign with",
    async () => {
      const credentials = () =>
        Promise.reject(Object.assign(new Error("Could not load credentials"), { name: "CredentialsProviderError" }));
      return createLockClient({ url: stub.url, sign: sigv4({ region: "us-east-1", credentials }) });
    },
    "Could not load credentials",
  ],
  [
    "an expired token at the gateway",
    async () => {
      stub.answer({ status: 403, body: { message: "The security token included in the request is expired" } });
      return createLockClient({ url: stub.url });
    },
    "The security token included in the request is expired",
  ],
  ["a token that ends in a newline", async () => createLockClient({ url: stub.url, token: "secret\n" }), '"authorization"'],
  ["the same by fetch", async () => createLockClient({ url: stub.url, token: async () => "secret\n", fetch: byFetch }), '"authorization"'],
  ["a header that is no Latin-1", async () => createLockClient({ url: stub.url, headers: { "x-team": "\u03a9" } }), '"x-team"'],
  [
    "a header without a value",
    async () => createLockClient({ url: stub.url, headers: { "x-team": undefined as never } }),
    '"x-team" is undefined',
  ],
  ["a header whose name is none", async () => createLockClient({ url: stub.url, headers: { "x team": "shop" } }), '"x team"'],
  [
    "a certificate that nobody trusts",
    async () => createLockClient({ url: untrustedUrl() }),
    "is not trusted (DEPTH_ZERO_SELF_SIGNED_CERT)",
  ],
];

describe.each(WRONG)("%s", (_what, clientOf, said) => {
  it("is refused as not-configured, says why, and is not passed by whenUnavailable", async () => {
    const locks = await clientOf();
    const error = await thrownBy(locks.acquire("ORDER_1"));
    expect(error).toBeInstanceOf(LockError);
    expect(error).not.toBeInstanceOf(LockUnavailableError);
    expect(error).not.toBeInstanceOf(InvalidRequestError);
    expect(error).toMatchObject({ code: "not-configured", definite: true, retry: "never" });
    expect((error as Error).message).toMatch(said);
    expect((error as Error).message).not.toContain("secret");
    const guarded = locked({ locks, key: () => "ORDER_1", whenUnavailable: "proceed" }, () => expect.unreachable("nobody holds the key"));
    await expect(guarded()).rejects.toMatchObject({ code: "not-configured" });
  });
});

it("is asked once, and never again", async () => {
  const locks = createTableClient({ tableName: "t", ...answering("ExpiredTokenException", "expired") });
  for (const [what, ask] of ASKS) {
    const before = stub.received.length;
    await expect(ask(locks)).rejects.toMatchObject({ code: "not-configured" });
    expect([what, stub.received.length - before]).toEqual([what, 1]);
  }
});

it("is not an outage of the service either: its callers hear the code, and the log what the table said", async () => {
  const reasons: unknown[] = [];
  const handler = compose({ ...table.env, HOLDFAST_TABLE: "nothing-here" }, { log: ({ reason }) => reasons.push(reason) });
  const gateway = await startGateway({ handler, port: 0 });
  const error = await createLockClient({ url: gateway.url })
    .acquire("ORDER_1")
    .catch((thrown: unknown) => thrown);
  await gateway.close();
  expect(error).toMatchObject({ code: "not-configured", definite: true, retry: "never" });
  expect((error as Error).message).not.toContain("ResourceNotFoundException");
  expect(reasons).toEqual([expect.stringContaining("ResourceNotFoundException")]);
});

describe("a gateway that refuses a request before the service", () => {
  it.each([403, 404])(
    "with %d: the error names the URL, and asks for `sign` where there is none, and for the scope of a token",
    async (status) => {
      const url = `${stub.url}/prod`;
      stub.answer({ status, body: { message: "Not here" } });
      const said = (options: object) => thrownBy(createLockClient({ url, ...options }).tryAcquire("ORDER_1"));
      const unsigned = `Not here (is ${url} the API's URL, with its stage, and does it need the option \`sign\`?)`;
      expect(await said({})).toMatchObject({ message: expect.stringContaining(unsigned) as string });
      const signed = `Not here (${status === 403 ? "does the token have a scope for this call, and " : ""}is ${url} the API's URL, with its stage?)`;
      expect(await said({ token: "secret-token" })).toMatchObject({ message: expect.stringContaining(signed) as string });
    },
  );
});

describe("what sends the requests", () => {
  /** Mistakes, and how the runtime says so. */
  const MISTAKES: readonly (readonly [what: string, send: () => never])[] = [
    ["reads a member of undefined", () => (undefined as unknown as { readonly request: never }).request],
    ["calls what is no function", () => (1 as unknown as () => never)()],
    ["names what is not there", () => eval("nowhere") as never],
    ["sends to no URL", () => new URL("http://x y") as never],
  ];

  it.each(MISTAKES)("and %s by mistake: not-configured at once, with the cause, and nothing proceeds", async (_what, send) => {
    let sent = 0;
    const fetchIt: typeof fetch = async (_url, options) => {
      if (options?.method === "PUT") sent++;
      return send();
    };
    const locks = createLockClient({ url: stub.url, fetch: fetchIt });
    let ran = 0;
    const error = await thrownBy(locks.withLock("ORDER_1", { whenUnavailable: "proceed" }, () => ++ran));
    // Perhaps it had sent the request before, so the id is cancelled, which is no PUT.
    expect(error).toMatchObject({ name: "LockError", code: "not-configured", definite: false, retry: "never" });
    expect((error as Error).cause).toBeInstanceOf(Error);
    expect([ran, sent]).toEqual([0, 1]);
  });

  it("control: a broken connection, as each runtime says it, is an outage, which work may proceed past", async () => {
    const failures = [
      new TypeError("fetch failed", { cause: Object.assign(new Error("x"), { code: "ECONNRESET" }) }), // undici
      new TypeError("Failed to fetch"), // a browser
      new TypeError("Load failed"), // Safari
      new TypeError("NetworkError when attempting to fetch resource."), // Firefox
      new TypeError("error sending request for url (http://127.0.0.1/)"), // Deno
      new Error("the tunnel is down"), // a proxy of the caller's
    ];
    const proceeding = failures.map((failure) => {
      const locks = createLockClient({ url: stub.url, fetch: () => Promise.reject(failure) });
      return locks.withLock("ORDER_1", { waitMs: 100, whenUnavailable: "proceed" }, () => "ran");
    });
    expect(await Promise.all(proceeding)).toEqual(failures.map(() => "ran"));
  });
});

describe("a URL to which no path can be added", () => {
  it.each(["http://127.0.0.1:4653 ", " http://127.0.0.1:4653", "http://127.0.0.1:4653/?code=secret", "http://127.0.0.1:4653/#top"])(
    "%j is refused when the client is made, and the message doesn't repeat it",
    (url) => {
      expect(() => createLockClient({ url })).toThrow(/^url: must have no blank, no query and no fragment/);
    },
  );
});
