/**
 * The queue over HTTP: `Prefer: wait` gives a place, a release offers the key to the next waiter, and a waiter that
 * claims its offer is granted.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DEFAULTS, LIMITS } from "../../lib/core/limits.js";
import { serve } from "../support/http-service.js";
import type { HttpService } from "../support/http-service.js";
import { kindsOn, told } from "./kinds.js";

let service: HttpService;
beforeAll(async () => void (service = await serve()));
afterAll(() => service.close());

const { freshKey, put, queue, get, post, release } = kindsOn(() => service, "QUEUE");

interface InspectedWaiter {
  readonly owner: string;
  readonly position: number;
  readonly waitingMs: number;
}

async function waitersOf(key: string): Promise<readonly InspectedWaiter[]> {
  return ((await get(`/v1/locks/${key}`)).body as { readonly waiters: readonly InspectedWaiter[] }).waiters;
}

describe("a place in the queue", () => {
  it("is given to who prefers to wait, told by 202 with its position, and kept by asking again", async () => {
    const key = freshKey();
    await put(key, {});
    const [first, second] = [await queue(key, { owner: "a" }), await queue(key, { owner: "b" })];
    expect([first, second].map(({ status, body }) => [status, body])).toEqual([
      [202, { state: "waiting", position: 1, retryAfterMs: LIMITS.pollStepMs, pollWithinMs: LIMITS.pollMaxMs }],
      [202, { state: "waiting", position: 2, retryAfterMs: 2 * LIMITS.pollStepMs, pollWithinMs: LIMITS.pollMaxMs }],
    ]);
    expect(second.headers["retry-after"]).toBe("1");
    expect((await queue(key, { owner: "b" }, second)).body).toMatchObject({ position: 2 });
    expect((await get(second.url)).status).toBe(202);
    await service.clock.advance(100);
    expect(await waitersOf(key)).toMatchObject([
      { owner: "a", mode: "exclusive", priority: 0, position: 1 },
      { owner: "b", position: 2 },
    ]);
  });

  it("is not given to who doesn't ask for one: 423, also while others wait; whose it is already keeps it", async () => {
    const key = freshKey();
    const held = await put(key, {});
    const waiting = await queue(key, {});
    expect(told(await put(key, {}))).toEqual([423, "locked"]);
    expect((await put(key, {}, waiting)).status).toBe(202);
    await release(held.url);
    expect(told(await put(key, {}))).toEqual([423, "locked"]);
  });

  it("is ahead of lower priorities and behind its own", async () => {
    const key = freshKey();
    await put(key, {});
    for (const [owner, priority] of [["c", 0] as const, ["a", 9] as const, ["b", 9] as const, ["d", 0] as const])
      await queue(key, { owner, priority });
    expect((await waitersOf(key)).map(({ owner }) => owner)).toEqual(["a", "b", "c", "d"]);
  });

  it("is nobody else's: 403 for another principal, 422 for other parameters", async () => {
    const key = freshKey();
    await put(key, {});
    const waiting = await queue(key, { owner: "a" });
    expect(told(await queue(key, { owner: "a" }, { leaseId: waiting.leaseId, as: "stranger" }))).toEqual([403, "forbidden"]);
    expect((await get(waiting.url, "stranger")).status).toBe(403);
    expect(await release(waiting.url, "stranger")).toBe(403);
    expect(told(await queue(key, { owner: "b" }, waiting))).toEqual([422, "lease-reused"]);
    expect((await get(waiting.url)).status).toBe(202);
  });

  it("is given up by DELETE, and its id never holds", async () => {
    const key = freshKey();
    const held = await put(key, {});
    const [first, second] = [await queue(key, {}), await queue(key, {})];
    expect(await release(first.url)).toBe("never");
    expect(await release(first.url)).toBe("never");
    expect((await queue(key, {}, second)).body).toMatchObject({ position: 1 });
    await release(held.url);
    expect(told(await queue(key, {}, first))).toEqual([410, "lease-over"]);
    expect((await queue(key, {}, second)).status).toBe(201);
  });

  it("is refused to the hundred-and-first: 429 queue-full, and none of the others notices", async () => {
    const key = freshKey();
    await put(key, { leaseMs: 600_000 });
    const all = await Promise.all(Array.from({ length: LIMITS.waitersMax }, () => queue(key, { owner: "checkout-7" })));
    expect(new Set(all.map(({ status }) => status))).toEqual(new Set([202]));
    expect(new Set(all.map(({ body }) => body.position as number)).size).toBeGreaterThan(1);
    const refused = await queue(key, {});
    expect(told(refused)).toEqual([429, "queue-full"]);
    expect(refused.body).toMatchObject({ definite: true, retry: "later", retryAfterMs: LIMITS.pollMaxMs });
    expect(await waitersOf(key)).toHaveLength(LIMITS.waitersMax);
  });
});

describe("a turn", () => {
  it("comes with the release: nobody gets in between, and the lease runs from the claim", async () => {
    const key = freshKey();
    const held = await put(key, {});
    const [first, second] = [await queue(key, { owner: "a", leaseMs: 20_000 }), await queue(key, { owner: "b" })];
    expect(await release(held.url)).toBe("released");
    expect((await get(first.url)).body).toMatchObject({ state: "waiting", position: 1, retryAfterMs: 0 });
    expect((await queue(key, { owner: "b" }, second)).body).toMatchObject({ state: "waiting", position: 2 });
    await service.clock.advance(1000);
    const claimed = await queue(key, { owner: "a", leaseMs: 20_000 }, first);
    expect(claimed.status).toBe(201);
    expect(claimed.body).toMatchObject({ owner: "a", leaseMs: 20_000, remainingMs: 20_000, leaseId: first.leaseId });
    expect(claimed.body.fencingToken).toBeGreaterThan(held.body.fencingToken as number);
    const again = await queue(key, { owner: "a", leaseMs: 20_000 }, first);
    expect([again.status, again.headers["idempotent-replayed"], again.body.fencingToken]).toEqual([200, "true", claimed.body.fencingToken]);
  });

  it("that nobody comes for passes on, and those who weren't heard of are passed over", async () => {
    const key = freshKey();
    const held = await put(key, {});
    const [dead, alsoDead, living] = [await queue(key, {}), await queue(key, {}), await queue(key, {})];
    await service.clock.advance(10);
    await release(held.url);
    await service.clock.advance(DEFAULTS.offerWindowMs - 1);
    expect((await queue(key, {}, living)).status).toBe(202);
    await service.clock.advance(1);
    expect((await get(living.url)).body).toMatchObject({ retryAfterMs: 0 });
    expect((await queue(key, {}, living)).status).toBe(201);
    for (const { url } of [dead, alsoDead]) expect((await get(url)).status).toBe(410);
    expect(await waitersOf(key)).toEqual([]);
  });

  it("comes to readers together, and no later reader overtakes a writer", async () => {
    const key = freshKey();
    const writer = await put(key, {});
    const readers = [await queue(key, { mode: "shared", owner: "r1" }), await queue(key, { mode: "shared", owner: "r2" })];
    const next = await queue(key, { owner: "w" });
    const late = await queue(key, { mode: "shared", owner: "r3" });
    await release(writer.url);
    for (const [index, reader] of readers.entries())
      expect((await queue(key, { mode: "shared", owner: `r${index + 1}` }, reader)).status).toBe(201);
    expect((await queue(key, { mode: "shared", owner: "r3" }, late)).status).toBe(202);
    for (const { url } of readers) await release(url);
    expect((await queue(key, { mode: "shared", owner: "r3" }, late)).status).toBe(202);
    expect((await queue(key, { owner: "w" }, next)).status).toBe(201);
  });

  it("changes the entity tag of the key; being heard of does not", async () => {
    const key = freshKey();
    const held = await put(key, {});
    const tag = async (): Promise<string | undefined> => (await get(`/v1/locks/${key}`)).headers["etag"];
    const tags = [await tag()];
    const waiting = await queue(key, {});
    tags.push(await tag());
    await service.clock.advance(DEFAULTS.waiterTtlMs / 2);
    await post(`${held.url}/renew`);
    expect((await queue(key, {}, waiting)).status).toBe(202);
    expect(await tag()).toBe(tags[1]);
    await release(held.url);
    tags.push(await tag());
    await queue(key, {}, waiting);
    tags.push(await tag());
    expect(new Set(tags).size).toBe(4);
  });
});

describe("a request that waits", () => {
  const waitFor = (key: string, seconds: number, leaseId: string) =>
    service.send("PUT", `/v1/locks/${key}/leases/${leaseId}`, { body: {}, headers: { prefer: `wait=${seconds}` } });

  it("is kept while it is next, and answered as soon as it is its turn", async () => {
    const key = freshKey();
    const held = await put(key, {});
    const { leaseId } = await queue(key, {});
    const waiting = service.clock.passUntil(waitFor(key, 5, leaseId));
    await release(held.url);
    expect((await waiting).answer.status).toBe(201);
  });

  it("is answered at once when others are ahead of it", async () => {
    const key = freshKey();
    await put(key, {});
    await queue(key, {});
    const second = await queue(key, {});
    expect((await waitFor(key, 5, second.leaseId)).body).toMatchObject({ state: "waiting", position: 2 });
  });

  it("is answered 202 after its time, at the latest after the service's own", async () => {
    const key = freshKey();
    await put(key, {});
    const { leaseId } = await queue(key, {});
    const { answer, passedMs } = await service.clock.passUntil(waitFor(key, 60, leaseId));
    expect(answer.status).toBe(202);
    expect(passedMs).toBeLessThanOrEqual(LIMITS.serverWaitMs + 1000);
  });
});
