/**
 * A refund whose first attempt reached the provider and got no response. The second attempt takes the run over. It
 * can't know what the first one did, so it asks again under the same key, and the provider refunds once.
 */
import { type LockClient, type RunResult, key, LockError } from "../../lib/index.js";
import { type Provider, type Receipt, isRefusal, providerAt } from "./provider.js";
import { play } from "./till.js";

/** A requested refund. The requester chooses `refundId`: a payment may be refunded in parts, each with its own id. */
export interface RefundRequest {
  readonly refundId: string;
  readonly payment: string;
  readonly amount: number;
}

/** The dependencies of a refund. */
export interface RefundDesk {
  readonly locks: Pick<LockClient, "runOnce">;
  readonly provider: Provider;
  /** After this time and a margin, another attempt takes over from one that died. @default 30 000 */
  readonly leaseMs?: number;
}

/** Refunds once per `refundId`, however often it is called. Another amount under the same id is refused. */
export async function refund({ locks, provider, leaseMs = 30_000 }: RefundDesk, request: RefundRequest): Promise<RunResult<Receipt>> {
  const { refundId, payment, amount } = request;
  return locks.runOnce(key("refund", refundId), { payload: { payment, amount }, leaseMs, isFinal: isRefusal }, (run) =>
    provider.refund({ payment, amount }, run.idempotencyKey),
  );
}

await play(import.meta.url, async (till) => {
  const provider = providerAt(till.provider.url);
  const request = { refundId: "return-12", payment: "pay-7", amount: 1500 };
  await provider.charge({ payment: "pay-7", amount: 4900 }, "the buyer's own doing");

  const { reached, answer } = till.provider.withholdNext();
  const frozen = till.join();
  const first = refund({ locks: frozen, provider, leaseMs: 1000 }, request);
  await reached;
  await frozen.close(); // Stops renewing, as if its process were frozen or dead.

  const { value, attempt } = await refund({ locks: till.join(), provider, leaseMs: 1000 }, request);
  console.log(`attempt ${attempt}: ${value.id} gives back ${value.amount}`);
  console.log(`asked under ${till.provider.keys.slice(1).join(" and ")}, moved ${till.provider.moved.slice(1).join(", ")}`);

  const other = await refund({ locks: till.join(), provider }, { ...request, amount: 9900 }).catch((error: unknown) => error);
  console.log(`another amount: ${other instanceof LockError ? other.code : "not refused!"}`);
  answer();
  const woken = await first.catch((error: unknown) => error);
  console.log(`the first attempt wakes up: ${woken instanceof LockError ? woken.code : "and counts!"}`);
});
