/**
 * Credentials in a file that a tool rewrites while a lock is held. Regression: they were read once, and the lease was lost with the old
 * token, though the new one was there.
 */
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createLockClient as createTableClient } from "../../../lib/dynamodb.js";
import { type LockClient, createLockClient } from "../../../lib/index.js";
import { sigv4 } from "../../../lib/sigv4.js";
import { freshTable } from "../../support/engine.js";
import { type DynamoRequest, type FaultProxy, startFaultProxy } from "../../support/fault-proxy.js";
import { serve } from "../../support/http-service.js";

let file: string;
beforeEach(async () => {
  file = join(await mkdtemp(join(tmpdir(), "holdfast-rewritten-")), "credentials");
  // Without the developer's own settings.
  for (const name of Object.keys(process.env).filter((one) => one.startsWith("AWS_") && !one.includes("WARNING")))
    vi.stubEnv(name, undefined);
  vi.stubEnv("AWS_SHARED_CREDENTIALS_FILE", file).stubEnv("AWS_CONFIG_FILE", "/dev/null").stubEnv("AWS_REGION", "us-east-1");
  vi.stubEnv("AWS_EC2_METADATA_DISABLED", "true");
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(join(file, ".."), { recursive: true });
});

const write = (key: string, token: string) =>
  writeFile(file, `[default]\naws_access_key_id = ${key}\naws_secret_access_key = secret\naws_session_token = ${token}\n`);
/** Reads the file as a program with its own function for credentials would. */
async function read() {
  const text = await readFile(file, "utf8").catch(() => "");
  const [accessKeyId = "", secretAccessKey = "", sessionToken = ""] = [...text.matchAll(/ = (.+)/g)].map(([, value = ""]) => value);
  if (accessKeyId === "") throw Object.assign(new Error("no credentials yet"), { name: "CredentialsProviderError" });
  return { accessKeyId, secretAccessKey, sessionToken };
}
const keyOf = ({ headers }: DynamoRequest): string => /Credential=(.+?)\//.exec(String(headers.authorization))![1]!;

/** The ways to the locks, and each refusal of old credentials. */
const WAYS: Readonly<
  Record<
    string,
    {
      readonly refusals: readonly string[];
      readonly open: () => Promise<{ target: string; locks: (url: string) => LockClient; close: () => Promise<void> }>;
    }
  >
> = {
  "straight on the table": {
    refusals: ["ExpiredTokenException", "UnrecognizedClientException", "InvalidSignatureException"],
    async open() {
      const { tableName, endpoint } = await freshTable();
      return { target: endpoint, locks: (url) => createTableClient({ tableName, endpoint: url }), close: async () => undefined };
    },
  },
  "straight on the table, by a function": {
    refusals: ["ExpiredTokenException"],
    async open() {
      const { tableName, endpoint } = await freshTable();
      return {
        target: endpoint,
        locks: (url) => createTableClient({ tableName, endpoint: url, credentials: read }),
        close: async () => undefined,
      };
    },
  },
  "over HTTP": {
    refusals: [
      "The security token included in the request is expired",
      "The security token included in the request is invalid.",
      "Forbidden",
    ],
    async open() {
      const service = await serve();
      return { target: service.url, locks: (url) => createLockClient({ url, sign: sigv4() }), close: () => service.close() };
    },
  },
};

describe.each(Object.entries(WAYS))("%s", (_way, { refusals, open }) => {
  let proxy: FaultProxy;
  let locks: LockClient;
  let ended: ReadonlySet<string>;
  let refused: string[];
  let refusal: string;
  let close: () => Promise<void>;
  beforeEach(async () => {
    ended = new Set();
    refused = [];
    const way = await open();
    close = way.close;
    proxy = await startFaultProxy(way.target, (request) => {
      const key = keyOf(request);
      if (!ended.has(key)) return undefined;
      refused.push(key);
      const isDynamo = request.headers["x-amz-target"] !== undefined;
      return { kind: "answer", status: isDynamo ? 400 : 403, errorName: refusal, says: () => ({ message: refusal }) };
    });
    locks = way.locks(proxy.endpoint);
  });
  afterEach(async () => {
    await locks.close();
    await proxy.close();
    await close();
  });

  it.each(refusals)("a lease goes on with the new token in the file after the old one is refused: %s", async (text) => {
    refusal = text;
    await write("old", "t1");
    const lease = await locks.acquire("ORDER_1");
    await write("new", "t2");
    ended = new Set(["old"]);
    await Promise.all([lease.renew(), locks.acquire("ORDER_2")]);
    await lease.release();
    expect(new Set(refused)).toEqual(new Set(["old"]));
    expect(refused.length).toBeLessThanOrEqual(2);
  });

  it("credentials that are refused, and are the same in the file, are sent once", async () => {
    refusal = refusals[0]!;
    await write("old", "t1");
    const lease = await locks.acquire("ORDER_1");
    ended = new Set(["old"]);
    await expect(lease.renew()).rejects.toMatchObject({ code: "not-configured" });
    expect(refused).toEqual(["old"]);
    ended = new Set();
  });

  it("credentials that are in no file yet are found when they are there", async () => {
    await expect(locks.acquire("ORDER_1")).rejects.toMatchObject({ code: "not-configured" });
    await write("new", "t1");
    await locks.acquire("ORDER_1");
  });
});
