/** Hono, on Node, Lambda or any runtime with `fetch`. The lock wraps the function, not the route; `onError` answers refusals. */
import { Hono } from "hono";
import type { LockClient } from "../../lib/index.js";
import { idempotencyKeyOf, key, locked } from "../../lib/index.js";
import type { Order, Orders } from "./orders.js";
import { refusalOf } from "./refusal.js";

/** The application: paying holds the order's lock; creating happens once per `Idempotency-Key`. */
export function ordersApp(locks: LockClient, orders: Orders): Hono {
  const app = new Hono();

  const pay = locked({ locks, key: (id: string) => key("ORDER", id), waitMs: 2000 }, (id: string) => orders.pay(id));
  app.post("/orders/:id/pay", async (c) => c.json(await pay(c.req.param("id"))));

  app.post("/orders", async (c) => {
    // With authenticated callers, put the caller into the key first: key("orders", customer, idempotencyKeyOf(…)).
    const [name, order] = [idempotencyKeyOf(c.req.raw.headers), await c.req.json<Order>()];
    const { value, replayed } = await locks.runOnce(name, { payload: order, waitMs: 2000 }, () => orders.create(order));
    return c.json(value, 201, replayed ? { "Idempotent-Replayed": "true" } : {});
  });

  app.onError((error, c) => {
    const refusal = refusalOf(error);
    return refusal ? c.json(refusal.body, refusal.status, refusal.headers) : c.text("Internal Server Error", 500);
  });
  return app;
}
