/**
 * The hand-over of an accepted order, as a durable function. Its execution holds the order's key while the goods are on the road, so
 * nobody gives the money back meanwhile, and nothing runs until it is over. The order is complete at the end.
 */
import type { DurableContext } from "@aws/durable-execution-sdk-js";
import { withDurableLock } from "../../lib/durable.js";
import { ownOrder } from "./move.js";
import { type Order, keyOf, moved, shown } from "./order.js";
import type { Request, Shop } from "./shop.js";

/** The time for which the goods are on the road. */
const ON_THE_ROAD = { hours: 2 };
/** The longest wait for others who hold the order. The execution is suspended for it. */
const WAIT_MS = 86_400_000;

/** The order, and its seller. */
export type HandOver = Pick<Request, "order" | "who">;

/** Completes the order two hours after it holds it. Returns the order; unchanged if it isn't accepted. @throws LockTimeoutError after a day */
export function handOver(shop: Pick<Shop, "locks" | "orders">, asked: HandOver, ctx: DurableContext): Promise<object> {
  return withDurableLock(ctx, shop.locks, keyOf(asked.order), { waitMs: WAIT_MS }, async (lock) => {
    const found = await lock.step("look", () => sold(shop, asked));
    if (found.status !== "ACCEPTED") return shown(found);
    await lock.wait("on the road", ON_THE_ROAD);
    return lock.step("complete", async ({ fencingToken }) => {
      // An attempt that died after its write left nothing to do.
      const next = moved(await sold(shop, asked), "complete");
      if (next) await shop.orders.write(next, fencingToken);
      return shown(await sold(shop, asked));
    });
  });
}

function sold(shop: Pick<Shop, "orders">, { order, who }: HandOver): Promise<Order> {
  return ownOrder(shop, "seller", { order, who });
}
