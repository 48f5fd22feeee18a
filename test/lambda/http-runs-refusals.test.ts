/** Requests about runs that break a rule, over HTTP: the answer names the rule, and the run is unchanged. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LIMITS } from "../../lib/core/limits.js";
import { serve } from "../support/http-service.js";
import type { HttpService } from "../support/http-service.js";
import type { Begun } from "./runs.js";
import { runsOf, told } from "./runs.js";

let service: HttpService;
let run: Begun;
beforeAll(async () => {
  service = await serve();
  run = await runs.begin("RUN_1", { body: { leaseMs: 3_600_000 } });
});
afterAll(() => service.close());
const runs = runsOf(() => service, "RULE");

const LEASE_RULE = "must be a whole number from 1000 to 86400000";
const KEEP_RULE = 'must be "forever" or a whole number from 60000 to 31536000000';
const STATE_RULE = 'must be "succeeded" or "failed"';
const UNKNOWN = "is not a field of this request";

/** The method and URL of each call with a body. */
const CALLS = {
  start: () => ["PUT", runs.url("RUN_1")],
  renew: () => ["POST", `${run.url}/renew`],
  outcome: () => ["PUT", `${run.url}/outcome`],
  reset: () => ["POST", "/v1/runs/RUN_1/reset"],
} as const satisfies Record<string, () => readonly [string, string]>;
const send = (call: keyof typeof CALLS, body: unknown, headers = {}) => {
  const [method, url] = CALLS[call]();
  return service.send(method, url, { body, headers });
};

describe("a body", () => {
  it.each<[call: keyof typeof CALLS, body: string, field: string, rule: string]>([
    ["start", '{"leaseMs":999}', "leaseMs", LEASE_RULE],
    ["start", '{"leaseMs":"30s"}', "leaseMs", LEASE_RULE],
    ["start", '{"keepResultMs":59999}', "keepResultMs", KEEP_RULE],
    ["start", '{"keepResultMs":31536000001}', "keepResultMs", KEEP_RULE],
    ["start", '{"keepResultMs":60000.5}', "keepResultMs", KEEP_RULE],
    ["start", '{"keepResultMs":"ever"}', "keepResultMs", KEEP_RULE],
    ["start", '{"keepResultMs":null}', "keepResultMs", KEEP_RULE],
    ["start", '{"maxAttempts":-1}', "maxAttempts", "must be a whole number from 0 to 1000000"],
    ["start", '{"maxAttempts":1.5}', "maxAttempts", "must be a whole number from 0 to 1000000"],
    ["start", '{"fingerprint":""}', "fingerprint", "must be text of 1 to 128 characters"],
    ["start", `{"fingerprint":"${"x".repeat(129)}"}`, "fingerprint", "must be text of 1 to 128 characters"],
    ["start", '{"fingerprint":7}', "fingerprint", "must be text of 1 to 128 characters"],
    ["start", '{"owner":"\\ud83d"}', "owner", "must be text of 0 to 256 characters"],
    ["start", '{"meta":{}}', "meta", UNKNOWN],
    ["start", '{"mode":"exclusive"}', "mode", UNKNOWN],
    ["start", '{"waitMs":5000}', "waitMs", UNKNOWN],
    ["start", '{"attempt":1}', "attempt", UNKNOWN],
    ["start", '{"__proto__":1}', "__proto__", UNKNOWN],
    ["renew", '{"leaseMs":86400001}', "leaseMs", LEASE_RULE],
    ["renew", '{"meta":{}}', "meta", UNKNOWN],
    ["renew", '{"owner":"x"}', "owner", UNKNOWN],
    ["outcome", "{}", "state", STATE_RULE],
    ["outcome", '{"result":1}', "state", STATE_RULE],
    ["outcome", '{"state":"running"}', "state", STATE_RULE],
    ["outcome", '{"state":"interrupted"}', "state", STATE_RULE],
    ["outcome", '{"state":"Succeeded"}', "state", STATE_RULE],
    ["outcome", '{"state":null}', "state", STATE_RULE],
    ["outcome", '{"state":"succeeded","error":1}', "error", UNKNOWN],
    ["outcome", '{"state":"succeeded","retryable":true}', "retryable", UNKNOWN],
    ["outcome", '{"state":"succeeded","resultOmitted":false}', "resultOmitted", "must be true, or left out"],
    ["outcome", '{"state":"failed","error":1}', "retryable", "is required"],
    ["outcome", '{"state":"failed","error":1,"retryable":"no"}', "retryable", "must be true or false"],
    ["outcome", '{"state":"failed","error":1,"result":1,"retryable":true}', "result", UNKNOWN],
    ["outcome", '{"state":"failed","error":1,"retryable":true,"keepResultMs":60000}', "keepResultMs", UNKNOWN],
    ["reset", "{}", "reason", "is required"],
    ["reset", '{"reason":""}', "reason", "must be text of 1 to 256 characters"],
    ["reset", `{"reason":"${"x".repeat(257)}"}`, "reason", "must be text of 1 to 256 characters"],
    ["reset", '{"reason":"x","force":true}', "force", UNKNOWN],
  ])("of %s that is %s is 400, naming %s", async (call, body, field, rule) => {
    const reply = await send(call, body);
    expect(reply.body).toMatchObject({
      status: 400,
      code: "invalid-request",
      definite: true,
      retry: "never",
      field,
      detail: `${field}: ${rule}`,
      instance: "/v1/runs/RUN_1",
    });
  });

  it.each(Object.keys(CALLS) as (keyof typeof CALLS)[])("of %s is JSON, an object, and no larger than it may be", async (call) => {
    for (const body of ["[]", "null", "5", '"x"', "{", '{"state":"succeeded"'])
      expect([body, ...told(await send(call, body))]).toEqual([body, 400, "invalid-request"]);
    expect(told(await send(call, "{}", { "content-type": "text/plain" }))).toEqual([415, "unsupported-media-type"]);
    const limit = call === "outcome" ? LIMITS.outcomeBodyBytes : LIMITS.bodyBytes;
    const padded = (bytes: number): string => `{"unknown":${" ".repeat(bytes - 13)}1}`;
    expect(Buffer.byteLength(padded(limit))).toBe(limit);
    expect(told(await send(call, padded(limit)))).toEqual([400, "invalid-request"]);
    const over = await send(call, padded(limit + 1));
    expect([...told(over), over.body.detail]).toEqual([413, "too-large", `The body is over ${limit} bytes`]);
  });

  it("of an outcome or a reset that is missing is 400; of a start or a renewal it is no mistake", async () => {
    for (const [call, status] of [
      ["outcome", 400],
      ["reset", 400],
      ["renew", 200],
      ["start", 409],
    ] as const)
      for (const body of [undefined, ""]) expect([call, (await send(call, body)).status]).toEqual([call, status]);
  });

  it("is judged before the run is: a wrong one of a lease that is over is 400", async () => {
    const url = runs.url(runs.freshKey());
    expect(told(await service.send("PUT", `${url}/outcome`, { body: { state: "done" } }))).toEqual([400, "invalid-request"]);
    expect(told(await service.send("PUT", `${url}/outcome`, { body: { state: "succeeded" } }))).toEqual([410, "lease-lost"]);
  });

  it("that was refused has changed nothing", async () => {
    expect((await service.send("PUT", run.url, { body: { leaseMs: 3_600_000 } })).body).toMatchObject({
      fencingToken: run.reply.body.fencingToken as number,
      attempt: 1,
    });
  });
});

describe("a path", () => {
  it.each(["a%20b", "a%2Fb", "%C3%A9", "x".repeat(201), "x".repeat(3_000)])("whose key is %s is 400, naming key", async (key) => {
    for (const [method, rest] of [
      ["GET", ""],
      ["PUT", `/leases/${runs.newId()}`],
      ["GET", `/leases/${runs.newId()}`],
      ["DELETE", `/leases/${runs.newId()}`],
      ["POST", `/leases/${runs.newId()}/renew`],
      ["PUT", `/leases/${runs.newId()}/outcome`],
      ["POST", "/reset"],
    ] as const) {
      const reply = await service.send(method, `/v1/runs/${key}${rest}`);
      expect([...told(reply), reply.body.field]).toEqual([400, "invalid-request", "key"]);
      expect(reply.body).not.toHaveProperty("instance");
    }
  });

  it.each(["my-run", "3f2b8e5c-1c1d-4e7a-9a54-5d0b3c9f7f10", "0199AAAA-BBBB-7CCC-8DDD-EEEEFFFF0000"])(
    "whose leaseId is %s is 400, naming leaseId, and its instance is the key's",
    async (leaseId) => {
      const url = `/v1/runs/RUN_1/leases/${leaseId}`;
      for (const [method, path] of [
        ["PUT", url],
        ["GET", url],
        ["DELETE", url],
        ["POST", `${url}/renew`],
        ["PUT", `${url}/outcome`],
      ] as const) {
        const reply = await service.send(method, path);
        expect([...told(reply), reply.body.field, reply.body.instance]).toEqual([400, "invalid-request", "leaseId", "/v1/runs/RUN_1"]);
      }
    },
  );

  it.each([
    ["POST", "/v1/runs/a/leases/{id}", "PUT, GET, DELETE"],
    ["PATCH", "/v1/runs/a/leases/{id}", "PUT, GET, DELETE"],
    ["GET", "/v1/runs/a/leases/{id}/renew", "POST"],
    ["PUT", "/v1/runs/a/leases/{id}/renew", "POST"],
    ["POST", "/v1/runs/a/leases/{id}/outcome", "PUT"],
    ["GET", "/v1/runs/a/leases/{id}/outcome", "PUT"],
    ["PUT", "/v1/runs/a", "GET"],
    ["DELETE", "/v1/runs/a", "GET"],
    ["GET", "/v1/runs/a/reset", "POST"],
    ["PUT", "/v1/runs/a/reset", "POST"],
    ["POST", "/v1/runs", "GET"],
    ["DELETE", "/v1/runs", "GET"],
  ])("%s %s is 405, with Allow: %s", async (method, url, allow) => {
    const { status, headers, body } = await service.send(method, url.replace("{id}", runs.newId()));
    expect([status, body.code, headers["allow"]]).toEqual([405, "method-not-allowed", allow]);
    if (url !== "/v1/runs") expect(body.instance).toBe("/v1/runs/a");
  });

  it.each([
    "/v1/run/a",
    "/v1/runs/",
    "/v1/runs/a/",
    "/v1/runs/a/leases",
    "/v1/runs/a/break",
    `/v1/runs/a/leases/x/transfer`,
    "/v1/runs/a/leases/x/outcome/y",
  ])("%s is 404", async (url) => {
    expect(told(await service.send("GET", url))).toEqual([404, "not-found"]);
  });

  it("may be percent-encoded: it is the same run", async () => {
    const { url } = await runs.begin("refund:42");
    expect((await service.send("GET", url.replace(":", "%3A"))).body.key).toBe("refund:42");
  });
});

describe("a query", () => {
  it.each([
    ["/v1/runs?state=done", "state"],
    ["/v1/runs?state=", "state"],
    ["/v1/runs?state=running,failed", "state"],
    ["/v1/runs?state=retry", "state"],
    ["/v1/runs?max=0", "max"],
    ["/v1/runs?max=101", "max"],
    ["/v1/runs?max=1&max=2", "max"],
    ["/v1/runs?prefix=a%20b", "prefix"],
    ["/v1/runs?cursor=", "cursor"],
    ["/v1/runs?owner=me", "owner"],
    ["/v1/runs?__proto__=5", "__proto__"],
  ])("%s is 400, naming %s", async (url, field) => {
    const reply = await service.send("GET", url);
    expect([...told(reply), reply.body.field]).toEqual([400, "invalid-request", field]);
  });
});
