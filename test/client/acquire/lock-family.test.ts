/** Regressions: sets, scopes and segments that got something other than they asked for. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createHarness } from "../harness.js";
import { told } from "../../e2e/calls.js";
import { localCalls } from "../../lambda/local-calls.js";
import { type HttpService, serve } from "../../support/http-service.js";

const LEASE_MS = 20_000;

let service: HttpService;
beforeAll(async () => void (service = await serve()));
afterAll(() => service.close());
const { freshKey, newId, get } = localCalls(() => service, "FAMILY");

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

describe("segments", () => {
  it("tried inside of work under one of them: the next", async () => {
    const { locks } = createHarness({ random: () => 0 });
    const stock = locks.segments("STOCK", 2);
    expect(await stock.withLock(async () => (await stock.tryAcquire())?.key)).toBe("STOCK:1");
  });
});

describe("a scope", () => {
  it("of 15 characters is too short, also if one of them takes two units of UTF-16", () => {
    const { locks } = createHarness();
    const tooShort = `${"x".repeat(14)}𝒳`;
    expect(() => locks.scope(tooShort)).toThrow(expect.objectContaining({ field: "scope" }));
    expect(() => locks.scope(`${tooShort}x`)).not.toThrow();
  });
});
