/** Semaphores over HTTP: as many permits as the limit, for any holders, and the permits of crashed holders come back. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { takeoverMarginMs } from "../../lib/core/limits.js";
import { serve } from "../support/http-service.js";
import type { HttpService } from "../support/http-service.js";
import { kindsOn, told } from "./kinds.js";

let service: HttpService;
beforeAll(async () => void (service = await serve()));
afterAll(() => service.close());

const LEASE_MS = 20_000;
const { freshKey, put, get, post, release } = kindsOn(() => service, "POOL");

describe("permits", () => {
  it("are granted up to the limit, each lease with its own token; then 423 with all who have them", async () => {
    const key = freshKey();
    const leases = [await put(key, { limit: 3, owner: "a" }), await put(key, { limit: 3, permits: 2, owner: "b" }, { as: "bob" })];
    expect(leases.map(({ status, body }) => [status, body.permits, body.mode])).toEqual([
      [201, 1, "exclusive"],
      [201, 2, "exclusive"],
    ]);
    expect(leases[1]!.body.fencingToken).toBeGreaterThan(leases[0]!.body.fencingToken);
    const refused = await put(key, { limit: 3 });
    expect(told(refused)).toEqual([423, "locked"]);
    expect(refused.body.holders).toMatchObject([
      { owner: "a", permits: 1 },
      { owner: "b", permits: 2 },
    ]);
  });

  it("that don't all fit are refused whole, while fewer would fit", async () => {
    const key = freshKey();
    await put(key, { limit: 4, permits: 2 });
    expect((await put(key, { limit: 4, permits: 3 })).status).toBe(423);
    expect((await put(key, { limit: 4, permits: 2 })).status).toBe(201);
    expect((await put(key, { limit: 4 })).status).toBe(423);
  });

  it("come back with the release of their lease, and with no other's", async () => {
    const key = freshKey();
    const [first, second] = [await put(key, { limit: 2 }), await put(key, { limit: 2 })];
    expect(await release(first.url)).toBe("released");
    expect((await put(key, { limit: 2 })).status).toBe(201);
    expect(await release(first.url)).toBe("released");
    expect((await put(key, { limit: 2 })).status).toBe(423);
    expect((await get(second.url)).status).toBe(200);
  });

  it("of a holder that crashed come back by themselves after its lease and margin, while the others hold on", async () => {
    const key = freshKey();
    const asked = { limit: 2, leaseMs: LEASE_MS };
    const [crashed, living] = [await put(key, asked), await put(key, asked)];
    await service.clock.advance(LEASE_MS - 1);
    expect((await post(`${living.url}/renew`)).status).toBe(200);
    await service.clock.advance(takeoverMarginMs(LEASE_MS));
    expect((await put(key, asked)).status).toBe(423);
    await service.clock.advance(1);
    const next = await put(key, asked);
    expect(next.status).toBe(201);
    expect(next.body.fencingToken).toBeGreaterThan(living.body.fencingToken);
    expect((await get(living.url)).status).toBe(200);
    expect(await release(crashed.url)).toBe("lost");
  });

  it("carry the token of the first of them as their floor, above the last exclusive grant", async () => {
    const key = freshKey();
    const mutex = await put(key);
    await release(mutex.url);
    const permit = await put(key, { limit: 2 });
    expect(permit.body.fenceFloor).toBe(permit.body.fencingToken);
    expect(permit.body.fencingToken).toBeGreaterThan(mutex.body.fencingToken);
    const next = await put(key, { limit: 2 });
    expect(next.body.fenceFloor).toBe(permit.body.fencingToken);
    expect((await post(`${permit.url}/renew`)).body.fenceFloor).toBe(permit.body.fencingToken);
  });

  it("are replayed with the same permits: 200; with others, or another limit: 422 lease-reused", async () => {
    const key = freshKey();
    const { leaseId, body } = await put(key, { limit: 5, permits: 2 });
    const again = await put(key, { limit: 5, permits: 2 }, { leaseId });
    expect([again.status, again.body.permits, again.body.fencingToken]).toEqual([200, 2, body.fencingToken]);
    for (const other of [{ limit: 5, permits: 3 }, { limit: 5 }, { limit: 6, permits: 2 }, {}]) {
      expect(told(await put(key, other, { leaseId }))).toEqual([422, "lease-reused"]);
    }
    expect(told(await put(key, { limit: 5, permits: 2 }, { leaseId, as: "bob" }))).toEqual([403, "forbidden"]);
  });

  it("are handed on with their lease", async () => {
    const key = freshKey();
    const from = await put(key, { limit: 3, permits: 2 });
    const leaseId = kindsOn(() => service, "").newId();
    const handed = await post(`${from.url}/transfer`, { leaseId });
    expect(handed.body).toMatchObject({ leaseId, permits: 2, mode: "exclusive" });
    expect(handed.body.fencingToken).toBeGreaterThan(from.body.fencingToken);
    expect((await put(key, { limit: 3, permits: 2 })).status).toBe(423);
    expect((await put(key, { limit: 3 })).status).toBe(201);
  });
});

describe("the limit", () => {
  it.each([
    ["another limit", { limit: 4 }],
    ["none, as of a mutex", {}],
    ["a shared lease", { mode: "shared" }],
  ])("is the holders': 409 limit-mismatch with %s, even while permits are left", async (_what, other) => {
    const key = freshKey();
    await put(key, { limit: 3 });
    const refused = await put(key, other);
    expect(told(refused)).toEqual([409, "limit-mismatch"]);
    expect(refused.body).toMatchObject({ definite: true, retry: "never", instance: `/v1/locks/${key}` });
    expect((await put(key, { limit: 3 })).status).toBe(201);
  });

  it.each([
    ["mutex", {}],
    ["reader", { mode: "shared" }],
  ])("of a %s is 1: 409 for who would have more", async (_what, held) => {
    const key = freshKey();
    await put(key, held);
    expect(told(await put(key, { limit: 2 }))).toEqual([409, "limit-mismatch"]);
  });

  it("of a free key is the next caller's, whether it was released or ran out", async () => {
    const key = freshKey();
    const { url } = await put(key, { limit: 3 });
    await release(url);
    const other = await put(key, { limit: 5, leaseMs: LEASE_MS });
    expect(other.status).toBe(201);
    await service.clock.advance(LEASE_MS + takeoverMarginMs(LEASE_MS));
    expect((await put(key, { limit: 2 })).status).toBe(201);
    expect((await get(`/v1/locks/${key}`)).body.limit).toBe(2);
  });

  it("is shown of a semaphore in use, with the permits of each lease", async () => {
    const key = freshKey();
    const first = await put(key, { limit: 7, permits: 3, owner: "a" });
    await put(key, { limit: 7, owner: "b" });
    const { body, headers } = await get(`/v1/locks/${key}`);
    expect(body).toMatchObject({ mode: "exclusive", limit: 7 });
    expect(body.holders).toMatchObject([
      { owner: "a", permits: 3 },
      { owner: "b", permits: 1 },
    ]);
    await post(`${first.url}/renew`);
    expect((await get(`/v1/locks/${key}`)).headers["etag"]).toBe(headers["etag"]);
    await release(first.url);
    expect((await get(`/v1/locks/${key}`)).headers["etag"]).not.toBe(headers["etag"]);
  });
});

describe("a race for permits", () => {
  /** Twelve concurrent PUTs for a key of `limit` permits. */
  async function racing(key: string, limitOf: (index: number) => number): Promise<number> {
    const asked = await Promise.all(Array.from({ length: 12 }, (_, index) => put(key, { limit: limitOf(index) })));
    return asked.filter(({ status }) => status === 201).length;
  }

  it("never has more of them out than the limit", async () => {
    const key = freshKey();
    expect(await racing(key, () => 3)).toBe(3);
    expect((await get(`/v1/locks/${key}`)).body.holders).toHaveLength(3);
  });

  it("control: it is the limit that holds the others back", async () => {
    expect(await racing(freshKey(), () => 12)).toBe(12);
  });
});
