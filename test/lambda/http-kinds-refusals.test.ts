/** Invalid kinds of locks over HTTP: 400, naming the field and the rule. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LIMITS } from "../../lib/core/limits.js";
import { serve } from "../support/http-service.js";
import type { HttpService } from "../support/http-service.js";
import { kindsOn, told } from "./kinds.js";

let service: HttpService;
beforeAll(async () => void (service = await serve()));
afterAll(() => service.close());

const { freshKey, newId, put, get } = kindsOn(() => service, "KIND");
const PERMITS_RULE = `must be a whole number from 1 to ${LIMITS.permitsMax}`;
const SCOPE_RULE = `must be text of ${LIMITS.scopeMinChars} to ${LIMITS.scopeMaxChars} characters`;
const MODE_RULE = "must be exclusive or shared";

describe("an acquire", () => {
  it.each<[what: string, body: string, field: string, rule: string]>([
    ["more permits than the limit", '{"limit":3,"permits":4}', "permits", "must be at most the limit of 3"],
    ["several permits of a mutex", '{"permits":2}', "permits", "must be at most the limit of 1"],
    ["a shared semaphore", '{"mode":"shared","limit":2}', "limit", "a shared lease takes no permits; leave it out"],
    ["no permit", '{"limit":3,"permits":0}', "permits", PERMITS_RULE],
    ["half a permit", '{"limit":3,"permits":1.5}', "permits", PERMITS_RULE],
    ["a limit of none", '{"limit":0}', "limit", PERMITS_RULE],
    ["a limit beyond all", '{"limit":1001}', "limit", PERMITS_RULE],
    ["a limit in words", '{"limit":"3"}', "limit", PERMITS_RULE],
    ["another mode", '{"mode":"read"}', "mode", MODE_RULE],
    ["a mode that is none", '{"mode":null}', "mode", MODE_RULE],
    ["a scope that could be guessed", '{"scope":"fifteen-letters"}', "scope", SCOPE_RULE],
    ["no scope", '{"scope":""}', "scope", SCOPE_RULE],
    ["a scope beyond all", `{"scope":"${"s".repeat(257)}"}`, "scope", SCOPE_RULE],
    ["a scope that is no text", '{"scope":1234567890123456}', "scope", SCOPE_RULE],
    ["half of a surrogate pair in its scope", '{"scope":"0123456789abcdef\\ud83d"}', "scope", SCOPE_RULE],
  ])("with %s", async (_what, body, field, rule) => {
    const key = freshKey();
    const reply = await service.send("PUT", `/v1/locks/${key}/leases/${newId()}`, { body });
    expect(told(reply)).toEqual([400, "invalid-request"]);
    expect(reply.body).toMatchObject({ field, detail: `${field}: ${rule}`, definite: true, retry: "never", instance: `/v1/locks/${key}` });
    expect((await get(`/v1/locks/${key}`)).body.holders).toEqual([]);
  });

  it.each<[what: string, body: object]>([
    ["the largest limit and all of its permits", { limit: 1000, permits: 1000 }],
    ["the shortest scope", { scope: "sixteen-letters!" }],
    ["the longest scope", { scope: "é".repeat(256) }],
    ["a mutex in so many words", { mode: "exclusive", limit: 1, permits: 1 }],
    ["a reader in so many words", { mode: "shared", limit: 1, permits: 1 }],
  ])("control: is taken with %s", async (_what, body) => {
    expect((await put(freshKey(), body)).status).toBe(201);
  });

  it("is the same, with the defaults written out: 200", async () => {
    const key = freshKey();
    const { leaseId } = await put(key);
    expect((await put(key, { mode: "exclusive", limit: 1, permits: 1 }, { leaseId })).status).toBe(200);
  });
});
