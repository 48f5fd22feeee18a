/**
 * The one way to change an order that exists, for buyers and sellers alike:
 *
 *  1. whose order is it? Who has no part in it is sent away before there is a lock to hold;
 *  2. the lock: one key for all that is done to the order, whoever does it, in whichever function;
 *  3. read the order, now that nobody else changes it: is it in a state for this move?
 *  4. what happens elsewhere (money, a pickup), under keys of the order's own, since an attempt before this one may
 *     have done it and died;
 *  5. the write, under the lock's token: who lost the lock on the way to it changes nothing.
 */
import type { Run } from "../../lib/index.js";
import type { Move, Order, Role } from "./order.js";
import { keyOf, moved, TRANSITIONS } from "./order.js";
import { noSuchOrder, notNow } from "./refusal.js";
import type { Request, Shop } from "./shop.js";

/** What a move may bring with it. */
export interface Moving {
  /** What happens elsewhere, before the order says that it happened. Must bear to be repeated. */
  readonly effect?: (order: Order) => Promise<void>;
  /** The run that it is a part of. */
  readonly run?: Pick<Run, "idempotencyKey">;
}

/** Makes the move; the order after it. @throws Refusal; LockTimeoutError when others are at the order. */
export async function move(shop: Shop, request: Request, name: Move, { effect, run }: Moving = {}): Promise<Order> {
  await ownOrder(shop, TRANSITIONS[name].by, request);
  return shop.locks.withLock(keyOf(request.order), async (lease) => {
    const order = await ownOrder(shop, TRANSITIONS[name].by, request);
    if (run && order.lastRun === run.idempotencyKey) return order; // An attempt before this one got that far.
    const next = moved(order, name);
    if (!next) throw notNow(name, order);
    lease.assertHeld();
    await effect?.(order);
    const changed = run ? { ...next.order, lastRun: run.idempotencyKey } : next.order;
    await shop.orders.write({ order: changed, restocks: next.restocks }, lease.fencingToken);
    return changed;
  });
}

/** The order, if the caller is its buyer or its seller. Takes no lock: reading needs none. @throws Refusal when not. */
export async function ownOrder({ orders }: Pick<Shop, "orders">, role: Role, { who, order: id }: Request): Promise<Order> {
  const order = await orders.get(id);
  if (order?.[role] !== who) throw noSuchOrder(id);
  return order;
}
