/** The handler on its own: the parts of an event that it uses, and its handling of internal errors. */
import { describe, expect, it } from "vitest";
import { createHandler } from "../../lambda/handler.js";
import type { HttpEvent } from "../../lambda/http.js";
import { PATHS } from "../../lambda/routes.js";
import { KeyContended, StoreUnavailable, UnreadableRecord } from "../../lib/store/port.js";
import { ACQUIRE, COMPLETE_RUN, directService, failing, INSPECT_RUN, RELEASE, RENEW, START } from "../support/direct-service.js";
import { DECISIONS, ENDINGS } from "./every-request.js";

const EVERYTHING = [...DECISIONS, ...ENDINGS];

describe("an event", () => {
  it("is taken by its route key and path parameters; what its raw path says is ignored", async () => {
    const { ask, newId } = directService();
    const leaseId = newId();
    const { status, body } = await ask(ACQUIRE, { key: "RIGHT", leaseId, rawPath: `/v1/locks/WRONG/leases/${newId()}/transfer` });
    expect([status, body.key, body.leaseId]).toEqual([201, "RIGHT", leaseId]);
    const refused = await ask(ACQUIRE, { key: "RIGHT", leaseId: newId(), rawPath: "/v1/locks/WRONG" });
    expect([refused.status, refused.body.instance]).toEqual([423, "/v1/locks/RIGHT"]);
  });

  it("of a run is about that run: in its answers and in its refusals", async () => {
    const { ask, newId } = directService();
    expect((await ask(START, { key: "refund:42", leaseId: newId(), rawPath: "/v1/locks/WRONG" })).body.key).toBe("refund:42");
    const refused = await ask(START, { key: "refund:42", leaseId: newId(), rawPath: "/v1/locks/WRONG" });
    expect([refused.status, refused.body.instance]).toEqual([409, "/v1/runs/refund:42"]);
    expect((await ask("GET /v1/locks", {})).body.items).toEqual([]);
  });

  it.each(["", ".", "..", "%", "%41", "%252e", "%zz", "%00", "a%2F..", "é", "x".repeat(201), undefined])(
    "with the key %j is 400",
    async (key) => {
      const { ask, newId } = directService();
      const reply = await ask(ACQUIRE, { leaseId: newId(), ...{ key: key! } });
      expect([reply.status, reply.body.field]).toEqual([400, "key"]);
    },
  );

  it("with a leaseId that is escaped is 400: the gateway decodes once, and nobody else", async () => {
    const { ask, newId } = directService();
    const reply = await ask(RELEASE, { leaseId: newId().replace("-", "%2D") });
    expect([reply.status, reply.body.field]).toEqual([400, "leaseId"]);
  });

  it("may have its body in base64", async () => {
    const { ask, newId } = directService();
    const reply = await ask(ACQUIRE, { leaseId: newId(), body: { owner: "Zoë" }, base64: true });
    expect([reply.status, reply.body.owner]).toEqual([201, "Zoë"]);
    const large = await ask(ACQUIRE, { leaseId: newId(), body: { owner: "x".repeat(16 * 1024) }, base64: true });
    expect(large.status).toBe(413);
    const leaseId = newId();
    await ask(START, { leaseId });
    const outcome = { state: "succeeded", result: "é".repeat(100_000) };
    expect((await ask(COMPLETE_RUN, { leaseId, body: outcome, base64: true })).status).toBe(200);
    expect((await ask(INSPECT_RUN)).body.result === outcome.result).toBe(true);
  });

  it.each<[what: string, body: string, headers: Readonly<Record<string, string>>]>([
    ["half of a surrogate pair", '{"owner":"\ud800"}', {}],
    ["a character that the gateway put for a byte that was none", '{"owner":"\ufffd"}', { "content-length": "13" }],
  ])("whose body was not UTF-8 is 400: %s", async (_what, body, headers) => {
    const { ask, newId } = directService();
    const reply = await ask(ACQUIRE, { leaseId: newId(), body, headers });
    expect([reply.status, reply.body.code, reply.body.detail]).toEqual([400, "invalid-request", "The body is not UTF-8"]);
  });

  it.each<[what: string, body: string, headers: Readonly<Record<string, string>>]>([
    ["sent as it is", '{"owner":"\ufffd"}', { "content-length": "15" }],
    ["of unknown length", '{"owner":"\ufffd"}', {}],
    ["written as an escape", '{"owner":"\\ufffd"}', { "content-length": "18" }],
  ])("may have U+FFFD in its body: %s", async (_what, body, headers) => {
    const { ask, newId } = directService();
    expect((await ask(ACQUIRE, { leaseId: newId(), body, headers })).body.owner).toBe("\ufffd");
  });

  it.each(["7b22c3227d", "7bff7d", "22eda08022", "c080", "f5808080"])("whose base64 is not of UTF-8 is 400: %s", async (hex) => {
    const { ask, newId } = directService();
    const reply = await ask(ACQUIRE, { leaseId: newId(), body: Buffer.from(hex, "hex"), base64: true });
    expect([reply.status, reply.body.code, reply.body.detail]).toEqual([400, "invalid-request", "The body is not UTF-8"]);
  });

  it.each<[what: string, request: { readonly body: string | Buffer; readonly base64?: boolean }]>([
    ["in base64", { body: Buffer.from("\ufeff{}", "utf16le"), base64: true }],
    ["that the gateway decoded", { body: Buffer.from("\ufeff{}", "utf16le").toString("utf8") }],
  ])("whose body is UTF-16 with its mark is told so: %s", async (_what, request) => {
    const { ask, newId } = directService();
    const headers = { "content-length": "6" };
    const { body } = await ask(ACQUIRE, { leaseId: newId(), headers, ...request });
    expect(body.detail).toBe("The body is not UTF-8: it is UTF-16");
  });

  const UNKNOWN = ["$default", "GET /{proxy+}", "constructor", "toString", "__proto__", ""];
  it.each([
    ...PATHS.map((path) => ["$default", path.replaceAll(/[{}]/g, ""), 405] as const),
    ...UNKNOWN.map((routeKey) => [routeKey, "/v2/locks", 404] as const),
    ["GET /{proxy+}", "/v1/health", 404] as const,
  ])("of the route key %j at %s is %i, with methods where the API has the path", async (routeKey, rawPath, status) => {
    const { ask, lines } = directService();
    const reply = await ask(routeKey, { leaseId: "any", rawPath });
    expect([reply.status, reply.headers["allow"] !== undefined]).toEqual([status, status === 405]);
    expect(lines).toEqual([]);
  });
});

/** Events of other kinds, as AWS documents them, without irrelevant members. */
const FOREIGN: readonly (readonly [kind: string, event: unknown])[] = [
  ["nothing", undefined],
  ["null", null],
  ["text", "PUT"],
  ["an empty object, as a console's test sends it", {}],
  [
    "a REST API or payload format 1.0",
    {
      version: "1.0",
      resource: "/v1/health",
      path: "/v1/health",
      httpMethod: "GET",
      headers: {},
      requestContext: { requestId: "r-1", stage: "prod" },
    },
  ],
  [
    "a REST API without a version",
    { resource: "/v1/health", path: "/v1/health", httpMethod: "GET", headers: null, requestContext: { requestId: "r-1" } },
  ],
  [
    "a load balancer",
    {
      requestContext: { elb: { targetGroupArn: "arn:aws:elasticloadbalancing:…" } },
      httpMethod: "GET",
      path: "/v1/health",
      headers: {},
      body: "",
    },
  ],
  ["a schedule", { version: "0", id: "e-1", "detail-type": "Scheduled Event", source: "aws.events", resources: [], detail: {} }],
  ["a queue", { Records: [{ messageId: "m-1", body: "{}", eventSource: "aws:sqs" }] }],
  ["a WebSocket API", { headers: {}, requestContext: { routeKey: "$connect", requestId: "r-1" } }],
  ["format 2.0 without a context", { version: "2.0", routeKey: "GET /v1/health", headers: {} }],
  ["format 2.0 without headers", { version: "2.0", routeKey: "GET /v1/health", requestContext: { requestId: "r-1" } }],
];

describe("an event that is none of an HTTP API", () => {
  it.each(FOREIGN)("is answered by where the handler belongs, and reported: %s", async (_kind, event) => {
    const failures: (readonly [error: unknown, requestId: string])[] = [];
    const { store, clock } = directService();
    const handler = createHandler({
      store,
      clock,
      log: () => expect.unreachable(),
      onFailure: (...failure) => void failures.push(failure),
    });
    const answer = await handler(event as HttpEvent);
    expect(answer.statusCode).toBe(500);
    const problem = JSON.parse(answer.body ?? "") as object;
    expect(problem).toMatchObject({ code: "internal", definite: true, retry: "never" });
    expect(problem).toHaveProperty("detail", expect.stringMatching(/behind an API Gateway HTTP API, with payload format 2\.0/));
    expect(failures).toEqual([[expect.objectContaining({ message: expect.stringContaining("payload format 2.0") }), expect.any(String)]]);
  });
});

it("answers also where the report of a failure fails", async () => {
  const { ask, newId } = directService({
    store: failing(new Error("inside")),
    onFailure: () => {
      throw new Error("the report failed");
    },
  });
  expect((await ask(ACQUIRE, { leaseId: newId() })).status).toBe(500);
});

describe("a store that fails", () => {
  const cases: readonly (readonly [what: string, error: Error, expected: object])[] = [
    [
      "before it wrote",
      new StoreUnavailable("refused", true, false),
      { code: "unavailable", status: 503, definite: true, retryAfterMs: 500 },
    ],
    [
      "and may have written",
      new StoreUnavailable("broken pipe", false, false),
      { code: "unavailable", status: 503, definite: false, retryAfterMs: 500 },
    ],
    [
      "because it is asked too much",
      new StoreUnavailable("slow down", true, true),
      { code: "throttled", status: 429, definite: true, retry: "later" },
    ],
    [
      "because others kept changing the key",
      new KeyContended("the key changed 12 times under this request"),
      { code: "contended", status: 429, definite: true, retry: "same", retryAfterMs: 500 },
    ],
    [
      "throttled after a try that may have written",
      new StoreUnavailable("slow down", false, true),
      { code: "unavailable", status: 503, definite: false },
    ],
  ];
  it.each(cases)("%s is told as such, by every operation", async (_what, error, expected) => {
    const { ask, newId, failures } = directService({ store: failing(error) });
    for (const [routeKey, body] of EVERYTHING) {
      const reply = await ask(routeKey, { leaseId: newId(), ...(body && { body }) });
      expect(reply.body, routeKey).toMatchObject(expected);
      expect(reply.text).not.toContain(error.message);
    }
    expect(failures).toEqual([]);
  });

  it.each([
    ["newer-format", true, { status: 503, retry: "later", retryAfterMs: 1000, detail: "the lock has format 4" }],
    [
      "older-format",
      true,
      { status: 500, retry: "never", detail: expect.stringMatching(/^the lock has format 4: .*new table/) as unknown },
    ],
    ["unreadable-record", true, { status: 500, retry: "never", detail: "the lock has format 4" }],
    ["unreadable-record", false, { status: 500, retry: "same" }],
  ] as const)("on a record that it can't read is told with what it is, by every operation: %s", async (code, definite, expected) => {
    const { ask, newId, failures } = directService({ store: failing(new UnreadableRecord(code, "the lock has format 4", { definite })) });
    for (const [routeKey, body] of EVERYTHING)
      expect((await ask(routeKey, { leaseId: newId(), ...(body && { body }) })).body, routeKey).toMatchObject({
        code,
        definite,
        ...expected,
      });
    expect(failures).toEqual([]);
  });

  it("asks the holder of a lease to come back sooner than others, so that a crowd doesn't take its lease", async () => {
    const { ask, newId } = directService({ store: failing(new StoreUnavailable("slow down", true, true)) });
    const pauseMs = async (routeKey: string, body?: object): Promise<unknown> =>
      (await ask(routeKey, { leaseId: newId(), ...(body && { body }) })).body.retryAfterMs;
    expect(await pauseMs(ACQUIRE)).toBe(500);
    expect(await pauseMs(RENEW, {})).toBe(50);
    expect(await pauseMs(RELEASE)).toBe(50);
  });

  it("fails the deep health check, and not the plain one", async () => {
    const { ask } = directService({ store: failing(new StoreUnavailable("gone", false, false)) });
    expect((await ask("GET /v1/health", { query: { deep: "1" } })).status).toBe(503);
    expect((await ask("GET /v1/health")).status).toBe(200);
  });
});

describe("an unexpected error", () => {
  it("is 500 without a word of it, indefinite, and reported with its request", async () => {
    const error = new Error("secret at /var/task/index.mjs");
    const { ask, newId, failures } = directService({ store: failing(error) });
    for (const [routeKey, body] of EVERYTHING) {
      const reply = await ask(routeKey, { leaseId: newId(), ...(body && { body }) });
      expect([reply.status, reply.body.code, reply.body.definite, reply.body.retry]).toEqual([500, "internal", false, "same"]);
      expect(JSON.stringify(reply)).not.toMatch(/secret|var|index|Error:/);
    }
    expect(failures).toEqual(EVERYTHING.map(() => [error, "request-1"]));
  });

  it.each([undefined, null, "text", { code: "E" }])("may be anything that can be thrown: %j", async (thrown) => {
    const { ask, newId, failures } = directService({ store: failing(thrown) });
    expect((await ask(ACQUIRE, { leaseId: newId() })).status).toBe(500);
    expect(failures).toEqual([[thrown, "request-1"]]);
  });
});
