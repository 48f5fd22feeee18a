/** Conditions over HTTP: `POST …/wait` and `POST …/notify`. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LIMITS } from "../../lib/core/limits.js";
import type { HttpService } from "../support/http-service.js";
import { serve } from "../support/http-service.js";
import { kindsOn, told } from "./kinds.js";

let service: HttpService;
beforeAll(async () => void (service = await serve()));
afterAll(() => service.close());
const { freshKey, newId, put, queue, get, post, release } = kindsOn(() => service, "STOCK");

/** A lease that waits for `condition`, and its new leaseId. */
async function waiter(key: string, condition = "filled", body: object = {}) {
  const held = await put(key, body);
  const leaseId = newId();
  const reply = await post(`${held.url}/wait`, { condition, leaseId, ...body });
  return { held, leaseId, url: `/v1/locks/${key}/leases/${leaseId}`, reply };
}

describe("a wait", () => {
  it("is 202 with the condition, and frees the key", async () => {
    const key = freshKey();
    const { held, reply, url } = await waiter(key);
    expect([reply.status, reply.headers["retry-after"], reply.body]).toEqual([
      202,
      "1",
      { state: "waiting", position: 1, retryAfterMs: LIMITS.pollStepMs, pollWithinMs: LIMITS.pollMaxMs, condition: "filled" },
    ]);
    expect(told(await get(held.url))).toEqual([410, "lease-lost"]);
    expect((await get(url)).body).toMatchObject({ state: "waiting", condition: "filled" });
    expect((await put(key)).status).toBe(201);
  });

  it("takes the key back with the same acquire, and refuses another", async () => {
    const key = freshKey();
    const { leaseId, url } = await waiter(key, "filled", { leaseMs: 60_000, owner: "packer-1", meta: { step: 2 } });
    const filler = await put(key);
    await post(`${filler.url}/notify`, { condition: "filled" });
    await release(filler.url);
    expect(told(await queue(key, { leaseMs: 5_000 }, { leaseId }))).toEqual([422, "lease-reused"]);
    const back = await queue(key, { leaseMs: 60_000, owner: "packer-1", meta: { step: 2 } }, { leaseId });
    expect([back.status, back.body.owner, back.body.meta]).toEqual([201, "packer-1", { step: 2 }]);
    expect(back.body.fencingToken).toBeGreaterThan(filler.body.fencingToken as number);
    expect(await release(url)).toBe("released");
  });

  it("is shown by an inspection, with another entity tag", async () => {
    const key = freshKey();
    const free = await get(`/v1/locks/${key}`);
    await waiter(key, "filled", { owner: "packer-1" });
    const shown = await get(`/v1/locks/${key}`);
    expect(shown.body).toMatchObject({ holders: [], waiters: [], waitSet: [{ owner: "packer-1", condition: "filled" }] });
    expect(shown.headers["etag"]).not.toBe(free.headers["etag"]);
  });

  it.each([
    ["a reader", { mode: "shared" }],
    ["a permit", { limit: 3 }],
  ])("is 409 not-exclusive for %s, as is a notify", async (_who, body) => {
    const held = await put(freshKey(), body);
    const refused = await post(`${held.url}/wait`, { condition: "filled", leaseId: newId() });
    expect([...told(refused), refused.body.definite, refused.body.retry]).toEqual([409, "not-exclusive", true, "never"]);
    expect(told(await post(`${held.url}/notify`, { condition: "filled" }))).toEqual([409, "not-exclusive"]);
    expect((await get(held.url)).status).toBe(200);
  });
});

describe("a notify", () => {
  it("says how many it woke, and a repeated one says the same and wakes no other", async () => {
    const key = freshKey();
    const [first, second] = [await waiter(key), await waiter(key)];
    const filler = await put(key);
    const once = await post(`${filler.url}/notify`, { condition: "filled", sequence: 1 });
    expect([once.status, once.body, once.headers["idempotent-replayed"]]).toEqual([200, { notified: 1 }, undefined]);
    const again = await post(`${filler.url}/notify`, { condition: "filled", sequence: 1 });
    expect([again.status, again.body, again.headers["idempotent-replayed"]]).toEqual([200, { notified: 1 }, "true"]);
    expect((await get(first.url)).body).not.toHaveProperty("condition");
    expect((await get(second.url)).body).toMatchObject({ condition: "filled" });
  });

  it("wakes all with `all`, and none of another condition", async () => {
    const key = freshKey();
    for (const condition of ["filled", "emptied", "filled"]) await waiter(key, condition);
    const filler = await put(key);
    expect((await post(`${filler.url}/notify`, { condition: "filled", all: true })).body).toEqual({ notified: 2 });
    expect((await get(`/v1/locks/${key}`)).body).toMatchObject({ waiters: [{}, {}], waitSet: [{ condition: "emptied" }] });
  });

  it("is 410 for a lease that has ended", async () => {
    const held = await put(freshKey());
    await release(held.url);
    expect(told(await post(`${held.url}/notify`, { condition: "filled" }))).toEqual([410, "lease-lost"]);
    expect(told(await post(`${held.url}/wait`, { condition: "filled", leaseId: newId() }))).toEqual([410, "lease-lost"]);
  });
});

describe("the log", () => {
  it("says who waits for which condition, and who was woken", async () => {
    const key = freshKey();
    await waiter(key);
    const filler = await put(key);
    const from = service.lines.length;
    await post(`${filler.url}/notify`, { condition: "filled" });
    expect(service.lines.slice(from)).toMatchObject([{ event: "queued", condition: "filled", position: 1 }]);
    expect(
      service.lines
        .slice(0, from)
        .filter(({ event }) => event === "waiting")
        .at(-1),
    ).toMatchObject({ condition: "filled" });
  });
});
