/** Requests that break a rule, over HTTP: a problem document names the field and the rule. test/contract/openapi has more of the bodies. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { KEY_RULE } from "../../lib/contract/fields.js";
import { LIMITS } from "../../lib/core/limits.js";
import { told } from "../e2e/calls.js";
import { type HttpService, serve } from "../support/http-service.js";
import { localCalls } from "./local-calls.js";

let service: HttpService;
beforeAll(async () => void (service = await serve()));
afterAll(() => service.close());
const { newId, get } = localCalls(() => service, "RULE");

/** The method and path of each request with a body; `ID` stands for a new leaseId. */
const CALLS = {
  acquire: "PUT /v1/locks/a/leases/ID",
  renew: "POST /v1/locks/a/leases/ID/renew",
  mode: "POST /v1/locks/a/leases/ID/mode",
  transfer: "POST /v1/locks/a/leases/ID/transfer",
  break: "POST /v1/locks/a/break",
  set: "PUT /v1/lock-sets/ID",
  renewSet: "POST /v1/lock-sets/ID/renew",
  releaseSet: "POST /v1/lock-sets/ID/release",
  renewals: "POST /v1/renewals",
  start: "PUT /v1/runs/a/leases/ID",
  renewRun: "POST /v1/runs/a/leases/ID/renew",
  outcome: "PUT /v1/runs/a/leases/ID/outcome",
  reset: "POST /v1/runs/a/reset",
} as const;
type Call = keyof typeof CALLS;

function send(call: Call, body: unknown, headers: Readonly<Record<string, string>> = {}) {
  const [method, path] = CALLS[call].replace("ID", newId()).split(" ") as [string, string];
  return service.send(method, path, { body, headers });
}

/** Returns the detail of a problem without what was given. */
const ruleIn = ({ detail }: { readonly detail: string }): string => detail.replace(/; [^;]+ given$/, "");
const nested = (levels: number): string => "[".repeat(levels) + "]".repeat(levels);
const wholeFrom = (min: number, max: number): string => `must be a whole number from ${min} to ${max}`;
const textOf = (min: number, max: number): string => `must be text of ${min} to ${max} characters`;
const LEASE_RULE = wholeFrom(LIMITS.leaseMinMs, LIMITS.leaseMaxMs);
const META_RULE = `must be an object of at most ${LIMITS.metaBytes} bytes as JSON`;
const KEEP_RULE = `must be "forever" or a whole number from ${LIMITS.keepResultMinMs} to ${LIMITS.keepResultMaxMs}`;
const STATE_RULE = 'must be "succeeded" or "failed"';
const SET_RULE = "must be 1 to 25 different keys";
const RENEWALS_RULE = "must be 1 to 25 leases";
const UNKNOWN = "is not a field of this request";
const REQUIRED = "is required";
const MANY = JSON.stringify(Array.from({ length: 26 }, (_, index) => `k${index}`));
const MANY_LEASES = JSON.stringify(Array.from({ length: 26 }, () => ({ key: "k", leaseId: "0199a000-0000-7000-8000-000000000000" })));

describe("a body", () => {
  const BODIES: readonly (readonly [call: Call, field: string, rule: string, body: string])[] = [
    ["acquire", "leaseMS", UNKNOWN, '{"leaseMS":5000}'],
    ["acquire", "__proto__", UNKNOWN, '{"__proto__":{"leaseMs":5000}}'],
    ["acquire", "constructor", UNKNOWN, '{"constructor":1}'],
    ["acquire", "owner", textOf(0, 256), '{"owner":"\\ud83d"}'],
    ["acquire", "limit", wholeFrom(1, 1000), '{"limit":0}'],
    ["acquire", "permits", wholeFrom(1, 1000), '{"limit":3,"permits":1.5}'],
    ["acquire", "permits", "must be at most the limit of 3", '{"limit":3,"permits":4}'],
    ["acquire", "permits", "must be at most the limit of 1", '{"permits":2}'],
    ["acquire", "limit", "a shared lease takes no permits; leave it out", '{"mode":"shared","limit":2}'],
    ["acquire", "priority", wholeFrom(0, 9), '{"priority":10}'],
    ["acquire", "scope", textOf(16, 256), '{"scope":"0123456789abcdef\\ud83d"}'],
    ["acquire", "meta", META_RULE, '{"meta":[1]}'],
    ["acquire", "meta", META_RULE, `{"meta":{"a":${nested(8_000)}}}`],
    ["renew", "owner", UNKNOWN, '{"owner":"x"}'],
    ["mode", "mode", "must be exclusive or shared", '{"mode":"writer","fencingToken":1}'],
    ["mode", "fencingToken", REQUIRED, '{"mode":"shared"}'],
    ["transfer", "leaseId", "must be a UUIDv7 in lower case", '{"leaseId":"abc"}'],
    ["transfer", "leaseId", "must be a UUIDv7 in lower case, and this is a UUIDv4", '{"leaseId":"0f8fad5b-d9cb-469f-a165-70867728950e"}'],
    ["transfer", "leaseId", "must be a UUIDv7 in lower case", '{"leaseId":"01A1FADB-2B13-71B0-B423-0517604DD9AD"}'],
    ["break", "reason", textOf(1, 256), '{"reason":"","fencingToken":1}'],
    ["break", "fencingToken", REQUIRED, '{"reason":"x"}'],
    ["break", "drainMs", wholeFrom(0, 86_400_000), '{"reason":"x","fencingToken":1,"drainMs":-1}'],
    ["set", "keys", "is required, or locks in its place, and not both", "{}"],
    ["set", "keys", "is required, or locks in its place, and not both", '{"keys":["a"],"locks":[{"key":"b"}]}'],
    ["set", "locks", SET_RULE, '{"locks":[]}'],
    ["set", "keys.1", KEY_RULE, '{"keys":["a",".."]}'],
    ["set", "locks.0.permits", UNKNOWN, '{"locks":[{"key":"a","permits":2}]}'],
    ["set", "mode", UNKNOWN, '{"keys":["a"],"mode":"shared"}'],
    ["renewSet", "keys", SET_RULE, `{"keys":${MANY}}`],
    ["releaseSet", "keys", REQUIRED, "{}"],
    ["renewals", "leases", RENEWALS_RULE, '{"leases":[]}'],
    ["renewals", "leases", RENEWALS_RULE, `{"leases":${MANY_LEASES}}`],
    ["renewals", "leases.0.leaseId", "must be a UUIDv7 in lower case", '{"leases":[{"key":"k","leaseId":"x"}]}'],
    ["start", "keepResultMs", KEEP_RULE, '{"keepResultMs":"ever"}'],
    ["start", "keepResultMs", KEEP_RULE, '{"keepResultMs":null}'],
    ["start", "maxAttempts", wholeFrom(0, 1_000_000), '{"maxAttempts":-1}'],
    ["start", "fingerprint", textOf(1, 128), '{"fingerprint":""}'],
    ["start", "mode", UNKNOWN, '{"mode":"exclusive"}'],
    ["renewRun", "meta", UNKNOWN, '{"meta":{}}'],
    ["outcome", "state", STATE_RULE, '{"result":1}'],
    ["outcome", "state", STATE_RULE, '{"state":"Succeeded"}'],
    ["outcome", "error", UNKNOWN, '{"state":"succeeded","error":1}'],
    ["outcome", "resultOmitted", "must be true, or left out", '{"state":"succeeded","resultOmitted":false}'],
    ["outcome", "error", REQUIRED, '{"state":"failed","retryable":false}'],
    ["outcome", "retryable", REQUIRED, '{"state":"failed","error":1}'],
    ["outcome", "retryable", "must be true or false", '{"state":"failed","error":1,"retryable":"no"}'],
    ["reset", "reason", REQUIRED, "{}"],
  ];
  it.each(BODIES)("of %s with a wrong %s is 400: %s", async (call, field, rule, body) => {
    const { body: problem } = await send(call, body);
    expect(problem).toMatchObject({ status: 400, code: "invalid-request", definite: true, retry: "never" });
    const [, kind] = /\/v1\/(locks|runs)\//.exec(CALLS[call]) ?? [];
    expect([problem.field, ruleIn(problem), problem.instance]).toEqual([field, `${field}: ${rule}`, kind && `/v1/${kind}/a`]);
  });

  it.each<[call: Call, given: string, body: string]>([
    ["acquire", `leaseMs: ${LEASE_RULE}; 5 given`, '{"leaseMs":5}'],
    ["acquire", `leaseMs: ${LEASE_RULE}; Infinity given`, '{"leaseMs":1e400}'],
    ["acquire", `leaseMs: ${LEASE_RULE}; text of 4 characters given`, '{"leaseMs":"5000"}'],
    ["acquire", `owner: ${textOf(0, 256)}; true given`, '{"owner":true}'],
    ["acquire", `scope: ${textOf(16, 256)}; text of 15 characters given`, '{"scope":"fifteen-letters"}'],
    ["acquire", 'mode: must be exclusive or shared; "read" given', '{"mode":"read"}'],
    ["acquire", "mode: must be exclusive or shared; text of 30 characters given", `{"mode":"${"r".repeat(30)}"}`],
    ["acquire", `meta: ${META_RULE}`, JSON.stringify({ meta: { a: "é".repeat(512) } })],
    ["outcome", "retryable: must be true or false; 1 given", '{"state":"failed","error":1,"retryable":1}'],
    ["set", `keys: ${SET_RULE}`, `{"keys":${MANY}}`],
    ["transfer", `leaseId: ${REQUIRED}`, "{}"],
  ])("of %s names what was given, and no text that may be secret: %s", async (call, detail, body) => {
    expect((await send(call, body)).body).toMatchObject({ detail });
  });

  it.each([
    ["an array", "[]", "The body must be a JSON object"],
    ["an array without end", nested(8_000), "The body must be a JSON object"],
    ["null", "null", "The body must be a JSON object"],
    ["a number", "5", "The body must be a JSON object"],
    ["broken JSON", '{"leaseMs":5000', "The body is not JSON"],
    ["JSON after a byte order mark", '\ufeff{"leaseMs":5000}', "The body is not JSON: it begins with a byte order mark"],
    [
      "UTF-16 without a mark",
      Buffer.from("{}", "utf16le").toString("latin1"),
      "The body is not JSON: it has zero bytes, as UTF-16 has. Send UTF-8",
    ],
  ])("that is %s is 400, and names no field", async (_what, body, detail) => {
    const { status, body: problem } = await send("acquire", body);
    expect([status, ruleIn(problem), problem.field]).toEqual([400, detail, undefined]);
  });

  it.each([
    ["outcome", 400],
    ["reset", 400],
    ["renew", 410],
    ["renewRun", 410],
  ] as const)("of %s that is missing is %i", async (call, status) => {
    for (const body of [undefined, ""]) expect((await send(call, body)).status).toBe(status);
  });

  it.each(["acquire", "outcome"] as const)("of %s over its size is 413, even if it says nothing", async (call) => {
    const limit = call === "outcome" ? LIMITS.outcomeBodyBytes : LIMITS.bodyBytes;
    const sized = (bytes: number): string => `{"x":"${"a".repeat(bytes - 8)}"}`;
    expect(told(await send(call, sized(limit)))).toEqual([400, "invalid-request"]);
    for (const body of [sized(limit + 1), " ".repeat(limit + 1), `{"x":"${"é".repeat(limit / 2)}"}`]) {
      const refused = await send(call, body);
      expect([...told(refused), refused.body.detail]).toEqual([413, "too-large", `The body is over ${limit} bytes`]);
    }
  });

  it.each(["application/json", "application/vnd.holdfast+json"])("of bytes that are not UTF-8, sent as %s, is 400", async (type) => {
    const body = Buffer.concat([Buffer.from('{"owner":"'), Buffer.from([0xe9]), Buffer.from('"}')]);
    const url = `${service.url}/v1/locks/a/leases/${newId()}`;
    const response = await fetch(url, { method: "PUT", headers: { "content-type": type }, body });
    expect([response.status, await response.json()]).toMatchObject([400, { code: "invalid-request", detail: "The body is not UTF-8" }]);
  });

  it.each([
    ["text/plain", 415],
    ["application/jsonp", 415],
    ["application/json; charset=utf-8", 410],
    ["Application/JSON", 410],
    ["application/vnd.holdfast+json", 410],
  ])("sent as %s is %i", async (type, status) => {
    expect((await send("renew", "{}", { "content-type": type })).status).toBe(status);
  });
});

describe("a path", () => {
  it("whose key has a space is 400, naming key, and has no instance", async () => {
    for (const path of ["locks/a%20b", `locks/a%20b/leases/${newId()}`, "runs/a%20b", `runs/a%20b/leases/${newId()}`]) {
      const { body } = await get(`/v1/${path}`);
      expect([body.status, body.field, ruleIn(body), body.instance]).toEqual([400, "key", `key: ${KEY_RULE}`, undefined]);
    }
  });

  it("whose leaseId is in upper case is 400, naming leaseId, and its instance is the key's", async () => {
    for (const key of ["/v1/locks/a", "/v1/runs/a"])
      for (const method of ["PUT", "GET", "DELETE"]) {
        const { body } = await service.send(method, `${key}/leases/${newId().toUpperCase()}`);
        expect([body.status, ruleIn(body), body.instance]).toEqual([400, "leaseId: must be a UUIDv7 in lower case", key]);
      }
  });
});

describe("a query", () => {
  const MAX_RULE = wholeFrom(1, 100);
  it.each([
    ["/v1/locks?max=0", "max", MAX_RULE],
    ["/v1/locks?max=ten", "max", MAX_RULE],
    ["/v1/locks?max=1&max=2", "max", MAX_RULE],
    ["/v1/locks?prefix=a%20b", "prefix", "must be the beginning of a key"],
    ["/v1/locks?cursor=", "cursor", "must be the cursor of an earlier page"],
    [`/v1/locks?owner=${"x".repeat(257)}`, "owner", textOf(0, 256)],
    ["/v1/locks?__proto__=5", "__proto__", UNKNOWN],
    ["/v1/runs?state=retry", "state", "must be running, interrupted, succeeded or failed"],
    ["/v1/runs?owner=me", "owner", UNKNOWN],
    ["/v1/health?deep=yes", "deep", "must be 0 or 1"],
  ])("%s is 400, naming %s", async (path, field, rule) => {
    const { status, body } = await get(path);
    expect([status, body.field, ruleIn(body)]).toEqual([400, field, `${field}: ${rule}`]);
  });
});
