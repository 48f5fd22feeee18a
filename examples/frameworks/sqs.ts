/**
 * A queue of orders to ship, for an event source with `ReportBatchItemFailures`: without it, SQS deletes what failed. Each message's work happens once,
 * however often the message is delivered, and failed messages are delivered again. A FIFO queue keeps the order within
 * each message group.
 */
import type { SQSBatchResponse, SQSEvent, SQSRecord } from "aws-lambda";
import { type LockClient, key } from "../../lib/index.js";
import { sqsHandler } from "../../lib/middy.js";
import type { LambdaContext } from "./lambda.js";
import type { Orders } from "./orders.js";

/** The queue's handler. The key is the order's own, because a sender may also send a message twice. */
export function shipmentsQueue(locks: LockClient, orders: Orders): (event: SQSEvent, context: LambdaContext) => Promise<SQSBatchResponse> {
  const orderOf = ({ body }: SQSRecord): string => (JSON.parse(body) as { readonly order: string }).order;
  const keyFor = (message: SQSRecord): string => key("ship", orderOf(message));
  const onFailure = ({ messageId }: SQSRecord, error: unknown): void => console.error(messageId, error);
  return sqsHandler({ locks, keyFor, onFailure }, (message) => orders.ship(orderOf(message)));
}
