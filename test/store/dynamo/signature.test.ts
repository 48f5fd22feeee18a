/** Signature Version 4, compared with the AWS SDK's own signer. */
import { createHash, createHmac } from "node:crypto";
import { SignatureV4 } from "@smithy/signature-v4";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { signedHeaders, signer } from "../../../lib/store/dynamo/signature.js";

/** SHA-256 and its HMAC, in the form that the SDK's signer needs. */
class Sha256 {
  readonly #hash;
  constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
    this.#hash = secret === undefined ? createHash("sha256") : createHmac("sha256", secret as string);
  }
  update(data: Uint8Array): void {
    this.#hash.update(data);
  }
  digest(): Promise<Uint8Array> {
    return Promise.resolve(this.#hash.digest());
  }
  reset(): void {
    throw new Error("a digest is taken once");
  }
}

const word = fc.stringMatching(/^[A-Za-z0-9/+=]{1,40}$/);
const request = fc.record({
  credentials: fc.record({ accessKeyId: word, secretAccessKey: word, sessionToken: fc.option(word, { nil: undefined }) }),
  scope: fc.record({
    host: fc.constantFrom("dynamodb.eu-central-1.amazonaws.com", "123456789012.ddb.us-east-1.amazonaws.com", "127.0.0.1:8000"),
    path: fc.constantFrom("/", "/dynamodb/", "/a b/", "/x//../y(1)/", "/%C3%A9/", "/callbacks/a%2Fb%2B%3D/succeed"),
    region: fc.constantFrom("eu-central-1", "us-east-1", "cn-north-1"),
    service: fc.constantFrom("dynamodb", "lambda"),
    method: fc.constantFrom("GET", undefined),
    query: fc.constantFrom("IncludeExecutionData=false", undefined),
  }),
  target: fc.constantFrom("DynamoDB_20120810.UpdateItem", "DynamoDB_20120810.Query", ""),
  bodies: fc.array(
    fc.record({ body: fc.string({ unit: "grapheme" }), atMs: fc.integer({ min: Date.UTC(2026, 11, 30), max: Date.UTC(2027, 0, 3) }) }),
    { minLength: 1, maxLength: 4 },
  ),
});

const text = fc.string({ unit: "binary-ascii" });
const anyRequest = fc.record({
  credentials: request.map(({ credentials }) => credentials),
  scope: fc.record({ region: fc.constantFrom("eu-central-1", "cn-north-1"), service: fc.constantFrom("execute-api", "lambda") }),
  method: fc.constantFrom("GET", "PUT", "POST", "DELETE"),
  path: fc.webPath().map((path) => `/${path}`),
  query: fc.dictionary(fc.string({ minLength: 1 }), fc.string()),
  headers: fc.dictionary(
    fc.constantFrom(
      "content-type",
      "Prefer",
      "x-amz-target",
      "user-agent",
      "Proxy-Connection",
      "sec-fetch-mode",
      "x-team",
      "x-amzn-trace-id",
    ),
    text.map((value) => value.replace(/[^\t -~]/g, "")),
  ),
  body: fc.option(fc.string({ unit: "grapheme" }), { nil: undefined }),
  atMs: fc.integer({ min: Date.UTC(2026, 11, 30), max: Date.UTC(2027, 0, 3) }),
});

function withoutUndefined({ sessionToken, ...keys }: Parameters<typeof signer>[0]) {
  return { ...keys, ...(sessionToken !== undefined && { sessionToken }) };
}

async function signedBySdk(
  { credentials, scope, target }: typeof request extends fc.Arbitrary<infer R> ? R : never,
  body: string,
  atMs: number,
) {
  const sdk = new SignatureV4({
    credentials: withoutUndefined(credentials),
    region: scope.region,
    service: scope.service,
    sha256: Sha256,
    applyChecksum: false,
  });
  const { headers } = await sdk.sign(
    {
      method: scope.method ?? "POST",
      protocol: "https:",
      hostname: scope.host,
      path: scope.path,
      query: Object.fromEntries(new URLSearchParams(scope.query)),
      headers: {
        host: scope.host,
        ...(target === ""
          ? { "content-type": "application/json" }
          : { "content-type": "application/x-amz-json-1.0", "x-amz-target": target }),
      },
      body,
    },
    { signingDate: new Date(atMs) },
  );
  return headers;
}

const pairs = (list: readonly string[]): Record<string, string> =>
  Object.fromEntries(Array.from({ length: list.length / 2 }, (_, at) => [list[2 * at]!, list[2 * at + 1]!]));

describe("a signature", () => {
  it("is the AWS SDK's, for every request, credentials, place and time, also over midnight", async () => {
    await fc.assert(
      fc.asyncProperty(request, async (drawn) => {
        const sign = signer(drawn.credentials, drawn.scope);
        for (const { body, atMs } of drawn.bodies)
          expect(pairs(sign(drawn.target, body, atMs))).toEqual(await signedBySdk(drawn, body, atMs));
      }),
      { numRuns: 300 },
    );
  });

  it("of a whole request is the AWS SDK's too, for every method, path, query and header", async () => {
    await fc.assert(
      fc.asyncProperty(anyRequest, async ({ credentials, scope, method, path, query, headers, body, atMs }) => {
        const url = new URL(`https://api.example:8443${path}`);
        for (const [name, value] of Object.entries(query)) url.searchParams.append(name, value);
        const sdk = new SignatureV4({ credentials: withoutUndefined(credentials), ...scope, sha256: Sha256 });
        const request = { method, protocol: "https:", hostname: url.hostname, port: 8443, path: url.pathname, query, body };
        const signed = await sdk.sign({ ...request, headers: { ...headers, host: url.host } }, { signingDate: new Date(atMs) });
        const ours = signedHeaders({ method, url, headers, body }, credentials, scope, atMs);
        expect({ ...headers, host: url.host, ...ours }).toEqual(signed.headers);
      }),
      { numRuns: 300 },
    );
  });

  it("control: is another one for another body, second, token or place", () => {
    const credentials = { accessKeyId: "A", secretAccessKey: "B" };
    const scope = { host: "h", path: "/", region: "us-east-1", service: "dynamodb" };
    const signatures = [
      signer(credentials, scope)("t", "{}", 0),
      signer(credentials, scope)("t", "{ }", 0),
      signer(credentials, scope)("t", "{}", 1000),
      signer({ ...credentials, sessionToken: "x" }, scope)("t", "{}", 0),
      signer(credentials, { ...scope, path: "/x/" })("t", "{}", 0),
    ].map((headers) => headers.at(-1));
    expect(new Set(signatures).size).toBe(signatures.length);
  });
});
