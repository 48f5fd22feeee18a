/** Waiting over HTTP: a place in the queue by `Prefer: wait`, kept by polling, and an offer after the release. */
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import { type Calls, told } from "../calls.js";
import type { Suite } from "../suite.js";

/** Long enough for a request to arrive, short compared with the wait it asks for. */
const UNDER_WAY_MS = 300;

/** Places in a queue. */
// Over 60 lines: a list of tests, each of which is short.
export function queues({ it, itWith }: Suite, { newId, get, post, put, queue, hold, release }: Calls): void {
  it("gives a place by 202 to who prefers to wait, and keeps it for who asks again", async () => {
    const { key } = await hold();
    const [first, second] = [await queue(key, { owner: "a" }), await queue(key, { owner: "b" })];
    expect([first, second].map(({ status, body }) => [status, body.state, body.position])).toEqual([
      [202, "waiting", 1],
      [202, "waiting", 2],
    ]);
    for (const { headers, body } of [first, second]) expect(headers["retry-after"]).toBe(String(Math.ceil(body.retryAfterMs / 1000)));
    expect((await queue(key, { owner: "b" }, second)).body.position).toBe(2);
    const looked = await get(second.url);
    expect([looked.status, looked.body.position]).toEqual([202, 2]);
    const { body } = await get(`/v1/locks/${key}`);
    expect(body.waiters).toMatchObject([
      { owner: "a", mode: "exclusive", priority: 0, position: 1 },
      { owner: "b", position: 2 },
    ]);
  });

  it("offers the key with its release: the first has it by its next PUT, and nobody gets in between", async () => {
    const held = await hold(undefined, { leaseMs: 20_000 });
    const [first, second] = [await queue(held.key, { leaseMs: 40_000 }), await queue(held.key)];
    await release(held);
    expect((await queue(held.key, {}, second)).status).toBe(202);
    expect((await queue(held.key)).status).toBe(202);
    const claimed = await queue(held.key, { leaseMs: 40_000 }, first);
    expect([claimed.status, claimed.body.leaseMs]).toEqual([201, 40_000]);
    expect(claimed.body.fencingToken).toBeGreaterThan(held.body.fencingToken as number);
    const again = await queue(held.key, { leaseMs: 40_000 }, first);
    expect([again.status, again.headers["idempotent-replayed"]]).toEqual([200, "true"]);
  });

  it("lets a waiter leave by DELETE, for good, and its place is the next one's", async () => {
    const held = await hold();
    const [first, second] = [await queue(held.key), await queue(held.key)];
    expect(await release(first)).toBe("never");
    expect((await queue(held.key, {}, second)).body.position).toBe(1);
    expect(told(await queue(held.key, {}, first))).toEqual([410, "lease-over"]);
    await release(held);
    expect((await queue(held.key, {}, second)).status).toBe(201);
  });

  it("answers a request that waits by the grant, or by when to come again, and it is granted then", async () => {
    const held = await hold();
    const leaseId = newId();
    await queue(held.key, {}, { leaseId });
    const waiting = put(held.key, {}, { leaseId, prefer: "wait=4" });
    await sleep(UNDER_WAY_MS);
    await release(held);
    const answered = await waiting;
    expect([201, 202]).toContain(answered.status);
    expect((await queue(held.key, {}, { leaseId })).status).toBe(answered.status === 201 ? 200 : 201);
  });

  itWith("another", "keeps a place for its principal alone: 403 for any other", async () => {
    const { key } = await hold();
    const waiting = await queue(key);
    expect(told(await queue(key, {}, { leaseId: waiting.leaseId, as: "another" }))).toEqual([403, "forbidden"]);
    expect(await release(waiting, "another")).toBe(403);
    expect((await get(waiting.url)).status).toBe(202);
  });

  itWith("/v1/locks/{key}/leases/{leaseId}/notify", "frees the key for a condition, and gives it back after a notify", async () => {
    const waiting = await hold();
    const leaseId = newId();
    expect((await post(`${waiting.url}/wait`, { condition: "stocked", leaseId })).status).toBe(202);
    expect(told(await post(`${waiting.url}/wait`, { condition: "other", leaseId: newId() }))[0]).toBe(410);
    const other = await hold(waiting.key);
    expect((await queue(waiting.key, {}, { leaseId })).status).toBe(202);
    const notified = await post(`${other.url}/notify`, { condition: "stocked" });
    expect([notified.status, notified.body]).toEqual([200, { notified: 1 }]);
    await release(other);
    expect((await queue(waiting.key, {}, { leaseId })).status).toBe(201);
    expect(told(await post(`${other.url}/notify`, { condition: "stocked" }))[0]).toBe(410);
  });
}
