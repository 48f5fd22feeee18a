/**
 * Express 5. The lock wraps the function that needs it, not the route: the response is sent when the lock is known to
 * have been held to the end. The error handler turns refusals into problems.
 */
import type { Express, Request } from "express";
import express from "express";
import { idempotent, lockErrors } from "../../lib/express.js";
import { type LockClient, key, locked } from "../../lib/index.js";
import { customerOf } from "./customer.js";
import type { Order, Orders } from "./orders.js";

/** The application: shipping holds the order's lock; creating happens once per `Idempotency-Key` of a customer. */
export function ordersApp(locks: LockClient, orders: Orders): Express {
  const app = express().use(express.json());
  const ship = locked({ locks, key: (id: string) => key("ORDER", id), waitMs: 2000 }, (id: string) => orders.ship(id));
  const once = idempotent({ locks, service: "orders", caller: (req: Request) => customerOf(req.get("authorization")) });

  app.post("/orders/:id/ship", async (req, res) => void res.json(await ship(req.params.id)));
  app.post("/orders", once, async (req, res) => void res.status(201).json(await orders.create(req.body as Order)));
  return app.use(lockErrors);
}
