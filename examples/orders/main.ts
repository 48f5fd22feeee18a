/** The entry point on Lambda: the three functions' handlers, configured from the environment that the stack sets. */
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { withDurableExecution } from "@aws/durable-execution-sdk-js";
import { randomUUID } from "node:crypto";
import { createLockClient } from "../../lib/index.js";
import { sigv4 } from "../../lib/sigv4.js";
import { providerAt } from "../payments/provider.js";
import { BUYER } from "./buyer.js";
import { carrierAt } from "./carrier.js";
import { type HandOver, handOver } from "./hand-over.js";
import { handlerFor } from "./http.js";
import { ordersIn } from "./orders-table.js";
import { SELLER } from "./seller.js";
import type { Shop } from "./shop.js";

const shop: Shop = {
  locks: createLockClient({ sign: sigv4() }), // HOLDFAST_URL
  orders: ordersIn({ documents: DynamoDBDocumentClient.from(new DynamoDBClient({})), TableName: given("ORDERS_TABLE") }),
  provider: providerAt(given("PROVIDER_URL")),
  carrier: carrierAt(given("CARRIER_URL")),
  newId: () => `${Date.now().toString(36)}-${randomUUID().slice(0, 8)}`,
};

/** The buyers' function. */
export const buyer = handlerFor(BUYER, shop);
/** The sellers' function. */
export const seller = handlerFor(SELLER, shop);
/** The function of hand-overs, which is durable. */
export const carrier = withDurableExecution((asked: HandOver, ctx) => handOver(shop, asked, ctx));

function given(name: string): string {
  const value = process.env[name];
  if (value === undefined || value === "") throw new Error(`${name} is not set`);
  return value;
}
