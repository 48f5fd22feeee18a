/** Sets, reentrant holds and segments that got something other than they asked for. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createHarness } from "../client/harness.js";
import { kindsOn, told } from "../lambda/kinds.js";
import { serve } from "../support/http-service.js";
import type { HttpService } from "../support/http-service.js";

const LEASE_MS = 20_000;
const SCOPE = "trace-4bf92f3577b34da6a3ce929d0e0e4736";

let service: HttpService;
beforeAll(async () => void (service = await serve()));
afterAll(() => service.close());
const { freshKey, newId, put, get, release } = kindsOn(() => service, "FAMILY");

describe("an inspection", () => {
  it("has another ETag when one level of a scope took the place of another", async () => {
    const key = freshKey();
    await put(key, { scope: SCOPE, owner: "outer" });
    const first = await put(key, { scope: SCOPE, owner: "first" });
    const before = await get(`/v1/locks/${key}`);
    await release(first.url);
    await put(key, { scope: SCOPE, owner: "second" });
    const after = await get(`/v1/locks/${key}`);
    expect(JSON.stringify(after.body.holders)).not.toBe(JSON.stringify(before.body.holders));
    expect(after.headers["etag"]).not.toBe(before.headers["etag"]);
  });
});

describe("a set", () => {
  it("that names a key in both modes means the stronger, in whatever order", async () => {
    for (const modes of [
      ["exclusive", "shared"],
      ["shared", "exclusive"],
      [undefined, "shared"],
    ]) {
      const key = freshKey();
      const locks = modes.map((mode) => ({ key, ...(mode !== undefined && { mode }) }));
      await service.send("PUT", `/v1/lock-sets/${newId()}`, { body: { locks } });
      expect((await get(`/v1/locks/${key}`)).body.holders).toMatchObject([{ mode: "exclusive" }]);
    }
  });

  it("that names a key in both modes means the stronger, in the client too", async () => {
    const { locks, rival } = createHarness();
    await locks.acquireAll([{ key: "A" }, { key: "A", mode: "shared" }]);
    expect((await rival.inspect("A")).holders).toMatchObject([{ mode: "exclusive" }]);
  });

  it("under a leaseId that holds another set is 422 lease-reused, whether it overlaps or is a part", async () => {
    const [a, b, c] = [freshKey(), freshKey(), freshKey()];
    const leaseId = newId();
    const putSet = (keys: readonly string[]) => service.send("PUT", `/v1/lock-sets/${leaseId}`, { body: { keys, leaseMs: LEASE_MS } });
    expect((await putSet([a, b])).status).toBe(201);
    expect(told(await putSet([a, c]))).toEqual([422, "lease-reused"]);
    expect((await get(`/v1/locks/${c}`)).body.holders).toEqual([]);
    expect(told(await putSet([a]))).toEqual([422, "lease-reused"]);
  });

  it("waits for a reader's place beside readers no longer than the writer is in its way", async () => {
    const { clock, locks, rival } = createHarness();
    const writer = await rival.acquire("A");
    const waiting = locks.acquireAll([{ key: "A", mode: "shared" }, "B"], { waitMs: 10_000 });
    await clock.advance(500);
    // The writer becomes a reader, which leaves room for other readers.
    await writer.downgrade();
    const set = await clock.settle(waiting);
    expect(set.isHeld()).toBe(true);
  });

  it("that was lost to a break is told so, as a single lease is", async () => {
    const { clock, locks, rival } = createHarness();
    const set = await locks.acquireAll(["A", "B"], { leaseMs: 9000 });
    await rival.forceRelease("A", { reason: "test", fencingToken: set.fencingTokens["A"]! });
    await clock.advance(3000);
    expect(set.signal.reason).toMatchObject({ name: "LockLostError", reason: "broken" });
  });
});

describe("a level that asks for more permits than its scope has", () => {
  it("is not told that it was granted what it did not get", async () => {
    const key = freshKey();
    await put(key, { limit: 3, permits: 1, scope: SCOPE });
    const more = await put(key, { limit: 3, permits: 3, scope: SCOPE });
    expect(more.status === 201 ? more.body.permits : 3).toBe(3);
  });
});

describe("segments", () => {
  it("tried inside of work under one of them: the next, not a self-deadlock", async () => {
    const { locks } = createHarness({ random: () => 0 });
    const stock = locks.segments("STOCK", 2);
    expect(await stock.withLock(async () => (await stock.tryAcquire())?.key)).toBe("STOCK:1");
  });
});
