/** Requests that the order service refuses: from strangers, to a busy order, or malformed. */
import { afterAll, beforeAll, beforeEach, describe, expect, inject, it } from "vitest";
import type { Asking } from "../../examples/orders/ask.js";
import { BUYER } from "../../examples/orders/buyer.js";
import { handlerFor } from "../../examples/orders/http.js";
import { type Counter, ACCEPT, AGREE, ASK, CANCEL, COMPLETE, openCounter, PAY, REFUSE, REVIEW } from "./orders-counter.js";

let at: Counter;
beforeAll(async () => {
  at = await openCounter(inject("engineEndpoint"));
});
afterAll(() => at.local.close());
beforeEach(() => at.restock());

describe("who has no part in an order", () => {
  it.each([
    ["GET /orders/{order}", "sue"],
    [PAY, "bob"],
    [CANCEL, "sue"],
    [ASK, "bob"],
    [REVIEW, "sue"],
    ["GET /sales/{order}", "ann"],
    [ACCEPT, "ann"],
    [COMPLETE, "sam"],
    [AGREE, "ann"],
    [REFUSE, "sam"],
  ])("is told by %s that there is none, and never holds its lock", async (routeKey, as) => {
    const order = await at.orderAfter(PAY);
    const body = routeKey === REVIEW ? { stars: 1 } : undefined;
    const { fencingToken } = await at.shop.locks.inspect(`ORDER_${order}`);
    expect(await at.tell(routeKey, { as, order, body, headers: at.keyed() })).toMatchObject({ status: 404, body: { error: "not-found" } });
    expect((await at.shop.locks.inspect(`ORDER_${order}`)).fencingToken).toBe(fencingToken);
  });

  it("is whoever the authorizer doesn't name, whatever a header says", async () => {
    const handler = handlerFor(BUYER, at.shop);
    const event = { routeKey: "GET /orders", headers: { authorization: "Bearer ann", "x-user": "ann" }, requestContext: {} };
    expect(await handler(event, { getRemainingTimeInMillis: () => 5000 })).toMatchObject({ statusCode: 401 });
  });
});

describe("an order that another request is at", () => {
  it.each([CANCEL, ACCEPT, AGREE])("is busy for %s: 423, and when to come back", async (routeKey) => {
    const order = await at.orderAfter(PAY, ASK);
    await using lease = await at.local.join().locks.acquire(`ORDER_${order}`);
    const headers = at.keyed();
    for (let tries = 1; tries <= 6; tries++) {
      const busy = await at.tell(routeKey, { order, headers, remainingMs: 1000 }); // No time to wait.
      expect(busy).toMatchObject({ status: 423, body: { error: "busy" } });
      expect(Number(busy.headers["retry-after"])).toBeGreaterThanOrEqual(1);
    }
    await lease.release();
    expect((await at.tell(routeKey, { order, headers })).status).toBe(200); // The same request, under the same key.
  });

  it.each(["GET /orders/{order}", "GET /sales/{order}", "GET /orders", "GET /sales", "GET /sales/open", "GET /sales/accepted"])(
    "doesn't keep %s waiting",
    async (routeKey) => {
      const order = await at.orderAfter(PAY);
      await using _lease = await at.local.join().locks.acquire(`ORDER_${order}`);
      expect((await at.tell(routeKey, { order, remainingMs: 1000 })).status).toBe(200);
    },
  );
});

describe("a bad request is refused with 400, naming the field", () => {
  it.each<[field: string, routeKey: string, asking: Partial<Asking>]>([
    ["Idempotency-Key", "POST /orders", { headers: {}, body: { items: { camera: 1 } } }],
    ["body", "POST /orders", { body: "{" }],
    ["body", "POST /orders", { body: "[]" }],
    ["body", "POST /orders", { body: `"${"x".repeat(17_000)}"` }],
    ["colour", "POST /orders", { body: { items: { camera: 1 }, colour: "red" } }],
    ["items", "POST /orders", { body: {} }],
    ["items", "POST /orders", { body: { items: {} } }],
    ["items", "POST /orders", { body: { items: { "a camera": 1 } } }],
    ["items", "POST /orders", { body: { items: Object.fromEntries(Array.from({ length: 21 }, (_, nth) => [`p${nth}`, 1])) } }],
    ["items.camera", "POST /orders", { body: { items: { camera: 0 } } }],
    ["items.camera", "POST /orders", { body: { items: { camera: "2" } } }],
    ["items.unheard-of", "POST /orders", { body: { items: { "unheard-of": 1 } } }],
    ["Idempotency-Key", PAY, { headers: {}, order: "1" }],
    ["Idempotency-Key", AGREE, { headers: {}, order: "1" }],
    ["stars", REVIEW, { body: { stars: 6 }, order: "1" }],
    ["stars", REVIEW, { body: { text: "fine" }, order: "1" }],
    ["text", REVIEW, { body: { stars: 4, text: 7 }, order: "1" }],
    ["status", "GET /sales", { query: { status: "LOST" } }],
    ["status", "GET /sales/open", { query: { status: "PAID" } }],
    ["product", "GET /sales", { query: { product: "a camera" } }],
    ["before", "GET /orders", { query: { before: "" } }],
  ])("%s, of %s (%#)", async (field, routeKey, asking) => {
    const { status, body } = await at.tell(routeKey, { headers: at.keyed(), ...asking });
    expect(status).toBe(400);
    expect(body).toMatchObject({ error: "bad-request", field, detail: expect.stringContaining(`${field}: `) as string });
  });

  it("items of two sellers in one order", async () => {
    await at.local.stockUp("others-lens", 5, "sam");
    const told = await at.place({ body: { items: { [at.camera]: 1, "others-lens": 1 } } });
    expect(told).toMatchObject({ status: 400, body: { field: "items.others-lens" } });
  });

  it("but a path that names no order is 404", async () => {
    expect(await at.tell(CANCEL, { order: "../1" })).toMatchObject({ status: 404 });
    expect(
      await handlerFor(BUYER, at.shop)({ routeKey: "GET /", headers: {}, requestContext: {} }, { getRemainingTimeInMillis: () => 5000 }),
    ).toMatchObject({
      statusCode: 404,
    });
  });
});
