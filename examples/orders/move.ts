/**
 * The one way to change an existing order, for buyers and sellers alike:
 *
 *   1. Check that the caller has a part in the order. Others are refused before they can take the lock.
 *   2. Take the lock: one key for all changes of the order, by any caller, in any function.
 *   3. Read the order, which nobody else can change now, and check that its state allows this move.
 *   4. Carry out the external effects (money, a pickup) under keys of the order's own. An earlier attempt may have
 *      carried them out and died.
 *   5. Write under the lock's token. A caller that lost the lock in the meantime changes nothing.
 */
import type { Run } from "../../lib/index.js";
import { type Move, type Order, type Role, keyOf, moved, TRANSITIONS } from "./order.js";
import { noSuchOrder, notNow } from "./refusal.js";
import type { Request, Shop } from "./shop.js";

/** Options of a move. */
export interface Moving {
  /** The external effect, carried out before the order records it. Must be safe to repeat. */
  readonly effect?: (order: Order) => Promise<void>;
  /** The run that the move is a part of. */
  readonly run?: Pick<Run, "idempotencyKey">;
}

/** Makes the move and returns the order after it. @throws Refusal; LockTimeoutError while others hold the order. */
export async function move(shop: Shop, request: Request, name: Move, { effect, run }: Moving = {}): Promise<Order> {
  await ownOrder(shop, TRANSITIONS[name].by, request);
  return shop.locks.withLock(keyOf(request.order), async (lease) => {
    const order = await ownOrder(shop, TRANSITIONS[name].by, request);
    if (run && order.lastRun === run.idempotencyKey) return order; // An earlier attempt got this far.
    const next = moved(order, name);
    if (!next) throw notNow(name, order);
    lease.assertHeld();
    await effect?.(order);
    const changed = run ? { ...next.order, lastRun: run.idempotencyKey } : next.order;
    await shop.orders.write({ order: changed, restocks: next.restocks }, lease.fencingToken);
    return changed;
  });
}

/** Returns the order if the caller is its buyer or its seller. Takes no lock, because reading needs none. @throws Refusal if not. */
export async function ownOrder(
  { orders }: Pick<Shop, "orders">,
  role: Role,
  { who, order: id }: Pick<Request, "who" | "order">,
): Promise<Order> {
  const order = await orders.get(id);
  if (order?.[role] !== who) throw noSuchOrder(id);
  return order;
}
