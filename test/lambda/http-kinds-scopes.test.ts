/** Scopes over HTTP: the holds of one request are compatible, for any principal of the namespace, and exclude everyone else. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { takeoverMarginMs } from "../../lib/core/limits.js";
import { serve } from "../support/http-service.js";
import type { HttpService } from "../support/http-service.js";
import type { Asked } from "./kinds.js";
import { kindsOn, told } from "./kinds.js";

let service: HttpService;
beforeAll(async () => void (service = await serve()));
afterAll(() => service.close());

const LEASE_MS = 20_000;
const SCOPE = "trace-4bf92f3577b34da6a3ce929d0e0e4736";
const { freshKey, newId, put, get, post, release } = kindsOn(() => service, "CART");

/** Two reentrant holds: the outer of 20 s by the gateway's own caller, the inner of 40 s by another principal. */
async function nested(): Promise<{ readonly key: string; readonly outer: Asked; readonly inner: Asked }> {
  const key = freshKey();
  const outer = await put(key, { scope: SCOPE, leaseMs: LEASE_MS, owner: "outer" });
  const inner = await put(key, { scope: SCOPE, leaseMs: 2 * LEASE_MS, owner: "inner" }, { as: "worker" });
  return { key, outer, inner };
}

describe("an acquire with the scope of the living hold", () => {
  it("is granted at once, under its own leaseId and principal: the same token, one level more, its own length", async () => {
    const { key, outer, inner } = await nested();
    expect([outer.status, outer.body.holdCount]).toEqual([201, 1]);
    expect(inner.status).toBe(201);
    expect(inner.headers).not.toHaveProperty("idempotent-replayed");
    expect(inner.body).toMatchObject({ leaseId: inner.leaseId, owner: "inner", holdCount: 2, fencingToken: outer.body.fencingToken });
    expect([outer.body.remainingMs, inner.body.remainingMs]).toEqual([LEASE_MS, 2 * LEASE_MS]);
    expect((await get(outer.url)).body.holdCount).toBe(2);
    expect((await get(`/v1/locks/${key}`)).body.holders.map(({ owner }: { owner: string }) => owner).sort()).toEqual(["inner", "outer"]);
  });

  it("is counted by its leaseId: sent again it is the same level, and with other parameters 422", async () => {
    const { key, inner } = await nested();
    const body = { scope: SCOPE, leaseMs: 2 * LEASE_MS, owner: "inner" };
    const again = await put(key, body, { leaseId: inner.leaseId, as: "worker" });
    expect([again.status, again.headers["idempotent-replayed"], again.body.holdCount]).toEqual([200, "true", 2]);
    for (const scope of [undefined, `${SCOPE}x`]) {
      const other = await put(key, { ...body, scope }, { leaseId: inner.leaseId, as: "worker" });
      expect(told(other)).toEqual([422, "lease-reused"]);
    }
  });

  it("frees only its own level when it is released, however often; the key is free with the last", async () => {
    const { key, outer, inner } = await nested();
    for (const _time of [1, 2]) expect(await release(inner.url, "worker")).toBe("released");
    expect((await get(outer.url)).body).toMatchObject({ holdCount: 1, fencingToken: outer.body.fencingToken });
    expect((await put(key)).status).toBe(423);
    const third = await put(key, { scope: SCOPE });
    expect([third.status, third.body.holdCount]).toEqual([201, 2]);
    await release(outer.url);
    expect((await put(key)).status).toBe(423);
    expect((await get(third.url)).body.holdCount).toBe(1);
    await release(third.url);
    const next = await put(key);
    expect(next.status).toBe(201);
    expect(next.body.fencingToken).toBeGreaterThan(outer.body.fencingToken);
  });

  it("lives as long as its own length says: the outer's end is not its end, and keeps others out", async () => {
    const { key, outer, inner } = await nested();
    await service.clock.advance(LEASE_MS + takeoverMarginMs(LEASE_MS));
    expect((await get(outer.url)).body.reason).toBe("expired");
    expect((await get(inner.url, "worker")).body.holdCount).toBe(1);
    expect((await put(key)).status).toBe(423);
    await service.clock.advance(LEASE_MS - takeoverMarginMs(LEASE_MS) + takeoverMarginMs(2 * LEASE_MS));
    expect((await put(key)).status).toBe(201);
    expect(await release(inner.url, "worker")).toBe("lost");
  });

  it("is renewed and released by its own principal only", async () => {
    const { outer, inner } = await nested();
    expect(told(await post(`${outer.url}/renew`, {}, "worker"))).toEqual([403, "forbidden"]);
    expect(told(await post(`${inner.url}/renew`))).toEqual([403, "forbidden"]);
    expect(await release(outer.url, "worker")).toBe(403);
    expect((await post(`${outer.url}/renew`)).body.holdCount).toBe(2);
  });

  it("is 423 for a writer inside of a reader, and a level for a reader inside of a writer", async () => {
    const key = freshKey();
    const reader = await put(key, { scope: SCOPE, mode: "shared" });
    expect(told(await put(key, { scope: SCOPE }))).toEqual([423, "locked"]);
    const second = await put(key, { scope: SCOPE, mode: "shared" });
    expect(second.body).toMatchObject({ mode: "shared", holdCount: 2, fencingToken: reader.body.fencingToken });
    const other = freshKey();
    const writer = await put(other, { scope: SCOPE });
    const inside = await put(other, { scope: SCOPE, mode: "shared" });
    expect([inside.status, inside.body.fencingToken]).toEqual([201, writer.body.fencingToken]);
  });

  it("takes no permit beside the outer's", async () => {
    const key = freshKey();
    await put(key, { limit: 2, scope: SCOPE });
    expect((await put(key, { limit: 2, scope: SCOPE })).body).toMatchObject({ permits: 1, holdCount: 2 });
    expect((await put(key, { limit: 2 })).status).toBe(201);
    expect((await put(key, { limit: 2 })).status).toBe(423);
    expect((await put(key, { limit: 2, scope: SCOPE })).status).toBe(201);
  });

  it("is no way in once the hold is over: then it is an acquire like any other", async () => {
    const { key, outer, inner } = await nested();
    await release(outer.url);
    await release(inner.url, "worker");
    const rival = await put(key);
    expect((await put(key, { scope: SCOPE })).status).toBe(423);
    await release(rival.url);
    expect((await put(key, { scope: SCOPE })).body.holdCount).toBe(1);
  });
});

describe("who doesn't know the scope", () => {
  it.each<[what: string, body: object]>([
    ["no scope", {}],
    ["the holder's own name as owner", { owner: "outer" }],
    ["another scope", { scope: SCOPE.toUpperCase() }],
    ["the owner as scope", { scope: "outer".padEnd(16, "r") }],
    ["a shared lease", { mode: "shared" }],
  ])("gets nowhere with %s: 423", async (_what, body) => {
    const { key } = await nested();
    const refused = await put(key, body);
    expect(told(refused)).toEqual([423, "locked"]);
    expect(refused.text).not.toContain(SCOPE);
  });
});

describe("several levels", () => {
  it("are not handed over one by one: 423 until there is one again", async () => {
    const { outer, inner } = await nested();
    const leaseId = newId();
    expect(told(await post(`${outer.url}/transfer`, { leaseId }))).toEqual([423, "locked"]);
    expect((await get(outer.url)).status).toBe(200);
    await release(inner.url, "worker");
    const handed = await post(`${outer.url}/transfer`, { leaseId });
    expect([handed.status, handed.body.holdCount]).toEqual([200, 1]);
    expect(handed.body.fencingToken).toBeGreaterThan(outer.body.fencingToken);
  });

  it("don't change their mode while there are more than one: 423", async () => {
    const key = freshKey();
    const reader = await put(key, { scope: SCOPE, mode: "shared" });
    const second = await put(key, { scope: SCOPE, mode: "shared" });
    const asked = { mode: "exclusive", fencingToken: reader.body.fencingToken };
    expect(told(await post(`${reader.url}/mode`, asked))).toEqual([423, "locked"]);
    await release(second.url);
    expect((await post(`${reader.url}/mode`, asked)).status).toBe(200);
  });

  it("are broken together, by their one token: at once with force", async () => {
    const { key, outer, inner } = await nested();
    const order = { reason: "stuck", fencingToken: outer.body.fencingToken, drainMs: 0 };
    for (const _time of [1, 2]) {
      const { status, body } = await post(`/v1/locks/${key}/break`, order);
      expect([status, body]).toEqual([200, { breakInMs: 0 }]);
    }
    expect((await get(outer.url)).body.reason).toBe("broken");
    expect((await get(inner.url, "worker")).body.reason).toBe("broken");
    expect((await put(key)).status).toBe(201);
    expect([await release(outer.url), await release(inner.url, "worker")]).toEqual(["lost", "lost"]);
  });

  it("are broken together, gently: none is renewed, and it is over with the longest of them", async () => {
    const { key, outer, inner } = await nested();
    const { status, body } = await post(`/v1/locks/${key}/break`, { reason: "stuck", fencingToken: outer.body.fencingToken });
    expect([status, body]).toEqual([202, { breakInMs: 2 * LEASE_MS + takeoverMarginMs(2 * LEASE_MS) }]);
    expect((await post(`${outer.url}/renew`)).body.reason).toBe("broken");
    expect((await post(`${inner.url}/renew`, {}, "worker")).body.reason).toBe("broken");
    expect((await get(inner.url, "worker")).status).toBe(200);
    await service.clock.advance(body.breakInMs - 1);
    expect((await put(key)).status).toBe(423);
    await service.clock.advance(1);
    expect((await put(key)).status).toBe(201);
  });
});
