/**
 * Fastify 5. The lock wraps the function that needs it, `idempotent` wraps the route's handler, and the error handler
 * turns refusals into problems.
 */
import type { FastifyInstance, FastifyRequest } from "fastify";
import fastify from "fastify";
import { idempotent, lockErrors } from "../../lib/fastify.js";
import { type LockClient, key, locked } from "../../lib/index.js";
import { customerOf } from "./customer.js";
import type { Order, Orders } from "./orders.js";

/** The application: shipping holds the order's lock; creating happens once per `Idempotency-Key` of a customer. */
export function ordersApp(locks: LockClient, orders: Orders): FastifyInstance {
  const app = fastify();
  const ship = locked({ locks, key: (id: string) => key("ORDER", id), waitMs: 2000 }, (id: string) => orders.ship(id));
  const caller = ({ headers }: FastifyRequest): string => customerOf(headers.authorization);

  app.post<{ Params: { id: string } }>("/orders/:id/ship", (request) => ship(request.params.id));
  app.post(
    "/orders",
    idempotent({ locks, service: "orders", caller }, async (request, reply) =>
      reply.code(201).send(await orders.create(request.body as Order)),
    ),
  );
  app.setErrorHandler(lockErrors);
  return app;
}
