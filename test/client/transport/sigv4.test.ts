/**
 * sigv4(): requests carry the signature that AWS computes for them. The test recomputes it from the received request
 * with the published algorithm, without the signer's code, and checks that against AWS's own published example.
 */
import { createHash, createHmac } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { httpApi } from "../../../lib/client/wire/http.js";
import { type Credentials, sigv4 } from "../../../lib/sigv4.js";
import { type Received, type StubServer, startStubServer } from "./stub-server.js";

const CREDENTIALS: Credentials = { accessKeyId: "AKIDEXAMPLE", secretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY" };
const REF = { key: "refund:42~x_1.2", leaseId: "01a2ce8b-d400-7145-b733-952723412670" };

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");
const hmac = (key: string | Buffer, text: string): Buffer => createHmac("sha256", key).update(text).digest();
/** RFC 3986: escapes everything but unreserved characters. */
const escaped = (text: string): string =>
  encodeURIComponent(text).replaceAll(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);

interface ToSign {
  readonly method: string;
  readonly path: string;
  readonly query: readonly (readonly [string, string])[];
  readonly headers: Readonly<Record<string, string>>;
  readonly payloadHash: string;
  readonly scope: { readonly date: string; readonly region: string; readonly service: string };
  readonly amzDate: string;
}

/** The four steps of the AWS documentation: canonical request, string to sign, signing key, signature. */
function signatureOf({ method, path, query, headers, payloadHash, scope, amzDate }: ToSign, secret: string): string {
  const names = Object.keys(headers).sort();
  const canonicalRequest = [
    method,
    path.split("/").map(escaped).join("/"),
    query
      .map(([name, value]) => `${escaped(name)}=${escaped(value)}`)
      .sort()
      .join("&"),
    ...names.map((name) => `${name}:${headers[name]!.trim()}`),
    "",
    names.join(";"),
    payloadHash,
  ].join("\n");
  const { date, region, service } = scope;
  const stringToSign = ["AWS4-HMAC-SHA256", amzDate, `${date}/${region}/${service}/aws4_request`, sha256(canonicalRequest)].join("\n");
  const key = [region, service, "aws4_request"].reduce<Buffer>((derived, part) => hmac(derived, part), hmac(`AWS4${secret}`, date));
  return hmac(key, stringToSign).toString("hex");
}

/** The expected signature of a received request, and its actual one. */
function signaturesOf({ method, url, headers, body }: Received): {
  readonly expected: string;
  readonly actual: string;
  readonly scope: string;
  readonly signed: readonly string[];
} {
  const [, credential, signedNames, actual] =
    /^AWS4-HMAC-SHA256 Credential=([^,]+), SignedHeaders=([^,]+), Signature=([0-9a-f]{64})$/.exec(headers.authorization ?? "") ?? [];
  const [, date = "", region = "", service = ""] = credential!.split("/");
  const [path = "", query = ""] = url.split("?", 2);
  const signed = signedNames!.split(";");
  const expected = signatureOf(
    {
      method,
      path,
      query: [...new URLSearchParams(query)],
      headers: Object.fromEntries(signed.map((name) => [name, String(headers[name])])),
      payloadHash: sha256(body),
      scope: { date, region, service },
      amzDate: String(headers["x-amz-date"]),
    },
    CREDENTIALS.secretAccessKey,
  );
  return { expected, actual: actual!, scope: `${date}/${region}/${service}`, signed };
}

let server: StubServer;
beforeEach(async () => void (server = await startStubServer()));
afterEach(async () => {
  vi.unstubAllEnvs();
  await server.close();
});

it("control: the recomputation comes to the signature that AWS published for its example", () => {
  // Signature Version 4 test suite, get-vanilla.
  const headers = { host: "example.amazonaws.com", "x-amz-date": "20150830T123600Z" };
  const scope = { date: "20150830", region: "us-east-1", service: "service" };
  const request = { method: "GET", path: "/", query: [], headers, payloadHash: sha256(""), scope, amzDate: "20150830T123600Z" };
  expect(signatureOf(request, CREDENTIALS.secretAccessKey)).toBe("5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
});

describe("sigv4", () => {
  const client = (options: Parameters<typeof sigv4>[0] = {}) =>
    httpApi({ url: `${server.url}/stage`, sign: sigv4({ region: "eu-central-1", credentials: CREDENTIALS, ...options }) });

  it.each([
    ["a body", () => client().acquire({ ...REF, owner: "Käthe & co", leaseMs: 3000 })],
    ["no body", () => client().release(REF)],
    ["a query", () => client().list({ prefix: "refund:4~", owner: "one & two+three/ü*'()!", max: 5 })],
    ["another path", () => client().inspect({ key: REF.key })],
  ])("signs a request with %s as AWS computes it", async (_what, ask) => {
    await ask().catch(() => undefined);
    const [request] = server.received;
    const { expected, actual, scope, signed } = signaturesOf(request!);
    expect(actual).toBe(expected);
    expect(scope).toBe(`${String(request!.headers["x-amz-date"]).slice(0, 8)}/eu-central-1/execute-api`);
    expect(signed).toEqual(expect.arrayContaining(["host", "x-amz-date"]));
  });

  it("control: a signature doesn't fit another path, body or secret", async () => {
    await client()
      .acquire(REF)
      .catch(() => undefined);
    const request = server.received[0]!;
    for (const changed of [{ url: request.url.replace("refund", "order") }, { body: "{}{}" }, { method: "POST" }]) {
      const { expected, actual } = signaturesOf({ ...request, ...changed });
      expect(actual).not.toBe(expected);
    }
  });

  it("sends and signs the session token of temporary credentials", async () => {
    await client({ credentials: { ...CREDENTIALS, sessionToken: "a-token" } })
      .check(REF)
      .catch(() => undefined);
    const { expected, actual, signed } = signaturesOf(server.received[0]!);
    expect(server.received[0]?.headers["x-amz-security-token"]).toBe("a-token");
    expect(signed).toContain("x-amz-security-token");
    expect(actual).toBe(expected);
  });

  it("signs every attempt anew, with the credentials of that moment", async () => {
    let issued = 0;
    const api = client({ credentials: () => Promise.resolve({ ...CREDENTIALS, sessionToken: `token-${++issued}` }) });
    for (let attempt = 0; attempt < 2; attempt++) await api.check(REF).catch(() => undefined);
    expect(server.received.map(({ headers }) => headers["x-amz-security-token"])).toEqual(["token-1", "token-2"]);
    for (const request of server.received) {
      const { expected, actual } = signaturesOf(request);
      expect(actual).toBe(expected);
    }
  });

  it("takes the credentials of the environment, as they are at each request", async () => {
    const { accessKeyId, secretAccessKey } = CREDENTIALS;
    vi.stubEnv("AWS_ACCESS_KEY_ID", accessKeyId).stubEnv("AWS_SECRET_ACCESS_KEY", secretAccessKey).stubEnv("AWS_PROFILE", "");
    const api = client({ credentials: undefined });
    for (const token of ["", "token-2"]) {
      vi.stubEnv("AWS_SESSION_TOKEN", token);
      await api.check(REF).catch(() => undefined);
    }
    expect(server.received.map(({ headers }) => headers["x-amz-security-token"])).toEqual([undefined, "token-2"]);
    for (const request of server.received) {
      const { expected, actual } = signaturesOf(request);
      expect(actual).toBe(expected);
    }
  });

  it("without any, takes those of a profile", async () => {
    const directory = await mkdtemp(join(tmpdir(), "holdfast-profile-"));
    const file = join(directory, "credentials");
    await writeFile(file, "[shop]\naws_access_key_id = AKIDSHOP\naws_secret_access_key = secret\n");
    vi.stubEnv("AWS_ACCESS_KEY_ID", undefined).stubEnv("AWS_SECRET_ACCESS_KEY", undefined).stubEnv("AWS_PROFILE", "shop");
    vi.stubEnv("AWS_SHARED_CREDENTIALS_FILE", file).stubEnv("AWS_CONFIG_FILE", "/dev/null");
    await client({ credentials: undefined })
      .check(REF)
      .catch(() => undefined);
    expect(server.received[0]?.headers.authorization).toContain("Credential=AKIDSHOP/");
    await rm(directory, { recursive: true });
  });

  describe("whose time is refused by the gateway", () => {
    const HOUR_MS = 3_600_000;
    const LEASE = { ...REF, owner: "", mode: "exclusive", permits: 1, holdCount: 1, fencingToken: 7, version: 1 };
    const TIMES = { leaseMs: 3000, remainingMs: 2990, renewAfterMs: 1000, serverTimeMs: 1 };
    const signedAtMs = ({ headers }: Received): number =>
      Date.parse(String(headers["x-amz-date"]).replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, "$1-$2-$3T$4:$5:$6Z"));
    /** A gateway whose clock differs by `offMs`, and which takes no signature of another time. */
    const gateway = (offMs: number, date = () => new Date(Date.now() + offMs).toUTCString()) =>
      server.answer((request) => {
        const isOld = Math.abs(signedAtMs(request) - (Date.now() + offMs)) > 300_000;
        if (!isOld) return { status: 200, body: { ...LEASE, ...TIMES } };
        return { status: 403, headers: { date: date() }, body: { message: "Signature expired: it is now earlier than that" } };
      });

    it.each([HOUR_MS, -HOUR_MS])("is signed once more with the time of the refusal, %d ms off, and from then on at once", async (offMs) => {
      gateway(offMs);
      const api = client();
      expect(await api.check(REF)).toMatchObject({ ok: true });
      expect(await api.check(REF)).toMatchObject({ ok: true });
      expect(server.received.map((request) => Math.round((signedAtMs(request) - Date.now()) / HOUR_MS) * HOUR_MS + 0)).toEqual([
        0,
        offMs,
        offMs,
      ]);
    });

    it("is signed once more without a Date too: a frozen process sent an old signature. If that is refused, it is final", async () => {
      gateway(HOUR_MS, () => "");
      expect(await client().check(REF)).toMatchObject({ ok: false, code: "not-configured", retry: "never" });
      expect(server.received).toHaveLength(2);
    });
  });

  it.each([
    ["https://abc123.execute-api.ap-southeast-2.amazonaws.com/v1/health", "/ap-southeast-2/execute-api/"],
    ["https://abc123.lambda-url.ap-southeast-2.on.aws/v1/health", "/ap-southeast-2/lambda/"],
    ["https://locks.example.com/v1/health", "/eu-west-3/execute-api/"],
    ["https://abc123.lambda-url.on.aws.example.com/v1/health", "/eu-west-3/execute-api/"],
  ])("signs for the Region and the service in the host %s: %s", async (url, scope) => {
    vi.stubEnv("AWS_REGION", "").stubEnv("AWS_DEFAULT_REGION", "eu-west-3");
    expect((await sigv4({ credentials: CREDENTIALS })({ method: "GET", url, headers: {} }))["authorization"]).toContain(scope);
    const sign = sigv4({ credentials: CREDENTIALS, region: "eu-north-1", service: "vpc-lattice-svcs" });
    expect((await sign({ method: "GET", url, headers: {} }))["authorization"]).toContain("/eu-north-1/vpc-lattice-svcs/");
  });

  it("takes AWS_REGION before AWS_DEFAULT_REGION, and needs one where the host has none", async () => {
    const sign = sigv4({ credentials: CREDENTIALS });
    const url = "http://localhost/v1/health";
    vi.stubEnv("AWS_REGION", "eu-north-1").stubEnv("AWS_DEFAULT_REGION", "eu-west-3");
    expect((await sign({ method: "GET", url, headers: {} }))["authorization"]).toContain("/eu-north-1/");
    vi.stubEnv("AWS_REGION", "").stubEnv("AWS_DEFAULT_REGION", "");
    await expect(sign({ method: "GET", url, headers: {} })).rejects.toThrow("no region");
  });
});
