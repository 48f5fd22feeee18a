/** Requests that break a rule, over HTTP: a problem document names the field and the rule. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LIMITS } from "../../lib/core/limits.js";
import { serve } from "../support/http-service.js";
import type { HttpService } from "../support/http-service.js";
import { leaseIdAt } from "../support/lease-ids.js";

let service: HttpService;
beforeAll(async () => void (service = await serve()));
afterAll(() => service.close());

const newId = (): string => leaseIdAt(service.clock.wallMs());
const lease = (): string => `/v1/locks/ORDER_1/leases/${newId()}`;
const LEASE_RULE = "must be a whole number from 1000 to 86400000";
const META_RULE = "must be an object of at most 1024 bytes as JSON";
const nested = (levels: number): string => `{"meta":{"a":${"[".repeat(levels)}${"]".repeat(levels)}}}`;

describe("a body", () => {
  it.each<[what: string, body: string, field: string | undefined, detail: string]>([
    ["an unknown field", '{"leaseMS":5000}', "leaseMS", "leaseMS: is not a field of this request"],
    ["a field of a later version", '{"fairness":1}', "fairness", "fairness: is not a field of this request"],
    ["a priority beyond the last", '{"priority":10}', "priority", "priority: must be a whole number from 0 to 9"],
    ["a wrong type", '{"leaseMs":"5000"}', "leaseMs", `leaseMs: ${LEASE_RULE}`],
    ["null", '{"leaseMs":null}', "leaseMs", `leaseMs: ${LEASE_RULE}`],
    ["a fraction", '{"leaseMs":5000.5}', "leaseMs", `leaseMs: ${LEASE_RULE}`],
    ["too little", '{"leaseMs":999}', "leaseMs", `leaseMs: ${LEASE_RULE}`],
    ["too much", '{"leaseMs":86400001}', "leaseMs", `leaseMs: ${LEASE_RULE}`],
    ["beyond any number", '{"leaseMs":1e400}', "leaseMs", `leaseMs: ${LEASE_RULE}`],
    ["an owner that is too long", JSON.stringify({ owner: "x".repeat(257) }), "owner", "owner: must be text of 0 to 256 characters"],
    ["half of a surrogate pair", '{"owner":"\\ud83d"}', "owner", "owner: must be text of 0 to 256 characters"],
    ["another mode", '{"mode":"upgradeable"}', "mode", "mode: must be exclusive or shared"],
    ["more permits than the key has", '{"permits":2}', "permits", "permits: must be at most the limit of 1"],
    ["meta that is no object", '{"meta":[1]}', "meta", `meta: ${META_RULE}`],
    ["meta that is too large", JSON.stringify({ meta: { a: "é".repeat(512) } }), "meta", `meta: ${META_RULE}`],
    ["meta nested without end", nested(8_000), "meta", `meta: ${META_RULE}`],
    ["a prototype", '{"__proto__":{"leaseMs":5000}}', "__proto__", "__proto__: is not a field of this request"],
    ["an inherited name", '{"constructor":1}', "constructor", "constructor: is not a field of this request"],
    ["an array", "[]", undefined, "The body must be a JSON object"],
    ["an array nested without end", "[".repeat(8_000) + "]".repeat(8_000), undefined, "The body must be a JSON object"],
    ["a bare value", "5", undefined, "The body must be a JSON object"],
    ["null alone", "null", undefined, "The body must be a JSON object"],
    ["broken JSON", '{"leaseMs":5000', undefined, "The body is not JSON"],
  ])("with %s is 400", async (_what, body, field, detail) => {
    const { status, body: problem } = await service.send("PUT", lease(), { body });
    expect(status).toBe(400);
    expect(problem).toMatchObject({ code: "invalid-request", definite: true, retry: "never", detail, instance: "/v1/locks/ORDER_1" });
    expect(problem.field).toBe(field);
  });

  it.each<[call: string, body: string, field: string]>([
    ["transfer", "{}", "leaseId"],
    ["transfer", '{"leaseId":"abc"}', "leaseId"],
    ["renew", '{"owner":"x"}', "owner"],
    ["break", "{}", "reason"],
    ["break", '{"reason":"","fencingToken":1}', "reason"],
    ["break", '{"reason":"x"}', "fencingToken"],
    ["break", '{"reason":"x","fencingToken":-1}', "fencingToken"],
    ["break", '{"reason":"x","fencingToken":1,"drainMs":-1}', "drainMs"],
  ])("of %s %s is 400, naming %s", async (call, body, field) => {
    const { status, body: problem } = await service.send("POST", call === "break" ? "/v1/locks/ORDER_1/break" : `${lease()}/${call}`, {
      body,
    });
    expect([status, problem.code, problem.field]).toEqual([400, "invalid-request", field]);
  });

  it.each([
    ["what JSON can say and a table can't", '{"meta":{"n":1e400,"big":1e300,"tiny":1e-300,"exact":12345678901234567890}}'],
    ["meta nested as deep as its size allows", `{"meta":{"a":${"[".repeat(505)}${"]".repeat(505)}}}`],
    ["odd names", '{"meta":{"":1,"__proto__":{"a":1},"constructor":2,"\\ud83d":"\\ud83d","\\u0000":""}}'],
  ])("with %s in meta is taken as it is, and brought back", async (_what, body) => {
    const url = `/v1/locks/META/leases/${newId()}`;
    const granted = await service.send("PUT", url, { body });
    expect(granted.status).toBe(201);
    expect((await service.send("PUT", url, { body })).status).toBe(200);
    const asSent = JSON.stringify(JSON.parse(body).meta);
    expect(JSON.stringify(granted.body.meta)).toBe(asSent);
    expect(JSON.stringify((await service.send("GET", url)).body.meta)).toBe(asSent);
    expect(JSON.stringify((await service.send("POST", `${url}/renew`, { body })).body.meta)).toBe(asSent);
    await service.send("DELETE", url);
  });

  it("over 16 KB is 413, even if it says nothing", async () => {
    const sizes = [LIMITS.bodyBytes, LIMITS.bodyBytes + 1].map((bytes) => `{"x":"${"a".repeat(bytes - 8)}"}`);
    expect((await service.send("PUT", lease(), { body: sizes[0] })).body.code).toBe("invalid-request");
    for (const body of [sizes[1], " ".repeat(LIMITS.bodyBytes + 1), `{"x":"${"é".repeat(LIMITS.bodyBytes / 2)}"}`]) {
      const { status, body: problem } = await service.send("PUT", lease(), { body });
      expect([status, problem.code, problem.definite]).toEqual([413, "too-large", true]);
    }
  });

  it.each(["application/json", "application/vnd.holdfast+json"])("of bytes that are not UTF-8, sent as %s, is 400", async (type) => {
    const body = Buffer.concat([Buffer.from('{"owner":"'), Buffer.from([0xe9]), Buffer.from('"}')]);
    const response = await fetch(service.url + lease(), { method: "PUT", headers: { "content-type": type }, body });
    expect([response.status, await response.json()]).toMatchObject([400, { code: "invalid-request", detail: "The body is not UTF-8" }]);
  });

  it.each([
    ["application/x-www-form-urlencoded", 415],
    ["text/plain", 415],
    ["application/jsonp", 415],
    ["application/json; charset=utf-8", 201],
    ["Application/JSON", 201],
    ["application/vnd.holdfast+json", 201],
  ])("sent as %s is %i", async (type, status) => {
    const url = `/v1/locks/TYPE/leases/${newId()}`;
    const reply = await service.send("PUT", url, { body: "{}", headers: { "content-type": type } });
    expect(reply.status).toBe(status);
    if (status === 415) expect(reply.body.code).toBe("unsupported-media-type");
    else await service.send("DELETE", url);
  });
});

describe("a path", () => {
  it.each([
    ["a space", "a%20b"],
    ["a slash", "a%2Fb"],
    ["a letter beyond ASCII", "%C3%A9"],
    ["a line break", "a%0A"],
    ["too many characters", "x".repeat(201)],
    ["more characters than any router likes", "x".repeat(3_000)],
  ])("whose key has %s is 400, naming key, and has no instance", async (_what, key) => {
    for (const url of [`/v1/locks/${key}`, `/v1/locks/${key}/leases/${newId()}`]) {
      const { status, body } = await service.send("GET", url);
      expect([status, body.code, body.field]).toEqual([400, "invalid-request", "key"]);
      expect(body.detail).toContain("1 to 200 characters");
      expect(body).not.toHaveProperty("instance");
    }
  });

  it.each([
    ["in upper case", () => newId().toUpperCase()],
    ["of version 4", () => "3f2b8e5c-1c1d-4e7a-9a54-5d0b3c9f7f10"],
    ["of a wrong variant", () => "0199aaaa-bbbb-7ccc-cddd-eeeeffff0000"],
    ["without hyphens", () => newId().replaceAll("-", "")],
    ["with something after it", () => `${newId()}%0A`],
    ["made up", () => "my-lease"],
  ])("whose leaseId is %s is 400, naming leaseId, and its instance is the key's", async (_what, leaseId) => {
    for (const method of ["PUT", "GET", "DELETE"]) {
      const { status, body } = await service.send(method, `/v1/locks/ORDER_1/leases/${leaseId()}`);
      expect([status, body.code, body.field, body.instance]).toEqual([400, "invalid-request", "leaseId", "/v1/locks/ORDER_1"]);
      expect(body.detail).toBe("leaseId: must be a UUIDv7 in lower case");
    }
  });

  it.each(["/", "/v1", "/v1/lock/ORDER_1", "/v2/locks/ORDER_1", "/v1/locks/a/leases", "/v1/locks/a/b/c/d", "/v1/openapi.yaml"])(
    "%s is 404",
    async (url) => {
      const { status, body } = await service.send("GET", url);
      expect([status, body.code]).toEqual([404, "not-found"]);
    },
  );

  it.each([
    ["POST", "/v1/locks/a/leases/{id}", "PUT, GET, DELETE"],
    ["GET", "/v1/locks/a/leases/{id}/renew", "POST"],
    ["PUT", "/v1/locks/a", "GET"],
    ["DELETE", "/v1/locks/a", "GET"],
    ["GET", "/v1/locks/a/break", "POST"],
    ["POST", "/v1/locks", "GET"],
    ["PATCH", "/v1/health", "GET"],
  ])("%s %s is 405, with Allow: %s", async (method, url, allow) => {
    const { status, headers, body } = await service.send(method, url.replace("{id}", newId()));
    expect([status, body.code, headers["allow"]]).toEqual([405, "method-not-allowed", allow]);
  });

  it("may be percent-encoded: it is the same key", async () => {
    const id = newId();
    await service.send("PUT", `/v1/locks/refund%3A42/leases/${id}`);
    expect((await service.send("GET", `/v1/locks/refund:42/leases/${id}`)).body.key).toBe("refund:42");
  });
});

describe("a query", () => {
  it.each([
    ["/v1/locks?max=0", "max"],
    ["/v1/locks?max=101", "max"],
    ["/v1/locks?max=ten", "max"],
    ["/v1/locks?max=1&max=2", "max"],
    ["/v1/locks?prefix=a%20b", "prefix"],
    ["/v1/locks?cursor=", "cursor"],
    [`/v1/locks?owner=${"x".repeat(257)}`, "owner"],
    ["/v1/locks?limit=5", "limit"],
    ["/v1/locks?__proto__=5", "__proto__"],
    ["/v1/health?deep=yes", "deep"],
    ["/v1/health?deeply=1", "deeply"],
  ])("%s is 400, naming %s", async (url, field) => {
    const { status, body } = await service.send("GET", url);
    expect([status, body.code, body.field]).toEqual([400, "invalid-request", field]);
  });
});
