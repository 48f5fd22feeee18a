/**
 * The same refunds from a queue, which delivers each message at least once: an SQS handler for an event source with
 * `ReportBatchItemFailures`. The key is the refund's own, because a sender may also send a message twice.
 */
import { type BatchRecord, type BatchResponse, type InvocationContext, type LockClient, key, runBatch } from "../../lib/index.js";
import { type Provider, isRefusal, providerAt } from "./provider.js";
import type { RefundRequest } from "./refund.js";
import { play } from "./till.js";

/** The event that SQS passes to a function. */
export interface QueueEvent {
  readonly Records: readonly BatchRecord[];
}

/** The handler of the queue. */
export function refundQueue(
  locks: LockClient,
  provider: Provider,
): (event: QueueEvent, context: InvocationContext) => Promise<BatchResponse> {
  const requestOf = ({ body }: BatchRecord): RefundRequest => JSON.parse(body) as RefundRequest;
  const keyFor = (record: BatchRecord): string => key("refund", requestOf(record).refundId);
  const onFailure = ({ messageId }: BatchRecord, error: unknown): void => console.log(`message ${messageId} failed: ${String(error)}`);
  return (event, context) =>
    runBatch(locks, event, context, { keyFor, isFinal: isRefusal, onFailure }, async (record, run) => {
      const { payment, amount } = requestOf(record);
      return provider.refund({ payment, amount }, run.idempotencyKey);
    });
}

await play(import.meta.url, async (till) => {
  const provider = providerAt(till.provider.url);
  await provider.charge({ payment: "pay-7", amount: 4900 }, "the buyer's own doing");
  const body = (refundId: string, amount: number): string => JSON.stringify({ refundId, payment: "pay-7", amount });
  const Records = [
    { messageId: "1", body: body("return-12", 1500) },
    { messageId: "2", body: body("return-12", 1500) }, // The sender wasn't sure, and sent it again.
    { messageId: "3", body: body("return-13", 9900) }, // More than is left: fails on every delivery, until the queue gives up.
  ];
  const context = { getRemainingTimeInMillis: () => 30_000 };
  const handler = refundQueue(till.join(), provider);
  console.log("first delivery:", JSON.stringify(await handler({ Records }, context)));
  console.log("delivered again:", JSON.stringify(await handler({ Records }, context)));
  console.log("moved:", till.provider.moved.slice(1).join(", "));
});
