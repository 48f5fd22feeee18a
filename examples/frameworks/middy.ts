/**
 * Middy. Use `idempotencyMiddleware` first: it records the final response, and its replays skip all other middlewares.
 * Use `lockMiddleware` last, so that nothing comes between it and the handler. If another middleware answers early (a
 * cache, a warm-up), put `idempotencyHandler` around Middy instead.
 */
import middy from "@middy/core";
import type { APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2 } from "aws-lambda";
import { type LockClient, key } from "../../lib/index.js";
import { idempotencyMiddleware, lockMiddleware } from "../../lib/middy.js";
import { customerOf } from "./customer.js";
import type { Order, Orders } from "./orders.js";

/** `POST /orders`: once per `Idempotency-Key` of a customer. The handler gets its run as `context.run`. */
export function createHandler(locks: LockClient, orders: Orders) {
  const caller = ({ headers }: APIGatewayProxyEventV2): string => customerOf(headers["authorization"]);
  return middy<APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2>()
    .use(idempotencyMiddleware({ locks, service: "orders", caller }))
    .handler(async ({ body = "{}" }) => ({
      statusCode: 201,
      body: JSON.stringify(await orders.create(JSON.parse(body) as Order)),
    }));
}

/** `POST /orders/{id}/ship`: under the order's lock. The handler gets its lease as `context.lease`. */
export function shipHandler(locks: LockClient, orders: Orders) {
  const orderOf = ({ pathParameters }: APIGatewayProxyEventV2): string => pathParameters?.["id"] ?? "";
  return middy<APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2>()
    .use(lockMiddleware({ locks, key: (event: APIGatewayProxyEventV2) => key("ORDER", orderOf(event)), waitMs: 2000 }))
    .handler(async (event) => ({ statusCode: 200, body: JSON.stringify(await orders.ship(orderOf(event))) }));
}
