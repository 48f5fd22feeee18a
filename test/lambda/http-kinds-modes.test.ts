/** Readers and writers over HTTP: their compatibility, and their visible fields. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { takeoverMarginMs } from "../../lib/core/limits.js";
import { serve } from "../support/http-service.js";
import type { HttpService } from "../support/http-service.js";
import { kindsOn, told } from "./kinds.js";

let service: HttpService;
beforeAll(async () => void (service = await serve()));
afterAll(() => service.close());

const LEASE_MS = 20_000;
const SHARED = { mode: "shared", leaseMs: LEASE_MS };
const { freshKey, put, get, post, release } = kindsOn(() => service, "SHELF");

describe("shared leases", () => {
  it("hold together, each with a token of its own and the floor that a resource compares", async () => {
    const key = freshKey();
    const writer = await put(key);
    await release(writer.url);
    const readers = [await put(key, SHARED), await put(key, SHARED, { as: "bob" }), await put(key, SHARED)];
    expect(readers.map(({ status }) => status)).toEqual([201, 201, 201]);
    const tokens = readers.map(({ body }) => body.fencingToken);
    expect(tokens).toEqual([...new Set([writer.body.fencingToken, ...tokens])].sort((a, b) => a - b).slice(1));
    for (const { body } of readers) {
      expect(body).toMatchObject({ mode: "shared", permits: 1, holdCount: 1, fenceFloor: tokens[0] });
    }
  });

  it("of a key that was never held exclusively have the token of the first one as their floor", async () => {
    const key = freshKey();
    const [first, second] = [await put(key, SHARED), await put(key, SHARED)];
    expect([first.body.fenceFloor, second.body.fenceFloor]).toEqual([first.body.fencingToken, first.body.fencingToken]);
    expect(second.body.fencingToken).toBeGreaterThan(first.body.fencingToken);
  });

  it("keep a writer out until the last of them is gone: 423, with every reader", async () => {
    const key = freshKey();
    const readers = [await put(key, { ...SHARED, owner: "a" }), await put(key, { ...SHARED, owner: "b" })];
    const refused = await put(key, { owner: "writer" });
    expect(told(refused)).toEqual([423, "locked"]);
    expect(refused.body.holders).toMatchObject([
      { owner: "a", mode: "shared", permits: 1, fencingToken: readers[0]!.body.fencingToken },
      { owner: "b", mode: "shared", permits: 1, fencingToken: readers[1]!.body.fencingToken },
    ]);
    expect(await release(readers[0]!.url)).toBe("released");
    expect((await put(key)).status).toBe(423);
    expect(await release(readers[1]!.url)).toBe("released");
    expect((await put(key)).status).toBe(201);
  });

  it("are kept out by a writer, and carry no floor in an exclusive lease", async () => {
    const key = freshKey();
    const writer = await put(key, { mode: "exclusive" });
    expect(writer.body).not.toHaveProperty("fenceFloor");
    expect(told(await put(key, SHARED))).toEqual([423, "locked"]);
    await release(writer.url);
    expect((await put(key, SHARED)).status).toBe(201);
  });

  it("end each by itself: one that ran out keeps a writer out for its margin, and no reader", async () => {
    const key = freshKey();
    const early = await put(key, SHARED);
    await service.clock.advance(LEASE_MS / 2);
    const late = await put(key, SHARED);
    await service.clock.advance(LEASE_MS / 2);
    expect((await get(early.url)).body.reason).toBe("expired");
    expect((await get(late.url)).status).toBe(200);
    await release(late.url);
    await service.clock.advance(takeoverMarginMs(LEASE_MS) - 1);
    expect((await put(key)).status).toBe(423);
    expect((await put(key, SHARED)).status).toBe(201);
  });

  it("are replayed, renewed and told like any other", async () => {
    const key = freshKey();
    const first = await put(key, SHARED);
    await put(key, SHARED);
    await service.clock.advance(1_000);
    const again = await put(key, SHARED, { leaseId: first.leaseId });
    expect([again.status, again.headers["idempotent-replayed"]]).toEqual([200, "true"]);
    expect(again.body).toMatchObject({ fencingToken: first.body.fencingToken, mode: "shared", remainingMs: LEASE_MS - 1_000 });
    expect(told(await put(key, { ...SHARED, mode: "exclusive" }, { leaseId: first.leaseId }))).toEqual([422, "lease-reused"]);
    const renewed = await post(`${first.url}/renew`);
    expect(renewed.body).toMatchObject({ mode: "shared", remainingMs: LEASE_MS, fencingToken: first.body.fencingToken });
    expect((await get(first.url)).body).toEqual(renewed.body);
  });
});

describe("an inspection", () => {
  const tagOf = async (key: string): Promise<string | undefined> => (await get(`/v1/locks/${key}`)).headers["etag"];

  it("shows every reader, in the order of their grants, and no limit", async () => {
    const key = freshKey();
    await put(key, { ...SHARED, owner: "a" });
    await service.clock.advance(500);
    await put(key, { ...SHARED, owner: "b" });
    const { body } = await get(`/v1/locks/${key}`);
    expect(body).toMatchObject({ key, mode: "shared", waiters: [] });
    expect(body.holders).toMatchObject([
      { owner: "a", mode: "shared", heldMs: 500, remainingMs: LEASE_MS - 500 },
      { owner: "b", mode: "shared", heldMs: 0, remainingMs: LEASE_MS },
    ]);
    expect(body).not.toHaveProperty("limit");
  });

  it("has another ETag when a reader comes, goes or becomes the writer, and the same after a heartbeat", async () => {
    const key = freshKey();
    const tags = [await tagOf(key)];
    const first = await put(key, SHARED);
    tags.push(await tagOf(key));
    const second = await put(key, SHARED);
    tags.push(await tagOf(key));
    await post(`${first.url}/renew`);
    await post(`${second.url}/renew`);
    expect(await tagOf(key)).toBe(tags.at(-1));
    await release(second.url);
    tags.push(await tagOf(key));
    await post(`${first.url}/mode`, { mode: "exclusive", fencingToken: first.body.fencingToken });
    tags.push(await tagOf(key));
    await release(first.url);
    tags.push(await tagOf(key));
    expect(new Set(tags).size).toBe(tags.length);
    const unchanged = await service.send("GET", `/v1/locks/${key}`, { headers: { "if-none-match": tags.at(-1)! } });
    expect([unchanged.status, unchanged.text]).toEqual([304, ""]);
  });
});
