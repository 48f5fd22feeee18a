/** The eight operations of the sellers' function, on the same orders and under the same keys as the buyers'. */
import { pageIn } from "./input.js";
import { giveBack } from "./money.js";
import { move, ownOrder } from "./move.js";
import { once } from "./once.js";
import { type Order, keyOf, shown } from "./order.js";
import type { AcquireParams } from "./orders-table.js";
import type { Answer, Operation, Routes, Shop } from "./shop.js";

/** No protection. */
const search: Operation = (shop, { who, query }) => page(shop, who, pageIn(query, ["status", "product", "before"]));

/** No protection. */
const listOpen: Operation = (shop, { who, query }) => page(shop, who, { ...pageIn(query, ["before"]), status: "PAID" });

/** No protection. */
const listAccepted: Operation = (shop, { who, query }) => page(shop, who, { ...pageIn(query, ["before"]), status: "ACCEPTED" });

/** No protection. */
const show: Operation = async (shop, request) => ok(await ownOrder(shop, "seller", request));

/** The lock: a pickup is booked, while the buyer may be about to cancel. */
const accept: Operation = async (shop, request) =>
  ok(await move(shop, request, "accept", { effect: ({ id }) => shop.carrier.book(id, keyOf(id)) }));

/** The lock: it changes one field, but others base decisions on that field while they hold the lock. */
const complete: Operation = async (shop, request) => ok(await move(shop, request, "complete"));

/** A run and the lock. The run replays the response; the lock excludes a concurrent cancellation or refusal. */
const agreeToRefund: Operation = (shop, request) =>
  once(shop, request, "AGREE", { order: request.order }, async (run) =>
    ok(await move(shop, request, "agree to a refund", { run, effect: (order) => giveBack(shop, order) })),
  );

/** The lock: it changes one field, but the refund may be under way. */
const refuseRefund: Operation = async (shop, request) => ok(await move(shop, request, "refuse a refund"));

async function page({ orders }: Shop, who: string, wanted: AcquireParams): Promise<Answer> {
  const { orders: found, ...rest } = await orders.list("seller", who, wanted);
  return { status: 200, body: { orders: found.map(shown), ...rest } };
}

function ok(order: Order): Answer {
  return { status: 200, body: shown(order) };
}

/** The sellers' function. */
export const SELLER: Routes = {
  "GET /sales": search,
  "GET /sales/open": listOpen,
  "GET /sales/accepted": listAccepted,
  "POST /sales/{order}/acceptance": accept,
  "POST /sales/{order}/completion": complete,
  "GET /sales/{order}": show,
  "POST /sales/{order}/refund/agreement": agreeToRefund,
  "POST /sales/{order}/refund/refusal": refuseRefund,
};
