/** Plain Lambda handlers behind an HTTP API or a function URL, and one on a schedule. The wrappers answer refusals themselves. */
import type { APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2, ScheduledEvent } from "aws-lambda";
import { type LockClient, key } from "../../lib/index.js";
import { idempotencyHandler, lockHandler, withInvocation } from "../../lib/middy.js";
import { customerOf } from "./customer.js";
import type { Order, Orders } from "./orders.js";

/** The part of Lambda's context that is used: the invocation's remaining time. */
export interface LambdaContext {
  getRemainingTimeInMillis(): number;
}

/** A handler of an HTTP API. */
export type HttpHandler = (event: APIGatewayProxyEventV2, context: LambdaContext) => Promise<APIGatewayProxyStructuredResultV2>;

/** `POST /orders`: once per `Idempotency-Key` of a customer. A repeated request gets the same response. */
export function createHandler(locks: LockClient, orders: Orders): HttpHandler {
  const caller = ({ headers }: APIGatewayProxyEventV2): string => customerOf(headers["authorization"]);
  return idempotencyHandler({ locks, service: "orders", caller }, async ({ body = "{}" }: APIGatewayProxyEventV2) => {
    const order = await orders.create(JSON.parse(body) as Order);
    return { statusCode: 201, body: JSON.stringify(order) };
  });
}

/** `POST /orders/{id}/ship`: under the order's lock. */
export function shipHandler(locks: LockClient, orders: Orders): HttpHandler {
  const orderOf = ({ pathParameters }: APIGatewayProxyEventV2): string => pathParameters?.["id"] ?? "";
  return lockHandler({ locks, key: (event) => key("ORDER", orderOf(event)), waitMs: 2000 }, async (event: APIGatewayProxyEventV2) => {
    return { statusCode: 200, body: JSON.stringify(await orders.ship(orderOf(event))) };
  });
}

/** A schedule that must not overlap: an invocation that finds the previous one still running ends successfully. */
export function reminders(
  locks: LockClient,
  remind: () => Promise<void>,
): (event: ScheduledEvent, context: LambdaContext) => Promise<void> {
  return lockHandler({ locks, key: () => "REMINDERS", whenHeld: "skip" }, () => remind());
}

/** Locks taken in the middle of a handler: waits are bounded by the invocation, and all locks are released when it ends. */
export function sweep(
  locks: LockClient,
  orders: Orders,
  open: () => Promise<readonly string[]>,
): (event: ScheduledEvent, context: LambdaContext) => Promise<void> {
  return withInvocation(locks, async (_event, _context, view) => {
    for (const id of await open()) await view.withLock(key("ORDER", id), () => orders.ship(id));
  });
}
