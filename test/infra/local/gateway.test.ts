/** The local gateway behaves like API Gateway, as far as a function and its callers can tell. */
import type { APIGatewayProxyEventV2WithIAMAuthorizer, APIGatewayProxyStructuredResultV2 } from "aws-lambda";
import { once } from "node:events";
import { request as httpRequest } from "node:http";
import { type AddressInfo, connect, createServer } from "node:net";
import { text } from "node:stream/consumers";
import { afterEach, describe, expect, it } from "vitest";
import { type Gateway, type GatewayOptions, startGateway } from "../../../infra/local/gateway.js";
import { VirtualClock } from "../../../lib/testing/virtual-clock.js";

const LEASE = "/v1/locks/ORDER_1231/leases/01900000-0000-7000-8000-000000000000";

const gateways: Gateway[] = [];
afterEach(() => Promise.all(gateways.splice(0).map((gateway) => gateway.close())));

async function serve(handler: GatewayOptions["handler"], options: Partial<GatewayOptions> = {}): Promise<Gateway> {
  const gateway = await startGateway({ handler, port: 0, ...options });
  gateways.push(gateway);
  return gateway;
}

/** A gateway whose function returns its event. */
function echo(options: Partial<GatewayOptions> = {}): Promise<Gateway> {
  return serve(async (event) => ({ statusCode: 200, body: JSON.stringify(event) }), options);
}

/** A function that reports its call, and returns when the test lets it. */
function gate() {
  let open!: (result: APIGatewayProxyStructuredResultV2) => void;
  let call!: () => void;
  const result = new Promise<APIGatewayProxyStructuredResultV2>((resolve) => (open = resolve));
  const called = new Promise<void>((resolve) => (call = resolve));
  const handler: GatewayOptions["handler"] = () => {
    call();
    return result;
  };
  return { handler, called, open };
}

interface Sent {
  readonly method?: string;
  readonly headers?: Record<string, string | string[]>;
  readonly body?: string | Buffer;
}

/** Sends with node:http, which doesn't change paths and headers. */
async function send({ port }: Gateway, path: string, { method = "GET", headers = {}, body }: Sent = {}) {
  const outgoing = httpRequest({ host: "127.0.0.1", port, path, method, headers, agent: false }).end(body);
  const [reply] = await once(outgoing, "response");
  return { status: reply.statusCode as number, headers: reply.headers, body: await text(reply) };
}

async function eventFor(path: string, sent?: Sent): Promise<APIGatewayProxyEventV2WithIAMAuthorizer> {
  return JSON.parse((await send(await echo(), path, sent)).body);
}

describe("routes", () => {
  it.each([
    ["PUT", LEASE, "PUT /v1/locks/{key}/leases/{leaseId}"],
    ["GET", "/v1/locks", "GET /v1/locks"],
    ["GET", "/v1/locks?prefix=a/b", "GET /v1/locks"],
    ["PUT", LEASE.replace("locks", "runs"), "PUT /v1/runs/{key}/leases/{leaseId}"],
    ["PUT", `${LEASE.replace("locks", "runs")}/outcome`, "PUT /v1/runs/{key}/leases/{leaseId}/outcome"],
    ["GET", `${LEASE.replace("locks", "runs")}/outcome`, "$default"],
    ["POST", "/v1/runs/outcome/reset", "POST /v1/runs/{key}/reset"],
    ["GET", "/v1/runs?state=failed", "GET /v1/runs"],
    ["POST", "/v1/runs/a/break", "$default"],
    ["PATCH", LEASE, "$default"],
    ["OPTIONS", "/v1/health", "$default"],
    ["PUT", "/v1/locks", "$default"],
    ["GET", "/v2/locks", "$default"],
    ["GET", "/", "$default"],
    ["GET", "/v1/locks/a/b/c/d", "$default"],
    ["GET", "/v1/locks/", "$default"],
    ["PUT", "/v1/locks//leases/x", "$default"],
    ["GET", "/V1/locks", "$default"],
  ])("%s %s meets %s", async (method, path, routeKey) => {
    const event = await eventFor(path, { method });
    expect([event.routeKey, event.requestContext.routeKey]).toEqual([routeKey, routeKey]);
  });

  it("decodes path parameters once, and never across a slash", async () => {
    const { pathParameters } = await eventFor("/v1/locks/refund%3A42%2525%2F%C3%A9");
    expect(pathParameters).toEqual({ key: "refund:42%25/é" });
  });

  it("passes parameters of any length on", async () => {
    const key = "k".repeat(4_000);
    expect((await eventFor(`/v1/locks/${key}`)).pathParameters).toEqual({ key });
  });

  it("answers 400 for a path whose encoding is broken", async () => {
    expect(await send(await echo(), "/v1/locks/%zz")).toMatchObject({ status: 400, body: '{"message":"Bad Request"}' });
  });
});

describe("the event", () => {
  it("is of payload format 2.0, without the fields that have nothing to say", async () => {
    const { headers, requestContext, ...event } = await eventFor("/v1/health");
    expect(event).toEqual({
      version: "2.0",
      routeKey: "GET /v1/health",
      rawPath: "/v1/health",
      rawQueryString: "",
      isBase64Encoded: false,
    });
    expect(headers).toMatchObject({ host: expect.stringMatching(/^127\.0\.0\.1:/) });
    expect(requestContext).toMatchObject({
      stage: "$default",
      requestId: expect.stringMatching(/./),
      http: { method: "GET", path: "/v1/health", protocol: "HTTP/1.1", sourceIp: "127.0.0.1", userAgent: "" },
    });
  });

  it("tells when the request arrived by the gateway's clock", async () => {
    const clock = new VirtualClock(Date.UTC(2026, 10, 20, 21, 8, 54, 7));
    const event = JSON.parse((await send(await echo({ clock }), "/v1/health")).body);
    expect(event.requestContext).toMatchObject({ timeEpoch: clock.wallMs(), time: "20/Nov/2026:21:08:54 +0000" });
  });

  it("has header names in lower case, and joins those sent several times with commas", async () => {
    const { headers } = await eventFor("/v1/health", { headers: { "If-None-Match": ['"a"', '"b"'], "X-Trace": "T" } });
    expect(headers).toMatchObject({ "if-none-match": '"a","b"', "x-trace": "T" });
  });

  it("has cookies apart from the headers", async () => {
    const { cookies, headers } = await eventFor("/v1/health", { headers: { cookie: "a=1; b=2" } });
    expect([cookies, headers["cookie"]]).toEqual([["a=1", "b=2"], undefined]);
  });

  it("decodes query parameters, and joins those sent several times with commas", async () => {
    const event = await eventFor("/v1/locks?prefix=a%20b&owner=x&owner=y+z");
    expect(event.rawQueryString).toBe("prefix=a%20b&owner=x&owner=y+z");
    expect(event.queryStringParameters).toEqual({ prefix: "a b", owner: "x,y z" });
  });

  it.each([
    ["application/json", "é", "é", false],
    ["Application/JSON; charset=utf-8", "{}", "{}", false],
    ["text/plain", "{}", "{}", false],
    ["application/x-www-form-urlencoded", "{}", "e30=", true],
    ["application/json", Buffer.from([0x22, 0xff, 0x22]), '"\ufffd"', false],
    ["application/octet-stream", Buffer.from([0, 255]), "AP8=", true],
  ])("hands over a body of type %s as API Gateway does", async (type, sent, body, isBase64Encoded) => {
    expect(await eventFor(LEASE, { method: "PUT", headers: { "content-type": type }, body: sent })).toMatchObject({
      body,
      isBase64Encoded,
    });
  });
});

describe("the caller", () => {
  it("is who x-holdfast-principal says, in the authorizer's place, and the function never sees the header", async () => {
    const { headers, requestContext } = await eventFor("/v1/health", { headers: { "X-Holdfast-Principal": "alice" } });
    expect(requestContext.authorizer.iam).toMatchObject({ accountId: "local", userId: "alice" });
    expect(JSON.stringify(headers).toLowerCase()).not.toContain("principal");
  });

  it.each([{}, { "x-holdfast-principal": "" }])("is local without it: %j", async (headers) => {
    expect((await eventFor("/v1/health", { headers })).requestContext.authorizer.iam).toMatchObject({ userId: "local" });
  });

  it("is told apart from another by what follows a colon, which in AWS would be a session", async () => {
    const { requestContext } = await eventFor("/v1/health", { headers: { "x-holdfast-principal": "team:alice" } });
    expect(requestContext.authorizer.iam.userId).toBe("team%3Aalice");
  });
});

describe("the answer", () => {
  const answered = async (result: APIGatewayProxyStructuredResultV2) => send(await serve(async () => result), "/v1/health");

  it("is what the function returned", async () => {
    const { status, headers, body } = await answered({
      statusCode: 423,
      headers: { "Content-Type": "application/problem+json", "Retry-After": 2 },
      body: "{}",
    });
    expect({ status, body }).toEqual({ status: 423, body: "{}" });
    expect(headers).toMatchObject({ "content-type": "application/problem+json", "retry-after": "2", "content-length": "2" });
  });

  it("is decoded where the function encoded it", async () => {
    expect((await answered({ statusCode: 200, body: "aGk=", isBase64Encoded: true })).body).toBe("hi");
  });

  it("may have no body, and then has no type", async () => {
    const { status, headers, body } = await answered({ statusCode: 204, headers: { "lease-state": "released" } });
    expect({ status, body, type: headers["content-type"], state: headers["lease-state"] }).toEqual({
      status: 204,
      body: "",
      type: undefined,
      state: "released",
    });
  });

  it.each([
    ["the function threw", () => Promise.reject(new Error("the secret of the function"))],
    ["what it returned is no answer", () => Promise.resolve({ statusCode: 42 })],
  ])("is 500 and says nothing else when %s", async (_, handler) => {
    const errors: unknown[] = [];
    const gateway = await serve(handler, { onError: (error) => errors.push(error) });
    expect(await send(gateway, "/v1/health")).toMatchObject({ status: 500, body: '{"message":"Internal Server Error"}' });
    expect(errors).toHaveLength(1);
  });

  it("is 503 when the function takes longer than API Gateway waits", async () => {
    const clock = new VirtualClock();
    const never = gate();
    const gateway = await serve(never.handler, { clock });
    const answer = send(gateway, "/v1/health");
    await never.called;
    await clock.advance(30_000);
    expect(await answer).toMatchObject({ status: 503, body: '{"message":"Service Unavailable"}' });
  });

  it.each([
    [10 * 1024 * 1024, 200],
    [10 * 1024 * 1024 + 1, 413],
  ])("to a body of %d bytes is %d", async (bytes, expected) => {
    let called = 0;
    const gateway = await serve(async () => ({ statusCode: 200, body: String(++called) }));
    const headers = { "content-type": "application/octet-stream" };
    const { status, body } = await send(gateway, LEASE, { method: "PUT", headers, body: Buffer.alloc(bytes) });
    expect([status, called]).toEqual([expected, expected === 200 ? 1 : 0]);
    if (expected === 413) expect(body).toBe('{"message":"Request Entity Too Large"}');
  });
});

describe("a web page", () => {
  it.each<[string, Record<string, string>]>([
    ["by a beacon without a type", {}],
    ["from another site", { "content-type": "application/json", "sec-fetch-site": "cross-site" }],
    ["by a rebound name", { "content-type": "application/json", host: "evil.example" }],
  ])("reaches no function %s; control: a program does", async (_, headers) => {
    let called = 0;
    const gateway = await serve(async () => ({ statusCode: 200, body: String(++called) }));
    const reset: Sent = { method: "POST", body: '{"reason":"x"}' };
    expect([403, 415]).toContain((await send(gateway, "/v1/runs/a/reset", { ...reset, headers })).status);
    expect(called).toBe(0);
    expect((await send(gateway, "/v1/runs/a/reset", { ...reset, headers: { "content-type": "application/json" } })).status).toBe(200);
  });
});

describe("the server", () => {
  it("says which port is in use", async () => {
    const taken = createServer().listen(0, "127.0.0.1");
    await once(taken, "listening");
    const { port } = taken.address() as AddressInfo;
    await expect(startGateway({ handler: async () => ({}), port })).rejects.toThrow(new RegExp(`^Port ${port} is in use: set PORT `));
    taken.close();
  });

  it("survives a caller that goes away in the middle of its request", async () => {
    const errors: unknown[] = [];
    const gateway = await echo({ onError: (error) => errors.push(error) });
    const socket = connect(gateway.port, "127.0.0.1");
    socket.write(`PUT ${LEASE} HTTP/1.1\r\nhost: localhost\r\ncontent-type: text/plain\r\ncontent-length: 100\r\n\r\n{`, () =>
      socket.destroy(),
    );
    await once(socket, "close");
    expect((await send(gateway, "/v1/health")).status).toBe(200);
    expect(errors).toEqual([]);
  });

  it("answers what is in flight before it closes", async () => {
    const slow = gate();
    const gateway = await startGateway({ port: 0, handler: slow.handler });
    const answer = send(gateway, "/v1/health");
    await slow.called;
    const closed = gateway.close();
    slow.open({ statusCode: 200, body: "done" });
    expect((await answer).body).toBe("done");
    await closed;
    await expect(send(gateway, "/v1/health")).rejects.toThrow("ECONNREFUSED");
  });
});
