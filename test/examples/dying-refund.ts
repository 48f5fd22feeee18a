/** A process that requests a refund, to be killed while the provider withholds its response. */
import { providerAt } from "../../examples/payments/provider.js";
import { type RefundRequest, refund } from "../../examples/payments/refund.js";
import { engineLocation } from "../../infra/local/engine-client.js";
import { createLockClient } from "../../lib/dynamodb.js";

/** The process's instructions. */
export interface RefundOrder {
  readonly endpoint: string;
  readonly tableName: string;
  readonly providerUrl: string;
  readonly leaseMs: number;
  readonly request: RefundRequest;
}

const { endpoint, tableName, providerUrl, leaseMs, request } = JSON.parse(process.argv[2] ?? "") as RefundOrder;
const locks = createLockClient({ tableName, ...engineLocation(endpoint) });
await refund({ locks, provider: providerAt(providerUrl), leaseMs }, request);
