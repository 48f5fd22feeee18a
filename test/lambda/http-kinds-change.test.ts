/** `POST L/mode` over HTTP, row by row: upgrades and downgrades, and the answers to all other callers. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DEFAULTS, takeoverMarginMs } from "../../lib/core/limits.js";
import { serve } from "../support/http-service.js";
import type { HttpService } from "../support/http-service.js";
import type { Reply } from "../support/reply.js";
import type { Asked } from "./kinds.js";
import { kindsOn, told } from "./kinds.js";

let service: HttpService;
beforeAll(async () => void (service = await serve()));
afterAll(() => service.close());

const LEASE_MS = 60_000;
const SHARED = { mode: "shared", leaseMs: LEASE_MS };
const { freshKey, newId, put, get, post, release } = kindsOn(() => service, "PAGE");
const change = (lease: Pick<Asked, "url">, mode: string, fencingToken: number, as?: string): Promise<Reply> =>
  post(`${lease.url}/mode`, { mode, fencingToken }, as);
const upgrade = (lease: Asked): Promise<Reply> => change(lease, "exclusive", lease.body.fencingToken as number);

describe("the only reader", () => {
  it("becomes the writer: 200, a new token, not extended; and then nobody else reads", async () => {
    const key = freshKey();
    const reader = await put(key, SHARED);
    await service.clock.advance(1_000);
    const writer = await upgrade(reader);
    expect(writer.status).toBe(200);
    expect(writer.body).toMatchObject({
      key,
      leaseId: reader.leaseId,
      mode: "exclusive",
      leaseMs: LEASE_MS,
      remainingMs: LEASE_MS - 1_000,
    });
    expect(writer.body.fencingToken).toBeGreaterThan(reader.body.fencingToken);
    expect(writer.headers["etag"]).toBe(`"v${writer.body.version}"`);
    expect(writer.headers).not.toHaveProperty("idempotent-replayed");
    expect((await put(key, SHARED)).status).toBe(423);
    expect((await get(reader.url)).body).toEqual(writer.body);
  });

  it("asks again, its answer having been lost: 200, the same token, and says that it is a replay", async () => {
    const reader = await put(freshKey(), SHARED);
    const writer = await upgrade(reader);
    const again = await upgrade(reader);
    expect([again.status, again.headers["idempotent-replayed"]]).toEqual([200, "true"]);
    expect(again.body).toEqual(writer.body);
  });

  it("is what is left when the other ran out, margin included", async () => {
    const key = freshKey();
    const gone = await put(key, { ...SHARED, leaseMs: 5_000 });
    const reader = await put(key, SHARED);
    await service.clock.advance(5_000 + takeoverMarginMs(5_000) - 1);
    expect((await upgrade(reader)).status).toBe(423);
    await service.clock.advance(1);
    expect((await upgrade(reader)).status).toBe(200);
    expect(await release(gone.url)).toBe("lost");
  });
});

describe("the writer", () => {
  it("becomes a reader: 200, a new token, and its own as the floor; others read beside it", async () => {
    const key = freshKey();
    const writer = await put(key, { leaseMs: LEASE_MS });
    const reader = await change(writer, "shared", writer.body.fencingToken);
    expect(reader.status).toBe(200);
    expect(reader.body).toMatchObject({ mode: "shared", fenceFloor: writer.body.fencingToken });
    expect(reader.body.fencingToken).toBeGreaterThan(writer.body.fencingToken);
    const beside = await put(key, SHARED);
    expect(beside.body).toMatchObject({ mode: "shared", fenceFloor: writer.body.fencingToken });
    expect((await put(key)).status).toBe(423);
  });

  it("that was a reader before is floor for those who read after it", async () => {
    const key = freshKey();
    const reader = await put(key, SHARED);
    const writer = await upgrade(reader);
    await change(reader, "shared", writer.body.fencingToken);
    expect((await put(key, SHARED)).body.fenceFloor).toBe(writer.body.fencingToken);
  });
});

describe("while other readers remain", () => {
  it("423, with who they are; nothing changes, and the same request succeeds when they are gone", async () => {
    const key = freshKey();
    const [reader, other] = [await put(key, SHARED), await put(key, { ...SHARED, owner: "other" })];
    const refused = await upgrade(reader);
    expect(told(refused)).toEqual([423, "locked"]);
    expect(refused.body).toMatchObject({ definite: true, retry: "later", instance: `/v1/locks/${key}` });
    expect(refused.body.holders).toContainEqual(expect.objectContaining({ owner: "other", mode: "shared" }));
    expect((await get(reader.url)).body).toMatchObject({ mode: "shared", fencingToken: reader.body.fencingToken });
    await release(other.url);
    expect((await upgrade(reader)).status).toBe(200);
  });

  it("a second that asks is told of the conflict: 409; the first gets it when the second has gone", async () => {
    const key = freshKey();
    const [first, second] = [await put(key, SHARED), await put(key, SHARED)];
    expect((await upgrade(first)).status).toBe(423);
    for (const _time of [1, 2]) expect(told(await upgrade(second))).toEqual([409, "upgrade-conflict"]);
    expect((await upgrade(first)).status).toBe(423);
    await release(second.url);
    expect((await upgrade(first)).status).toBe(200);
  });

  it("the conflict ends when the first was not heard asking for so long: then the second is first", async () => {
    const key = freshKey();
    const [first, second] = [await put(key, SHARED), await put(key, SHARED)];
    await upgrade(first);
    await service.clock.advance(DEFAULTS.waiterTtlMs - 1);
    expect((await upgrade(second)).status).toBe(409);
    await service.clock.advance(1);
    expect((await upgrade(second)).status).toBe(423);
    expect(told(await upgrade(first))).toEqual([409, "upgrade-conflict"]);
  });

  it("a heartbeat is no asking", async () => {
    const key = freshKey();
    const [first, second] = [await put(key, SHARED), await put(key, SHARED)];
    await upgrade(first);
    await service.clock.advance(DEFAULTS.waiterTtlMs / 2);
    await post(`${first.url}/renew`);
    await service.clock.advance(DEFAULTS.waiterTtlMs / 2);
    expect((await upgrade(second)).status).toBe(423);
  });

  it("no new reader joins a key whose reader waits to write, until it stops asking or is gone", async () => {
    const key = freshKey();
    const [first] = [await put(key, SHARED), await put(key, SHARED)];
    await upgrade(first);
    expect(told(await put(key, SHARED))).toEqual([423, "locked"]);
    await release(first.url);
    const joins = await put(key, SHARED);
    expect(joins.status).toBe(201);
    await upgrade(joins);
    expect((await put(key, SHARED)).status).toBe(423);
    await service.clock.advance(DEFAULTS.waiterTtlMs);
    expect((await put(key, SHARED)).status).toBe(201);
  });
});

describe("a token that is not the lease's", () => {
  it("409 token-mismatch, and nothing changed", async () => {
    const reader = await put(freshKey(), SHARED);
    const token = reader.body.fencingToken as number;
    for (const fencingToken of [token - 1, token + 1, 0]) {
      expect(told(await change(reader, "exclusive", fencingToken))).toEqual([409, "token-mismatch"]);
    }
    expect((await get(reader.url)).body).toEqual(reader.body);
  });

  it("so that a duplicate of an upgrade that comes after the downgrade makes no writer", async () => {
    const key = freshKey();
    const reader = await put(key, SHARED);
    const writer = await upgrade(reader);
    const again = await change(reader, "shared", writer.body.fencingToken);
    expect(told(await upgrade(reader))).toEqual([409, "token-mismatch"]);
    expect((await get(reader.url)).body).toEqual(again.body);
    expect((await put(key, SHARED)).status).toBe(201);
    // Control: with its present token and alone, it would become the writer.
    const alone = await put(freshKey(), SHARED);
    expect((await change(alone, "exclusive", alone.body.fencingToken)).status).toBe(200);
  });
});

describe("no lease to change", () => {
  it.each(["released", "expired", "broken", "never"])("410 lease-lost, because it is %s", async (reason) => {
    const reader = await put(freshKey(), { ...SHARED, leaseMs: 5_000 });
    if (reason === "released") await release(reader.url);
    if (reason === "expired") await service.clock.advance(5_000);
    if (reason === "broken") await post(`/v1/locks/${reader.key}/break`, { reason: "stuck", fencingToken: reader.body.fencingToken });
    const url = reason === "never" ? `/v1/locks/${reader.key}/leases/${newId()}` : reader.url;
    const reply = await change({ url }, "exclusive", reader.body.fencingToken);
    expect([...told(reply), reply.body.reason]).toEqual([410, "lease-lost", reason]);
  });

  it("403 for another principal, and 409 for a permit of a semaphore", async () => {
    const reader = await put(freshKey(), SHARED, { as: "alice" });
    const theirs = await change(reader, "exclusive", reader.body.fencingToken, "bob");
    expect(told(theirs)).toEqual([403, "forbidden"]);
    expect((await get(reader.url, "alice")).body.mode).toBe("shared");
    const permit = await put(freshKey(), { limit: 2 });
    expect(told(await change(permit, "shared", permit.body.fencingToken))).toEqual([409, "limit-mismatch"]);
  });

  it.each([
    ["{}", "mode"],
    ['{"mode":"shared"}', "fencingToken"],
    ['{"mode":"writer","fencingToken":1}', "mode"],
    ['{"mode":"shared","fencingToken":-1}', "fencingToken"],
    ['{"mode":"shared","fencingToken":"1"}', "fencingToken"],
    ['{"mode":"shared","fencingToken":1,"leaseMs":5000}', "leaseMs"],
  ])("400 for %s, naming %s", async (body, field) => {
    const reply = await service.send("POST", `/v1/locks/PAGE_0/leases/${newId()}/mode`, { body });
    expect([...told(reply), reply.body.field]).toEqual([400, "invalid-request", field]);
  });
});
