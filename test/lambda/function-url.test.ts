/** The rule of function URLs: what each alias may do, whatever the path and the event say. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { compose } from "../../lambda/compose.js";
import { ALIAS_MAX_CHARS, aliasOf, grantOf, outsideGrant } from "../../lambda/function-url.js";
import type { HttpEvent } from "../../lambda/http.js";
import { DUTIES, type OperationName, ROUTES } from "../../lib/contract/routes.js";
import { createPolicy } from "../../lib/core/policy.js";
import type { LogLine } from "../../lib/service/log.js";
import { createMemoryStore } from "../support/memory-store.js";
import { leaseIdAt } from "../support/lease-ids.js";

const FUNCTION = "arn:aws:lambda:us-east-1:111122223333:function:shop-UrlFunction";
const by = (alias?: string) => ({ invokedFunctionArn: alias === undefined ? FUNCTION : `${FUNCTION}:${alias}` });
const OPERATIONS = Object.entries(ROUTES) as [OperationName, string][];
const ORDERS = aliasOf({ prefix: "ORDER_" });

/** An event of a function URL: https://docs.aws.amazon.com/lambda/latest/dg/urls-invocation.html */
function urlEvent(method: string, rawPath: string, more: object = {}): HttpEvent {
  const authorizer = { iam: { accountId: "111122223333", userId: "AROAEXAMPLE:session" } };
  const http = { method, path: rawPath, protocol: "HTTP/1.1", sourceIp: "127.0.0.1", userAgent: "test" };
  const requestContext = { http, requestId: "request-1", routeKey: "$default", stage: "$default", timeEpoch: Date.now(), authorizer };
  const headers = { "content-type": "application/json" };
  const event = { version: "2.0", routeKey: "$default", rawPath, rawQueryString: "", headers, isBase64Encoded: false, body: "{}" };
  return { ...event, requestContext, pathParameters: null, ...more } as unknown as HttpEvent;
}

/** A function behind function URLs, or behind an API, with the lines that it logs and prints. */
function mounted(mount: string) {
  const logged: LogLine[] = [];
  const printed: object[] = [];
  const store = createMemoryStore({ policy: createPolicy() });
  const handler = compose({ HOLDFAST_MOUNT: mount }, { store, log: (line) => logged.push(line), print: (line) => printed.push(line) });
  const ask = async (method: string, path: string, alias: string | undefined = ORDERS, more: object = {}) => {
    const { statusCode, body = "{}", headers } = await handler(urlEvent(method, path, more), by(alias));
    return { status: statusCode, body: JSON.parse(body || "{}") as Record<string, unknown>, headers };
  };
  return { handler, ask, logged, printed };
}

const newLeaseId = () => leaseIdAt(Date.now());
const leasePath = (key: string): string => `/v1/locks/${key}/leases/${newLeaseId()}`;

describe("the name of an alias", () => {
  const prefix = fc.string({ unit: fc.constantFrom("A", "z", "0", "9", ".", "_", ":", "~", "-", "f", "5"), minLength: 1, maxLength: 30 });

  it("is one that Lambda takes, says the prefix, and no other prefix has it", () => {
    fc.assert(
      fc.property(prefix, prefix, (one, other) => {
        const alias = aliasOf({ prefix: one });
        expect(alias).toMatch(/^(?![0-9]+$)[a-zA-Z0-9-_]{1,128}$/);
        expect(grantOf(by(alias))).toEqual({ prefix: one });
        expect(alias === aliasOf({ prefix: other })).toBe(one === other);
      }),
    );
    expect(grantOf(by(aliasOf({})))).toEqual({});
    expect(aliasOf({ prefix: "A".repeat(ALIAS_MAX_CHARS - "prefix-".length) })).toHaveLength(ALIAS_MAX_CHARS);
  });

  it.each([
    undefined,
    "$LATEST",
    "1",
    "live",
    "Clients",
    "clientsx",
    "prefix-",
    "prefix-a.b",
    "prefix-_4f",
    "prefix-A_5F",
    "prefix-_",
    "prefix-a_5",
  ])("that the construct doesn't spell serves nothing: %s", async (alias) => {
    const { handler, printed } = mounted("function-url");
    const { statusCode, body } = await handler(urlEvent("GET", "/v1/health"), by(alias));
    expect([statusCode, JSON.parse(body!)]).toMatchObject([500, { code: "internal", definite: true, retry: "never" }]);
    expect(printed).toMatchObject([{ event: "failed" }]);
  });

  it("is the last part of the ARN, after the function's name", () => {
    expect(grantOf({ invokedFunctionArn: `${FUNCTION}:clients:clients` })).toBeUndefined();
    expect(grantOf({ invokedFunctionArn: "arn:aws:lambda:us-east-1:111122223333:function:clients" })).toBeUndefined();
    expect(grantOf({ invokedFunctionArn: "clients" })).toBeUndefined();
  });

  it("is needed: an invocation without a context serves nothing; control: with an alias it does", async () => {
    const { handler } = mounted("function-url");
    expect((await handler(urlEvent("GET", "/v1/health"))).statusCode).toBe(500);
    expect((await handler(urlEvent("GET", "/v1/health"), by(ORDERS))).statusCode).toBe(200);
  });
});

describe("a function URL for the keys of a prefix", () => {
  it("serves them, as they are and percent-encoded", async () => {
    const { ask } = mounted("function-url");
    const path = leasePath("ORDER_1");
    expect((await ask("PUT", path)).status).toBe(201);
    expect((await ask("POST", `${path.replace("ORDER_1", "%4FRDER%5F1")}/renew`)).body).toMatchObject({ key: "ORDER_1" });
    expect((await ask("DELETE", path)).status).toBe(204);
  });

  it.each([
    "REFUND_1",
    "%52EFUND_1",
    "order_1",
    "ORDER",
    "ORDER-1",
    "%254FRDER_1",
    "ORDER%255F1",
    "..%2FORDER_1",
    "%2e%2e",
    "REFUND_1%2FORDER_1",
    "REFUND_ORDER_1",
  ])("grants no other key, however it is spelt: %s", async (key) => {
    const { ask } = mounted("function-url");
    expect([400, 403, 404]).toContain((await ask("PUT", leasePath(key))).status);
    // The same by the URL of all keys is not refused for its prefix.
    expect((await ask("PUT", leasePath(key), aliasOf({}))).status).not.toBe(403);
  });

  it.each([
    ...[
      "//v1/locks/REFUND_1",
      "/v1//locks/REFUND_1",
      "/v1/locks/ORDER_/../REFUND_1",
      "/v1/locks/ORDER_%2F..%2FREFUND_1",
      "/V1/locks/REFUND_1",
    ],
    ...["/v1/locks/REFUND_1/", "/v1/locks/;ORDER_/REFUND_1", "/v1/locks/REFUND_1?ORDER_", "/$default/v1/locks/REFUND_1", "/v1/locks/%"],
  ])("shows no other key: %s", async (path) => {
    const { ask } = mounted("function-url");
    expect([400, 403, 404]).toContain((await ask("GET", path)).status);
  });

  it("reads neither the event's route nor its parameters nor headers: the path decides", async () => {
    const { ask } = mounted("function-url");
    const claims = { routeKey: "GET /v1/locks/{key}", pathParameters: { key: "ORDER_1" } };
    expect((await ask("GET", "/v1/locks/REFUND_1", ORDERS, claims)).status).toBe(403);
    expect((await ask("GET", "/v1/locks/ORDER_1", ORDERS, { ...claims, pathParameters: { key: "REFUND_1" } })).body).toMatchObject({
      key: "ORDER_1",
    });
    const headers = { "x-original-url": "/v1/locks/ORDER_1", "x-forwarded-prefix": "ORDER_" };
    expect((await ask("GET", "/v1/locks/REFUND_1", ORDERS, { headers })).status).toBe(403);
  });

  it.each(OPERATIONS)("%s: a client's with its key in the path, and nothing else but health and openapi", async (operation, route) => {
    const { ask } = mounted("function-url");
    const [method = "", path = ""] = route.replace("{leaseId}", newLeaseId()).split(" ");
    const isOpen = operation === "health" || operation === "openapi";
    const isServed = isOpen || (DUTIES[operation] !== "admin" && path.includes("{key}"));
    expect((await ask(method, path.replace("{key}", "ORDER_1"))).status === 403, "its own key").toBe(!isServed);
    expect((await ask(method, path.replace("{key}", "REFUND_1"))).status === 403, "another key").toBe(!isOpen);
    const byAll = (await ask(method, path.replace("{key}", "REFUND_1"), aliasOf({}))).status;
    expect(byAll === 403, "by the URL for all keys").toBe(DUTIES[operation] === "admin");
  });

  it("answers 405 and 404 as the API does", async () => {
    const { ask } = mounted("function-url");
    expect(await ask("PATCH", "/v1/locks/ORDER_1")).toMatchObject({ status: 405, headers: { allow: "GET" } });
    expect((await ask("GET", "/")).status).toBe(404);
  });

  it("logs a refusal with its alias and caller, which nobody else records; control: what it serves isn't logged as refused", async () => {
    const { ask, logged } = mounted("function-url");
    await ask("GET", "/v1/locks/ORDER_1");
    expect(logged).toEqual([]);
    await ask("GET", "/v1/runs/REFUND_1");
    const refused = { event: "refused", kind: "run", model: "REFUND", id: "1", principal: "111122223333/AROAEXAMPLE" };
    expect(logged).toMatchObject([{ ...refused, reason: `forbidden: ${ORDERS}` }]);
  });

  it("says what it serves, and where a set or an operator has to go", () => {
    const details = [
      outsideGrant({ prefix: "ORDER_" }, "acquire", "REFUND_1"),
      outsideGrant({ prefix: "ORDER_" }, "acquireSet", undefined),
      outsideGrant({}, "break", "ORDER_1"),
      outsideGrant({}, "acquireSet", undefined),
    ].map((refusal) => refusal?.detail);
    const own = 'This function URL serves keys that begin with "ORDER_", in the path';
    const operators = "Function URLs serve no operators: call the API to break, list and reset";
    expect(details).toEqual([own, `${own}; a set of keys needs the URL for all keys, or the API`, operators, undefined]);
  });
});

describe("a function", () => {
  it("behind function URLs serves nobody without IAM's word", async () => {
    const { ask } = mounted("function-url");
    const { authorizer: _iam, ...requestContext } = urlEvent("GET", "/v1/locks/ORDER_1").requestContext;
    for (const context of [requestContext, { ...requestContext, authorizer: null }]) {
      expect((await ask("GET", "/v1/locks/ORDER_1", ORDERS, { requestContext: context })).status).toBe(403);
    }
  });

  it("behind the API doesn't serve a function URL's event, nor the reverse; controls: their own", async () => {
    const routeKey = "GET /v1/health";
    expect((await mounted("api").handler(urlEvent("GET", "/v1/health"), by(ORDERS))).statusCode).toBe(404);
    expect((await mounted("api").handler(urlEvent("GET", "/v1/health", { routeKey }), by())).statusCode).toBe(200);
    expect((await mounted("function-url").handler(urlEvent("GET", "/v1/health", { routeKey }), by())).statusCode).toBe(500);
    expect((await mounted("function-url").handler(urlEvent("GET", "/v1/health"), by(ORDERS))).statusCode).toBe(200);
  });

  it("with another mount doesn't start", () => {
    expect(() => mounted("url")).toThrow('HOLDFAST_MOUNT: "url" is not api or function-url');
  });
});
