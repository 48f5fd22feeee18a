/** A key's history from CloudWatch Logs: the query, its rows as lines, and the signed requests, against a double of its JSON API. */
import { createHash, createHmac } from "node:crypto";
import { describe, expect, it, vi } from "vitest";
import { deployedLog, runQuery } from "../../bin/insights.js";
import { HISTORY_LINES, historyQuery, linesOfRows } from "../../console/insights-query.js";
import { type SigV4Options, sigv4 } from "../../lib/sigv4.js";
import { closingAfterEach, listening } from "../adapters/app-server.js";

const open = closingAfterEach();

const CREDENTIALS = { accessKeyId: "AKID", secretAccessKey: "secret", sessionToken: "session" };
const REGION = "eu-central-1";

interface Asked {
  readonly target: string;
  readonly type: string;
  readonly authorization: string;
  readonly expected: string;
  readonly body: unknown;
}

/** Answers each request with the next of `answers`, and keeps the requests with the signature that each should have. */
async function logs(answers: readonly (readonly [status: number, body: object])[], credentials: SigV4Options["credentials"] = CREDENTIALS) {
  const asked: Asked[] = [];
  const server = await listening((request, response) => {
    let body = "";
    request.on("data", (chunk: Buffer) => (body += chunk.toString()));
    request.on("end", () => {
      const { headers } = request;
      const { authorization = "" } = headers;
      asked.push({
        target: String(headers["x-amz-target"]),
        type: String(headers["content-type"]),
        authorization,
        expected: signatureOf(headers as Record<string, string>, authorization, body),
        body: JSON.parse(body),
      });
      const [status, answer] = answers[asked.length - 1] ?? [500, {}];
      response.writeHead(status, { "content-type": "application/x-amz-json-1.1" }).end(JSON.stringify(answer));
    });
  });
  const endpoint = `${open(server).url}/`;
  const sign = sigv4({ region: REGION, service: "logs", credentials });
  const waits: number[] = [];
  const wait = (ms: number) => Promise.resolve(waits.push(ms));
  const run = (query = "q") => runQuery(query, { fromMs: 1_500, toMs: 86_400_400 }, { logGroup: "group", endpoint, sign, wait });
  return { asked, waits, run, endpoint };
}

/** Computes Signature Version 4 by its definition, from what arrived. */
function signatureOf(headers: Readonly<Record<string, string>>, authorization: string, body: string): string {
  const names = /SignedHeaders=([^,]+)/.exec(authorization)?.[1] ?? "";
  const time = headers["x-amz-date"] ?? "";
  const scope = `${time.slice(0, 8)}/${REGION}/logs/aws4_request`;
  const hash = (text: string) => createHash("sha256").update(text).digest("hex");
  const hmac = (key: string | Buffer, text: string) => createHmac("sha256", key).update(text).digest();
  const lines = names.split(";").map((name) => `${name}:${headers[name] ?? ""}\n`);
  const toSign = `AWS4-HMAC-SHA256\n${time}\n${scope}\n${hash(`POST\n/\n\n${lines.join("")}\n${names}\n${hash(body)}`)}`;
  const key = [REGION, "logs", "aws4_request"].reduce<Buffer>(hmac, hmac("AWS4secret", time.slice(0, 8)));
  return `AWS4-HMAC-SHA256 Credential=AKID/${scope}, SignedHeaders=${names}, Signature=${createHmac("sha256", key).update(toSign).digest("hex")}`;
}

const fieldsOf = (row: Readonly<Record<string, string>>) => Object.entries(row).map(([field, value]) => ({ field, value }));

describe("the query for a key's history", () => {
  it("names the key's parts as the log does, the namespace, and an end", () => {
    expect(historyQuery("ORDER_1231_a").split("\n")).toEqual([
      expect.stringMatching(/^fields @timestamp, event, kind, model, owner, lease, reason, by, .*heldMs, lapsedMs, /),
      `| filter model = "ORDER" and id = "1231_a"`,
      "| filter not ispresent(namespace)",
      "| sort @timestamp desc",
      `| limit ${HISTORY_LINES}`,
    ]);
    expect(historyQuery("nightly", "team")).toContain(`| filter id = "nightly"\n| filter namespace = "team"\n`);
  });

  it("keeps a key that looks like a query within its quotes", () => {
    expect(historyQuery(String.raw`a"\ | stats count(*)`)).toContain(String.raw`id = "a\"\\ | stats count(*)"`);
  });
});

describe("its rows", () => {
  const row = {
    "@timestamp": "2026-11-24 21:50:31.123",
    event: "granted",
    model: "ORDER",
    owner: "a",
    lease: "l",
    fencingToken: "7",
    waitedMs: "12",
  };
  const atMs = Date.UTC(2026, 10, 24, 21, 50, 31, 123);

  it("are lines, the earliest first, with numbers as numbers", () => {
    const later = {
      ...row,
      "@timestamp": "2026-11-24 21:50:41.123",
      event: "ended",
      kind: "run",
      reason: "released",
      heldMs: "10000",
      repeated: "1",
    };
    expect(linesOfRows([later, row], "ORDER_1")).toEqual([
      { seq: 0, key: "ORDER_1", atMs, event: "granted", kind: "lock", owner: "a", lease: "l", fencingToken: 7, waitedMs: 12 },
      expect.objectContaining({ seq: 1, atMs: atMs + 10_000, kind: "run", heldMs: 10_000, repeated: true }),
    ]);
  });

  it("have no principal but an operator's, and none of another key or without a time", () => {
    const broken = { ...row, event: "ended", reason: "broken: stuck", by: "arn:operator" };
    const taken = { ...row, event: "ended", reason: "taken", by: "arn:other" };
    const rows = [broken, taken, { ...row, model: "CART" }, { event: "granted", model: "ORDER" }];
    expect(linesOfRows(rows, "ORDER_1").map(({ reason, by }) => [reason, by])).toEqual([
      ["taken", undefined],
      ["broken: stuck", "arn:operator"],
    ]);
  });
});

describe("running it", () => {
  it("starts it over the time in seconds, and asks until it is complete, each request signed for CloudWatch Logs", async () => {
    const results = [fieldsOf({ event: "granted", owner: "a" })];
    const { asked, waits, run } = await logs([
      [200, { queryId: "q-1" }],
      [200, { status: "Scheduled", results: [] }],
      [200, { status: "Running", results: [] }],
      [200, { status: "Complete", results }],
    ]);
    expect(await run("fields event")).toEqual([{ event: "granted", owner: "a" }]);
    expect(asked.map(({ target, body }) => [target, body])).toEqual([
      ["Logs_20140328.StartQuery", { logGroupName: "group", startTime: 1, endTime: 86_401, queryString: "fields event" }],
      ...Array.from({ length: 3 }, () => ["Logs_20140328.GetQueryResults", { queryId: "q-1" }]),
    ]);
    expect(waits).toHaveLength(2);
    for (const { type, authorization, expected } of asked) {
      expect(type).toBe("application/x-amz-json-1.1");
      expect(authorization).toBe(expected);
      for (const name of ["content-type", "host", "x-amz-date", "x-amz-security-token", "x-amz-target"])
        expect(authorization).toContain(name);
    }
  });

  it.each<[string, readonly (readonly [number, object])[], RegExp]>([
    [
      "may not",
      [[400, { __type: "com.amazon#AccessDeniedException", Message: "not authorized: logs:StartQuery" }]],
      /^StartQuery: AccessDeniedException: not authorized: logs:StartQuery$/,
    ],
    [
      "names no group",
      [[400, { __type: "ResourceNotFoundException", message: "no such group" }]],
      /^StartQuery: ResourceNotFoundException: no such group$/,
    ],
    ["gets no JSON", [[503, {}]], /^StartQuery: 503$/],
    [
      "has a query that fails",
      [
        [200, { queryId: "q" }],
        [200, { status: "Failed" }],
      ],
      /^the query ended as Failed$/,
    ],
  ])("tells a caller that %s so, in the words of CloudWatch", async (_, answers, message) => {
    const { run } = await logs(answers);
    await expect(run()).rejects.toThrow(message);
  });

  it("asks again with other credentials when those before are refused, and once with the same", async () => {
    const refused = [400, { __type: "ExpiredTokenException", message: "expired" }] as const;
    let found = 0;
    const done = [200, { status: "Complete", results: [] }] as const;
    const changing = () => Promise.resolve({ ...CREDENTIALS, sessionToken: `session-${++found}` });
    const { run, asked } = await logs([refused, [200, { queryId: "q" }], done], changing);
    expect(await run()).toEqual([]);
    for (const { authorization, expected } of asked) expect(authorization).toBe(expected);
    await expect((await logs([refused])).run()).rejects.toThrow("StartQuery: ExpiredTokenException: expired");
  });

  it("gives up a query that doesn't end", async () => {
    const running = Array.from({ length: 100 }, () => [200, { status: "Running" }] as const);
    const { run, asked } = await logs([[200, { queryId: "q" }], ...running]);
    await expect(run()).rejects.toThrow("the query did not end within 30 s");
    expect(asked).toHaveLength(61);
  });
});

describe("the log of a deployed service", () => {
  it.each(["AWS_ENDPOINT_URL_CLOUDWATCH_LOGS", "AWS_ENDPOINT_URL"])("is read at %s, where that is set", async (variable) => {
    const { asked, endpoint } = await logs([
      [200, { queryId: "1" }],
      [200, { status: "Complete", results: [] }],
    ]);
    vi.stubEnv("AWS_ACCESS_KEY_ID", CREDENTIALS.accessKeyId).stubEnv("AWS_SECRET_ACCESS_KEY", CREDENTIALS.secretAccessKey);
    try {
      const log = await deployedLog("group", { region: REGION }, { [variable]: endpoint });
      expect(await log.linesOf("ORDER_1", "q", 60_000)).toMatchObject([]);
    } finally {
      vi.unstubAllEnvs();
    }
    expect(asked.map(({ target }) => target)).toEqual(["Logs_20140328.StartQuery", "Logs_20140328.GetQueryResults"]);
  });
});
