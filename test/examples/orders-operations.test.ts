/** The fifteen operations of the order service, one by one: their effects and responses. */
import { afterAll, beforeAll, beforeEach, describe, expect, inject, it } from "vitest";
import { type Asking, ask } from "../../examples/orders/ask.js";
import { carrierAt } from "../../examples/orders/carrier.js";
import { PRICE } from "../../examples/orders/local.js";
import type { Shop } from "../../examples/orders/shop.js";
import { providerAt } from "../../examples/payments/provider.js";
import { type Counter, ACCEPT, AGREE, ASK, CANCEL, COMPLETE, openCounter, PAY, REFUSE, REVIEW, STOCK } from "./orders-counter.js";

let at: Counter;
beforeAll(async () => {
  at = await openCounter(inject("engineEndpoint"));
});
afterAll(() => at.local.close());
beforeEach(() => at.restock());

describe("a buyer", () => {
  it("places an order: it has a price and its goods are taken from stock", async () => {
    const { status, body } = await at.place();
    expect(status).toBe(201);
    expect(body).toEqual({
      id: expect.any(String) as string,
      buyer: "ann",
      seller: "sue",
      items: { [at.camera]: 2 },
      total: 2 * PRICE,
      status: "PLACED",
      refund: "NONE",
    });
    expect(await at.local.pieces(at.camera)).toBe(STOCK - 2);
  });

  it("places one order with a form that is sent twice, and is answered the same", async () => {
    const headers = at.keyed();
    const [first, second] = [await at.place({ headers }), await at.place({ headers })];
    expect(second).toEqual({ ...first, headers: { ...first.headers, "idempotent-replayed": "true" } });
    expect(await at.local.pieces(at.camera)).toBe(STOCK - 2);
    expect(await at.place({ headers, body: { items: { [at.camera]: 1 } } })).toMatchObject({ status: 422, body: { error: "key-reused" } });
  });

  it("shares no key with another buyer", async () => {
    const headers = at.keyed();
    const [ann, bob] = [await at.place({ headers }), await at.place({ headers, as: "bob" })];
    expect([bob.status, bob.body.buyer]).toEqual([201, "bob"]);
    expect(bob.body.id).not.toBe(ann.body.id);
  });

  it("gets all of an order or nothing, and is told what there is too little of", async () => {
    const lens = at.fresh("lens");
    await at.local.stockUp(lens, 1);
    const headers = at.keyed();
    const greedy = { headers, body: { items: { [at.camera]: 2, [lens]: 2 } } };
    expect(await at.place(greedy)).toMatchObject({ status: 409, body: { error: "sold-out", field: `items.${lens}` } });
    expect([await at.local.pieces(at.camera), await at.local.pieces(lens)]).toEqual([STOCK, 1]);
    // A late duplicate of a refused request doesn't succeed after all.
    await at.local.stockUp(lens, 9);
    expect(await at.place(greedy)).toMatchObject({ status: 409, headers: { "idempotent-replayed": "true" } });
    expect((await at.place({ ...greedy, headers: at.keyed() })).status).toBe(201);
  });

  it("buys the last piece or is told that there is none, however many want it", async () => {
    const asked = Array.from({ length: 8 }, () =>
      ask(at.local.join(), "POST /orders", { as: "ann", headers: at.keyed(), body: { items: { [at.camera]: 3 } } }),
    );
    const told = await Promise.all(asked);
    expect(told.map(({ status }) => status).toSorted()).toEqual([201, 201, 201, 409, 409, 409, 409, 409]);
    expect(await at.local.pieces(at.camera)).toBe(STOCK - 9);
  });

  it("pays once, with one tab or two", async () => {
    const order = await at.orderAfter();
    const before = at.local.provider.moved.length;
    const headers = at.keyed();
    expect(await at.tell(PAY, { order, headers })).toMatchObject({ status: 200, body: { status: "PAID" } });
    expect(await at.tell(PAY, { order, headers })).toMatchObject({ status: 200, headers: { "idempotent-replayed": "true" } });
    expect(await at.tell(PAY, { order, headers: at.keyed() })).toMatchObject({ status: 409, body: { status: "PAID" } });
    expect(at.local.provider.moved.slice(before)).toEqual([2 * PRICE]);
  });

  it("is told that the provider declined, and has an order that isn't paid", async () => {
    const order = await at.orderAfter();
    // This provider refuses another amount under the order's key.
    await providerAt(at.local.provider.url).charge({ payment: "another", amount: 1 }, `ORDER_${order}_CHARGE`);
    expect(await at.tell(PAY, { order, headers: at.keyed() })).toMatchObject({ status: 402, body: { error: "declined" } });
    expect((await at.tell("GET /orders/{order}", { order })).body.status).toBe("PLACED");
  });

  it("sees their own orders, newest first, and nobody else's", async () => {
    const as = at.fresh("zoe");
    const ids = [await at.place({ as }), await at.place({ as }), await at.place({ as })].map(({ body }) => body.id as string);
    const { body } = await at.tell("GET /orders", { as });
    expect(body.orders.map(({ id }: { id: string }) => id)).toEqual(ids.toReversed());
    const before = await at.tell("GET /orders", { as, query: { before: ids[2]! } });
    expect(before.body.orders.map(({ id }: { id: string }) => id)).toEqual([ids[1], ids[0]]);
    expect((await at.tell("GET /orders", { as: at.fresh("yan") })).body).toEqual({ orders: [] });
    expect((await at.tell("GET /orders/{order}", { as, order: ids[0]! })).body).toMatchObject({ id: ids[0], status: "PLACED" });
  });

  it("cancels before the seller accepts: money and goods go back", async () => {
    const before = at.local.provider.moved.length;
    const order = await at.orderAfter(PAY, CANCEL);
    expect(at.local.provider.moved.slice(before)).toEqual([2 * PRICE, -2 * PRICE]);
    expect(await at.local.pieces(at.camera)).toBe(STOCK);
    expect(await at.tell(CANCEL, { order })).toMatchObject({ status: 409, body: { status: "CANCELLED" } });
    expect(await at.local.pieces(at.camera)).toBe(STOCK);
  });

  it("cancels what isn't paid: the goods go back, and the provider is asked to move nothing", async () => {
    const before = at.local.provider.keys.length;
    await at.orderAfter(CANCEL);
    expect(await at.local.pieces(at.camera)).toBe(STOCK);
    expect(at.local.provider.keys).toHaveLength(before);
  });

  it("asks for a refund, once", async () => {
    const order = await at.orderAfter(PAY, ACCEPT, COMPLETE, ASK);
    expect(await at.tell(ASK, { order })).toMatchObject({ status: 409, body: { status: "COMPLETED", refund: "ASKED" } });
  });

  it("reviews a complete order, once", async () => {
    const order = await at.orderAfter(PAY, ACCEPT);
    const body = { stars: 5, text: "sharp" };
    expect(await at.tell(REVIEW, { order, body })).toMatchObject({ status: 409, body: { detail: "review: the order is ACCEPTED" } });
    await at.tell(COMPLETE, { order });
    expect(await at.tell(REVIEW, { order, body })).toMatchObject({ status: 200, body: { review: body } });
    expect(await at.tell(REVIEW, { order, body: { stars: 1 } })).toMatchObject({
      status: 409,
      body: { detail: "review: the order has one already" },
    });
    expect(await at.tell(REVIEW, { order, body, as: "bob" })).toMatchObject({ status: 404 });
  });
});

describe("a seller", () => {
  it("finds their orders by product and status, the open and the accepted ones, and shows one", async () => {
    const open = await at.orderAfter(PAY);
    const accepted = await at.orderAfter(PAY, ACCEPT);
    const placed = await at.orderAfter();
    const query = { product: at.camera };
    const found = async (routeKey: string, asking: Partial<Asking> = {}): Promise<string[]> =>
      (await at.tell(routeKey, asking)).body.orders
        .map(({ id }: { id: string }) => id)
        .filter((id: string) => [open, accepted, placed].includes(id));
    expect(await found("GET /sales", { query })).toEqual([placed, accepted, open]);
    expect(await found("GET /sales", { query: { ...query, status: "PLACED" } })).toEqual([placed]);
    expect(await found("GET /sales", { query, as: "sam" })).toEqual([]);
    expect(await found("GET /sales/open")).toEqual([open]);
    expect(await found("GET /sales/accepted")).toEqual([accepted]);
    expect((await at.tell("GET /sales/{order}", { order: open })).body).toMatchObject({ id: open, buyer: "ann", status: "PAID" });
  });

  it("gets a long list in pages that join without a gap", async () => {
    const seller = at.fresh("sal");
    const ids = Array.from({ length: 53 }, () => at.shop.newId());
    const filed = { buyer: "ann", seller, items: {}, total: 0, status: "PAID", refund: "NONE" } as const;
    await Promise.all(ids.map((id) => at.shop.orders.place({ id, ...filed })));
    const first = (await at.tell("GET /sales", { as: seller })).body;
    const second = (await at.tell("GET /sales", { as: seller, query: { before: first.next as string } })).body;
    expect([...first.orders, ...second.orders].map(({ id }: { id: string }) => id)).toEqual(ids.toReversed());
    expect([first.orders.length, second.next]).toEqual([50, undefined]);
  });

  it("accepts a paid order, which books one pickup, and completes it", async () => {
    const order = await at.orderAfter();
    expect(await at.tell(ACCEPT, { order })).toMatchObject({ status: 409, body: { detail: "accept: the order is PLACED" } });
    await at.tell(PAY, { order, headers: at.keyed() });
    expect(await at.tell(COMPLETE, { order })).toMatchObject({ status: 409, body: { status: "PAID" } });
    expect(await at.tell(ACCEPT, { order })).toMatchObject({ status: 200, body: { status: "ACCEPTED" } });
    expect(await at.tell(ACCEPT, { order })).toMatchObject({ status: 409, body: { status: "ACCEPTED" } });
    expect(at.local.carrier.pickups.filter((one) => one === order)).toEqual([order]);
    expect(await at.tell(COMPLETE, { order })).toMatchObject({ status: 200, body: { status: "COMPLETED" } });
  });

  it("accepts when asked again, if the carrier didn't answer the first time", async () => {
    const order = await at.orderAfter(PAY);
    const down: Shop = { ...at.shop, carrier: carrierAt("http://127.0.0.1:1") };
    await expect(ask(down, ACCEPT, { as: "sue", order })).rejects.toThrow("fetch failed"); // The gateway's 500.
    expect((await at.tell("GET /sales/{order}", { order })).body.status).toBe("PAID");
    expect((await at.tell(ACCEPT, { order })).status).toBe(200);
  });

  it("agrees to a refund once: the money goes back, the goods only if they were never sent", async () => {
    const before = at.local.provider.moved.length;
    const order = await at.orderAfter(PAY, ACCEPT);
    const headers = at.keyed();
    expect(await at.tell(AGREE, { order, headers: at.keyed() })).toMatchObject({
      status: 409,
      body: { detail: "agree to a refund: the order is ACCEPTED" },
    });
    await at.tell(ASK, { order });
    expect(await at.tell(AGREE, { order, headers })).toMatchObject({ status: 200, body: { status: "REFUNDED", refund: "AGREED" } });
    expect(await at.tell(AGREE, { order, headers })).toMatchObject({ status: 200, headers: { "idempotent-replayed": "true" } });
    expect(at.local.provider.moved.slice(before)).toEqual([2 * PRICE, -2 * PRICE]);
    expect(await at.local.pieces(at.camera)).toBe(STOCK - 2);
    await at.orderAfter(PAY, ASK, AGREE);
    expect(await at.local.pieces(at.camera)).toBe(STOCK - 2); // Only the first order took pieces.
  });

  it("refuses a refund, and then can't agree to it", async () => {
    const order = await at.orderAfter(PAY, ASK, REFUSE);
    expect(await at.tell(AGREE, { order, headers: at.keyed() })).toMatchObject({ status: 409, body: { refund: "REFUSED" } });
    expect(await at.tell(REFUSE, { order })).toMatchObject({
      status: 409,
      body: { detail: "refuse a refund: the order is PAID, refund REFUSED" },
    });
  });
});
