/** Heartbeats and releases of lock sets over HTTP, sets that were never acquired, and invalid bodies. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { takeoverMarginMs } from "../../lib/core/limits.js";
import { serve } from "../support/http-service.js";
import type { HttpService } from "../support/http-service.js";
import type { Reply } from "../support/reply.js";
import { kindsOn, told } from "./kinds.js";

let service: HttpService;
beforeAll(async () => void (service = await serve()));
afterAll(() => service.close());

const LEASE_MS = 20_000;
const { freshKey, newId, put, get, post, release } = kindsOn(() => service, "PART");
const leaseUrl = (key: string, leaseId: string): string => `/v1/locks/${key}/leases/${leaseId}`;

/** A held set of three keys. */
async function heldSet(): Promise<{
  readonly keys: readonly [string, string, string];
  readonly leaseId: string;
  readonly url: string;
  readonly granted: Reply;
}> {
  const [keys, leaseId] = [[freshKey(), freshKey(), freshKey()] as const, newId()];
  const url = `/v1/lock-sets/${leaseId}`;
  const granted = await service.send("PUT", url, { body: { keys, leaseMs: LEASE_MS } });
  expect(granted.status).toBe(201);
  return { keys, leaseId, url, granted };
}

describe("a renewal of a set", () => {
  it("extends every lease: 200, the same tokens; never shorter", async () => {
    const { keys, leaseId, url, granted } = await heldSet();
    await service.clock.advance(5_000);
    const renewed = await post(`${url}/renew`, { keys });
    expect(renewed.status).toBe(200);
    expect(renewed.body).toMatchObject({ leaseId, fencingTokens: granted.body.fencingTokens, leaseMs: LEASE_MS, remainingMs: LEASE_MS });
    const longer = await post(`${url}/renew`, { keys, leaseMs: 60_000 });
    expect(longer.body).toMatchObject({ leaseMs: 60_000, remainingMs: 60_000 });
    expect((await post(`${url}/renew`, { keys, leaseMs: 1_000 })).body.remainingMs).toBe(60_000);
  });

  it("tells of the key that has least", async () => {
    const { keys, leaseId, url } = await heldSet();
    await post(`${leaseUrl(keys[0], leaseId)}/renew`, { leaseMs: 60_000 });
    await service.clock.advance(1_000);
    const body = (await post(`${url}/renew`, { keys })).body;
    expect(body).toMatchObject({ leaseMs: LEASE_MS, remainingMs: LEASE_MS });
  });

  it("is 410 with the keys that are lost, and they alone", async () => {
    const { keys, leaseId, url, granted } = await heldSet();
    const order = { reason: "stuck", fencingToken: granted.body.fencingTokens[keys[1]], drainMs: 0 };
    await post(`/v1/locks/${keys[1]}/break`, order);
    await service.clock.advance(5_000);
    const refused = await post(`${url}/renew`, { keys });
    expect(told(refused)).toEqual([410, "lease-lost"]);
    expect(refused.body).toMatchObject({ lost: [keys[1]], definite: true, retry: "new-lease" });
    expect((await get(leaseUrl(keys[0], leaseId))).body.remainingMs).toBe(LEASE_MS);
    expect((await post(`${url}/renew`, { keys: [keys[0], keys[2]] })).status).toBe(200);
  });

  it("is 410 with all of them after they ran out, or when they never were", async () => {
    const { keys, url } = await heldSet();
    await service.clock.advance(LEASE_MS);
    expect((await post(`${url}/renew`, { keys })).body.lost).toEqual(keys);
    expect((await post(`/v1/lock-sets/${newId()}/renew`, { keys })).body.lost).toEqual(keys);
  });

  it("is 403 for another principal", async () => {
    const { keys, url } = await heldSet();
    expect(told(await post(`${url}/renew`, { keys }, "bob"))).toEqual([403, "forbidden"]);
    expect(told(await post(`${url}/release`, { keys }, "bob"))).toEqual([403, "forbidden"]);
    expect((await post(`${url}/renew`, { keys })).status).toBe(200);
  });
});

describe("a release of a set", () => {
  it("tells how each key ended: 200; again: the same; then its leaseId is over and the keys are free", async () => {
    const { keys, url } = await heldSet();
    for (const _time of [1, 2]) {
      const { status, body } = await post(`${url}/release`, { keys: [...keys, keys[0]] });
      expect([status, body]).toEqual([200, { states: Object.fromEntries(keys.map((key) => [key, "released"])) }]);
    }
    expect(told(await service.send("PUT", url, { body: { keys, leaseMs: LEASE_MS } }))).toEqual([410, "lease-over"]);
    for (const key of keys) expect((await put(key)).status).toBe(201);
  });

  it("is true of each: broken, taken, handed on, run out, and never asked for", async () => {
    const { keys, leaseId, url, granted } = await heldSet();
    const [broken, handed, taken] = keys;
    await post(`/v1/locks/${broken}/break`, { reason: "stuck", fencingToken: granted.body.fencingTokens[broken], drainMs: 0 });
    await post(`${leaseUrl(handed, leaseId)}/transfer`, { leaseId: newId() });
    await service.clock.advance(LEASE_MS + takeoverMarginMs(LEASE_MS));
    expect((await put(taken)).status).toBe(201);
    const never = freshKey();
    const { body } = await post(`${url}/release`, { keys: [...keys, never] });
    expect(body.states).toEqual({ [broken]: "lost", [handed]: "transferred", [taken]: "lost", [never]: "never" });
    const late = await heldSet();
    await service.clock.advance(LEASE_MS);
    expect((await post(`${late.url}/release`, { keys: late.keys })).body.states).toEqual(
      Object.fromEntries(late.keys.map((key) => [key, "expired"])),
    );
  });

  it("of a set that nobody knows cancels it: a late duplicate of its acquire is refused, whole", async () => {
    const [keys, leaseId] = [[freshKey(), freshKey()], newId()];
    const url = `/v1/lock-sets/${leaseId}`;
    for (const _time of [1, 2]) {
      expect((await post(`${url}/release`, { keys })).body.states).toEqual({ [keys[0]!]: "never", [keys[1]!]: "never" });
    }
    expect(told(await service.send("PUT", url, { body: { keys } }))).toEqual([410, "lease-over"]);
    // A set with more keys than were cancelled is refused, too.
    const free = freshKey();
    expect(told(await service.send("PUT", url, { body: { keys: [free, keys[0]] } }))).toEqual([410, "lease-over"]);
    expect((await get(`/v1/locks/${free}`)).body.holders).toEqual([]);
    // Control: the cancel is the reason for the refusal.
    expect((await service.send("PUT", `/v1/lock-sets/${newId()}`, { body: { keys: [free, ...keys] } })).status).toBe(201);
  });

  it("tells the token and the state of keys that are names of inherited members: __proto__, constructor", async () => {
    const [keys, leaseId] = [["__proto__", "constructor"], newId()];
    const url = `/v1/lock-sets/${leaseId}`;
    const granted = await service.send("PUT", url, { body: { keys, leaseMs: LEASE_MS } });
    expect([granted.status, Object.keys(granted.body.fencingTokens as object).sort()]).toEqual([201, keys]);
    const { body } = await post(`${url}/release`, { keys });
    expect(Object.entries(body.states as object).sort()).toEqual(keys.map((key) => [key, "released"]));
  });

  it("may be of a part, or key by key as of any lease: the rest is still held", async () => {
    const { keys, leaseId, url } = await heldSet();
    await post(`${url}/release`, { keys: [keys[0]] });
    expect(await release(leaseUrl(keys[1], leaseId))).toBe("released");
    expect((await put(keys[0])).status).toBe(201);
    expect((await get(leaseUrl(keys[2], leaseId))).status).toBe(200);
  });
});

describe("a body that is none of a set", () => {
  const many = Array.from({ length: 26 }, (_, index) => `MANY_${index}`);
  it.each<[call: string, body: object, field: string]>([
    ["PUT", {}, "keys"],
    ["PUT", { keys: [] }, "keys"],
    ["PUT", { locks: [] }, "locks"],
    ["PUT", { keys: ["a"], locks: [{ key: "b" }] }, "keys"],
    ["PUT", { keys: many }, "keys"],
    ["PUT", { locks: many.map((key) => ({ key })) }, "locks"],
    ["PUT", { keys: ["a b"] }, "keys.0"],
    ["PUT", { keys: ["a", ".."] }, "keys.1"],
    ["PUT", { keys: "a" }, "keys"],
    ["PUT", { locks: [{ key: "a", mode: "read" }] }, "locks.0.mode"],
    ["PUT", { locks: [{ key: "a", permits: 2 }] }, "locks.0.permits"],
    ["PUT", { keys: ["a"], mode: "shared" }, "mode"],
    ["PUT", { keys: ["a"], limit: 2 }, "limit"],
    ["PUT", { keys: ["a"], leaseMs: 999 }, "leaseMs"],
    ["PUT", { keys: ["a"], scope: "too-short" }, "scope"],
    ["renew", {}, "keys"],
    ["renew", { keys: many }, "keys"],
    ["renew", { keys: ["a"], leaseMs: 1 }, "leaseMs"],
    ["release", {}, "keys"],
    ["release", { keys: ["a"], leaseMs: 5_000 }, "leaseMs"],
  ])("%s %o is 400, naming %s", async (call, body, field) => {
    const url = `/v1/lock-sets/${newId()}`;
    const reply = call === "PUT" ? await service.send("PUT", url, { body }) : await post(`${url}/${call}`, body);
    expect([...told(reply), reply.body.field]).toEqual([400, "invalid-request", field]);
  });

  it("is 400 under a leaseId that is none, 422 under one of another time, 405 by another method", async () => {
    const bad = await service.send("PUT", "/v1/lock-sets/not-a-uuid", { body: { keys: ["a"] } });
    expect([...told(bad), bad.body.field]).toEqual([400, "invalid-request", "leaseId"]);
    const early = newId();
    await service.clock.advance(15 * 60_000 + 1);
    expect(told(await service.send("PUT", `/v1/lock-sets/${early}`, { body: { keys: [freshKey()] } }))).toEqual([422, "lease-id-time"]);
    const other = await service.send("GET", `/v1/lock-sets/${newId()}`);
    expect([other.status, other.headers["allow"]]).toEqual([405, "PUT"]);
  });
});
