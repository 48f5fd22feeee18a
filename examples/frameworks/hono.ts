/** Hono, on Node, Lambda or any runtime with `fetch`. The lock wraps the function, not the route; `onError` answers refusals. */
import { Hono } from "hono";
import { idempotent, lockProblem } from "../../lib/hono.js";
import { type LockClient, key, locked } from "../../lib/index.js";
import { customerOf } from "./customer.js";
import type { Order, Orders } from "./orders.js";

/** The application: shipping holds the order's lock; creating happens once per `Idempotency-Key` of a customer. */
export function ordersApp(locks: LockClient, orders: Orders): Hono {
  const app = new Hono();
  const ship = locked({ locks, key: (id: string) => key("ORDER", id), waitMs: 2000 }, (id: string) => orders.ship(id));
  const once = idempotent({ locks, service: "orders", caller: ({ req }) => customerOf(req.raw.headers.get("authorization")) });

  app.post("/orders/:id/ship", async (c) => c.json(await ship(c.req.param("id"))));
  app.post("/orders", once, async (c) => c.json(await orders.create(await c.req.json<Order>()), 201));
  app.onError((error, c) => lockProblem(error, c) ?? c.text("Internal Server Error", 500));
  return app;
}
