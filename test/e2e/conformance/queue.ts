/** Waiting over HTTP: a place in the queue by `Prefer: wait`, kept by polling, and an offer after the release. */
import { expect } from "vitest";
import { type Calls, told } from "../calls.js";
import type { Suite } from "../suite.js";

/** Places in a queue. */
export function queues({ it, itWith }: Suite, { newId, get, post, queue, hold, release }: Calls): void {
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
