/** Lock sets over HTTP: acquired as a whole or not at all, and their further life. */
import * as v from "valibot";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { takeoverMarginMs } from "../../lib/core/limits.js";
import { ANSWERS } from "../../lib/contract/answers.js";
import { serve } from "../support/http-service.js";
import type { HttpService } from "../support/http-service.js";
import type { Reply } from "../support/reply.js";
import { kindsOn, told } from "./kinds.js";

let service: HttpService;
beforeAll(async () => void (service = await serve()));
afterAll(() => service.close());

const LEASE_MS = 20_000;
const { freshKey, newId, put, get, post, release } = kindsOn(() => service, "ITEM");
const freshKeys = (count: number): string[] => Array.from({ length: count }, freshKey);
const setUrl = (leaseId: string): string => `/v1/lock-sets/${leaseId}`;
const putSet = (leaseId: string, body: object, as?: string): Promise<Reply> =>
  service.send("PUT", setUrl(leaseId), { body, ...(as !== undefined && { as }) });
const leaseUrl = (key: string, leaseId: string): string => `/v1/locks/${key}/leases/${leaseId}`;
const holdersOf = async (key: string): Promise<readonly { readonly owner: string; readonly mode: string }[]> =>
  (await get(`/v1/locks/${key}`)).body.holders;

describe("a set", () => {
  it("is granted whole: 201, one leaseId, a token for each key", async () => {
    const [keys, leaseId] = [freshKeys(3), newId()];
    const { status, body } = await putSet(leaseId, { keys, leaseMs: LEASE_MS, owner: "cart" });
    expect(status).toBe(201);
    expect(v.safeParse(ANSWERS.LeaseSet, body).issues).toBeUndefined();
    expect(body).toMatchObject({ leaseId, leaseMs: LEASE_MS, remainingMs: LEASE_MS, renewAfterMs: Math.floor(LEASE_MS / 3) });
    expect(Object.keys(body.fencingTokens).sort()).toEqual([...keys].sort());
    for (const key of keys) {
      expect(await holdersOf(key)).toMatchObject([{ owner: "cart", mode: "exclusive", fencingToken: body.fencingTokens[key] }]);
      expect((await get(leaseUrl(key, leaseId))).status).toBe(200);
    }
  });

  it("is the same when it is asked for again: 200, the same tokens, not extended, and says that it is a replay", async () => {
    const [keys, leaseId] = [freshKeys(2), newId()];
    const first = await putSet(leaseId, { keys, leaseMs: LEASE_MS });
    await service.clock.advance(3_000);
    const again = await putSet(leaseId, { keys: keys.toReversed(), leaseMs: LEASE_MS });
    expect([again.status, again.headers["idempotent-replayed"]]).toEqual([200, "true"]);
    expect(again.body).toMatchObject({ fencingTokens: first.body.fencingTokens, remainingMs: LEASE_MS - 3_000 });
    expect(told(await putSet(leaseId, { keys, leaseMs: LEASE_MS + 1 }))).toEqual([422, "lease-reused"]);
    expect(told(await putSet(leaseId, { keys, leaseMs: LEASE_MS }, "bob"))).toEqual([403, "forbidden"]);
  });

  it("is refused whole while one of its keys is held: 423, with the keys that are in the way, and the others stay free", async () => {
    const keys = freshKeys(4);
    await put(keys[1]!, { owner: "rival" });
    await put(keys[3]!, { mode: "shared" });
    const refused = await putSet(newId(), { keys });
    expect(told(refused)).toEqual([423, "locked"]);
    expect(refused.body).toMatchObject({ definite: true, retry: "later", blocking: [keys[1], keys[3]] });
    expect(refused.body.retryAfterMs).toBe(30_000 + takeoverMarginMs(30_000));
    expect(refused.body).not.toHaveProperty("instance");
    for (const key of [keys[0]!, keys[2]!]) expect(await holdersOf(key)).toEqual([]);
    const rest = await putSet(newId(), { keys: [keys[0], keys[2]] });
    expect(rest.status).toBe(201);
  });

  it("means a key once that it names twice, and takes up to 25 of them", async () => {
    const keys = freshKeys(2);
    const twice = await putSet(newId(), { keys: [...keys, ...keys] });
    expect([twice.status, Object.keys(twice.body.fencingTokens).length]).toEqual([201, 2]);
    const many = freshKeys(25);
    const leaseId = newId();
    expect((await putSet(leaseId, { keys: many })).status).toBe(201);
    expect(Object.keys((await post(`${setUrl(leaseId)}/release`, { keys: many })).body.states)).toHaveLength(25);
  });

  it("takes a mode for each key: readers beside readers", async () => {
    const [read, written] = [freshKey(), freshKey()];
    await put(read, { mode: "shared" });
    const body = { locks: [{ key: read, mode: "shared" }, { key: written }] };
    expect((await putSet(newId(), body)).status).toBe(201);
    expect((await holdersOf(read)).map(({ mode }) => mode)).toEqual(["shared", "shared"]);
    expect((await holdersOf(written)).map(({ mode }) => mode)).toEqual(["exclusive"]);
    const both = await putSet(newId(), body);
    expect([...told(both), both.body.blocking]).toEqual([423, "locked", [written]]);
  });

  it("takes over what ran out, together with what is free", async () => {
    const keys = freshKeys(2);
    const gone = await put(keys[0]!, { leaseMs: LEASE_MS });
    await service.clock.advance(LEASE_MS + takeoverMarginMs(LEASE_MS) - 1);
    expect((await putSet(newId(), { keys })).status).toBe(423);
    await service.clock.advance(1);
    const { status, body } = await putSet(newId(), { keys });
    expect(status).toBe(201);
    expect(body.fencingTokens[keys[0]!]).toBeGreaterThan(gone.body.fencingToken);
    expect(await release(gone.url)).toBe("lost");
  });

  it("of keys in use with a limit is 409 limit-mismatch, and says of which", async () => {
    const keys = freshKeys(2);
    await put(keys[1]!, { limit: 3 });
    const refused = await putSet(newId(), { keys });
    expect(told(refused)).toEqual([409, "limit-mismatch"]);
    expect(refused.body.detail).toContain(keys[1]);
    expect(await holdersOf(keys[0]!)).toEqual([]);
  });

  it("of a scope nests in what that scope holds, and its inner release frees nothing of the outer's", async () => {
    const scope = "trace-00f067aa0ba902b7";
    const keys = freshKeys(2);
    const outer = await put(keys[0]!, { scope });
    const leaseId = newId();
    expect((await putSet(newId(), { keys })).status).toBe(423);
    const inner = await putSet(leaseId, { keys, scope });
    expect(inner.status).toBe(201);
    expect(inner.body.fencingTokens[keys[0]!]).toBe(outer.body.fencingToken);
    expect((await get(outer.url)).body.holdCount).toBe(2);
    expect((await post(`${setUrl(leaseId)}/release`, { keys })).body.states).toEqual({ [keys[0]!]: "released", [keys[1]!]: "released" });
    expect((await get(outer.url)).body.holdCount).toBe(1);
    expect((await putSet(newId(), { keys })).body.blocking).toEqual([keys[0]]);
  });
});

describe("a race for overlapping sets", () => {
  it("is won by one of each two that overlap, and nobody is left with a part", async () => {
    const ring = freshKeys(6);
    const ids = ring.map(() => newId());
    const overlapping = ring.map((key, index) => [key, ring[(index + 1) % ring.length]!]);
    const replies = await Promise.all(overlapping.map((keys, index) => putSet(ids[index]!, { keys })));
    expect(replies.every(({ status }) => status === 201 || status === 423)).toBe(true);
    const won = replies.flatMap(({ status }, index) => (status === 201 ? overlapping[index]! : []));
    expect(won.length).toBeGreaterThan(0);
    expect(new Set(won).size).toBe(won.length);
    const held = (await Promise.all(ring.map(holdersOf))).map((holders) => holders.length);
    expect(held).toEqual(ring.map((key) => (won.includes(key) ? 1 : 0)));
  });

  it("control: sets that don't overlap all win", async () => {
    const pairs = Array.from({ length: 4 }, () => freshKeys(2));
    const replies = await Promise.all(pairs.map((keys) => putSet(newId(), { keys })));
    expect(replies.map(({ status }) => status)).toEqual([201, 201, 201, 201]);
  });
});
