/** The seven operations of the buyers' function. Each comment says which protection it takes; the README says why. */
import { itemsIn, pageIn, reviewIn } from "./input.js";
import { charge, giveBack } from "./money.js";
import { move, ownOrder } from "./move.js";
import { once } from "./once.js";
import { type Order, shown } from "./order.js";
import { badField, notNow, Refusal } from "./refusal.js";
import type { Answer, Operation, Routes, Shop } from "./shop.js";

/** A run: the same form sent twice is one order. No lock: the order is new to everybody, and the stock is one transaction. */
const place: Operation = async (shop, request) => {
  const items = itemsIn(request.body);
  return once(shop, request, "PLACE", items, async (run) => {
    const offer = await offerFor(shop, items);
    const id = (run.checkpoint as string | undefined) ?? shop.newId();
    await run.saveCheckpoint(id); // A later attempt places the same order.
    const placed = await shop.orders.place({ id, buyer: request.who, items, status: "PLACED", refund: "NONE", ...offer });
    if (placed !== "placed") {
      const { soldOut } = placed;
      throw new Refusal(409, "sold-out", `items.${soldOut}: there is not that much of it`, { field: `items.${soldOut}` });
    }
    return { status: 201, body: shown(await ownOrder(shop, "buyer", { ...request, order: id })) };
  });
};

/** A run and the lock. The run replays the response; the lock excludes a concurrent cancellation. */
const pay: Operation = (shop, request) =>
  once(shop, request, "PAY", { order: request.order }, async (run) =>
    ok(await move(shop, request, "pay", { run, effect: (order) => charge(shop, order) })),
  );

/** No protection. */
const list: Operation = async (shop, { who, query }) => {
  const { orders, ...page } = await shop.orders.list("buyer", who, pageIn(query, ["status", "before"]));
  return { status: 200, body: { orders: orders.map(shown), ...page } };
};

/** No protection. */
const show: Operation = async (shop, request) => ok(await ownOrder(shop, "buyer", request));

/** The lock: money and goods go back, while the seller may be about to accept. */
const cancel: Operation = async (shop, request) => ok(await move(shop, request, "cancel", { effect: (order) => giveBack(shop, order) }));

/** The lock: it changes one field, but others base decisions on that field while they hold the lock. */
const askForRefund: Operation = async (shop, request) => ok(await move(shop, request, "ask for a refund"));

/** A condition on the write: the rule concerns one item, and nothing depends on a review. */
const review: Operation = async (shop, request) => {
  if (await shop.orders.review(request.order, request.who, reviewIn(request.body))) return show(shop, request);
  const order = await ownOrder(shop, "buyer", request);
  throw order.review ? new Refusal(409, "not-allowed", "review: the order has one already") : notNow("review", order);
};

/** Returns the seller of the goods and their total. All goods of an order have one seller. */
async function offerFor({ orders }: Shop, items: Order["items"]): Promise<Pick<Order, "seller" | "total">> {
  let seller: string | undefined;
  let total = 0;
  for (const [name, pieces] of Object.entries(items)) {
    const product = await orders.product(name);
    if (!product) throw badField(`items.${name}`, "is no product");
    seller ??= product.soldBy;
    if (seller !== product.soldBy) throw badField(`items.${name}`, "is sold by another than the rest");
    total += pieces * product.price;
  }
  if (seller === undefined) throw badField("items", "must not be empty");
  return { seller, total };
}

function ok(order: Order): Answer {
  return { status: 200, body: shown(order) };
}

/** The buyers' function. */
export const BUYER: Routes = {
  "POST /orders": place,
  "POST /orders/{order}/payment": pay,
  "GET /orders": list,
  "GET /orders/{order}": show,
  "POST /orders/{order}/cancellation": cancel,
  "POST /orders/{order}/refund": askForRefund,
  "POST /orders/{order}/review": review,
};
