/**
 * Express 5. The lock wraps the function that needs it, not the route: the response is sent when the lock is known to
 * have been held to the end. Express 5 passes a route's error to the error handler, which turns refusals into
 * responses.
 */
import type { ErrorRequestHandler, Express } from "express";
import express from "express";
import type { LockClient } from "../../lib/index.js";
import { idempotencyKeyOf, key, locked } from "../../lib/index.js";
import type { Order, Orders } from "./orders.js";
import { refusalOf } from "./refusal.js";

/** The application: paying holds the order's lock; creating happens once per `Idempotency-Key`. */
export function ordersApp(locks: LockClient, orders: Orders): Express {
  const app = express().use(express.json());

  const pay = locked({ locks, key: (id: string) => key("ORDER", id), waitMs: 2000 }, (id: string) => orders.pay(id));
  app.post("/orders/:id/pay", async (req, res) => void res.json(await pay(req.params.id)));

  app.post("/orders", async (req, res) => {
    // With authenticated callers, put the caller into the key first: key("orders", customer, idempotencyKeyOf(…)).
    const name = idempotencyKeyOf({ "Idempotency-Key": req.get("Idempotency-Key") });
    const order = req.body as Order;
    const { value, replayed } = await locks.runOnce(name, { payload: order, waitMs: 2000 }, () => orders.create(order));
    res
      .set(replayed ? { "Idempotent-Replayed": "true" } : {})
      .status(201)
      .json(value);
  });

  return app.use(answerRefusals);
}

/** The error handler, used after all routes. */
export const answerRefusals: ErrorRequestHandler = (error, _req, res, next) => {
  const refusal = refusalOf(error);
  if (refusal) res.status(refusal.status).set(refusal.headers).json(refusal.body);
  else next(error);
};
