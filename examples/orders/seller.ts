/** What sellers do: the eight operations of their function, on the same orders and under the same keys as the buyers'. */
import { pageIn } from "./input.js";
import { giveBack } from "./money.js";
import { move, ownOrder } from "./move.js";
import { once } from "./once.js";
import type { Order } from "./order.js";
import { keyOf, shown } from "./order.js";
import type { AcquireParams } from "./orders-table.js";
import type { Answer, Operation, Routes, Shop } from "./shop.js";

/** Nothing. */
const search: Operation = (shop, { who, query }) => page(shop, who, pageIn(query, ["status", "product", "before"]));

/** Nothing. */
const listOpen: Operation = (shop, { who, query }) => page(shop, who, { ...pageIn(query, ["before"]), status: "PAID" });

/** Nothing. */
const listAccepted: Operation = (shop, { who, query }) => page(shop, who, { ...pageIn(query, ["before"]), status: "ACCEPTED" });

/** Nothing. */
const show: Operation = async (shop, request) => ok(await ownOrder(shop, "seller", request));

/** The lock: a pickup is booked, while the buyer may be about to cancel. */
const accept: Operation = async (shop, request) =>
  ok(await move(shop, request, "accept", { effect: ({ id }) => shop.carrier.book(id, keyOf(id)) }));

/** The lock: one field, but one that others decide by while they hold it. */
const complete: Operation = async (shop, request) => ok(await move(shop, request, "complete"));

/** Once, and under the lock: the run gives the same answer again, the lock keeps out whoever cancels or refuses meanwhile. */
const agreeToRefund: Operation = (shop, request) =>
  once(shop, request, "AGREE", { order: request.order }, async (run) =>
    ok(await move(shop, request, "agree to a refund", { run, effect: (order) => giveBack(shop, order) })),
  );

/** The lock: one field, but the money may be on its way back. */
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
