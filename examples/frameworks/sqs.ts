/**
 * A queue of orders to pay, for an event source with `ReportBatchItemFailures`: each message's work once, however often
 * it is delivered; what failed comes again. Of a FIFO queue the order within each message group is kept.
 */
import type { SQSBatchResponse, SQSEvent, SQSRecord } from "aws-lambda";
import type { LockClient } from "../../lib/index.js";
import { key } from "../../lib/index.js";
import { sqsHandler } from "../../lib/middy.js";
import type { LambdaContext } from "./lambda.js";
import type { Orders } from "./orders.js";

/** The queue's handler. Its key is the order's own: whoever sends a message may do so twice as well. */
export function paymentsQueue(locks: LockClient, orders: Orders): (event: SQSEvent, context: LambdaContext) => Promise<SQSBatchResponse> {
  const orderOf = ({ body }: SQSRecord): string => (JSON.parse(body) as { readonly order: string }).order;
  const keyFor = (message: SQSRecord): string => key("pay", orderOf(message));
  const onFailure = ({ messageId }: SQSRecord, error: unknown): void => console.error(messageId, error);
  return sqsHandler({ locks, keyFor, onFailure }, (message) => orders.pay(orderOf(message)));
}
